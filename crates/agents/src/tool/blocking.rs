//! Work that waits for a disk, on threads that may block, and cancelled when the caller is gone.

use workspace::{CancelOnDrop, Cancellation};

use super::ToolError;
use crate::task;

/// Runs work on a thread that may block. Dropping the future cancels it.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&Cancellation) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancellation = Cancellation::default();
    let cancel_on_drop = CancelOnDrop(cancellation.clone());
    let done = task::try_blocking(move || work(&cancellation)).await;
    drop(cancel_on_drop);
    done.unwrap_or_else(|_| {
        Err(ToolError("this tool failed because of a defect in it; try another way".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use workspace::FileError;

    #[tokio::test(flavor = "multi_thread")]
    async fn work_is_cancelled_when_its_future_is_dropped() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (stopped, has_stopped) = tokio::sync::oneshot::channel();
        let work = run_blocking(move |cancellation| {
            started.send(()).unwrap();
            while !cancellation.is_cancelled() {
                std::thread::yield_now();
            }
            stopped.send(cancellation.check()).unwrap();
            Ok(())
        });
        tokio::select! {
            done = work => panic!("{done:?}"),
            started = has_started => started.unwrap(),
        }
        let stopped = tokio::time::timeout(Duration::from_secs(60), has_stopped).await;
        assert_eq!(stopped.unwrap().unwrap(), Err(FileError::Cancelled));
    }
}
