//! Tasks that start seldom: per process, connection, turn, call or effect, not per frame or commit.
//!
//! tokio's task code is compiled once for each type of future or closure that it is given. Here all
//! of them are boxed into a few types, which costs an allocation per task.
//! Promises: work starts at once and goes on if its handle is dropped; a panic in it becomes a
//! `JoinError`.
//! Must not know: the work of any task.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

/// Answer of any type, for code that is compiled once for all of them.
type AnyAnswer = Box<dyn Any + Send>;

/// Starts a task on the current runtime.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_boxed(Box::pin(work))
}

/// Starts a task on another runtime.
pub(crate) fn spawn_on(
    runtime: &Handle,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    spawn_boxed_on(runtime, Box::pin(work))
}

/// Starts a task whose answer is waited for.
pub(crate) fn spawn_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> TaskAnswer<T> {
    TaskAnswer::of(spawn_any(Box::pin(async move { Box::new(work.await) as AnyAnswer })))
}

/// Starts work that waits for a disk, or computes for long, on a thread that may.
pub(crate) fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> TaskAnswer<T> {
    TaskAnswer::of(block_any(Box::new(|| Box::new(work()))))
}

fn spawn_boxed(work: BoxFuture<'static, ()>) -> JoinHandle<()> {
    tokio::spawn(work)
}

fn spawn_boxed_on(runtime: &Handle, work: BoxFuture<'static, ()>) -> JoinHandle<()> {
    runtime.spawn(work)
}

fn spawn_any(work: BoxFuture<'static, AnyAnswer>) -> JoinHandle<AnyAnswer> {
    tokio::spawn(work)
}

fn block_any(work: Box<dyn FnOnce() -> AnyAnswer + Send>) -> JoinHandle<AnyAnswer> {
    tokio::task::spawn_blocking(work)
}

/// Answer of a task; dropping it leaves the task alone.
pub(crate) struct TaskAnswer<T> {
    task: JoinHandle<AnyAnswer>,
    answer: PhantomData<fn() -> T>,
}

impl<T> TaskAnswer<T> {
    fn of(task: JoinHandle<AnyAnswer>) -> Self {
        Self { task, answer: PhantomData }
    }
}

impl<T: 'static> Future for TaskAnswer<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match ready!(Pin::new(&mut self.task).poll(context)) {
            Ok(answer) => answer,
            Err(died) => return Poll::Ready(Err(died)),
        };
        match answer.downcast() {
            Ok(answer) => Poll::Ready(Ok(*answer)),
            // Never: the constructors pair the types.
            Err(other) => resume_unwind(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_keeps_its_type() {
        assert_eq!(spawn_for(async { "future" }).await.unwrap(), "future");
        assert_eq!(spawn_blocking(|| vec![1, 2]).await.unwrap(), [1, 2]);
    }

    #[tokio::test]
    async fn a_panic_becomes_an_error() {
        assert!(spawn(async { panic!("in a task") }).await.unwrap_err().is_panic());
        let died = spawn_for::<()>(async { panic!("in a task") }).await;
        assert!(died.unwrap_err().is_panic());
        let died = spawn_blocking::<()>(|| panic!("on a thread")).await.unwrap_err();
        assert_eq!(*died.into_panic().downcast::<&str>().unwrap(), "on a thread");
    }

    #[tokio::test]
    async fn work_goes_on_when_its_handle_is_dropped() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        drop(spawn_blocking(move || sender.send(7)));
        assert_eq!(receiver.await.unwrap(), 7);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        drop(spawn_on(&Handle::current(), async move {
            let _ = sender.send(8);
        }));
        assert_eq!(receiver.await.unwrap(), 8);
    }
}
