//! What the journal keeps and what it gives back: the vocabulary between kernel and disk.
//!
//! A batch of records is written in one transaction, in order, before any frame of the same batch is spoken.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::state::{ChatState, PlainState, RootState, SessionState, Turn};
use wire::{ChannelUri, Digest, Timestamp};

pub use crate::changeset_work::FileChangesRecord;
pub use crate::ids::{ChannelId, Seq};
use crate::model_call::{ModelCallEndRecord, ModelCallRecord};
use crate::rendered::Rendered;

/// The kinds of channel this host keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredKind {
    Root,
    Session,
    Chat,
    Changeset,
    Annotations,
    Terminal,
}

impl StoredKind {
    pub fn to_code(self) -> u8 {
        match self {
            Self::Root => 0,
            Self::Session => 1,
            Self::Chat => 2,
            Self::Changeset => 3,
            Self::Annotations => 4,
            Self::Terminal => 5,
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Root),
            1 => Some(Self::Session),
            2 => Some(Self::Chat),
            3 => Some(Self::Changeset),
            4 => Some(Self::Annotations),
            5 => Some(Self::Terminal),
            _ => None,
        }
    }
}

/// A channel's state without its turns, encoded only where it is written.
#[derive(Debug, Clone)]
pub enum Head {
    Root(Arc<RootState>),
    Session(Arc<SessionState>),
    Chat(Arc<ChatState>),
    /// Of a channel that is its state and nothing else.
    Plain(PlainState),
}

impl Head {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Root(state) => wire::rpc::to_json(&**state),
            Self::Session(state) => wire::rpc::to_json(&**state),
            Self::Chat(state) => state.encode_head(),
            Self::Plain(state) => wire::rpc::to_json(state),
        }
    }
}

/// What boot has to look after in a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BootWork {
    /// A turn was running (chat): it ends in a resumable error.
    pub open_turn: bool,
    /// Clients were active (session): their grace periods start afresh.
    pub active_clients: bool,
    /// The session was still being created: it is started again.
    pub creating: bool,
    /// A process ran in a terminal: it ended with the host that ran it.
    pub running_process: bool,
}

impl BootWork {
    pub fn to_bits(self) -> u8 {
        u8::from(self.open_turn)
            | u8::from(self.active_clients) << 1
            | u8::from(self.creating) << 2
            | u8::from(self.running_process) << 3
    }

    pub fn from_bits(bits: u8) -> Self {
        Self {
            open_turn: bits & 1 != 0,
            active_clients: bits & 2 != 0,
            creating: bits & 4 != 0,
            running_process: bits & 8 != 0,
        }
    }
}

/// Everything about a channel but its turns and actions. Written whole each time it changes.
#[derive(Debug, Clone)]
pub struct ChannelRecord {
    pub id: ChannelId,
    pub uri: ChannelUri,
    pub kind: StoredKind,
    /// The session that a chat, a changeset, annotations or a terminal belong to.
    pub parent: Option<ChannelId>,
    pub head: Head,
    /// The last seq that `head` holds; later actions of the channel are folded over it when it is loaded.
    pub head_seq: Seq,
    pub boot_work: BootWork,
    /// What only the host needs to know, as JSON: who created a session, ...; never on the wire.
    pub private: Bytes,
}

/// A session with what the list is ordered and swept by. It is in the list once it was announced (G-28).
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRecord {
    pub session: ChannelId,
    pub uri: ChannelUri,
    /// Orders the list, newest first; ties are broken by `session`, higher first.
    pub modified: Timestamp,
    pub created: Timestamp,
    /// Never had a turn, no draft: may be swept (G-28).
    pub empty: bool,
    /// The client that created it, whose last connection counts for the sweep.
    pub creator: Option<String>,
    /// The whole `SessionSummary` as JSON; empty while the session is in no list.
    pub json: Bytes,
}

impl SummaryRecord {
    /// Whether the session is in the list.
    pub fn is_listed(&self) -> bool {
        !self.json.is_empty()
    }
}

/// What `reconnect` needs to know of a client (G-20).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    pub client_id: String,
    /// The negotiated version, as it was answered.
    pub version: String,
    pub capabilities: Option<Value>,
    pub locale: Option<String>,
    /// Sections of the system prompt it wants to rewrite by default (G-34).
    #[serde(default)]
    pub transform: Option<Vec<String>>,
    pub last_seen_ms: i64,
}

/// What a client was last served of a channel (G-19, G-20).
#[derive(Debug, Clone, PartialEq)]
pub struct FloorRecord {
    pub channel: ChannelUri,
    /// `fromSeq` of the last snapshot served.
    pub floor: Seq,
    /// That snapshot replaced an earlier one on the same subscription.
    pub replaced: bool,
    /// The oldest turn it held, if it held any.
    pub oldest_turn: Option<String>,
    pub view_turns: Option<u32>,
    pub max_latency_ms: Option<u32>,
}

/// A user's message as it was understood: typed parts, each with the JSON it is persisted as (C-081).
#[derive(Debug, Clone, PartialEq)]
pub struct MessageRecord {
    /// `msg_...`, made from the seq that recorded it.
    pub id: String,
    pub session: ChannelId,
    pub chat: ChannelId,
    /// The turn it started or steered; none while it waits.
    pub turn_id: Option<String>,
    pub metadata: Bytes,
    pub parts: Vec<PartRecord>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartRecord {
    /// `prt_...`, in the order of the parts.
    pub id: String,
    pub kind: String,
    pub json: Bytes,
}

/// What a reference in a part turned out to be when it was first lowered (C-021): later turns send the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenRecord {
    pub part_id: String,
    /// Opaque; what is large in it lies in the blob store.
    pub json: Bytes,
    /// The body that lies there: it is kept as long as the part is.
    pub digest: Option<Digest>,
}

/// What a model was shown of a turn's message, for `inspect` only (G-37).
#[derive(Debug, Clone, PartialEq)]
pub struct LoweredRecord {
    pub chat: ChannelId,
    pub turn_id: String,
    pub at: Timestamp,
    /// The target it was lowered to, and the model that was asked.
    pub target: String,
    pub model: String,
    pub blocks: Bytes,
    pub diagnostics: Bytes,
}

/// What a model's server wants back of an answer in later requests (G-61).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOutputRecord {
    pub chat: ChannelId,
    pub turn_id: String,
    /// Which request of the turn it answered.
    pub round: u64,
    /// Opaque.
    pub json: Bytes,
}

/// One fact for the journal.
#[derive(Debug, Clone)]
pub enum Record {
    /// A message, in the transaction of its action, before any agent gets it (C-080).
    Message(MessageRecord),
    /// A message that waited began a turn or steered one.
    MessageStarted {
        id: String,
        turn_id: String,
    },
    /// A message that waited was taken back or replaced.
    MessageGone {
        id: String,
    },
    /// Kept beside the transcript: with the message if its client was asked for it, otherwise by whoever lowers messages.
    Frozen(FrozenRecord),
    /// Kept by whoever lowers messages; the kernel never sees it.
    Lowered(LoweredRecord),
    /// Kept by whoever asks models; the kernel never sees it. Replaces that of the same round.
    ModelOutput(ModelOutputRecord),
    FileChanges(FileChangesRecord),
    /// Kept by whoever asks models, for `inspect` alone (G-37): no part of any state.
    ModelCall(Box<ModelCallRecord>),
    /// Of a call that is not stored any more nothing is kept.
    ModelCallEnd(ModelCallEndRecord),
    /// An action that subscribers see; `envelope` is the JSON of its `ActionEnvelope`.
    Action {
        seq: Seq,
        channel: ChannelId,
        envelope: Bytes,
    },
    Channel(ChannelRecord),
    /// A chat begins as a fork: it sees the source's turns up to and including `through_n` as of `as_of`; its own go on after that.
    Fork {
        chat: ChannelId,
        source: ChannelId,
        through_n: u64,
        as_of: Seq,
    },
    /// A completed turn. `n` rises by one in a chat and is never used twice.
    Turn {
        chat: ChannelId,
        n: u64,
        turn: Arc<Turn>,
    },
    /// The turns of a chat from `from_n` on are not visible any more (truncate, resume).
    HideTurns {
        chat: ChannelId,
        from_n: u64,
        at: Seq,
    },
    /// The channel (and, of a session, all that belongs to it) is gone; rows are kept until `retention` passes.
    Dispose {
        channel: ChannelId,
        at: Timestamp,
    },
    /// Something in a channel names content: it is kept as long as the turn is, or without one as the channel.
    Reference {
        channel: ChannelId,
        turn: Option<u64>,
        digest: Digest,
        content_type: Option<String>,
    },
    /// A part of a message names content: it is kept as long as the part is, and so as long as any turn in any chat shows it (G-52).
    PartReference {
        part_id: String,
        digest: Digest,
    },
    Summary(SummaryRecord),
    SummaryGone {
        session: ChannelId,
    },
    /// The opaque checkpoint of a running turn (G-04); `None` removes it.
    Checkpoint {
        chat: ChannelId,
        turn_id: String,
        data: Option<Bytes>,
    },
    Client(ClientRecord),
    ClientGone {
        client_id: String,
    },
    Floor {
        client_id: String,
        floor: FloorRecord,
    },
    FloorGone {
        client_id: String,
        channel: ChannelUri,
    },
    /// A render of a system prompt, for `inspect` alone (G-37): no part of any state.
    Render(Box<Rendered>),
    /// Actions with a seq up to `through` may be forgotten; from then on a replay cannot reach below it.
    Trim {
        through: Seq,
    },
    /// Housekeeping that only the journal can do: rows of channels disposed of before `disposed_before`, clients not
    /// seen since `clients_before`, the oldest clients over `clients_max`.
    Sweep {
        disposed_before: Timestamp,
        clients_before: Timestamp,
        clients_max: u32,
    },
}

/// What one transaction writes.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The highest seq used so far, recorded with every batch (H-062, G-18).
    pub seq: Seq,
    pub records: Vec<Record>,
}

/// What the kernel needs to begin.
#[derive(Debug, Clone, Default)]
pub struct Boot {
    pub seq: Seq,
    /// No action at or below this seq is held any more.
    pub log_floor: Seq,
    /// The root channel's head, if there is one, and what is stored with it.
    pub root: Option<Bytes>,
    pub root_private: Bytes,
    /// Channels that boot has to look after.
    pub boot_work: Vec<(ChannelUri, StoredKind, BootWork)>,
}
