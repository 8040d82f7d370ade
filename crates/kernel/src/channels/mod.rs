//! The channels: the root, and the sessions, chats and other channels that are in memory.
//!
//! Owns their states, which of them changed since the last commit, and which heads must be written. A channel is changed
//! only through a method here, and each of those notes what must be undone if the change cannot be written.

mod channel;
mod chat;
mod chat_private;
mod enablement;
mod heads;
mod load;
mod plain;
mod run;
mod session;
mod shared_root;
mod snapshot;
mod undo;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::reduce::{Reduced, reduce_root};
use wire::state::RootState;
use wire::{Action, ChannelUri, Timestamp};

pub(crate) use chat::{Chat, HOST_LIKE_IDS_MAX, InitialChat, is_host_like};
pub(crate) use enablement::{DECISIONS_MAX, Enablement};
pub(crate) use load::DamagedChannel;
pub(crate) use plain::{PlainChannel, TerminalBound};
pub(crate) use run::{Executor, Run};
pub(crate) use session::{AnnotationCounts, ProgressReport, Session};
pub(crate) use snapshot::{FROM_THE_BEGINNING, SnapshotWindow};

use crate::frame::ChannelSnapshot;
use crate::limits::Limits;
use crate::record::{ChannelId, Seq};

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
    trim: TerminalBound,
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

/// A channel, and what is the same for all of them.
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
    Plain(Box<PlainChannel>),
}

impl Channel {
    /// The session that it belongs to; a session, and what belongs to a client alone, has none.
    pub(super) fn owner(&self) -> Option<&ChannelUri> {
        match &self.body {
            ChannelBody::Session(_) => None,
            ChannelBody::Chat(chat) => Some(chat.session()),
            ChannelBody::Plain(plain) => plain.session(),
        }
    }
}

impl Channels {
    pub(crate) fn new(root: RootState, enablement: Enablement, limits: &Limits) -> Self {
        Self {
            root: Arc::new(root),
            enablement: Arc::new(enablement),
            root_snapshot: None,
            in_memory: BTreeMap::new(),
            disposed: VecDeque::new(),
            unwritten_heads: BTreeSet::new(),
            undo: ChannelsUndo::default(),
            step: 0,
            trim: TerminalBound {
                chars_max: limits.terminal_chars_max,
                lines_min: limits.terminal_lines_min,
            },
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

    /// How much of a terminal's output is kept.
    pub(crate) fn terminal_bound(&self) -> TerminalBound {
        self.trim
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
        if uri.is_root() {
            Some(ChannelId::ROOT)
        } else {
            self.in_memory.get(uri).map(|channel| channel.id)
        }
    }

    pub(crate) fn find_chat(&self, uri: &ChannelUri) -> Option<&Chat> {
        match &self.in_memory.get(uri)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) | ChannelBody::Plain(_) => None,
        }
    }

    pub(crate) fn find_session(&self, uri: &ChannelUri) -> Option<&Session> {
        match &self.in_memory.get(uri)?.body {
            ChannelBody::Session(session) => Some(session),
            ChannelBody::Chat(_) | ChannelBody::Plain(_) => None,
        }
    }

    /// A changeset, annotations, a terminal or a watch.
    pub(crate) fn find_plain(&self, uri: &ChannelUri) -> Option<&PlainChannel> {
        match &self.in_memory.get(uri)?.body {
            ChannelBody::Plain(plain) => Some(plain),
            ChannelBody::Session(_) | ChannelBody::Chat(_) => None,
        }
    }

    /// The channels in memory that belong to a session and are no chats of it.
    pub(crate) fn plain_of(&self, session: &ChannelUri) -> Vec<ChannelUri> {
        let channels = self.in_memory.iter();
        let plain = channels.filter(|(_, channel)| match &channel.body {
            ChannelBody::Plain(plain) => plain.session() == Some(session),
            ChannelBody::Session(_) | ChannelBody::Chat(_) => false,
        });
        plain.map(|(uri, _)| uri.clone()).collect()
    }

    /// The running terminals in memory that a client holds.
    pub(crate) fn terminals_held_by(&self, client_id: &str) -> Vec<ChannelUri> {
        let channels = self.in_memory.iter();
        let held = channels.filter(|(_, channel)| match &channel.body {
            ChannelBody::Plain(plain) => plain.state().terminal().is_some_and(|terminal| {
                terminal.is_running() && terminal.holder() == Some(client_id)
            }),
            ChannelBody::Session(_) | ChannelBody::Chat(_) => false,
        });
        held.map(|(uri, _)| uri.clone()).collect()
    }

    pub(crate) fn find_chat_by_id(&self, id: ChannelId) -> Option<&Chat> {
        let mut channels = self.in_memory.values();
        match &channels.find(|channel| channel.id == id)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) | ChannelBody::Plain(_) => None,
        }
    }

    /// The chats of a session that are in memory.
    pub(crate) fn chats_in_memory(&self, session: &ChannelUri) -> Vec<ChannelUri> {
        let chats =
            self.find_session(session).map(Session::chat_uris).unwrap_or_default().into_iter();
        chats.filter(|uri| self.contains(uri)).collect()
    }

    /// Whether the journal keeps a channel that is in memory.
    pub(crate) fn is_stored(&self, uri: &ChannelUri) -> bool {
        let channel = self.in_memory.get(uri);
        channel.is_some_and(|channel| channel.record(uri, Seq(0)).is_some())
    }

    pub(crate) fn is_disposed(&self, id: ChannelId) -> bool {
        self.disposed.contains(&id)
    }

    /// A channel's state as its subscribers know it.
    pub(crate) fn value_of(&self, uri: &ChannelUri) -> Option<Value> {
        if uri.is_root() {
            Some(wire::action::to_value(&*self.root))
        } else {
            self.in_memory.get(uri).map(Channel::value)
        }
    }

    // Changing. Every method here notes the undo, and all but the streaming ones mark the head.

    pub(crate) fn chat_mut(&mut self, uri: &ChannelUri) -> Option<&mut Chat> {
        match &mut self.change(uri)?.body {
            ChannelBody::Chat(chat) => Some(chat),
            ChannelBody::Session(_) | ChannelBody::Plain(_) => None,
        }
    }

    pub(crate) fn plain_mut(&mut self, uri: &ChannelUri) -> Option<&mut PlainChannel> {
        match &mut self.change(uri)?.body {
            ChannelBody::Plain(plain) => Some(plain),
            ChannelBody::Session(_) | ChannelBody::Chat(_) => None,
        }
    }

    /// Makes another session, which is in memory, the one that a chat belongs to.
    pub(crate) fn set_owner(&mut self, chat: &ChannelUri, session: &ChannelUri) {
        let id = self.id_of(session);
        let found = self.chat_mut(chat);
        match (found, id) {
            (Some(chat), Some(id)) => chat.set_session(session.clone(), id),
            (None, _) | (_, None) => debug_assert!(false, "{chat} and {session} are in memory"),
        }
    }

    pub(crate) fn session_mut(&mut self, uri: &ChannelUri) -> Option<&mut Session> {
        match &mut self.change(uri)?.body {
            ChannelBody::Session(session) => Some(session),
            ChannelBody::Chat(_) | ChannelBody::Plain(_) => None,
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
            ChannelBody::Session(_) | ChannelBody::Plain(_) => None,
        }
    }

    /// Sets the checkpoint of a chat's turn. It has a row of its own, so the head stays.
    pub(crate) fn set_checkpoint(&mut self, uri: &ChannelUri, turn_id: String, data: Bytes) {
        self.touch(uri);
        let channel = self.in_memory.get_mut(uri);
        match channel.map(|channel| &mut channel.body) {
            Some(ChannelBody::Chat(chat)) => chat.set_checkpoint(turn_id, data),
            Some(ChannelBody::Session(_) | ChannelBody::Plain(_)) | None => {
                debug_assert!(false, "{uri} is a chat in memory")
            }
        }
    }

    /// Applies an action to a channel that is in memory.
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
            ChannelBody::Plain(plain) => plain.reduce(action),
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
            debug_assert!(false, "an action is recorded in a channel that is in memory");
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
            ChannelBody::Session(_) | ChannelBody::Plain(_) => 0,
        }
    }

    /// What the active turn of a chat really takes as JSON.
    pub(crate) fn recount_active_turn(&mut self, uri: &ChannelUri) -> usize {
        match self.in_memory.get_mut(uri).map(|channel| &mut channel.body) {
            Some(ChannelBody::Chat(chat)) => chat.recount_active_turn(),
            Some(ChannelBody::Session(_) | ChannelBody::Plain(_)) | None => 0,
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

    /// Puts a new channel into memory.
    pub(crate) fn insert(&mut self, uri: ChannelUri, channel: Channel) {
        assert!(
            channel.owner().is_none_or(|session| self.contains(session)),
            "nothing is in memory without the session it belongs to"
        );
        let before = self.in_memory.insert(uri.clone(), channel);
        assert!(before.is_none(), "a channel is created once");
        self.mark_head(&uri);
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

    /// About what all channels in memory take, in bytes.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        let sizes = self.in_memory.values().map(|channel| match &channel.body {
            ChannelBody::Chat(chat) => chat.turn_bytes() + chat.active_turn_bytes() as u64,
            ChannelBody::Session(session) => session.embedded_bytes() as u64,
            ChannelBody::Plain(plain) => plain.state().size_hint() as u64,
        });
        sizes.sum()
    }

    /// Unloads channels that were not used for a while; their watchers stay. Returns the chats among them.
    pub(crate) fn unload_idle(
        &mut self,
        now: Timestamp,
        idle_ms: u64,
        is_watched: impl Fn(&ChannelUri) -> bool,
    ) -> Vec<ChannelUri> {
        // It is made again when the root is next subscribed to.
        self.root_snapshot = None;
        let idle = |channel: &Channel| channel.used.plus_ms(idle_ms) <= now;
        let mut chats = Vec::new();
        self.in_memory.retain(|uri, channel| match &channel.body {
            ChannelBody::Chat(chat) if idle(channel) && chat.state().active_turn.is_none() => {
                chats.push(uri.clone());
                false
            }
            ChannelBody::Plain(plain) => !(idle(channel) && plain.may_unload(|| is_watched(uri))),
            ChannelBody::Chat(_) | ChannelBody::Session(_) => true,
        });
        let owners: BTreeSet<ChannelUri> =
            self.in_memory.values().filter_map(Channel::owner).cloned().collect();
        self.in_memory.retain(|uri, channel| match &channel.body {
            ChannelBody::Session(session) => {
                !idle(channel) || owners.contains(uri) || session.is_creating()
            }
            ChannelBody::Chat(_) | ChannelBody::Plain(_) => true,
        });
        chats
    }

    /// Whether nothing but the root is in memory, and no snapshot of it.
    pub(crate) fn is_only_root(&self) -> bool {
        self.in_memory.is_empty() && self.root_snapshot.is_none()
    }

    /// The states of all stored channels that are in memory, by URI, and what only the host knows of it: for checkers.
    pub(crate) fn digest(&self) -> (Value, Value) {
        let stored = self.in_memory.iter().filter_map(|(uri, channel)| {
            let record = channel.record(uri, Seq(0))?;
            Some((uri.to_string(), channel.value(), record))
        });
        let (states, private): (Vec<_>, Vec<_>) = stored
            .map(|(uri, state, record)| {
                let text = String::from_utf8_lossy(&record.private).into_owned();
                let private = json!({"id": record.id.0, "record": text});
                ((uri.clone(), state), (uri, private))
            })
            .unzip();
        (Value::Object(states.into_iter().collect()), Value::Object(private.into_iter().collect()))
    }
}
