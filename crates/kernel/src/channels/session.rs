//! A session in memory: its state as clients know it, and what only the host knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::reduce::{Reduced, reduce_session};
use wire::state::{SessionState, status};
use wire::{Action, ChannelUri, Object, Timestamp, rpc};

/// A session in memory.
pub(crate) struct Session {
    state: Arc<SessionState>,
    private: SessionPrivate,
    /// Chats whose queue starts when the session is ready. Not stored: a queue is held after a restart (G-08).
    start_when_ready: BTreeSet<ChannelUri>,
    /// The client that gets progress of the creation. Not stored: after a restart that client is gone.
    progress: Option<ProgressReport>,
}

/// How far a creation is, and who wants to know (`progressToken`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgressReport {
    pub client_id: String,
    pub token: String,
    /// Never falls.
    pub done: i64,
}

impl ProgressReport {
    pub(crate) fn new(client_id: String, token: String) -> Self {
        Self { client_id, token, done: 0 }
    }
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
    /// How many annotations it has.
    annotations: AnnotationCounts,
    /// What its turns changed in files, in sums (H-123).
    changes: Option<Value>,
    /// The summary as it was last published.
    published: Object,
}

/// How many annotations a session has, and entries in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AnnotationCounts {
    pub annotations: usize,
    pub entries: usize,
}

impl Session {
    pub(crate) fn new(state: SessionState, creator: Option<String>, now: Timestamp) -> Self {
        let private = SessionPrivate {
            creator,
            created: now.0,
            modified: now.0,
            ..SessionPrivate::default()
        };
        Self { state: Arc::new(state), private, start_when_ready: BTreeSet::new(), progress: None }
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
            progress: None,
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

    pub(crate) fn progress(&self) -> Option<&ProgressReport> {
        self.progress.as_ref()
    }

    pub(crate) fn set_progress(&mut self, progress: ProgressReport) {
        self.progress = Some(progress);
    }

    pub(crate) fn take_progress(&mut self) -> Option<ProgressReport> {
        self.progress.take()
    }

    pub(crate) fn annotation_counts(&self) -> AnnotationCounts {
        self.private.annotations
    }

    pub(crate) fn set_annotation_counts(&mut self, counts: AnnotationCounts) {
        self.private.annotations = counts;
    }

    pub(crate) fn set_had_turn(&mut self) {
        self.private.had_turn = true;
    }

    /// Never had a turn, nothing waits in it, and nobody annotated anything (G-28).
    pub(crate) fn is_empty(&self) -> bool {
        !self.private.had_turn
            && self.private.waiting.is_empty()
            && self.private.annotations == AnnotationCounts::default()
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

    /// What its turns changed in files: `changes` of its summary.
    pub(crate) fn changes(&self) -> Option<&Value> {
        self.private.changes.as_ref()
    }

    pub(crate) fn set_changes(&mut self, changes: Value) {
        self.private.changes = Some(changes);
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
        if !starts {
            self.start_when_ready.remove(chat)
        } else if self.is_creating() {
            self.start_when_ready.insert(chat.clone())
        } else {
            false
        };
    }

    pub(crate) fn take_start_when_ready(&mut self) -> BTreeSet<ChannelUri> {
        debug_assert!(!self.is_creating(), "the session is ready or failed");
        std::mem::take(&mut self.start_when_ready)
    }

    /// The ids of the clients that are active in it.
    pub(crate) fn active_client_ids(&self) -> Vec<String> {
        let clients = self.state.active_clients.iter();
        clients.filter_map(|client| client["clientId"].as_str().map(str::to_owned)).collect()
    }

    /// The URIs of its chats, in the order of the catalogue.
    pub(crate) fn chat_uris(&self) -> Vec<ChannelUri> {
        self.state.chats.iter().filter_map(|chat| ChannelUri::parse(&chat.resource).ok()).collect()
    }
}
