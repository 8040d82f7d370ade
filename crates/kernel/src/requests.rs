//! The host's own requests to clients that have not been answered yet. Each ends exactly once: by an answer, by its deadline
//! or with the connection. Who was asked is not changed meanwhile.

use std::collections::BTreeMap;

use wire::Timestamp;

use crate::io::PeerId;
use crate::rendered::{Asked, Rendering};

/// Requests that are out.
#[derive(Default)]
pub(crate) struct Requests {
    out: BTreeMap<u64, Request>,
    last: u64,
}

/// A request that is out.
pub(crate) struct Request {
    pub peer: PeerId,
    pub sent: Timestamp,
    pub purpose: Purpose,
}

/// What its answer is for.
pub(crate) enum Purpose {
    Render(Box<(Rendering, Asked)>),
}

impl Requests {
    pub(crate) fn count(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn count_of(&self, peer: PeerId) -> usize {
        let out = self.out.values();
        out.filter(|request| request.peer == peer).count()
    }

    /// Notes a request; returns its number.
    pub(crate) fn add(&mut self, request: Request) -> u64 {
        self.last += 1;
        self.out.insert(self.last, request);
        self.last
    }

    pub(crate) fn is_asked(&self, request: u64, peer: PeerId) -> bool {
        let request = self.out.get(&request);
        request.is_some_and(|request| request.peer == peer)
    }

    /// A request ended; `None` if it had already.
    pub(crate) fn end(&mut self, request: u64) -> Option<Request> {
        self.out.remove(&request)
    }

    /// All that a peer was asked.
    pub(crate) fn of_peer(&self, peer: PeerId) -> Vec<u64> {
        let out = self.out.iter();
        let out = out.filter(|(_, request)| request.peer == peer);
        out.map(|(number, _)| *number).collect()
    }

    /// Nothing can be recorded: no agent works any more, so nobody waits for an answer. One that comes late is ignored.
    pub(crate) fn roll_back(&mut self) {
        self.out.clear();
    }
}
