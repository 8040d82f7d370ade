//! How long a server has said nothing.
//!
//! Must not know: who is told.

use std::time::Duration;

use tokio::time::Instant;

/// How long nothing has come, and when to say so next.
pub(super) struct Silence {
    since: Instant,
    every: Duration,
}

impl Silence {
    pub(super) fn begin(every: Duration) -> Self {
        Self {
            since: Instant::now(),
            every,
        }
    }

    pub(super) fn lasted(&self) -> Duration {
        self.since.elapsed()
    }

    /// Something came.
    pub(super) fn end(&mut self) {
        self.since = Instant::now();
    }

    /// Until the next whole multiple of what is shown.
    pub(super) fn next_pause(&self) -> Duration {
        let every = self.every.as_nanos().max(1);
        let over = self.lasted().as_nanos() % every;
        Duration::from_nanos(u64::try_from(every - over).unwrap_or(u64::MAX))
    }
}
