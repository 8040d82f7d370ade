//! How long a model has said nothing.
//!
//! Promises: each whole multiple of what is shown is reported once, however often something without content comes between.
//! Must not know: to whom it is reported.

use std::time::Duration;

use tokio::time::Instant;

/// How long nothing of an answer has come, and when to say so next.
pub(super) struct SilenceTimer {
    since: Instant,
    every: Duration,
    /// How many multiples were reported.
    reported: u32,
}

impl SilenceTimer {
    pub(super) fn begin(every: Duration) -> Self {
        Self { since: Instant::now(), every: every.max(Duration::from_millis(1)), reported: 0 }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Something of the answer came.
    pub(super) fn end(&mut self) {
        self.since = Instant::now();
        self.reported = 0;
    }

    /// How long it has lasted, if that is to be reported now.
    pub(super) fn take_due(&mut self) -> Option<Duration> {
        let elapsed = self.elapsed();
        let multiples = elapsed.as_nanos() / self.every.as_nanos();
        let multiples = u32::try_from(multiples).unwrap_or(u32::MAX);
        if multiples <= self.reported {
            return None;
        }
        self.reported = multiples;
        Some(elapsed)
    }

    /// Until it is to be reported next.
    pub(super) fn next_pause(&self) -> Duration {
        self.every.saturating_mul(self.reported.saturating_add(1)).saturating_sub(self.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn every_multiple_is_reported_once_however_often_it_is_asked() {
        let mut silence = SilenceTimer::begin(10 * SECOND);
        let mut reported = Vec::new();
        for _ in 0..350 {
            tokio::time::advance(SECOND / 10).await;
            reported.extend(silence.take_due().map(|elapsed| elapsed.as_secs()));
        }
        assert_eq!(reported, [10, 20, 30]);
        assert_eq!(silence.next_pause(), 5 * SECOND);
        silence.end();
        assert_eq!(silence.take_due(), None);
        assert_eq!(silence.next_pause(), 10 * SECOND);
    }
}
