//! Whether the runtime that serves spaces still runs anything.
//!
//! Heartbeats have a thread of their own, so that a busy node does not seem to be gone (ADR 0120). One whose spaces get no turn at all
//! any more must seem so: others take them.
//!
//! Promises: a runtime that ran a task within `STALLED_MS` is not stalled.
//! Must not know: heartbeats, spaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::heartbeat::boot_now;
use super::lease_table::BootInstant;
use super::node::ClusterShared;

/// Nothing that spaces do takes as long. A machine that has less for the node than that has nothing for it.
const STALLED_MS: u64 = 30_000;
const PULSE_EVERY: Duration = Duration::from_secs(1);

/// When the runtime last ran a task.
pub(super) struct RuntimePulse(AtomicU64);

impl RuntimePulse {
    pub(super) fn new(now: BootInstant) -> Self {
        Self(AtomicU64::new(now.0))
    }

    fn note(&self, now: BootInstant) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// Whether it has run nothing for so long that the node is as good as gone.
    pub(super) fn is_stalled(&self, now: BootInstant) -> bool {
        now.0.saturating_sub(self.0.load(Ordering::Relaxed)) >= STALLED_MS
    }
}

/// Runs among the spaces, and says so until the node ends.
pub(super) async fn keep_pulse(node: Arc<ClusterShared>) {
    let mut due = interval(PULSE_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = node.stop.cancelled() => return,
            _at = due.tick() => node.pulse.note(boot_now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_runtime_is_not_stalled_and_one_that_stands_still_is() {
        let pulse = RuntimePulse::new(BootInstant(1_000));
        assert!(!pulse.is_stalled(BootInstant(1_000 + STALLED_MS - 1)));
        assert!(pulse.is_stalled(BootInstant(1_000 + STALLED_MS)));
        pulse.note(BootInstant(40_000));
        assert!(!pulse.is_stalled(BootInstant(41_000)));
        assert!(!pulse.is_stalled(BootInstant(0)), "before it was noted");
    }
}
