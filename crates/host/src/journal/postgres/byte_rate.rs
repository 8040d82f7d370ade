//! How many bytes a second a space may record, and how long its next batch has to wait for that.
//!
//! Promises: a batch of any size goes sooner or later; what is above the rate is made up for by those that follow.
//! Must not know: what is recorded, where it goes.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many seconds' worth may come at once.
const BURST_S: f64 = 2.0;

/// A space that writes too much writes now and then all the same.
const DELAY_MAX: Duration = Duration::from_secs(5);

/// The rate of one space.
#[derive(Debug)]
pub(crate) struct ByteRate {
    state: Mutex<RateState>,
    /// Nothing waits any more.
    lifted: CancellationToken,
}

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
        let state = RateState { per_s: 0, left: f64::INFINITY, reckoned_at: Instant::now() };
        Self { state: Mutex::new(state), lifted: CancellationToken::new() }
    }
}

impl ByteRate {
    pub(crate) fn set(&self, per_s: u64) {
        self.state.lock().per_s = per_s;
    }

    /// From now on nothing waits, nor what does already: somebody else waits for the space.
    pub(crate) fn lift(&self) {
        self.lifted.cancel();
    }

    /// Waits until a batch of so many bytes may go.
    pub(super) async fn wait_for(&self, bytes: usize) {
        let delay = self.delay_of(bytes).min(DELAY_MAX);
        if delay.is_zero() || self.lifted.is_cancelled() {
            return; // it may go at once
        }
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.lifted.cancelled() => {}
        }
    }

    /// How long a batch of so many bytes has to wait; it is counted.
    #[expect(clippy::cast_precision_loss, reason = "sizes of batches are small")]
    pub(crate) fn delay_of(&self, bytes: usize) -> Duration {
        let mut state = self.state.lock();
        if state.per_s == 0 {
            return Duration::ZERO;
        }
        let (now, rate) = (Instant::now(), state.per_s as f64);
        let since = now.duration_since(state.reckoned_at).as_secs_f64();
        let before = (state.left + since * rate).min(rate * BURST_S);
        (state.left, state.reckoned_at) = (before - bytes as f64, now);
        // It waits for those before it; those behind it wait for it.
        if before < 0.0 {
            Duration::try_from_secs_f64(-before / rate).unwrap_or(Duration::ZERO)
        } else {
            Duration::ZERO
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

    #[tokio::test(start_paused = true)]
    async fn what_waits_goes_at_once_when_the_rate_is_lifted() {
        let rate = ByteRate::default();
        rate.set(1_000);
        rate.wait_for(100_000).await;
        let began = Instant::now();
        rate.wait_for(1).await;
        assert_eq!(began.elapsed(), DELAY_MAX);
        let ((), ()) = tokio::join!(rate.wait_for(1), async { rate.lift() });
        rate.wait_for(100_000).await;
        rate.wait_for(1).await;
        assert_eq!(began.elapsed(), DELAY_MAX);
    }
}
