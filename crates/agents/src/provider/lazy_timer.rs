//! A timer for something that is put off with every piece of an answer.
//!
//! Setting a timer of the runtime wakes the thread that waits for sockets. A deadline that is put off before it passes needs
//! none of that: the timer that is set fires early, once, and is then set for what is left.
//!
//! Promises: it fires by the time it was asked for, or earlier.
//! Must not know: what is waited for.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

#[derive(Debug, Default)]
pub(super) struct LazyTimer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl LazyTimer {
    /// Makes it fire by `at`. One that fires earlier stays as it is.
    pub(super) fn fire_by(&mut self, at: Instant) {
        match &mut self.sleep {
            Some(sleep) if sleep.deadline() <= at => {}
            Some(sleep) => sleep.as_mut().reset(at),
            None => self.sleep = Some(Box::pin(sleep_until(at))),
        }
    }

    /// Waits until it fires; what it is for may not be due yet, and it has to be set again.
    pub(super) async fn wait(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
        self.sleep = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_put_off_fires_early_and_one_that_comes_nearer_in_time() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut timer = LazyTimer::default();
        timer.fire_by(after(10));
        timer.fire_by(after(15));
        timer.wait().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(10));
        timer.fire_by(after(15));
        timer.fire_by(after(12));
        timer.wait().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(12));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_that_is_given_up_leaves_the_timer_as_it_was() {
        let begin = Instant::now();
        let mut timer = LazyTimer::default();
        timer.fire_by(begin + Duration::from_secs(10));
        let piece = tokio::time::sleep(Duration::from_secs(4));
        tokio::select! {
            () = timer.wait() => panic!("it fired before its time"),
            () = piece => {}
        }
        timer.wait().await;
        assert_eq!(begin.elapsed(), Duration::from_secs(10));
    }
}
