//! The messages of one connection: the one that is being handled, and those that wait behind it, in order and within bounds.

use std::collections::VecDeque;

use wire::{Id, Incoming};

use super::waiting::ParkedMessage;
use crate::io::{PeerId, Ticket};
use crate::limits::Limits;
use crate::pause::HandlerAnswers;
use crate::received::Received;

/// What one connection sent and is not handled yet.
#[derive(Default)]
pub(super) struct Inbox {
    /// The message that is being handled. It is taken out while its handler works.
    current: Option<Box<ParkedMessage>>,
    handling: bool,
    parked: VecDeque<Received>,
    parked_bytes: usize,
    paused: bool,
}

/// What became of a message that arrived.
pub(crate) enum InboxOutcome {
    /// Nothing is in front of it: handle it.
    Handle(Received),
    /// It waits. With `pause` the peer is to be read no further for now.
    Parked { pause: bool },
    /// Too many requests wait already.
    TooMany(Id),
}

impl Inbox {
    /// A message is being handled, or waits for something.
    pub(super) fn is_busy(&self) -> bool {
        self.handling || self.current.is_some()
    }

    /// A message arrived: it is handled, or waits behind what its peer already waits for.
    pub(super) fn offer(&mut self, received: Received, limits: &Limits) -> InboxOutcome {
        if !self.is_busy() {
            self.handling = true;
            return InboxOutcome::Handle(received);
        }
        let most = limits.requests_in_flight_max;
        if self.parked.len() >= most
            && let Incoming::Request { id, .. } = &received.message
        {
            return InboxOutcome::TooMany(id.clone());
        }
        self.parked_bytes += received.bytes;
        self.parked.push_back(received);
        let over = self.parked_bytes > limits.parked_bytes_max || self.parked.len() > most;
        let pause = over && !self.paused;
        self.paused |= over;
        InboxOutcome::Parked { pause }
    }

    /// The current message, if nothing blocks it.
    pub(super) fn take_current(&mut self) -> Option<Box<ParkedMessage>> {
        let waiting = self.current.take_if(|waiting| !waiting.is_blocked())?;
        self.handling = true;
        Some(waiting)
    }

    /// The handler of the current message waits.
    pub(super) fn park_current(&mut self, waiting: Box<ParkedMessage>) {
        assert!(waiting.is_blocked(), "a parked message waits for something");
        self.handling = false;
        self.current = Some(waiting);
    }

    /// The current message is done. Returns the next one, and whether the peer is to be read again.
    pub(super) fn end_current(&mut self, limits: &Limits) -> (Option<Received>, bool) {
        debug_assert!(self.current.is_none(), "the current message was taken out");
        let next = self.parked.pop_front();
        if let Some(next) = &next {
            self.parked_bytes -= next.bytes;
        }
        self.handling = next.is_some();
        let resume = self.paused && self.parked.len() < limits.requests_in_flight_max / 2;
        self.paused &= !resume;
        (next, resume)
    }

    /// What the current message waits for was answered, if it still waits.
    pub(super) fn answer(&mut self, ticket: Ticket, add: impl FnOnce(&mut HandlerAnswers)) {
        if let Some(waiting) = &mut self.current {
            waiting.tickets.retain(|other| *other != ticket);
            add(&mut waiting.answers);
        }
    }

    /// A connection is removed: the current message waits for it no more. Says whether it did.
    pub(super) fn release(&mut self, removed: PeerId) -> bool {
        let after = self.current.as_mut().map(|waiting| &mut waiting.after);
        after.is_some_and(|after| after.take_if(|peer| *peer == removed).is_some())
    }
}
