//! The host's own requests to clients that have not been answered yet. Each ends exactly once: by an answer, by its deadline
//! or with the connection. Who was asked is not changed meanwhile.

use std::collections::BTreeMap;

use wire::Timestamp;

use crate::client_file::ClientQuestion;
use crate::io::{PeerId, RunId, Ticket};
use crate::rendered::{PendingTransform, Renderer};

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
    Render(Box<PendingTransform>),
    /// A message of the peer's waits for a file.
    ReadFile {
        ticket: Ticket,
        uri: String,
    },
    /// The host wants to know it.
    AnswerHost {
        ask: u64,
        question: ClientQuestion,
    },
}

impl Request {
    /// Whether an agent at work waits for the answer.
    fn is_for_run(&self) -> bool {
        match &self.purpose {
            Purpose::Render(render) => matches!(render.rendering.to, Renderer::Run { .. }),
            Purpose::ReadFile { .. } | Purpose::AnswerHost { .. } => false,
        }
    }

    /// Whether a message of the peer is parked until the answer comes: it must be resumed however the request ends.
    fn is_for_message(&self) -> bool {
        matches!(self.purpose, Purpose::ReadFile { .. })
    }
}

impl Requests {
    /// How many requests agents at work wait for, for checkers.
    pub(crate) fn count_for_runs(&self) -> usize {
        self.out.values().filter(|request| request.is_for_run()).count()
    }

    pub(crate) fn count_of(&self, peer: PeerId) -> usize {
        self.out.values().filter(|request| request.peer == peer).count()
    }

    /// Notes a request; returns its number.
    pub(crate) fn add(&mut self, request: Request) -> u64 {
        self.last += 1;
        let before = self.out.insert(self.last, request);
        assert!(before.is_none(), "a request's number is used once");
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
        let out = self.out.iter().filter(|(_, request)| request.peer == peer);
        out.map(|(number, _)| *number).collect()
    }

    /// Runs were stopped and connections dismissed: nobody waits for what was asked for the ones, and nothing is expected of
    /// the others.
    pub(crate) fn end_orphaned(
        &mut self,
        is_admitted: impl Fn(PeerId) -> bool,
        is_working: impl Fn(RunId) -> bool,
    ) {
        self.out.retain(|_, request| {
            let run = match &request.purpose {
                Purpose::Render(render) => match render.rendering.to {
                    Renderer::Run { run, .. } => Some(run),
                    _ => None,
                },
                // The peer's parked message must be resumed however the request ends.
                Purpose::ReadFile { .. } => return true,
                Purpose::AnswerHost { .. } => None,
            };
            is_admitted(request.peer) && run.is_none_or(&is_working)
        });
    }

    /// Nothing can be recorded: no agent works any more, so nobody waits for what was asked for one, and an answer that comes
    /// late is ignored. What the operator alone waits for stands: asking records nothing, so the request was sent. Of a
    /// connection that is not admitted any more nothing is expected, but a message of it may wait: the deadline stands.
    pub(crate) fn roll_back(&mut self, is_admitted: impl Fn(PeerId) -> bool) {
        self.out.retain(|_, request| {
            request.is_for_message() || (!request.is_for_run() && is_admitted(request.peer))
        });
    }
}

#[cfg(test)]
mod tests {
    use wire::ChannelUri;

    use super::*;
    use crate::ids::{ChannelId, RunId};
    use crate::rendered::{Rendering, TransformAttempt};

    fn request(peer: PeerId, to: Renderer) -> Request {
        let rendering = Rendering { to, chat: ChannelId(1), turn_id: None, before: Vec::new() };
        let attempt = TransformAttempt {
            client_id: "ann".to_owned(),
            method: "x",
            sections: Vec::new(),
            ms: 0,
        };
        let pending = PendingTransform { rendering, attempt };
        Request { peer, sent: Timestamp(0), purpose: Purpose::Render(Box::new(pending)) }
    }

    #[test]
    fn after_a_failed_write_nothing_waits_for_agents_that_were_stopped() {
        let run = || Renderer::Run { run: RunId(1), render: 1 };
        let opening = || Renderer::Session(ChannelUri::parse("ahp-session:/s").unwrap());
        let mut requests = Requests::default();
        let of_run = requests.add(request(PeerId(1), run()));
        let of_opening = requests.add(request(PeerId(1), opening()));
        let of_dismissed = requests.add(request(PeerId(2), opening()));
        requests.roll_back(|peer| peer == PeerId(1));
        assert!(requests.end(of_run).is_none());
        assert!(requests.end(of_dismissed).is_none());
        assert!(requests.end(of_opening).is_some());
        let later = requests.add(request(PeerId(1), run()));
        assert!(later > of_dismissed, "a number is never used again");
    }
}
