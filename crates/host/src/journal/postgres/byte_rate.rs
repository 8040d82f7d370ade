//! How many bytes a second a space may record, and how long its next batch has to wait for that.
//!
//! Promises: a batch of any size goes sooner or later; what is above the rate is made up for by those that follow.
//! Must not know: what is recorded, where it goes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many seconds' worth may come at once.
const BURST_S: f64 = 2.0;

/// The rate of one space.
#[derive(Debug)]
pub(crate) struct ByteRate(Mutex<RateState>);

#[derive(Debug)]
struct RateState {
    /// Zero is any number.
    per_s: u64,
    /// What may be recorded at once; below zero it was too much.
    left: f64,
    reckoned_at: Instant,
}

impl Default for ByteRate {
    fn default() -> Self {
        Self(Mutex::new(RateState {
            per_s: 0,
            left: f64::INFINITY,
            reckoned_at: Instant::now(),
        }))
    }
}

impl ByteRate {
    pub(crate) fn set(&self, per_s: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.per_s = per_s;
    }

    /// How long a batch of so many bytes has to wait; it is counted.
    #[expect(clippy::cast_precision_loss, reason = "sizes of batches are small")]
    pub(crate) fn delay_of(&self, bytes: usize) -> Duration {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.per_s == 0 {
            return Duration::ZERO;
        }
        let (now, rate) = (Instant::now(), state.per_s as f64);
        let since = now.duration_since(state.reckoned_at).as_secs_f64();
        let before = (state.left + since * rate).min(rate * BURST_S);
        (state.left, state.reckoned_at) = (before - bytes as f64, now);
        // It waits for those before it; those behind it wait for it.
        match before < 0.0 {
            true => Duration::try_from_secs_f64(-before / rate).unwrap_or(Duration::ZERO),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_above_the_rate_waits_and_no_batch_is_too_large() {
        let rate = ByteRate::default();
        assert_eq!(rate.delay_of(usize::MAX / 2), Duration::ZERO, "any number");
        rate.set(1_000);
        assert_eq!(rate.delay_of(5_000), Duration::ZERO, "however large");
        // Two seconds' worth came at once, so three are left to make up for.
        assert_eq!(rate.delay_of(1), Duration::from_secs(3));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(rate.delay_of(1), Duration::ZERO);
    }
}
