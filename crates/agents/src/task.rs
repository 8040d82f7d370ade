//! Starts background tasks and work that may block.
//!
//! Promises: work begins at once and goes on if its result is not awaited. Each function boxes the
//! work, so that the machinery of a task is compiled once and not for each future or closure.
//! Must not know: what the work is.

use std::any::Any;
use std::panic::resume_unwind;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

type BlockingWork = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Error of blocking work that ended without a result: it panicked, or the runtime stops.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkError {
    #[error(transparent)]
    Died(#[from] JoinError),
    #[error("the work ended without a result")]
    NoResult,
}

impl WorkError {
    /// Goes on with the panic of the work.
    fn resume(self) -> ! {
        match self {
            Self::Died(died) => resume_unwind(died.into_panic()),
            Self::NoResult => resume_unwind(Box::new(self.to_string())),
        }
    }
}

/// Starts a task on the runtime of the caller.
pub(crate) fn spawn(work: BoxFuture<'static, ()>) -> JoinHandle<()> {
    tokio::spawn(work)
}

/// Starts a task for a caller that need not be one.
pub(crate) fn spawn_on(runtime: &Handle, work: BoxFuture<'static, ()>) {
    runtime.spawn(work);
}

/// Runs work on a thread that may block; if no runtime is there, on the thread of the caller.
pub(crate) fn detach_blocking(work: Box<dyn FnOnce() + Send>) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}

/// Runs work on a thread that may block.
pub(crate) fn try_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, WorkError>> + Send + 'static {
    receive(start_blocking(Box::new(move || Box::new(work()))))
}

/// Runs work on a thread that may block; a panic of the work is one of the caller.
pub(crate) fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = T> + Send + 'static {
    receive_or_resume(start_blocking(Box::new(move || Box::new(work()))))
}

fn start_blocking(work: BlockingWork) -> JoinHandle<Box<dyn Any + Send>> {
    spawn_blocking(work)
}

async fn receive_or_resume<T: 'static>(started: JoinHandle<Box<dyn Any + Send>>) -> T {
    receive(started).await.unwrap_or_else(|error| error.resume())
}

async fn receive<T: 'static>(started: JoinHandle<Box<dyn Any + Send>>) -> Result<T, WorkError> {
    let result = started.await?;
    result.downcast().map(|result| *result).map_err(|_| WorkError::NoResult)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_comes_back_and_a_panic_is_told_apart() {
        assert_eq!(run_blocking(|| "done".to_owned()).await, "done");
        let died = try_blocking(|| -> u8 { panic!("defect") }).await.unwrap_err();
        assert!(died.to_string().contains("panicked"), "{died}");
    }

    #[tokio::test]
    #[should_panic = "defect"]
    async fn a_panic_of_the_work_is_one_of_the_caller() {
        run_blocking(|| panic!("defect")).await
    }
}
