//! The messages of one connection: the one that is being handled, and those that wait behind it, in order and within bounds.

use std::collections::VecDeque;

use wire::{Id, Incoming};

use super::{Peers, Waiting};
use crate::io::{PeerId, ReadFailed, Ticket};
use crate::limits::Limits;
use crate::pause::{HandlerAnswers, WorkDone};
use crate::record::{Answer, Query};

/// What one connection sent and is not handled yet.
#[derive(Default)]
pub(super) struct Inbox {
    /// The message that is being handled. It is taken out while its handler works.
    current: Option<Box<Waiting>>,
    handling: bool,
    parked: VecDeque<(Incoming, usize)>,
    parked_bytes: usize,
    paused: bool,
}

/// What became of a message that arrived.
pub(crate) enum Offer {
    /// Nothing is in front of it: handle it.
    Handle(Incoming),
    /// It waits. With `pause` the peer is to be read no further for now.
    Parked { pause: bool },
    /// Too many requests wait already.
    TooMany(Id),
}

impl Peers {
    /// A message arrived: it is handled, or waits behind what its peer already waits for. `None` if the peer is gone.
    pub fn offer(
        &mut self,
        peer: PeerId,
        message: Incoming,
        bytes: usize,
        limits: &Limits,
    ) -> Option<Offer> {
        let inbox = &mut self.peers.get_mut(&peer)?.inbox;
        if !inbox.is_busy() {
            inbox.handling = true;
            return Some(Offer::Handle(message));
        }
        let most = limits.requests_in_flight_max;
        if inbox.parked.len() >= most
            && let Incoming::Request { id, .. } = &message
        {
            return Some(Offer::TooMany(id.clone()));
        }
        inbox.parked.push_back((message, bytes));
        inbox.parked_bytes += bytes;
        let over = inbox.parked_bytes > limits.parked_bytes_max || inbox.parked.len() > most;
        let pause = over && !inbox.paused;
        inbox.paused |= over;
        Some(Offer::Parked { pause })
    }

    /// The message that a peer stands at, if nothing blocks it; to be given back with [`Peers::park_current`] or ended with
    /// [`Peers::end_current`].
    pub fn take_current(&mut self, peer: PeerId) -> Option<Box<Waiting>> {
        let inbox = &mut self.peers.get_mut(&peer)?.inbox;
        let waiting = inbox.current.take_if(|waiting| !waiting.is_blocked())?;
        inbox.handling = true;
        Some(waiting)
    }

    /// The handler of the current message waits.
    pub fn park_current(&mut self, peer: PeerId, waiting: Box<Waiting>) {
        assert!(waiting.is_blocked(), "a parked message waits for something");
        if let Some(state) = self.peers.get_mut(&peer) {
            state.inbox.handling = false;
            state.inbox.current = Some(waiting);
        }
    }

    /// The current message is done. Returns the next one, and whether the peer is to be read again.
    pub fn end_current(
        &mut self,
        peer: PeerId,
        limits: &Limits,
    ) -> (Option<(Incoming, usize)>, bool) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return (None, false); // its connection was removed with it
        };
        let inbox = &mut state.inbox;
        debug_assert!(inbox.current.is_none(), "the current message was taken out");
        let next = inbox.parked.pop_front();
        if let Some((_, bytes)) = &next {
            inbox.parked_bytes -= bytes;
        }
        inbox.handling = next.is_some();
        let resume = inbox.paused && inbox.parked.len() < limits.requests_in_flight_max / 2;
        inbox.paused &= !resume;
        (next, resume)
    }

    /// Whether nothing that was read from a peer is left to be handled.
    pub fn is_drained(&self, peer: PeerId) -> bool {
        let state = self.peers.get(&peer);
        state.is_none_or(|state| !state.inbox.is_busy())
    }

    /// A read that the current message waits for was answered; a channel that came into memory needs no answer.
    pub fn answer_read(
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
    pub fn answer_work(&mut self, peer: PeerId, ticket: Ticket, done: WorkDone) {
        self.answer(peer, ticket, |answers| answers.add_work(done));
    }

    fn answer(&mut self, peer: PeerId, ticket: Ticket, add: impl FnOnce(&mut HandlerAnswers)) {
        let state = self.peers.get_mut(&peer);
        // The peer, or the message, may be gone: then nobody waits for the answer.
        if let Some(waiting) = state.and_then(|state| state.inbox.current.as_mut()) {
            waiting.tickets.retain(|other| *other != ticket);
            add(&mut waiting.answers);
        }
    }

    /// A connection is removed: those that waited for it wait no more.
    pub fn release_successors(&mut self, removed: PeerId) -> Vec<PeerId> {
        let mut released = Vec::new();
        for (peer, state) in &mut self.peers {
            if let Some(waiting) = &mut state.inbox.current
                && waiting.after == Some(removed)
            {
                waiting.after = None;
                released.push(*peer);
            }
        }
        released
    }
}

impl Inbox {
    fn is_busy(&self) -> bool {
        self.handling || self.current.is_some()
    }
}
