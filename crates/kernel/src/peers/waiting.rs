//! A message of a peer that is being handled, and what its handler has been answered so far.

use wire::methods::Call;
use wire::{ChannelUri, Id};

use crate::bodies::DetachedBodies;
use crate::client_dispatch::ClientDispatch;
use crate::host_guard::HostGuard;
use crate::io::{PeerId, Ticket};
use crate::pause::HandlerAnswers;

/// A message, decoded once.
pub(crate) enum Message {
    Call { id: Id, call: Box<Call> },
    Dispatch(Box<ClientDispatch>),
    Unsubscribe(ChannelUri),
}

/// A message whose handler may have to wait.
pub(crate) struct ParkedMessage {
    pub message: Message,
    /// Bodies that were taken out of it before it was decoded.
    pub detached: DetachedBodies,
    /// Dropped when the message is done.
    _hold: HostGuard,
    pub answers: HandlerAnswers,
    /// Reads and host work that are not done yet.
    pub tickets: Vec<Ticket>,
    /// The connection whose client id this one takes over; its messages come first (G-20).
    pub after: Option<PeerId>,
}

impl ParkedMessage {
    pub(crate) fn new(message: Message, detached: DetachedBodies, hold: HostGuard) -> Self {
        Self {
            message,
            detached,
            _hold: hold,
            answers: HandlerAnswers::default(),
            tickets: Vec::new(),
            after: None,
        }
    }

    pub(crate) fn is_blocked(&self) -> bool {
        !self.tickets.is_empty() || self.after.is_some()
    }
}
