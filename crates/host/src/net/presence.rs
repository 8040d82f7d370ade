//! A peer's presence before the kernel: it joins once and leaves once, whatever happens to its task.
//!
//! Promises: `Disconnected` comes after everything read from the peer, also when the task is aborted or panics.
//! Must not know: sockets, what was said.

use std::sync::Arc;

use kernel::{Input, PeerId};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;

use super::link::Link;
use super::outbox::Outbox;
use crate::arrival::{Arrival, Arrivals};

pub(crate) struct Presence {
    peer: PeerId,
    arrivals: Arrivals,
    joined: bool,
}

/// Nobody listens to arrivals any more: the host is going down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NobodyListens;

impl Presence {
    pub async fn join(
        arrivals: Arrivals,
        peer: PeerId,
        outbox: &Arc<Outbox>,
    ) -> Result<Self, NobodyListens> {
        let link = Arc::new(Link::new(outbox.clone()));
        let joined = Arrival::Joined { peer, link };
        arrivals.send(joined).await.map_err(|_| NobodyListens)?;
        Ok(Self {
            peer,
            arrivals,
            joined: true,
        })
    }

    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Waits while the kernel is behind: this is the back-pressure on the socket.
    pub async fn say(&self, input: Input) -> Result<(), NobodyListens> {
        self.arrivals
            .send(Arrival::Input(input))
            .await
            .map_err(|_| NobodyListens)
    }

    pub async fn leave(&mut self) {
        if self.joined {
            // Only a finished send counts: if this is cancelled, the drop below still tells.
            let _ = self.say(Input::Disconnected { peer: self.peer }).await;
            self.joined = false;
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.joined {
            return;
        }
        let arrival = Arrival::Input(Input::Disconnected { peer: self.peer });
        if let Err(TrySendError::Full(arrival)) = self.arrivals.try_send(arrival) {
            // A place kept free for each connection would eat the queue; a short task waits for one instead. There
            // is at most one for each connection, and without a runtime there is no kernel to tell.
            if let Ok(runtime) = Handle::try_current() {
                let arrivals = self.arrivals.clone();
                runtime.spawn(async move {
                    let _ = arrivals.send(arrival).await;
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
        let (arrivals, mut inbox) = mpsc::channel(1);
        let outbox = Arc::new(Outbox::new(8, 8));
        let task = tokio::spawn(async move {
            let presence = Presence::join(arrivals, PeerId(7), &outbox).await;
            std::future::pending::<()>().await;
            drop(presence);
        });
        while inbox.is_empty() {
            tokio::task::yield_now().await;
        }
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(matches!(
            inbox.recv().await,
            Some(Arrival::Joined {
                peer: PeerId(7),
                ..
            })
        ));
        let last = inbox.recv().await;
        assert!(matches!(
            last,
            Some(Arrival::Input(Input::Disconnected { peer: PeerId(7) }))
        ));
        assert!(inbox.recv().await.is_none());
    }
}
