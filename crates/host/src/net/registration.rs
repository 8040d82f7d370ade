//! A peer's registration with the kernel: it is registered once and unregistered once, whatever happens to its task.
//!
//! Promises: `Disconnected` comes after everything read from the peer, also when the task is aborted or panics.
//! Must not know: sockets, what messages mean.

use std::sync::Arc;

use kernel::{HolderName, Input, PeerId, Role};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;

use super::link::Link;
use super::outbox::Outbox;
use crate::kernel_queue::{KernelQueue, QueuedInput};
use crate::task;

pub(crate) struct PeerRegistration {
    peer: PeerId,
    queue: KernelQueue,
    registered: bool,
}

/// The kernel's task takes no more inputs: the host is going down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KernelGone;

impl PeerRegistration {
    pub(super) async fn register(
        queue: KernelQueue,
        peer: PeerId,
        role: Role,
        outbox: &Arc<Outbox>,
        holder: Option<HolderName>,
    ) -> Result<Self, KernelGone> {
        let link = Arc::new(Link::new(outbox.clone()));
        let joined = QueuedInput::Connected { peer, role, link };
        queue.send(joined).await.map_err(|_| KernelGone)?;
        let registration = Self { peer, queue, registered: true };
        if let Some(holder) = holder {
            registration.send(Input::Identified { peer, holder }).await?;
        }
        Ok(registration)
    }

    pub(super) fn peer(&self) -> PeerId {
        self.peer
    }

    /// Waits while the kernel is behind: this is the back-pressure on the socket.
    pub(super) async fn send(&self, input: Input) -> Result<(), KernelGone> {
        self.queue.send(QueuedInput::from(input)).await.map_err(|_| KernelGone)
    }

    pub(super) async fn unregister(&mut self) {
        if self.registered {
            // Only a finished send counts: if this is cancelled, `drop` sends it.
            let _ = self.send(Input::Disconnected { peer: self.peer }).await;
            self.registered = false;
        }
    }
}

impl Drop for PeerRegistration {
    fn drop(&mut self) {
        if !self.registered {
            return; // it was unregistered in good order
        }
        let item = QueuedInput::from(Input::Disconnected { peer: self.peer });
        if let Err(TrySendError::Full(item)) = self.queue.try_send(item) {
            // Space reserved for each connection would use up the queue; a short task waits for space instead. There is at
            // most one for each connection, and without a runtime there is no kernel left to notify.
            if let Ok(runtime) = Handle::try_current() {
                let queue = self.queue.clone();
                task::spawn_on(&runtime, async move {
                    let _ = queue.send(item).await;
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn an_aborted_task_still_leaves_even_when_the_queue_is_full() {
        let (queue, mut inbox) = mpsc::channel(1);
        let outbox = Arc::new(Outbox::new(8, 8));
        let task = tokio::spawn(async move {
            let registration =
                PeerRegistration::register(queue, PeerId(7), Role::Owner, &outbox, None).await;
            std::future::pending::<()>().await;
            drop(registration);
        });
        while inbox.is_empty() {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(matches!(inbox.recv().await, Some(QueuedInput::Connected { peer: PeerId(7), .. })));
        let last = inbox.recv().await.and_then(QueuedInput::into_input);
        assert!(matches!(last, Some(Input::Disconnected { peer: PeerId(7) })));
        assert!(inbox.recv().await.is_none());
    }
}
