//! Errands: what the host has to do with bodies before a message can be answered or recorded. Meanwhile its peer is
//! parked, like one whose channel is being loaded, and then the message is handled again from the start.

use crate::Kernel;
use wire::Digest;

use crate::bodies::Body;
use crate::io::{
    Complete, Completed, Compose, Effect, ErrandFailed, Fetch, Fetched, PeerId, Ticket,
};
use crate::load::Memo;
use crate::submit::Submission;

/// Work that a message waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Errand {
    Fetch(Fetch),
    Complete(Box<Complete>),
    Keep(Vec<Body>),
    Compose(Box<Compose>),
}

/// How an errand ended.
#[derive(Debug, Clone)]
pub(crate) enum Done {
    Fetched(Result<Fetched, ErrandFailed>),
    Completed(Result<Completed, ErrandFailed>),
    Kept(Result<Names, ErrandFailed>),
    Composed(Result<Box<Submission>, ErrandFailed>),
}

/// Bodies that were kept: where their names belong.
pub(crate) type Names = Vec<(String, Digest)>;

impl Kernel {
    /// Sends the host on an errand for the message a peer stands at.
    pub(crate) fn send_on(&mut self, errand: Errand, peer: PeerId, memo: Memo) {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        let effect = match errand {
            Errand::Fetch(fetch) => Effect::Fetch { ticket, fetch },
            Errand::Complete(complete) => Effect::Complete { ticket, complete },
            Errand::Keep(bodies) => Effect::Keep { ticket, bodies },
            Errand::Compose(compose) => Effect::Compose { ticket, compose },
        };
        self.out.effects.push(effect);
        self.errands.insert(ticket, peer);
        if let Some(waiting) = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.waiting.as_mut())
        {
            waiting.memo = memo;
            waiting.tickets.push(ticket);
        }
    }

    pub(crate) fn errand_done(&mut self, ticket: Ticket, done: Done) {
        let Some(peer) = self.errands.remove(&ticket) else {
            return;
        };
        let Some(waiting) = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.waiting.as_mut())
        else {
            return;
        };
        waiting.tickets.retain(|other| *other != ticket);
        waiting.memo.done(done);
        self.go_on(peer);
    }
}
