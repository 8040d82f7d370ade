//! Watches what a host cannot live without: the kernel's task and the journal's threads.
//!
//! Promises: if one of them ends unasked, whoever waits learns why at once, and from the end of the kernel's task on the
//! host counts as not ready.
//! Must not know: sockets, what the kernel does.

use std::any::Any;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Input, Output};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::journal::JournalThread;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::kernel_task::KernelTask;
use crate::net::Admission;
use crate::server::ServeError;

/// A kernel at work, and the journal it writes to.
pub(crate) struct Supervisor {
    task: JoinHandle<()>,
    booted: Option<oneshot::Receiver<()>>,
    queue: KernelQueue,
    journal: JournalThread,
    stop: CancellationToken,
}

impl Supervisor {
    /// Starts the kernel's task: it writes what boot decided, then serves.
    pub(crate) fn start(
        mut task: KernelTask,
        boot: Output,
        queue: KernelQueue,
        journal: JournalThread,
        admission: Arc<Admission>,
    ) -> Self {
        let (report_booted, booted) = oneshot::channel();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let readiness = Readiness(admission);
        let task = tokio::spawn(async move {
            let _readiness = readiness;
            task.finish_boot(boot).await;
            // The receiver is gone if the host was stopped meanwhile.
            let _receiver_gone = report_booted.send(());
            task.run(stopped).await;
        });
        Self {
            task,
            booted: Some(booted),
            queue,
            journal,
            stop,
        }
    }

    /// Waits until nothing of the last run is left open.
    pub(crate) async fn wait_until_booted(&mut self) -> Result<(), ServeError> {
        let booted = self.booted.take();
        let booted = async move {
            let Some(booted) = booted else {
                return; // it was waited for before
            };
            if booted.await.is_err() {
                // The task died: the other branch says why.
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = booted => Ok(()),
            failure = self.wait_for_failure() => Err(failure),
        }
    }

    /// Waits until the kernel's task or a thread of the journal ends unasked, and says why.
    pub(crate) async fn wait_for_failure(&mut self) -> ServeError {
        let failure = tokio::select! {
            // The journal first: a kernel that ends because of it is not the cause.
            biased;
            reason = self.journal.wait_for_failure() => ServeError::JournalStopped(reason),
            ended = &mut self.task => ServeError::KernelStopped(explain_end(ended)),
        };
        self.task.abort();
        tracing::error!(%failure, "the host cannot go on and stops");
        failure
    }

    /// Ends the kernel's task wherever it is and closes the journal. What was handed to the journal is still written.
    pub(crate) async fn abort(self) {
        self.task.abort();
        // Cancelled, or ended by itself just before: both are an end.
        let _ended = self.task.await;
        self.journal.close();
    }

    /// Has turns end as resumable errors and whatever has arrived written and sent, for at most `limit`.
    pub(crate) async fn stop(&mut self, limit: Duration) -> Result<(), ServeError> {
        let stopped = async {
            let last = QueuedInput::Input(Input::Stopping);
            if self.queue.send(last).await.is_err() {
                tracing::debug!("the kernel's task had ended before it was asked to stop");
            }
            self.stop.cancel();
            (&mut self.task).await
        };
        match tokio::time::timeout(limit, stopped).await {
            Ok(Ok(())) => Ok(()),
            Ok(ended) => {
                let failure = ServeError::KernelStopped(explain_end(ended));
                tracing::error!(%failure, "the kernel failed while the host was stopping");
                Err(failure)
            }
            Err(_) => {
                tracing::warn!(
                    "the kernel did not finish in time; unfinished turns are closed at the next start"
                );
                Ok(())
            }
        }
    }

    /// Waits for the journal to write what it was handed. Blocks.
    pub(crate) fn close_journal(self) -> Result<(), ServeError> {
        self.journal.clone().close();
        match self.journal.failure() {
            None => Ok(()),
            Some(reason) => Err(ServeError::JournalStopped(reason)),
        }
    }

    pub(crate) fn queue(&self) -> KernelQueue {
        self.queue.clone()
    }
}

/// Lives in the kernel's task, so that the host stops being ready however the task ends.
struct Readiness(Arc<Admission>);

impl Drop for Readiness {
    fn drop(&mut self) {
        self.0.set_ready(false);
    }
}

fn explain_end(ended: Result<(), JoinError>) -> String {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(()) => "its task ended unexpectedly".to_owned(),
        Err(Ok(panic)) => format!("its task panicked: {}", panic_message(&*panic)),
        Err(Err(error)) => error.to_string(),
    }
}

/// The words of a panic, as far as it has any.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no reason given")
}
