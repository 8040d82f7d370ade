//! How long the database takes for a batch of a space lately: checked before something begins that writes for long.
//! Each space is judged by its own batches: one that writes what takes long keeps no other from anything.
//!
//! Promises: a batch that is not answered yet counts with the time it has taken so far; time in which the server was away does not
//! count, since a restart is nobody's business; a database that was slow is believed to be fast again a few seconds later.
//! Must not know: what follows from it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// For how long a batch that was answered late is remembered.
const REMEMBERED: Duration = Duration::from_secs(5);

/// How long the batches of a space take.
#[derive(Debug, Clone, Default)]
pub(super) struct AppendPace(Arc<Mutex<PaceState>>);

#[derive(Debug, Default)]
struct PaceState {
    begun: u64,
    /// When those that are under way were handed over; a space has one at a time, or a few whose connections were lost.
    under_way: Vec<(u64, Instant)>,
    /// When one was answered, and how long it took: the slowest of those that are remembered.
    slowest: Option<(Instant, Duration)>,
}

/// A batch under way.
#[derive(Debug)]
pub(super) struct PacedAppend {
    pace: AppendPace,
    number: u64,
}

impl AppendPace {
    /// A batch goes to the server, which has waited for others so long.
    pub(super) fn begin(&self, waited: Duration) -> PacedAppend {
        let now = Instant::now();
        let mut state = self.0.lock();
        let number = state.begun;
        state.begun += 1;
        let since = now.checked_sub(waited).unwrap_or(now);
        state.under_way.push((number, since));
        PacedAppend { pace: self.clone(), number }
    }

    /// How long a batch takes at the moment.
    pub(super) fn current(&self) -> Duration {
        let now = Instant::now();
        let state = self.0.lock();
        let oldest = state
            .under_way
            .iter()
            .map(|(_, since)| *since)
            .min()
            .map(|since| now.duration_since(since));
        let slowest = state.slowest.filter(|(at, _)| now < *at + REMEMBERED).map(|(_, took)| took);
        oldest.max(slowest).unwrap_or_default()
    }
}

impl PacedAppend {
    /// The server has answered. One that was lost, and is dropped, says nothing about the next.
    pub(super) fn note_answer(self) {
        let now = Instant::now();
        let mut state = self.pace.0.lock();
        let mut under_way = state.under_way.iter();
        let Some((_, since)) = under_way.find(|(number, _)| *number == self.number) else {
            return; // only this value removes it
        };
        let took = now.duration_since(*since);
        let before = state.slowest.filter(|(at, _)| now < *at + REMEMBERED);
        if before.is_none_or(|(_, slowest)| took >= slowest) {
            state.slowest = Some((now, took));
        }
    }
}

impl Drop for PacedAppend {
    fn drop(&mut self) {
        self.pace.0.lock().under_way.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_and_what_was_slow_lately_count() {
        let pace = AppendPace::default();
        assert_eq!(pace.current(), Duration::ZERO);
        let ms = Duration::from_millis;
        let slow = pace.begin(ms(300));
        tokio::time::advance(ms(700)).await;
        assert_eq!(pace.current(), ms(1_000), "though it is not answered");
        slow.note_answer();
        pace.begin(ms(1)).note_answer();
        assert_eq!(pace.current(), ms(1_000), "it was so just now");
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(pace.current(), Duration::ZERO);
        let lost = pace.begin(ms(9_000));
        drop(lost);
        assert_eq!(pace.current(), Duration::ZERO, "nobody answered");
    }
}
