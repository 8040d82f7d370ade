//! The channels: the root, and the sessions and chats that are in memory.
//!
//! Owns their states, which of them changed since the last commit, and which heads must be written. A channel is changed
//! only through a method here, and each of those notes what must be undone if the change cannot be written.

mod channel;
mod chat;
mod chat_private;
mod enablement;
mod load;
mod run;
mod session;
mod snapshot;
mod undo;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::reduce::{Reduced, reduce_root};
use wire::state::RootState;
use wire::{Action, ChannelUri, Timestamp, rpc};

pub(crate) use chat::{Chat, ChatBeginning, HOST_LIKE_IDS_MAX, is_host_like};
pub(crate) use enablement::{DECISIONS_MAX, Enablement};
pub(crate) use load::DamagedChannel;
pub(crate) use run::{Executor, Run};
pub(crate) use session::Session;
pub(crate) use snapshot::{FROM_THE_BEGINNING, SnapshotWindow};

use crate::frame::ChannelSnapshot;
use crate::record::{BootWork, ChannelId, ChannelRecord, Head, Kind, Seq};

/// Channels disposed of lately that are remembered: more than could be read at once.
const DISPOSED_MAX: usize = 1_024;

/// A head is written again, amortised, once more than this was streamed since.
const REHEAD_BYTES: usize = 256 * 1_024;

/// The root channel, and the sessions and chats that are in memory.
pub(crate) struct Channels {
    root: Arc<RootState>,
    /// Stored with the root, and no part of its state.
    enablement: Arc<Enablement>,
    root_snapshot: Option<Arc<ChannelSnapshot>>,
    in_memory: BTreeMap<ChannelUri, Channel>,
    /// Disposed of a moment ago: what was read before must not bring them back.
    disposed: VecDeque<ChannelId>,
    /// Channels whose head must be written at the end of this step.
    unwritten_heads: BTreeSet<ChannelUri>,
    undo: ChannelsUndo,
    /// The number of this step since the last commit.
    step: usize,
}

/// What changed since the last commit, and in which steps.
#[derive(Default)]
struct ChannelsUndo {
    /// The steps rise.
    touched: BTreeMap<ChannelUri, Vec<usize>>,
    /// The root as it was before each step that changed it.
    root: Vec<(usize, RootBefore)>,
    disposed: Vec<(usize, ChannelId)>,
}

/// The root, and what is stored with it.
type RootBefore = (Arc<RootState>, Arc<Enablement>);

/// A session or a chat, and what is the same for both.
pub(crate) struct Channel {
    id: ChannelId,
    used: Timestamp,
    body: ChannelBody,
    /// Snapshots that are still true, by the index of their first turn.
    snapshots: Vec<(usize, Arc<ChannelSnapshot>)>,
    /// Bytes of actions since the head was last written, and of those of the running turn that it holds.
    unwritten: usize,
    head_bytes: usize,
}

enum ChannelBody {
    Session(Box<Session>),
    Chat(Box<Chat>),
}

impl Channels {
    pub(crate) fn new(root: RootState, enablement: Enablement) -> Self {
        Self {
            root: Arc::new(root),
            enablement: Arc::new(enablement),
            root_snapshot: None,
            in_memory: BTreeMap::new(),
            disposed: VecDeque::new(),
            unwritten_heads: BTreeSet::new(),
            undo: ChannelsUndo::default(),
            step: 0,
        }
    }

    pub(crate) fn begin_step(&mut self, step: usize) {
        self.step = step;
    }

    // Reading.

    pub(crate) fn root(&self) -> &RootState {
        &self.root
    }

    pub(crate) fn enablement(&self) -> &Enablement {
        &self.enablement
    }

    pub(crate) fn sessions_in_memory(&self) -> Vec<ChannelUri> {
        let channels = self.in_memory.iter();
        let sessions =
            channels.filter(|(_, channel)| matches!(channel.body, ChannelBody::Session(_)));
        sessions.map(|(uri, _)| uri.clone()).collect()
    }

    pub(crate) fn contains(&self, uri: &ChannelUri) -> bool {
        self.in_memory.contains_key(uri)
    }

    /// The number of a channel: the root's, or one that is in memory.
    pub(crate) fn id_of(&self, uri: &ChannelUri) -> Option<ChannelId> {
        match uri.is_root() {
            true => Some(ChannelId::ROOT),
            false => self.in_memory.get(uri).map(|channel| channel.id),
        }
    }

    pub(crate) fn find_chat(&self, uri: &ChannelUri) -> Option<&Chat> {
        match &self.in_memory.get(uri)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) => None,
        }
    }

    pub(crate) fn find_session(&self, uri: &ChannelUri) -> Option<&Session> {
        match &self.in_memory.get(uri)?.body {
            ChannelBody::Session(session) => Some(session),
            ChannelBody::Chat(_) => None,
        }
    }

    pub(crate) fn find_chat_by_id(&self, id: ChannelId) -> Option<&Chat> {
        let mut channels = self.in_memory.values();
        match &channels.find(|channel| channel.id == id)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) => None,
        }
    }

    /// The chats of a session that are in memory.
    pub(crate) fn chats_in_memory(&self, session: &ChannelUri) -> Vec<ChannelUri> {
        let chats = self.find_session(session).map(Session::chat_uris);
        let chats = chats.unwrap_or_default().into_iter();
        chats.filter(|uri| self.contains(uri)).collect()
    }

    pub(crate) fn is_disposed(&self, id: ChannelId) -> bool {
        self.disposed.contains(&id)
    }

    /// A channel's state as its subscribers know it.
    pub(crate) fn value_of(&self, uri: &ChannelUri) -> Option<Value> {
        match uri.is_root() {
            true => Some(wire::action::to_value(&*self.root)),
            false => self.in_memory.get(uri).map(Channel::value),
        }
    }

    // Changing. Every method here notes the undo, and all but the streaming ones mark the head.

    pub(crate) fn chat_mut(&mut self, uri: &ChannelUri) -> Option<&mut Chat> {
        match &mut self.change(uri)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) => None,
        }
    }

    pub(crate) fn session_mut(&mut self, uri: &ChannelUri) -> Option<&mut Session> {
        match &mut self.change(uri)?.body {
            ChannelBody::Session(session) => Some(session),
            ChannelBody::Chat(_) => None,
        }
    }

    fn change(&mut self, uri: &ChannelUri) -> Option<&mut Channel> {
        self.touch(uri);
        let channel = self.in_memory.get_mut(uri)?;
        channel.snapshots.clear();
        if !self.unwritten_heads.contains(uri) {
            self.unwritten_heads.insert(uri.clone());
        }
        Some(channel)
    }

    /// The run of a chat. It is no part of what is stored, so the head stays.
    pub(crate) fn run_mut(&mut self, uri: &ChannelUri) -> Option<&mut Run> {
        self.touch(uri);
        match &mut self.in_memory.get_mut(uri)?.body {
            ChannelBody::Chat(chat) => chat.run_mut(),
            ChannelBody::Session(_) => None,
        }
    }

    /// Sets the checkpoint of a chat's turn. It has a row of its own, so the head stays.
    pub(crate) fn set_checkpoint(&mut self, uri: &ChannelUri, turn_id: String, data: Bytes) {
        self.touch(uri);
        let channel = self.in_memory.get_mut(uri);
        match channel.map(|channel| &mut channel.body) {
            Some(ChannelBody::Chat(chat)) => chat.set_checkpoint(turn_id, data),
            Some(ChannelBody::Session(_)) | None => {
                debug_assert!(false, "{uri} is a chat in memory")
            }
        }
    }

    /// Applies an action to a session or chat that is in memory.
    pub(crate) fn reduce(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        now: Timestamp,
    ) -> Option<Reduced> {
        let channel = self.in_memory.get_mut(uri)?;
        let reduced = match &mut channel.body {
            ChannelBody::Session(session) => session.reduce(action),
            ChannelBody::Chat(chat) => chat.reduce(action),
        };
        if reduced == Reduced::Changed {
            channel.used = now;
            channel.snapshots.clear();
            self.touch(uri);
        }
        Some(reduced)
    }

    /// An action of so many bytes was recorded. One that is applied over the head when the channel is loaded does not
    /// need the head to be written, until much has been recorded since.
    ///
    /// `turn_bytes` is what it adds to the active turn of a chat. Returns what that takes now, at most.
    pub(crate) fn note_recorded(
        &mut self,
        uri: &ChannelUri,
        bytes: usize,
        over_head: bool,
        turn_bytes: usize,
    ) -> usize {
        self.touch(uri);
        let Some(channel) = self.in_memory.get_mut(uri) else {
            debug_assert!(
                false,
                "an action is recorded in a channel that is in memory"
            );
            return 0;
        };
        channel.unwritten += bytes;
        let grown = channel.unwritten > REHEAD_BYTES.max(channel.head_bytes);
        if (!over_head || grown) && !self.unwritten_heads.contains(uri) {
            self.unwritten_heads.insert(uri.clone());
        }
        match &mut channel.body {
            ChannelBody::Chat(chat) => {
                chat.add_turn_bytes(turn_bytes);
                chat.active_turn_bytes()
            }
            ChannelBody::Session(_) => 0,
        }
    }

    /// What the active turn of a chat really takes as JSON.
    pub(crate) fn recount_active_turn(&mut self, uri: &ChannelUri) -> usize {
        match self.in_memory.get_mut(uri).map(|channel| &mut channel.body) {
            Some(ChannelBody::Chat(chat)) => chat.recount_active_turn(),
            Some(ChannelBody::Session(_)) | None => 0,
        }
    }

    /// The root is about to change: what it is now is what it goes back to.
    fn note_root(&mut self) {
        if self.undo.root.last().map(|(step, _)| *step) != Some(self.step) {
            let before = (Arc::clone(&self.root), Arc::clone(&self.enablement));
            self.undo.root.push((self.step, before));
        }
    }

    /// Replaces what was decided of one customization for all sessions, and for those in one directory.
    pub(crate) fn decide_for_all(
        &mut self,
        id: &str,
        global: Option<bool>,
        workspace: Option<(&str, Option<bool>)>,
    ) {
        self.note_root();
        Arc::make_mut(&mut self.enablement).decide(id, global, workspace);
        self.mark_head(&ChannelUri::root());
    }

    pub(crate) fn reduce_root(&mut self, action: &Action) -> Reduced {
        self.note_root();
        let reduced = reduce_root(Arc::make_mut(&mut self.root), action);
        if reduced == Reduced::Changed {
            self.root_snapshot = None;
            self.mark_head(&ChannelUri::root());
        }
        reduced
    }

    /// Has the head written at the end of this step. It holds what earlier steps changed, so this step rests on them.
    pub(crate) fn mark_head(&mut self, uri: &ChannelUri) {
        if !uri.is_root() {
            self.touch(uri);
        }
        self.unwritten_heads.insert(uri.clone());
    }

    /// Puts a new channel into memory.
    pub(crate) fn insert(&mut self, uri: ChannelUri, channel: Channel) {
        if let ChannelBody::Chat(chat) = &channel.body {
            assert!(
                self.contains(chat.session()),
                "a chat is never in memory without its session"
            );
        }
        self.touch(&uri);
        self.mark_head(&uri);
        let before = self.in_memory.insert(uri, channel);
        assert!(before.is_none(), "a channel is created once");
    }

    /// A channel is disposed of: it leaves memory, and what was read before must not bring it back.
    pub(crate) fn dispose(&mut self, uri: &ChannelUri) {
        self.touch(uri);
        self.unwritten_heads.remove(uri);
        if let Some(channel) = self.in_memory.remove(uri) {
            self.undo.disposed.push((self.step, channel.id));
            self.disposed.push_back(channel.id);
            if self.disposed.len() > DISPOSED_MAX {
                self.disposed.pop_front();
            }
        }
    }

    fn touch(&mut self, uri: &ChannelUri) {
        match self.undo.touched.get_mut(uri) {
            Some(steps) if steps.last() == Some(&self.step) => {}
            Some(steps) => steps.push(self.step),
            None => {
                self.undo.touched.insert(uri.clone(), vec![self.step]);
            }
        }
    }

    // The end of a step, of a batch.

    /// The heads of all channels that changed in this step, as they are now.
    pub(crate) fn take_heads(&mut self, seq: Seq) -> Vec<ChannelRecord> {
        let unwritten = std::mem::take(&mut self.unwritten_heads);
        let heads = unwritten.into_iter().filter_map(|uri| {
            if uri.is_root() {
                return Some(self.root_head(uri, seq));
            }
            self.head(&uri, seq)
        });
        heads.collect()
    }

    fn root_head(&self, uri: ChannelUri, seq: Seq) -> ChannelRecord {
        ChannelRecord {
            id: ChannelId::ROOT,
            uri,
            kind: Kind::Root,
            parent: None,
            head: Head::Root(Arc::clone(&self.root)),
            head_seq: seq,
            boot_work: BootWork::default(),
            private: Bytes::from(rpc::to_json(&*self.enablement)),
        }
    }

    /// The head of one session or chat as it is now.
    pub(crate) fn head(&mut self, uri: &ChannelUri, seq: Seq) -> Option<ChannelRecord> {
        let channel = self.in_memory.get_mut(uri)?;
        // What a running turn has streamed is in its head from now on; the next one waits until it has doubled.
        channel.head_bytes = match &channel.body {
            ChannelBody::Chat(chat) if chat.state().active_turn.is_some() => {
                channel.head_bytes + channel.unwritten
            }
            ChannelBody::Chat(_) | ChannelBody::Session(_) => 0,
        };
        channel.unwritten = 0;
        Some(channel.record(uri, seq))
    }

    /// Channels that nobody used for a while leave memory; whoever watches them goes on watching. Returns the chats among them.
    pub(crate) fn unload_idle(&mut self, now: Timestamp, idle_ms: u64) -> Vec<ChannelUri> {
        let idle = |channel: &Channel| channel.used.plus_ms(idle_ms) <= now;
        let unused = self
            .in_memory
            .iter()
            .filter(|(_, channel)| match &channel.body {
                ChannelBody::Chat(chat) => idle(channel) && chat.state().active_turn.is_none(),
                ChannelBody::Session(_) => false,
            });
        let unused: Vec<ChannelUri> = unused.map(|(uri, _)| uri.clone()).collect();
        for uri in &unused {
            self.in_memory.remove(uri);
        }
        let chats = self.in_memory.values();
        let with_chats = chats.filter_map(|channel| match &channel.body {
            ChannelBody::Chat(chat) => Some(chat.session().clone()),
            ChannelBody::Session(_) => None,
        });
        let with_chats: BTreeSet<ChannelUri> = with_chats.collect();
        self.in_memory.retain(|uri, channel| match &channel.body {
            ChannelBody::Session(session) => {
                !idle(channel) || with_chats.contains(uri) || session.is_creating()
            }
            ChannelBody::Chat(_) => true,
        });
        unused
    }

    /// The states of everything that is in memory, by URI, and what only the host knows of it: for checkers.
    pub(crate) fn digest(&self) -> (Value, Value) {
        let states = self.in_memory.iter();
        let states = states.map(|(uri, channel)| (uri.to_string(), channel.value()));
        let private = self.in_memory.iter().map(|(uri, channel)| {
            let record = channel.record(uri, Seq(0));
            let text = String::from_utf8_lossy(&record.private).into_owned();
            (uri.to_string(), json!({"id": record.id.0, "record": text}))
        });
        (
            Value::Object(states.collect()),
            Value::Object(private.collect()),
        )
    }
}
