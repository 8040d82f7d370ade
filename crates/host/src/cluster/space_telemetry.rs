//! Telemetry of the spaces that are loaded when they are wanted: one task for all of them, so that a space at rest has none.
//!
//! Promises: nothing is asked of a space that nobody uses, unless a collector wants to know of it; looking at a space does not keep
//! it loaded.
//! Must not know: what is measured.

use std::sync::Arc;

use kernel::Input;
use tokio::time::{MissedTickBehavior, interval};

use super::node::ClusterShared;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::net::Admission;
use crate::telemetry::{TELEMETRY_EVERY, open_collector};

/// Tells until the node is gone.
pub(super) async fn tell_telemetry(node: Arc<ClusterShared>) {
    let collector = match &node.config.otlp_endpoint {
        Some(endpoint) => open_collector(endpoint).await,
        None => None,
    };
    let mut due = interval(TELEMETRY_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = node.stop.cancelled() => return,
            _at = due.tick() => {}
        }
        for (admission, queue) in list_spaces(&node, collector.is_some()) {
            // The log is that of the process, and for none of their clients.
            let batch = admission.telemetry.take_batch(admission.connections(), false);
            let Some(batch) = batch else {
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
}

/// Those that may be measured. Not through handles that count as use: looking is not using.
fn list_spaces(node: &ClusterShared, is_collected: bool) -> Vec<(Arc<Admission>, KernelQueue)> {
    let handles = node.handles.lock();
    let measured = handles
        .values()
        .filter(|handle| handle.is_on_demand())
        .filter(|handle| is_collected || handle.is_used());
    measured.map(|handle| (Arc::clone(&handle.admission), handle.queue.clone())).collect()
}
