//! What is asked of the journal, and what it answers.

use bytes::Bytes;
use wire::state::Outcome;
use wire::{ChannelUri, Digest, Timestamp};

use crate::changeset_work::FileChangesRecord;
use crate::ids::{ChannelId, Seq};
use crate::record::{
    ClientRecord, FloorRecord, ModelOutputRecord, PartRecord, StoredKind, SummaryRecord,
};

/// A question to the journal. Answers show at least everything that was committed when the question was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// A channel with the newest turns of a chat that fit both bounds (at least one if there is any), and its session.
    Channel { uri: ChannelUri, turns_max: u32, bytes_max: u64 },
    /// The page of visible turns right before turn number `before_n`: the newest first cut off when either bound is
    /// reached, the turn that crosses `bytes_max` included (G-18).
    Turns { chat: ChannelId, before_n: u64, turns_max: u32, bytes_max: u64 },
    /// The newest turns of a chat through number `through_n`, shown or not: the context of a side chat (H-144).
    Context { chat: ChannelId, through_n: u64, turns_max: u32, bytes_max: u64 },
    /// Where a turn id stands in a chat.
    FindTurn { chat: ChannelId, turn_id: String },
    /// A client and its floors.
    Client { client_id: String },
    /// Actions of some channels, each above its own floor, in seq order, up to and including `through`; stops and says
    /// so when the envelopes exceed `bytes_max`.
    Log { floors: Vec<(ChannelId, Seq)>, through: Seq, bytes_max: u64 },
    /// A page of the session list, newest first, after the row the cursor names; only what is listed.
    Sessions { after: Option<(Timestamp, ChannelId)>, limit: u32 },
    /// Sessions that may be swept, listed or not: empty, created before `created_before`, and their creator not seen since
    /// either; and when the next of the others will be as old.
    EmptySessions { created_before: Timestamp, limit: u32 },
    /// The type of some content, as one of those says who refer to it.
    ContentType { digest: Digest },
    /// The messages of some turns of a chat, a fork's from where it got them, in this order; turns of before such rows have none.
    Messages { chat: ChannelId, turn_ids: Vec<String> },
    /// One message.
    Message { id: String },
    /// What turns changed in files, a fork's from where it got them, in this order; a session by an empty id.
    FileChanges { channel: ChannelId, turn_ids: Vec<String> },
    /// What was recorded of models' answers in some turns of a chat, a fork's from where it got them, in this order: the last
    /// of these turns, as many as have no more than so many bytes together. Of each it is all or nothing.
    ModelOutputs { chat: ChannelId, turn_ids: Vec<String>, bytes_max: u64 },
}

impl Query {
    /// For logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Channel { .. } => "channel",
            Self::Turns { .. } => "turns",
            Self::Context { .. } => "context",
            Self::FindTurn { .. } => "find-turn",
            Self::Client { .. } => "client",
            Self::Log { .. } => "log",
            Self::Sessions { .. } => "sessions",
            Self::EmptySessions { .. } => "empty-sessions",
            Self::ContentType { .. } => "content-type",
            Self::Messages { .. } => "messages",
            Self::Message { .. } => "message",
            Self::FileChanges { .. } => "file-changes",
            Self::ModelOutputs { .. } => "model-outputs",
        }
    }
}

/// The answer to a [`Query`] of the same name.
#[derive(Debug, Clone)]
pub enum Answer {
    Channel(Option<Box<StoredChannel>>),
    Turns(TurnPage),
    FindTurn(Option<TurnPosition>),
    Client(Option<(ClientRecord, Vec<FloorRecord>)>),
    Log(LogSlice),
    Sessions(Vec<SummaryRecord>),
    EmptySessions(EmptySessions),
    ContentType(Option<String>),
    Messages(Vec<StoredMessage>),
    ModelOutputs(Vec<ModelOutputRecord>),
    FileChanges(Vec<FileChangesRecord>),
}

/// Sessions without a turn, and what else a sweep asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmptySessions {
    /// The oldest first.
    pub due: Vec<ChannelUri>,
    /// When the next of the others was created, or its creator last seen, whichever is later. None if there is no other.
    pub next_since: Option<Timestamp>,
    /// Where the log begins that is kept by its age, where a journal keeps it by that: what lies before may go.
    pub log_from: Option<Seq>,
}

/// A message as it lies in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMessage {
    pub id: String,
    pub turn_id: Option<String>,
    pub metadata: Bytes,
    /// Each with what it was frozen to, if it was.
    pub parts: Vec<(PartRecord, Option<Bytes>)>,
}

/// A channel as it lies in the journal.
#[derive(Debug, Clone)]
pub struct StoredChannel {
    pub id: ChannelId,
    pub uri: ChannelUri,
    pub kind: StoredKind,
    pub head: Bytes,
    pub head_seq: Seq,
    pub private: Bytes,
    /// Actions above `head_seq`, in order: the streamed part of a turn that was running.
    pub later: Vec<(Seq, Bytes)>,
    /// Newest turns, oldest first.
    pub turns: TurnPage,
    /// The number the next turn gets.
    pub next_n: u64,
    pub checkpoint: Option<(String, Bytes)>,
    /// The session it belongs to (without turns of its own).
    pub parent: Option<Box<StoredChannel>>,
}

/// A run of visible turns, oldest first.
#[derive(Debug, Clone, Default)]
pub struct TurnPage {
    pub turns: Vec<StoredTurn>,
    /// Whether visible turns lie before the first of these.
    pub older: bool,
}

/// A turn row.
#[derive(Debug, Clone)]
pub struct StoredTurn {
    pub n: u64,
    pub id: String,
    pub outcome: Outcome,
    pub json: Bytes,
}

/// A turn id that was used in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPosition {
    pub n: u64,
    /// Not cut off by a truncate.
    pub visible: bool,
}

/// Actions in seq order.
#[derive(Debug, Clone, Default)]
pub struct LogSlice {
    pub actions: Vec<(Seq, ChannelId, Bytes)>,
    /// There was more than the bound allows: a replay is not possible.
    pub overflowed: bool,
}
