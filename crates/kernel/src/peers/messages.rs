//! The messages of every peer: each goes to the inbox of its connection, and comes from there to its handler.

use super::Peers;
use super::inbox::InboxOutcome;
use super::waiting::ParkedMessage;
use crate::io::{PeerId, ReadFailed, Ticket};
use crate::journal_query::{Answer, Query};
use crate::limits::Limits;
use crate::pause::{HandlerAnswers, HostWorkResult};
use crate::received::Received;

impl Peers {
    /// A message arrived: it is handled, or waits behind what its peer already waits for. `None` if the peer is gone.
    pub(crate) fn offer(
        &mut self,
        peer: PeerId,
        received: Received,
        limits: &Limits,
    ) -> Option<InboxOutcome> {
        let state = self.peers.get_mut(&peer)?;
        Some(state.inbox.offer(received, limits))
    }

    /// The message that a peer stands at, if nothing blocks it; to be given back with [`Peers::park_current`] or ended with
    /// [`Peers::end_current`].
    pub(crate) fn take_current(&mut self, peer: PeerId) -> Option<Box<ParkedMessage>> {
        self.peers.get_mut(&peer)?.inbox.take_current()
    }

    /// The handler of the current message waits.
    pub(crate) fn park_current(&mut self, peer: PeerId, waiting: Box<ParkedMessage>) {
        let state = self.peers.get_mut(&peer);
        debug_assert!(state.is_some(), "a peer is known while its message waits");
        if let Some(state) = state {
            state.inbox.park_current(waiting);
        }
    }

    /// The current message is done. Returns the next one, and whether the peer is to be read again.
    pub(crate) fn end_current(
        &mut self,
        peer: PeerId,
        limits: &Limits,
    ) -> (Option<Received>, bool) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return (None, false); // its connection was removed with it
        };
        state.inbox.end_current(limits)
    }

    /// Whether nothing that was read from a peer is left to be handled.
    pub(crate) fn is_drained(&self, peer: PeerId) -> bool {
        let state = self.peers.get(&peer);
        state.is_none_or(|state| !state.inbox.is_busy())
    }

    /// A read that the current message waits for was answered; a channel that came into memory needs no answer.
    pub(crate) fn answer_read(
        &mut self,
        peer: PeerId,
        ticket: Ticket,
        query: &Query,
        answer: Option<&Result<Answer, ReadFailed>>,
    ) {
        self.answer(peer, ticket, |answers| {
            if let Some(answer) = answer {
                answers.add_read(query.clone(), answer.clone());
            }
        });
    }

    /// Host work that the current message waits for is done.
    pub(crate) fn answer_work(&mut self, peer: PeerId, ticket: Ticket, done: HostWorkResult) {
        self.answer(peer, ticket, |answers| answers.add_work(done));
    }

    fn answer(&mut self, peer: PeerId, ticket: Ticket, add: impl FnOnce(&mut HandlerAnswers)) {
        // The peer may be gone: then nobody waits for the answer.
        if let Some(state) = self.peers.get_mut(&peer) {
            state.inbox.answer(ticket, add);
        }
    }

    /// A connection is removed: those that waited for it wait no more.
    pub(crate) fn release_successors(&mut self, removed: PeerId) -> Vec<PeerId> {
        let released = self
            .peers
            .iter_mut()
            .filter_map(|(peer, state)| state.inbox.release(removed).then_some(*peer));
        released.collect()
    }
}
