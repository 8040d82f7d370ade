//! How long to wait before the next attempt: doubling up to a bound, and anything below that by chance, so that clients
//! which lost their host together do not reconnect together.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The bound of the first wait.
const FIRST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Backoff {
    max: Duration,
    attempt: u32,
}

impl Backoff {
    pub(super) fn new(max: Duration) -> Self {
        Self { max, attempt: 0 }
    }

    /// The number of the next attempt and the wait before it.
    pub(super) fn next(&mut self) -> (u32, Duration) {
        self.attempt = self.attempt.saturating_add(1);
        let bound = self.bound();
        let chance = RandomState::new().build_hasher().finish();
        let share = (chance >> 32) as f64 / f64::from(u32::MAX);
        (self.attempt, bound.mul_f64(share))
    }

    fn bound(&self) -> Duration {
        let doublings = self.attempt.saturating_sub(1).min(20);
        FIRST.saturating_mul(1 << doublings).min(self.max)
    }

    /// A connection lasted this long. One that ends at once counts as a failed attempt, or a host that takes connections
    /// and drops them would be asked without pause.
    pub(super) fn record_connection(&mut self, lasted: Duration) {
        if lasted >= self.max {
            self.attempt = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_start_over_after_a_lasting_connection() {
        let max = Duration::from_secs(10);
        let mut backoff = Backoff::new(max);
        let mut bounds = Vec::new();
        for attempt in 1..=9 {
            let (number, wait) = backoff.next();
            assert_eq!(number, attempt);
            assert!(wait <= backoff.bound(), "{wait:?}");
            bounds.push(backoff.bound().as_millis());
        }
        assert_eq!(bounds, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
        backoff.record_connection(Duration::from_secs(1));
        assert_eq!(backoff.next().0, 10);
        backoff.record_connection(max);
        assert_eq!(backoff.next().0, 1);
    }

    #[test]
    fn two_clients_do_not_wait_the_same() {
        let waits = |_| {
            let mut backoff = Backoff::new(Duration::from_secs(10));
            (0..8).map(|_| backoff.next().1).collect::<Vec<_>>()
        };
        assert_ne!(waits(0), waits(1));
    }
}
