//! A session in memory: its state as clients know it, and what only the host knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::reduce::{Reduced, reduce_session};
use wire::state::{SessionState, status};
use wire::{Action, ChannelUri, Object, Timestamp, rpc};

/// A session in memory.
pub(crate) struct Session {
    state: Arc<SessionState>,
    private: SessionPrivate,
    /// Chats whose queue starts when the session is ready. Not stored: a queue is held after a restart (G-08).
    start_when_ready: BTreeSet<ChannelUri>,
}

/// What the journal stores beside the state. Never on the wire.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SessionPrivate {
    /// The client that created it.
    creator: Option<String>,
    created: i64,
    modified: i64,
    /// It had a turn, at least once: it is never swept (G-28).
    had_turn: bool,
    /// Chats that hold a draft or a message that waits.
    waiting: BTreeSet<String>,
    /// What was switched on and off in this session alone, by ids of customizations.
    enablement: BTreeMap<String, bool>,
    /// A client gave it its title: no agent gives it another.
    titled_by_client: bool,
    /// Bytes that are embedded in its messages (C-033).
    embedded: usize,
    /// The summary as it was last published.
    published: Object,
}

impl Session {
    pub(crate) fn new(state: SessionState, creator: Option<String>, now: Timestamp) -> Self {
        let private = SessionPrivate {
            creator,
            created: now.0,
            modified: now.0,
            ..SessionPrivate::default()
        };
        Self {
            state: Arc::new(state),
            private,
            start_when_ready: BTreeSet::new(),
        }
    }

    /// A session that was one before, somewhere else.
    pub(crate) fn imported(state: SessionState, created: Timestamp, modified: Timestamp) -> Self {
        let mut session = Self::new(state, None, created);
        session.private.modified = modified.0;
        session.private.had_turn = true;
        session.private.titled_by_client = true;
        session
    }

    /// A session as the journal holds it.
    pub(crate) fn from_stored(
        state: SessionState,
        private: &[u8],
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            state: Arc::new(state),
            private: serde_json::from_slice(private)?,
            start_when_ready: BTreeSet::new(),
        })
    }

    pub(crate) fn encode_private(&self) -> Bytes {
        Bytes::from(rpc::to_json(&self.private))
    }

    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    pub(crate) fn shared_state(&self) -> Arc<SessionState> {
        Arc::clone(&self.state)
    }

    /// Applies an action.
    pub(crate) fn reduce(&mut self, action: &Action) -> Reduced {
        reduce_session(Arc::make_mut(&mut self.state), action)
    }

    pub(crate) fn creator(&self) -> Option<&str> {
        self.private.creator.as_deref()
    }

    pub(crate) fn created(&self) -> Timestamp {
        Timestamp(self.private.created)
    }

    pub(crate) fn modified(&self) -> Timestamp {
        Timestamp(self.private.modified)
    }

    /// Something people would call a change happened: the session moves up in the list.
    pub(crate) fn set_modified(&mut self, now: Timestamp) {
        self.private.modified = now.0;
    }

    pub(crate) fn set_had_turn(&mut self) {
        self.private.had_turn = true;
    }

    /// Never had a turn, and nothing waits in it (G-28).
    pub(crate) fn is_empty(&self) -> bool {
        !self.private.had_turn && self.private.waiting.is_empty()
    }

    /// Whether the session is noted as holding input of a chat.
    pub(crate) fn holds_input_of(&self, chat: &ChannelUri) -> bool {
        self.private.waiting.contains(chat.as_str())
    }

    pub(crate) fn set_holds_input_of(&mut self, chat: &ChannelUri, holds: bool) {
        if holds {
            self.private.waiting.insert(chat.as_str().to_owned());
        } else {
            self.private.waiting.remove(chat.as_str());
        }
    }

    /// What was decided of a customization for this session alone.
    pub(crate) fn decision(&self, id: &str) -> Option<bool> {
        self.private.enablement.get(id).copied()
    }

    /// Everything that was decided for this session alone.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = (&str, bool)> {
        super::enablement::pairs(&self.private.enablement)
    }

    pub(crate) fn set_decision(&mut self, id: &str, decision: Option<bool>) {
        super::enablement::set(&mut self.private.enablement, id, decision);
    }

    /// Forgets the decisions about everything but these.
    pub(crate) fn keep_decisions(&mut self, ids: &BTreeSet<String>) {
        self.private.enablement.retain(|id, _| ids.contains(id));
    }

    pub(crate) fn is_titled_by_client(&self) -> bool {
        self.private.titled_by_client
    }

    pub(crate) fn set_titled_by_client(&mut self) {
        self.private.titled_by_client = true;
    }

    pub(crate) fn embedded_bytes(&self) -> usize {
        self.private.embedded
    }

    pub(crate) fn add_embedded_bytes(&mut self, bytes: usize) {
        self.private.embedded = self.private.embedded.saturating_add(bytes);
    }

    /// Whether the list shows it. It stays there, whatever becomes of what was typed.
    pub(crate) fn is_announced(&self) -> bool {
        !self.private.published.is_empty()
    }

    /// The summary as it was last published; empty if it never was.
    pub(crate) fn published(&self) -> &Object {
        &self.private.published
    }

    /// Publishes a summary; returns the one before.
    pub(crate) fn set_published(&mut self, summary: Object) -> Object {
        std::mem::replace(&mut self.private.published, summary)
    }

    pub(crate) fn is_creating(&self) -> bool {
        self.state.lifecycle == "creating"
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state.lifecycle == "ready"
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.state.lifecycle == "failed"
    }

    pub(crate) fn is_read(&self) -> bool {
        self.state.status & status::IS_READ != 0
    }

    /// A queue that is set while the session is being created starts when it is ready; a cancel holds it again.
    pub(crate) fn set_start_when_ready(&mut self, chat: &ChannelUri, starts: bool) {
        match starts {
            true if self.is_creating() => self.start_when_ready.insert(chat.clone()),
            true => false,
            false => self.start_when_ready.remove(chat),
        };
    }

    pub(crate) fn take_start_when_ready(&mut self) -> BTreeSet<ChannelUri> {
        debug_assert!(!self.is_creating(), "the session is ready or failed");
        std::mem::take(&mut self.start_when_ready)
    }

    /// The ids of the clients that are active in it.
    pub(crate) fn active_client_ids(&self) -> Vec<String> {
        let clients = self.state.active_clients.iter();
        clients
            .filter_map(|client| client["clientId"].as_str().map(str::to_owned))
            .collect()
    }

    /// The URIs of its chats, in the order of the catalogue.
    pub(crate) fn chat_uris(&self) -> Vec<ChannelUri> {
        let chats = self.state.chats.iter();
        chats
            .filter_map(|chat| ChannelUri::parse(&chat.resource).ok())
            .collect()
    }
}
