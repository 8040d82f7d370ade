//! How long somebody works: a clock that stands still while anybody is waited for.
//!
//! Promises: what was taken is not counted again.
//! Must not know: what is worked on.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct WorkClock {
    since: Instant,
    worked: Duration,
    /// How many waits are under way: several calls may ask at once.
    waits: usize,
}

impl WorkClock {
    pub(super) fn start(now: Instant) -> Self {
        Self { since: now, worked: Duration::ZERO, waits: 0 }
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.count(now);
        self.waits += 1;
    }

    pub(super) fn resume(&mut self, now: Instant) {
        self.count(now);
        debug_assert!(self.waits > 0, "a wait ends once");
        self.waits = self.waits.saturating_sub(1);
    }

    /// What was worked since it was last asked.
    pub(super) fn take(&mut self, now: Instant) -> Duration {
        self.count(now);
        std::mem::take(&mut self.worked)
    }

    fn count(&mut self, now: Instant) {
        if self.waits == 0 {
            self.worked += now.saturating_duration_since(self.since);
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_until_the_last_wait_is_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut clock = WorkClock::start(start);
        clock.pause(at(10));
        clock.pause(at(20));
        clock.resume(at(30));
        assert_eq!(clock.take(at(40)), Duration::from_secs(10));
        clock.resume(at(50));
        assert_eq!(clock.take(at(57)), Duration::from_secs(7));
        assert_eq!(clock.take(at(57)), Duration::ZERO);
    }
}
