//! The one place that reads the time.
//!
//! Promises: it never jumps back; it follows tokio's clock, so that tests may pause it.
//! Must not know: what the time is used for.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;
use wire::Timestamp;

/// Wall time at start, advanced by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started_ms: i64,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_ms: i64::try_from(wall.as_millis()).unwrap_or(0), started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        Timestamp(self.started_ms + passed)
    }

    /// The instant at which [`Clock::now`] returns `moment`.
    pub(crate) fn instant_of(&self, moment: Timestamp) -> Instant {
        let ahead = u64::try_from(moment.0 - self.started_ms).unwrap_or(0);
        self.started + std::time::Duration::from_millis(ahead)
    }
}
