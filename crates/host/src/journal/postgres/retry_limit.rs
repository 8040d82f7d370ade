//! For how long something is tried again that a lost connection interrupted.
//!
//! Promises: nothing is tried again for ever.
//! Must not know: what is tried.

use std::time::Duration;

use tokio::time::Instant;

/// What is left of it.
#[derive(Debug, Clone)]
pub(super) struct RetryLimit {
    until: Instant,
    has_ended: bool,
}

impl RetryLimit {
    pub(super) fn begin(patience: Duration) -> Self {
        Self::ending_at(Instant::now() + patience)
    }

    /// What is left of one that began before.
    pub(super) fn ending_at(until: Instant) -> Self {
        Self {
            until,
            has_ended: false,
        }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether to try once more. Once also when it has ended: all of it may have been spent on a connection that gave no answer, while
    /// the server is there.
    pub(super) fn allows_retry(&mut self) -> bool {
        let has_ended = Instant::now() >= self.until;
        let had_ended = self.has_ended;
        self.has_ended |= has_ended;
        !(has_ended && had_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_took_all_of_it_is_tried_once_more() {
        let mut patience = RetryLimit::begin(Duration::from_secs(2));
        assert!(patience.allows_retry() && patience.allows_retry());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(patience.allows_retry(), "once");
        assert!(!patience.allows_retry());
    }
}
