//! For how long something is tried again that a lost connection interrupted.
//!
//! Promises: nothing is tried again for ever.
//! Must not know: what is tried.

use std::time::Duration;

use tokio::time::Instant;

/// What is left of it.
#[derive(Debug, Clone)]
pub(super) struct RetryLimit {
    patience: Duration,
    until: Instant,
    has_ended: bool,
}

impl RetryLimit {
    pub(super) fn begin(patience: Duration) -> Self {
        Self { patience, until: Instant::now() + patience, has_ended: false }
    }

    /// Until when the server is tried to be reached.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Whether to try once more. Once also when it has ended, with as much time as there was at first: all of that may have been
    /// spent on a connection that gave no answer, while the server is there.
    pub(super) fn allows_retry(&mut self) -> bool {
        let now = Instant::now();
        match (self.has_ended, now < self.until) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => {
                self.has_ended = true;
                self.until = now + self.patience;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_took_all_of_it_is_tried_once_more() {
        let time = Duration::from_secs(2);
        let mut patience = RetryLimit::begin(time);
        assert!(patience.allows_retry() && patience.allows_retry());
        tokio::time::advance(time * 2).await;
        assert!(patience.allows_retry(), "once");
        assert_eq!(patience.until(), Instant::now() + time, "not at once");
        assert!(!patience.allows_retry());
        tokio::time::advance(time).await;
        assert!(!patience.allows_retry());
    }
}
