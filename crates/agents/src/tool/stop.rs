//! Work that may wait for a disk, away from the runtime's threads, and stopped when nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ToolError;

/// Whether work in progress should stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// For the middle of long work.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.is_set() {
            return Err(ToolError::stopped());
        }
        Ok(())
    }
}

/// Sets it when dropped.
struct Waiting(Stop);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl ToolError {
    /// Nobody reads this: whoever would have is gone.
    pub(super) fn stopped() -> Self {
        Self("stopped".to_owned())
    }
}

/// Does work on a thread where waiting harms nobody. Dropping the future sets the work's [`Stop`].
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = Stop::default();
    let waiting = Waiting(stop.clone());
    let done = tokio::task::spawn_blocking(move || work(&stop)).await;
    drop(waiting);
    done.unwrap_or_else(|_| {
        Err(ToolError(
            "this tool failed on its own account; try another way".to_owned(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn work_stops_when_nobody_waits() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (stopped, has_stopped) = tokio::sync::oneshot::channel();
        let work = off_thread(move |stop| {
            started.send(()).unwrap();
            while !stop.is_set() {
                std::thread::yield_now();
            }
            stopped.send(stop.check()).unwrap();
            Ok(())
        });
        tokio::select! {
            done = work => panic!("{done:?}"),
            started = has_started => started.unwrap(),
        }
        let stopped = tokio::time::timeout(Duration::from_secs(60), has_stopped).await;
        assert_eq!(stopped.unwrap().unwrap(), Err(ToolError::stopped()));
    }
}
