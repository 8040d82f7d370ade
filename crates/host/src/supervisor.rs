//! Watches what a host cannot live without: the kernel's thread and the journal.
//!
//! Promises: if one of them ends unasked, whoever waits learns why at once, and from the end of the kernel's thread on the
//! host counts as not ready. Dropped, it ends the kernel's thread.
//! Must not know: sockets, what the kernel does.

use std::any::Any;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Input, Output};
use tokio::runtime;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::journal::JournalHandle;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::kernel_task::KernelTask;
use crate::net::Admission;
use crate::server::ServeError;
use crate::task;

/// How long a kernel has to close its connections when its journal has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A kernel at work, and the journal it writes to.
pub(crate) struct Supervisor {
    /// Why the kernel's thread ended; an error holds the message of its panic.
    ended: oneshot::Receiver<Result<(), String>>,
    /// Ends the kernel's thread at its next wait.
    abort: CancellationToken,
    booted: Option<oneshot::Receiver<()>>,
    queue: KernelQueue,
    journal: JournalHandle,
    stop: CancellationToken,
}

/// Why a space has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpaceEnd {
    Kernel(String),
    /// It can write no more, and what is in memory may not be what it holds.
    Journal(String),
}

impl Supervisor {
    /// Starts the kernel's thread: it writes what boot decided, then serves.
    pub(crate) fn start(
        task: KernelTask,
        boot: Output,
        queue: KernelQueue,
        journal: JournalHandle,
        admission: Arc<Admission>,
    ) -> Result<Self, ServeError> {
        let (report_booted, booted) = oneshot::channel();
        let (report_end, ended) = oneshot::channel();
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let (stopped, aborted) = (stop.clone(), abort.clone());
        // Boxed, as is the boot, and all of the work: there may be thousands of them at rest, and futures have room for every copy
        // they make.
        let (mut task, boot) = (Box::new(task), Box::new(boot));
        let work = Box::pin(async move {
            let _readiness = Readiness(admission);
            {
                let boot = boot; // its box goes with the block
                Box::pin(task.finish_boot(*boot)).await;
            }
            // The receiver is gone if the host was stopped meanwhile.
            let _receiver_gone = report_booted.send(());
            task.run(stopped).await;
        });
        let work = aborted.run_until_cancelled_owned(work);
        let work = async move {
            let ended = AssertUnwindSafe(work)
                .catch_unwind()
                .await
                .map(|_| ())
                .map_err(|panic| panic_message(&*panic).to_owned());
            // There is no receiver if the host is gone.
            let _receiver_gone = report_end.send(ended);
        };
        if journal.is_local() {
            run_on_a_thread(work)?
        } else {
            // It never waits for a disk, and there may be thousands on a node (ADR 0115).
            drop(task::spawn(work))
        }
        Ok(Self { ended, abort, booted: Some(booted), queue, journal, stop })
    }

    /// Waits until nothing of the last run is left open.
    pub(crate) async fn wait_until_booted(&mut self) -> Result<(), ServeError> {
        let booted = self.booted.take();
        let booted = async move {
            let Some(booted) = booted else {
                return; // it was waited for before
            };
            if booted.await.is_err() {
                // The thread died: the other branch says why.
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = booted => Ok(()),
            failure = self.wait_for_failure() => Err(failure),
        }
    }

    /// Waits until the kernel's thread or the journal ends unasked, and says why.
    pub(crate) async fn wait_for_failure(&mut self) -> ServeError {
        let failure = tokio::select! {
            // The journal first: a kernel that ends because of it is not the cause.
            biased;
            reason = self.journal.wait_for_failure() => {
                // A kernel that ends with its journal closes its connections itself.
                let _ended = tokio::time::timeout(LAST_WORDS, &mut self.ended).await;
                ServeError::JournalStopped(reason)
            }
            ended = &mut self.ended => ServeError::KernelStopped(explain_end(ended)),
        };
        self.abort.cancel();
        tracing::error!(%failure, "the host cannot go on and stops");
        failure
    }

    /// Waits until the kernel's thread ends, asked or not, or its journal can write no more, and says why: for one space of many,
    /// which the others outlive.
    pub(crate) async fn wait_for_end(&mut self) -> SpaceEnd {
        tokio::select! {
            // The journal first: a kernel that ends because of it is not the cause. One that refuses everything meanwhile does
            // not end by itself.
            biased;
            reason = self.journal.wait_for_failure() => SpaceEnd::Journal(reason),
            ended = &mut self.ended => SpaceEnd::Kernel(match ended {
                Ok(Ok(())) => "it is not served here any more".to_owned(),
                ended => explain_end(ended),
            }),
        }
    }

    /// Waits until the kernel's thread has ended, which was told to; one that takes longer ends at its next wait.
    pub(crate) async fn wait_until_over(&mut self, limit: Duration) {
        if self.ended.is_terminated() {
            return; // it was waited for
        }
        if tokio::time::timeout(limit, &mut self.ended).await.is_err() {
            self.abort.cancel();
            // It is between two waits now and then: there is no work of its own that takes long.
            let _ended = (&mut self.ended).await;
        }
    }

    /// Ends the kernel's thread at its next wait and closes the journal. What was handed to the journal is still written.
    pub(crate) async fn abort(mut self) {
        self.abort.cancel();
        // Cancelled, or ended by itself just before: both are an end.
        let _ended = (&mut self.ended).await;
        self.journal.close().await;
    }

    /// Has turns end as resumable errors and whatever has arrived written and sent, for at most `limit`.
    pub(crate) async fn stop(&mut self, limit: Duration) -> Result<(), ServeError> {
        if self.ended.is_terminated() {
            return Ok(()); // it has ended, and its waiter has the reason
        }
        self.journal.prepare_to_close();
        let stopped = async {
            let last = QueuedInput::from(Input::Stopping);
            if self.queue.send(last).await.is_err() {
                tracing::debug!("the kernel's thread had ended before it was asked to stop");
            }
            self.stop.cancel();
            (&mut self.ended).await
        };
        match tokio::time::timeout(limit, stopped).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(ended) => {
                let failure = ServeError::KernelStopped(explain_end(ended));
                tracing::error!(%failure, "the kernel failed while the host was stopping");
                Err(failure)
            }
            Err(_) => {
                tracing::warn!(
                    "the kernel did not finish in time; unfinished turns are closed at the next start"
                );
                if !self.journal.is_local() {
                    // What it waits for is found out, or ended, when the journal is closed.
                    self.abort.cancel();
                }
                Ok(())
            }
        }
    }

    /// Waits for the journal to write what it was handed.
    pub(crate) async fn close_journal(self) -> Result<(), ServeError> {
        self.journal.close().await;
        match self.journal.failure() {
            None => Ok(()),
            Some(reason) => Err(ServeError::JournalStopped(reason)),
        }
    }

    /// The same for one that has ended, or is lost.
    pub(crate) async fn close_lost_journal(&self) {
        self.journal.close().await;
    }

    pub(crate) fn queue(&self) -> KernelQueue {
        self.queue.clone()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}

/// Lives on the kernel's thread, so that the host stops being ready however that ends.
struct Readiness(Arc<Admission>);

impl Drop for Readiness {
    fn drop(&mut self) {
        self.0.set_ready(false);
    }
}

fn explain_end(ended: Result<Result<(), String>, oneshot::error::RecvError>) -> String {
    match ended {
        Ok(Ok(())) => "its thread ended unexpectedly".to_owned(),
        Ok(Err(panic)) => format!("its thread panicked: {panic}"),
        Err(_) => "its thread ended without a reason".to_owned(),
    }
}

/// Gives the kernel a thread, which waits for inputs, timers and the disk; effects run elsewhere (ADR 0069).
fn run_on_a_thread(work: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
    let not_started =
        |error| ServeError::KernelStopped(format!("its thread could not be started: {error}"));
    let runtime =
        runtime::Builder::new_current_thread().enable_time().build().map_err(not_started)?;
    let builder = thread::Builder::new().name("kernel".to_owned());
    let started = builder.spawn(move || runtime.block_on(work));
    started.map(drop).map_err(not_started)
}

/// The message of a panic, if it has one.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given")
}
