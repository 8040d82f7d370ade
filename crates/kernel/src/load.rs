//! Loading: sessions at rest are on disk. A message that needs a channel which is not in memory parks its peer; later
//! messages of that peer wait in order, other peers go on, and all who wait for one channel share one question.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use wire::reduce::reduce_chat;
use wire::state::{ChatState, SessionState, Turn, TurnList};
use wire::{ChannelUri, Incoming, action};

use crate::Kernel;
use crate::bodies::Lifted;
use crate::channel::{Body, Channel, ChatChannel, SessionChannel};
use crate::chore::Chore;
use crate::errand::{Done, Errand, Names};
use crate::io::{Completed, Effect, ErrandFailed, Fetched, PeerId, ReadFailed, Ticket};
use crate::limits::Limits;
use crate::record::{Answer, Kind, Query, Seq, StoredChannel, TurnPage};
use crate::submit::Submission;

/// A question that is out, and who waits for it.
pub(crate) struct Asked {
    pub query: Query,
    pub waiters: Vec<Waiter>,
    /// How often memory had been rolled back when it was asked: an answer from before may show what is not true.
    pub epoch: u64,
    /// The seq it was asked at: turns that were hidden since may be in the answer.
    pub at: Seq,
}

#[derive(Debug, Clone)]
pub(crate) enum Waiter {
    Peer(PeerId),
    Chore(Chore),
    Sweep,
}

/// What was already asked for the sake of one message, and answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memo {
    answers: Vec<(Query, Result<Answer, ReadFailed>)>,
    errands: Vec<Done>,
    /// What was taken out of the message before it was handled.
    pub lifted: Lifted,
}

impl Memo {
    pub fn push(&mut self, query: Query, answer: Result<Answer, ReadFailed>) {
        self.answers.push((query, answer));
    }

    pub fn done(&mut self, done: Done) {
        self.errands.push(done);
    }

    /// What came of the content that was sent for.
    pub fn fetched(&self) -> Option<&Result<Fetched, ErrandFailed>> {
        self.errands.iter().rev().find_map(|done| match done {
            Done::Fetched(fetched) => Some(fetched),
            _ => None,
        })
    }

    /// What came of the bodies that were sent to be kept.
    pub fn kept(&self) -> Option<&Result<Names, ErrandFailed>> {
        self.errands.iter().rev().find_map(|done| match done {
            Done::Kept(kept) => Some(kept),
            _ => None,
        })
    }

    /// What the message turned out to mean.
    pub fn composed(&self) -> Option<&Result<Box<Submission>, ErrandFailed>> {
        self.errands.iter().rev().find_map(|done| match done {
            Done::Composed(composed) => Some(composed),
            _ => None,
        })
    }

    /// What may be meant by what somebody types.
    pub fn completed(&self) -> Option<&Result<Completed, ErrandFailed>> {
        self.errands.iter().rev().find_map(|done| match done {
            Done::Completed(completed) => Some(completed),
            _ => None,
        })
    }

    pub fn count(&self, wanted: impl Fn(&Query) -> bool) -> usize {
        self.answers
            .iter()
            .filter(|(query, _)| wanted(query))
            .count()
    }

    pub fn find(
        &self,
        wanted: impl Fn(&Query) -> bool,
    ) -> Option<&(Query, Result<Answer, ReadFailed>)> {
        self.answers.iter().rev().find(|(query, _)| wanted(query))
    }
}

/// How far handling got.
pub(crate) enum Flow<T, E = Errand> {
    Ready(T),
    /// Cannot go on before these are answered.
    Ask(Vec<Query>),
    /// Cannot go on before the host has done this.
    Errand(E),
    /// The journal could not answer.
    Failed(ReadFailed),
}

/// How far loading got: the journal is asked, nobody is sent on errands.
pub(crate) type Load<T> = Flow<T, Infallible>;

/// A message whose handling waits.
pub(crate) struct Waiting {
    pub message: Incoming,
    pub lifted: Lifted,
    pub memo: Memo,
    pub tickets: Vec<Ticket>,
    /// The connection whose place this one takes; its messages come first (G-20).
    pub after: Option<PeerId>,
}

impl Waiting {
    pub fn new(mut message: Incoming, limits: &Limits) -> Self {
        Self {
            lifted: Lifted::out_of(&mut message, limits.inline_body_bytes),
            message,
            memo: Memo::default(),
            tickets: Vec::new(),
            after: None,
        }
    }
}

impl Kernel {
    /// Whether a channel exists, loading it if need be.
    pub(crate) fn need_channel(&self, uri: &ChannelUri, memo: &Memo) -> Load<bool> {
        self.need_channel_with(uri, memo, self.limits.open_turns)
    }

    /// The same, with at least `turns` of its newest turns in memory if it is a chat that has them.
    pub(crate) fn need_channel_with(
        &self,
        uri: &ChannelUri,
        memo: &Memo,
        turns: u32,
    ) -> Load<bool> {
        self.need_channel_within(uri, memo, turns, self.limits.message_out_bytes as u64)
    }

    fn need_channel_within(
        &self,
        uri: &ChannelUri,
        memo: &Memo,
        turns: u32,
        bytes_max: u64,
    ) -> Load<bool> {
        if uri.is_root() {
            return Flow::Ready(true);
        }
        if let Some(channel) = self.channels.get(uri) {
            return match &channel.body {
                Body::Chat(chat) if chat.lacks(turns, bytes_max) => {
                    let query = Query::Turns {
                        chat: channel.id,
                        before_n: chat.first_n(),
                        turns_max: turns - chat.turn_count(),
                        bytes_max: bytes_max.saturating_sub(chat.turn_bytes()),
                    };
                    match memo.find(|asked| *asked == query) {
                        Some((_, Err(failed))) => Flow::Failed(failed.clone()),
                        // It was answered and prepended, and there is still less than wanted: bounds were reached.
                        Some((_, Ok(_))) => Flow::Ready(true),
                        None => Flow::Ask(vec![query]),
                    }
                }
                Body::Chat(_) | Body::Session(_) => Flow::Ready(true),
            };
        }
        match memo.find(|query| matches!(query, Query::Channel { uri: asked, .. } if asked == uri))
        {
            Some((_, Err(failed))) => Flow::Failed(failed.clone()),
            Some((_, Ok(_))) => Flow::Ready(false),
            None => Flow::Ask(vec![Query::Channel {
                uri: uri.clone(),
                turns_max: turns,
                bytes_max,
            }]),
        }
    }

    /// All of several channels: which of them exist. They share the room of one message, so together they load no more
    /// than that.
    pub(crate) fn need_channels(
        &self,
        wanted: &[(ChannelUri, u32)],
        memo: &Memo,
    ) -> Load<Vec<bool>> {
        let mut exist = Vec::with_capacity(wanted.len());
        let mut queries = Vec::new();
        let share = (self.limits.message_out_bytes / wanted.len().max(1)) as u64;
        for (uri, turns) in wanted {
            match self.need_channel_within(uri, memo, *turns, share) {
                Flow::Ready(there) => exist.push(there),
                Flow::Ask(more) => queries.extend(more),
                Flow::Failed(failed) => return Flow::Failed(failed),
            }
        }
        if queries.is_empty() {
            Flow::Ready(exist)
        } else {
            Flow::Ask(queries)
        }
    }

    /// Puts questions for `waiter`; equal questions that are out already are shared.
    pub(crate) fn ask(&mut self, queries: Vec<Query>, waiter: Waiter, memo: Memo) {
        let mut tickets = Vec::new();
        for query in queries {
            let same = match &query {
                // A channel is asked for once, however deep: what is missing is asked for then.
                Query::Channel { uri, .. } => self.loading.get(uri).copied(),
                _ => self
                    .asked
                    .iter()
                    .find(|(_, asked)| asked.query == query && !self.hid_since(asked))
                    .map(|(ticket, _)| *ticket),
            };
            let ticket = same.unwrap_or_else(|| {
                self.next_ticket += 1;
                let ticket = Ticket(self.next_ticket);
                self.out.effects.push(Effect::Read {
                    ticket,
                    query: query.clone(),
                });
                if let Query::Channel { uri, .. } = &query {
                    self.loading.insert(uri.clone(), ticket);
                }
                self.asked.insert(
                    ticket,
                    Asked {
                        query,
                        waiters: Vec::new(),
                        epoch: self.epoch,
                        at: self.seq,
                    },
                );
                ticket
            });
            if let Some(asked) = self.asked.get_mut(&ticket) {
                asked.waiters.push(waiter.clone());
            }
            tickets.push(ticket);
        }
        if let Waiter::Peer(peer) = waiter
            && let Some(waiting) = self
                .peers
                .get_mut(&peer)
                .and_then(|peer| peer.waiting.as_mut())
        {
            waiting.memo = memo;
            waiting.tickets.extend(tickets);
        }
    }

    /// An answer came: take it in, then let everyone go on who waited for it.
    pub(crate) fn read(&mut self, ticket: Ticket, answer: Result<Answer, ReadFailed>) {
        let Some(asked) = self.asked.get(&ticket) else {
            return;
        };
        let stale = asked.epoch != self.epoch;
        let stale = stale
            || self
                .asked
                .get(&ticket)
                .is_some_and(|asked| self.hid_since(asked));
        if stale && let Some(asked) = self.asked.get_mut(&ticket) {
            asked.epoch = self.epoch;
            asked.at = self.seq;
            let query = asked.query.clone();
            self.out.effects.push(Effect::Read { ticket, query });
            return;
        }
        let Some(Asked { query, waiters, .. }) = self.asked.remove(&ticket) else {
            return;
        };
        if let Query::Channel { uri, .. } = &query {
            self.loading.remove(uri);
        }
        // A channel that came into memory is found there from now on: nothing to remember.
        let heard = match (&query, answer) {
            (Query::Channel { uri, .. }, Ok(Answer::Channel(Some(stored)))) => {
                if self.is_disposed(&stored) {
                    Some(Ok(Answer::Channel(None)))
                } else {
                    self.install(*stored);
                    // What lies there but cannot be understood is a failed load, not a channel that is missing.
                    let damaged = !self.channels.contains_key(uri);
                    damaged.then(|| Err(ReadFailed(format!("{uri} is damaged"))))
                }
            }
            (Query::Turns { chat, before_n, .. }, Ok(Answer::Turns(page))) => {
                if let Some(channel) = self
                    .channels
                    .values_mut()
                    .find(|channel| channel.id == *chat)
                    && let Body::Chat(chat) = &mut channel.body
                {
                    chat.prepend(*before_n, &page);
                    channel.snapshots.clear(); // they are kept by index
                }
                Some(Ok(Answer::Turns(page)))
            }
            (_, answer) => Some(answer),
        };
        for waiter in waiters {
            match waiter {
                Waiter::Peer(peer) => self.peer_heard(peer, ticket, &query, heard.as_ref()),
                Waiter::Chore(chore) => {
                    let mut memo = Memo::default();
                    if let Some(answer) = &heard {
                        memo.push(query.clone(), answer.clone());
                    }
                    self.go_on_with(chore, memo);
                }
                Waiter::Sweep => self.sweep_heard(heard.as_ref()),
            }
        }
    }

    /// Whether turns were hidden since a question about them was asked.
    fn hid_since(&self, asked: &Asked) -> bool {
        let chat = match &asked.query {
            Query::Turns { chat, .. }
            | Query::Context { chat, .. }
            | Query::FindTurn { chat, .. } => *chat,
            Query::Channel { .. }
            | Query::Client { .. }
            | Query::Log { .. }
            | Query::Sessions { .. }
            | Query::ContentType { .. }
            | Query::Messages { .. }
            | Query::Message { .. }
            | Query::EmptySessions { .. } => return false,
        };
        let mut channels = self.channels.values();
        channels
            .find(|channel| channel.id == chat)
            .is_some_and(|channel| match &channel.body {
                Body::Chat(chat) => chat.hid_at > asked.at,
                Body::Session(_) => false,
            })
    }

    /// Whether a channel was disposed of since it was read.
    fn is_disposed(&self, stored: &StoredChannel) -> bool {
        let session = stored.parent.as_ref().map_or(stored.id, |parent| parent.id);
        self.disposed.contains(&session) || self.disposed.contains(&stored.id)
    }

    /// Puts a stored channel, and its session, into memory.
    pub(crate) fn install(&mut self, stored: StoredChannel) {
        if self.channels.contains_key(&stored.uri) {
            return; // another answer was quicker
        }
        let StoredChannel {
            id,
            uri,
            kind,
            head,
            private,
            later,
            turns,
            next_n,
            checkpoint,
            parent,
            ..
        } = stored;
        let session = parent
            .as_ref()
            .map(|parent| (parent.uri.clone(), parent.id));
        if let Some(parent) = parent {
            self.install(*parent);
        }
        let Ok(head) = serde_json::from_slice(&head) else {
            return;
        };
        match kind {
            Kind::Root => {}
            Kind::Session => {
                let Ok(state) = SessionState::from_value(head) else {
                    return;
                };
                for client in &state.active_clients {
                    if let Some(client_id) = client["clientId"].as_str() {
                        self.active
                            .entry(client_id.to_owned())
                            .or_default()
                            .insert(uri.clone());
                    }
                }
                let session = SessionChannel::stored(state, &private);
                self.channels.insert(
                    uri,
                    Channel::new(id, self.now, Body::Session(Box::new(session))),
                );
            }
            Kind::Chat => {
                let session = session.filter(|(session, _)| self.channels.contains_key(session));
                let (Ok(mut state), Some(session)) = (ChatState::from_value(head), session) else {
                    return; // a chat is never in memory without its session
                };
                // The title lives in the catalogue: no chat action carries it (G-13, H-150).
                if let Some(entry) = self
                    .session_state(&session.0)
                    .and_then(|s| s.chat(uri.as_str()))
                {
                    state.title.clone_from(&entry.title);
                }
                for (_, envelope) in &later {
                    if let Some(action) = action::from_envelope(envelope) {
                        reduce_chat(&mut state, &action);
                    }
                }
                let older = turns.older;
                let (ns, items) = turns_of(turns);
                state.turns = Arc::new(TurnList::new(items));
                let open = state.active_turn.is_some();
                let chat =
                    ChatChannel::stored(state, session, ns, older, next_n, checkpoint, &private);
                self.channels.insert(
                    uri.clone(),
                    Channel::new(id, self.now, Body::Chat(Box::new(chat))),
                );
                if open {
                    self.orphans.insert(uri.clone());
                    self.begin_chore(Chore::CloseOrphan(uri));
                }
            }
        }
    }

    /// Channels that nobody needs leave memory; watchers stay watchers.
    pub(crate) fn let_go_of_idle(&mut self) {
        self.replays.clear();
        let idle_ms = self.limits.channel_idle_ms;
        let now = self.now;
        let idle = |channel: &Channel| channel.used.plus_ms(idle_ms) <= now;
        self.channels.retain(|_, channel| match &channel.body {
            Body::Chat(chat) => !idle(channel) || chat.state.active_turn.is_some(),
            Body::Session(_) => true,
        });
        let with_chats: BTreeSet<ChannelUri> = self
            .channels
            .values()
            .filter_map(|channel| match &channel.body {
                Body::Chat(chat) => Some(chat.session.clone()),
                Body::Session(_) => None,
            })
            .collect();
        self.channels.retain(|uri, channel| match &channel.body {
            Body::Session(session) => {
                !idle(channel) || with_chats.contains(uri) || session.state.lifecycle == "creating"
            }
            Body::Chat(_) => true,
        });
    }
}

/// Turn rows as the numbers and the shared turns of a chat.
pub(crate) fn turns_of(page: TurnPage) -> (Vec<u64>, Vec<Arc<Turn>>) {
    page.turns
        .into_iter()
        .map(|stored| {
            let turn = Turn {
                id: stored.id,
                outcome: stored.outcome,
                json: stored.json,
            };
            (stored.n, Arc::new(turn))
        })
        .unzip()
}
