//! Questions to the journal and work of the host that are not answered yet, and who waits for them.
//!
//! Promises: equal questions that are out are shared; an answer from before a rollback, or from before turns were hidden, is
//! asked for again.

use std::collections::BTreeMap;

use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::io::{PeerId, Ticket};
use crate::journal_query::Query;
use crate::record::{ChannelId, Seq};

/// What is out.
#[derive(Default)]
pub(crate) struct Queries {
    reads: BTreeMap<Ticket, OpenQuery>,
    /// Channels that are being read.
    loading: BTreeMap<ChannelUri, Ticket>,
    /// Host work, by the peer whose message waits for it.
    work: BTreeMap<Ticket, PeerId>,
    last_ticket: u64,
    /// How often answers to all that was out became untrue.
    epoch: u64,
}

/// A question that is out, and who waits for it.
struct OpenQuery {
    query: Query,
    waiters: Vec<Waiter>,
    /// The epoch it was asked in: an answer from before may show what is not true.
    epoch: u64,
    /// The seq it was asked at: turns that were hidden since may be in the answer.
    at: Seq,
}

/// Who waits for an answer.
#[derive(Debug, Clone)]
pub(crate) enum Waiter {
    Peer(PeerId),
    Task(Box<BackgroundTask>),
    Sweep,
}

/// Which query an answer belongs to.
pub(crate) enum AnswerMatch {
    /// Nobody asked, or it was answered before.
    Unknown,
    /// What it says may not be true any more: it is to be asked again.
    Stale(Query),
    For(Query, Vec<Waiter>),
}

impl Queries {
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Asks for a waiter. Returns the ticket, and the query if it must be sent. `hidden_seq` says when turns of a chat were
    /// last hidden.
    pub(crate) fn ask(
        &mut self,
        query: Query,
        waiter: Waiter,
        seq: Seq,
        hidden_seq: impl Fn(ChannelId) -> Seq,
    ) -> (Ticket, Option<Query>) {
        let same = match &query {
            // A channel is asked for once, however deep: what is missing is asked for then.
            Query::Channel { uri, .. } => self.loading.get(uri).copied(),
            _ => {
                let mut reads = self.reads.iter();
                let same = reads.find(|(_, read)| read.query == query && !read.is_old(&hidden_seq));
                same.map(|(ticket, _)| *ticket)
            }
        };
        if let Some(ticket) = same
            && let Some(read) = self.reads.get_mut(&ticket)
        {
            read.waiters.push(waiter);
            return (ticket, None);
        }
        let ticket = self.next_ticket();
        if let Query::Channel { uri, .. } = &query {
            self.loading.insert(uri.clone(), ticket);
        }
        let read =
            OpenQuery { query: query.clone(), waiters: vec![waiter], epoch: self.epoch, at: seq };
        self.reads.insert(ticket, read);
        (ticket, Some(query))
    }

    /// An answer came.
    pub(crate) fn answer(
        &mut self,
        ticket: Ticket,
        seq: Seq,
        hidden_seq: impl Fn(ChannelId) -> Seq,
    ) -> AnswerMatch {
        let Some(read) = self.reads.get_mut(&ticket) else { return AnswerMatch::Unknown };
        if read.epoch != self.epoch || read.is_old(&hidden_seq) {
            read.epoch = self.epoch;
            read.at = seq;
            return AnswerMatch::Stale(read.query.clone());
        }
        let Some(OpenQuery { query, waiters, .. }) = self.reads.remove(&ticket) else {
            unreachable!("it was found above");
        };
        if self.reads.is_empty() {
            // A map keeps the room of its last entries, a kilobyte, and thousands of kernels wait with nothing to read.
            self.reads = BTreeMap::new();
        }
        debug_assert!(!waiters.is_empty(), "somebody asked");
        if let Query::Channel { uri, .. } = &query {
            let loading = self.loading.remove(uri);
            assert_eq!(loading, Some(ticket), "a channel is read once at a time");
        }
        AnswerMatch::For(query, waiters)
    }

    pub(crate) fn start_work(&mut self, peer: PeerId) -> Ticket {
        let ticket = self.next_ticket();
        self.work.insert(ticket, peer);
        ticket
    }

    /// Host work is done. Returns whose message waited for it.
    pub(crate) fn end_work(&mut self, ticket: Ticket) -> Option<PeerId> {
        self.work.remove(&ticket)
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Memory was rolled back, or rows are removed that answers on their way may still show: all of it is asked again.
    pub(crate) fn outdate(&mut self) {
        self.epoch += 1;
    }

    /// Tasks that wait for an answer, for checkers.
    pub(crate) fn waiting_tasks(&self) -> impl Iterator<Item = &BackgroundTask> {
        let waiters = self.reads.values().flat_map(|read| &read.waiters);
        waiters.filter_map(|waiter| match waiter {
            Waiter::Task(task) => Some(&**task),
            Waiter::Peer(_) | Waiter::Sweep => None,
        })
    }
}

impl OpenQuery {
    /// Whether turns were hidden since a question about them was asked.
    fn is_old(&self, hidden_seq: impl Fn(ChannelId) -> Seq) -> bool {
        match &self.query {
            Query::Turns { chat, .. }
            | Query::Context { chat, .. }
            | Query::FindTurn { chat, .. } => hidden_seq(*chat) > self.at,
            Query::Channel { .. }
            | Query::Client { .. }
            | Query::Log { .. }
            | Query::Sessions { .. }
            | Query::ContentType { .. }
            | Query::Messages { .. }
            | Query::ModelOutputs { .. }
            | Query::FileChanges { .. }
            | Query::Message { .. }
            | Query::EmptySessions { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_questions_are_shared_and_stale_answers_asked_again() {
        let query = Query::FindTurn { chat: ChannelId(1), turn_id: "t".to_owned() };
        let never = |_| Seq(0);
        let mut queries = Queries::default();
        let (first, sent) = queries.ask(query.clone(), Waiter::Peer(PeerId(1)), Seq(5), never);
        assert!(sent.is_some());
        let (second, sent) = queries.ask(query.clone(), Waiter::Peer(PeerId(2)), Seq(5), never);
        assert!(sent.is_none() && first == second);
        // Turns were hidden: later callers send a new query, and the old answer is discarded.
        let hidden = |_| Seq(6);
        let (third, _) = queries.ask(query.clone(), Waiter::Sweep, Seq(6), hidden);
        assert_ne!(first, third);
        assert!(matches!(queries.answer(first, Seq(7), hidden), AnswerMatch::Stale(_)));
        queries.outdate();
        assert!(matches!(queries.answer(third, Seq(7), hidden), AnswerMatch::Stale(_)));
        let AnswerMatch::For(asked, waiters) = queries.answer(third, Seq(7), hidden) else {
            panic!("it was asked again");
        };
        assert_eq!((asked, waiters.len()), (query, 1));
        assert!(matches!(queries.answer(third, Seq(7), never), AnswerMatch::Unknown));
    }
}
