//! Sends what happened, at an interval: to the kernel, for the clients that subscribed, and to a collector.

use std::sync::Arc;
use std::time::Duration;

use kernel::Input;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::Collector;
use super::layer::discard_log;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::net::Admission;

/// At least every 10 s while something changes (G-58).
pub(crate) const TELEMETRY_EVERY: Duration = Duration::from_secs(5);

/// Sends until told to stop. What cannot be sent at once is not waited for: the next batch comes soon.
pub(crate) async fn send_while_running(
    admission: Arc<Admission>,
    queue: KernelQueue,
    endpoint: Option<String>,
    with_log: bool,
    stop: CancellationToken,
) {
    let collector = match &endpoint {
        Some(endpoint) => open_collector(endpoint).await,
        None => None,
    };
    let telemetry = Arc::clone(&admission.telemetry);
    let mut ticks = tokio::time::interval(TELEMETRY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        let connections = admission.connections();
        let is_heard = collector.is_some() || connections > 0;
        if with_log && !is_heard {
            discard_log();
        }
        let Some(batch) = telemetry.take_batch(connections, with_log && is_heard) else {
            continue; // nothing happened
        };
        if let Some(collector) = &collector {
            collector.send(&batch).await;
        }
        // A kernel that has no room has better things to do.
        let input = QueuedInput::from(Input::Telemetry(Box::new(batch)));
        let _ = queue.try_send(input);
    }
}

pub(crate) async fn open_collector(endpoint: &str) -> Option<Collector> {
    let collector = Collector::new(endpoint).await;
    collector.unwrap_or_else(|why| {
        tracing::error!(why, "telemetry is not exported: otlp_endpoint cannot be used");
        None
    })
}

/// Exports the log of a process with several spaces, until told to stop. It does not go to their clients.
pub(crate) async fn export_log_while_running(endpoint: String, stop: CancellationToken) {
    let Some(collector) = open_collector(&endpoint).await else {
        return; // the log says why
    };
    let mut ticks = tokio::time::interval(TELEMETRY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        if let Some(batch) = super::take_log_batch() {
            collector.send(&batch).await;
        }
    }
}
