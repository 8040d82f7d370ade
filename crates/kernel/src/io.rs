//! The one door: what comes in, what goes out.

use std::ops::RangeInclusive;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::ext::system_message_transform::{CATALOGUE_FIELD, CATALOGUE_KEY, SystemMessageSection};
use wire::published::commands::ContentEncoding;
use wire::rpc::Malformed;
use wire::{ChannelUri, Digest, Id, Incoming, Origin, Timestamp};

use crate::bodies::{AsSent, Body};
use crate::frame::Outgoing;
use crate::record::{Answer, ChannelId, Query, Record, Seq};
use crate::rendered::{Rendered, Section};
use crate::submit::Submission;

/// A connection. Never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

/// A running turn's agent task. Never used twice in the life of a process: what a stopped run still says is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// A question that is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Input {
    Connected {
        peer: PeerId,
    },
    /// One message; `bytes` is what it took on the wire.
    Received {
        peer: PeerId,
        message: Incoming,
        bytes: usize,
    },
    /// Something that was no message, to be answered in its turn.
    Malformed {
        peer: PeerId,
        malformed: Malformed,
    },
    /// Comes after everything that was read from the peer.
    Disconnected {
        peer: PeerId,
    },
    Read {
        ticket: Ticket,
        answer: Result<Answer, ReadFailed>,
    },
    /// The answer to [`Effect::Complete`].
    Completed {
        ticket: Ticket,
        completed: Result<Completed, ErrandFailed>,
    },
    /// The answer to [`Effect::Fetch`].
    Fetched {
        ticket: Ticket,
        fetched: Result<Fetched, ErrandFailed>,
    },
    /// The answer to [`Effect::Keep`]: where each body's name belongs.
    Kept {
        ticket: Ticket,
        kept: Result<Vec<(String, Digest)>, ErrandFailed>,
    },
    /// The answer to [`Effect::Compose`].
    Composed {
        ticket: Ticket,
        composed: Result<Box<Submission>, ErrandFailed>,
    },
    /// The agent is ready for the session, or never will be.
    SessionStarted {
        session: ChannelUri,
        result: Result<(), AgentFailure>,
    },
    /// What an agent's system prompt is when a session begins (G-02); [`Effect::Opened`] follows.
    Opening {
        session: ChannelUri,
        sections: Vec<Section>,
    },
    Agent {
        run: RunId,
        event: TurnEvent,
    },
    Woke(Timer),
    /// The answer to [`Effect::Probe`]: can the journal be written again?
    Probed {
        writable: bool,
    },
    /// The host is going down: running turns end as resumable errors.
    Stopping,
}

/// The journal could not answer; the text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal could not be read: {0}")]
pub struct ReadFailed(pub String);

/// The host could not do what was asked of it; its peer hears the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrandFailed(pub String);

/// What somebody is typing, and where: what may be meant?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complete {
    pub working_directories: Vec<String>,
    pub text: String,
    /// In UTF-16 units.
    pub offset: u64,
}

/// What may be meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Completed {
    /// `CompletionItem`s.
    Items(Vec<Value>),
    /// The offset is not in the text.
    OutsideText,
}

/// Content to be read for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetch {
    pub digest: Digest,
    pub encoding: Option<ContentEncoding>,
    /// The most that its encoded data may take.
    pub bytes_max: usize,
}

/// What lies under a digest.
#[derive(Debug, Clone, PartialEq)]
pub enum Fetched {
    Content(Content),
    Missing,
    TooLarge,
}

/// Content as it goes to a client, encoded where it was read: a step must not.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// A JSON string, quotes included.
    pub data: Bytes,
    pub encoding: ContentEncoding,
    pub content_type: Option<String>,
}

/// What an agent says while it works on a turn. Parts are named by numbers of the agent's own.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent {
    PartOpened {
        part: u64,
        kind: TextKind,
    },
    Text {
        part: u64,
        text: String,
    },
    Notice {
        text: String,
    },
    Usage(Value),
    Title(String),
    Activity(Option<String>),
    /// Opaque, at most `checkpoint_bytes_max`; handed back when the turn is resumed (G-04).
    Checkpoint(Bytes),
    /// Text, opaque, at most `checkpoint_bytes_max`: kept with the session, handed to each of its turns. Replaces what was noted.
    Noted(Bytes),
    /// A reference to content that is kept already: the fields of a `contentRef` part without its `kind`.
    ContentRef(wire::Object),
    /// A tool call begins. Calls are named by numbers of the agent's own, once in a run.
    ToolStarted {
        call: u64,
        start: Box<ToolStart>,
    },
    /// More of the input of a call that is not ready yet.
    ToolInput {
        call: u64,
        text: String,
    },
    /// The fields of `chat/toolCallReady` without its ids. With `confirmed` the call runs; without, someone is asked
    /// and [`AgentReply::ToolDecided`] follows. May be said again while the call runs or waits (H-192, H-205).
    ToolReady {
        call: u64,
        fields: wire::Object,
    },
    /// Output so far, replaced whole.
    ToolContent {
        call: u64,
        content: Vec<Value>,
    },
    /// A `ToolCallResult`. With `review` someone is asked first and [`AgentReply::ResultDecided`] follows (H-200).
    ToolCompleted {
        call: u64,
        result: Value,
        review: bool,
    },
    /// A call to a tool that an active client offers; [`AgentReply::ToolEnded`] follows in any case (G-07).
    ClientTool {
        call: u64,
        name: String,
        input: Value,
        timeout_ms: u64,
    },
    /// A `ChatInputRequest` without its id; [`AgentReply::Answered`] follows.
    Asked {
        ask: u64,
        request: wire::Object,
    },
    /// The agent can take a steering message now; [`AgentReply::Steered`] follows at once.
    SteerPoint {
        steer: u64,
    },
    /// What are the session's settings now? [`AgentReply::Settings`] follows at once.
    SettingsAsked {
        ask: u64,
    },
    /// The sections of a system prompt, in order; [`AgentReply::Rendered`] follows within the deadline.
    Render {
        render: u64,
        sections: Vec<Section>,
    },
    /// A tool call that starts a worker chat; [`AgentReply::ToolEnded`] follows when the worker's turn is over.
    Spawned {
        call: u64,
        worker: Box<Worker>,
    },
    /// The agent remembers only the last turns from now on, and of those before what it says here.
    Compacted {
        keep_turns: usize,
        summary: Option<String>,
    },
    Completed,
    Failed(AgentFailure),
}

/// How a tool call is announced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolStart {
    pub name: String,
    pub display_name: String,
    pub intention: Option<String>,
    /// An MCP server; client tools are called by [`TurnEvent::ClientTool`].
    pub contributor: Option<Value>,
    pub meta: Option<wire::Object>,
}

/// A worker chat to be started.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worker {
    pub title: String,
    /// `ChatInteractivity`; read-only if absent.
    pub interactivity: Option<String>,
    /// The worker's name inside the agent.
    pub agent_name: Option<String>,
    /// What the worker is to do: the text of its first message.
    pub task: String,
    /// Text, opaque, at most `checkpoint_bytes_max`; handed to the worker's turns.
    pub brief: Bytes,
}

/// What an agent that waits in the middle of a turn is told.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentReply {
    ToolDecided {
        call: u64,
        approved: bool,
        /// The input as it is now, edited or not; absent if it never had an inline one.
        input: Option<String>,
        /// The `ConfirmationOption` that was chosen.
        selected_option: Option<Value>,
        /// The `Message` of who denied, and the reason given in words.
        suggestion: Option<Value>,
        reason: Option<Value>,
    },
    ResultDecided {
        call: u64,
        approved: bool,
    },
    /// A client's tool or a worker is done: the `ToolCallResult`.
    ToolEnded {
        call: u64,
        result: Value,
    },
    /// `ChatInputResponseKind` and the answers by question.
    Answered {
        ask: u64,
        response: String,
        answers: wire::Object,
    },
    /// The steering `Message`, if one was waiting, and its row.
    Steered {
        steer: u64,
        message: Option<Value>,
        message_id: Option<String>,
    },
    /// The session's configuration values.
    Settings {
        ask: u64,
        values: wire::Object,
    },
    /// What the model is to read, and how it came to that.
    Rendered {
        render: u64,
        rendered: Box<Rendered>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Markdown,
    Reasoning,
}

/// Why an agent could not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailure {
    pub error_type: String,
    pub message: String,
    pub resumable: bool,
}

/// What wakes the kernel later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Channels that nobody uses are let go.
    Idle,
    /// Empty sessions, old actions, old clients.
    Sweep,
    /// A disconnected active client has had its grace (H-126).
    Grace {
        session: ChannelUri,
        client_id: String,
    },
    /// A client had its time to carry out a tool (G-07).
    ClientTool { run: RunId, tool_call_id: String },
    /// A client had its time to answer a request of the host's.
    Request { request: u64 },
    /// Is the journal writable again?
    Probe,
}

/// What is to be done once the batch is written and spoken.
#[derive(Debug, Clone)]
pub enum Effect {
    Read {
        ticket: Ticket,
        query: Query,
    },
    /// Say what may be meant; answered by [`Input::Completed`].
    Complete {
        ticket: Ticket,
        complete: Box<Complete>,
    },
    /// Read content; answered by [`Input::Fetched`].
    Fetch {
        ticket: Ticket,
        fetch: Fetch,
    },
    /// Keep bodies before what holds them is recorded (G-32); answered by [`Input::Kept`].
    Keep {
        ticket: Ticket,
        bodies: Vec<Body>,
    },
    /// Find out what a message means, and keep its bodies, before it is recorded; answered by [`Input::Composed`].
    Compose {
        ticket: Ticket,
        compose: Box<Compose>,
    },
    StartSession {
        session: ChannelUri,
        provider: String,
        /// The session's configuration values.
        config: wire::Object,
        working_directories: Vec<String>,
    },
    /// The render that [`Input::Opening`] brought is done.
    Opened {
        session: ChannelUri,
        rendered: Box<Rendered>,
    },
    RunTurn(Box<TurnRun>),
    /// Stop the run; whatever it says from now on is dropped.
    StopTurn {
        run: RunId,
    },
    /// What a run waits for.
    Reply {
        run: RunId,
        reply: AgentReply,
    },
    WakeAt {
        timer: Timer,
        at: Timestamp,
    },
    Close {
        peer: PeerId,
        why: CloseReason,
    },
    /// Nothing more will be said to this peer: it is gone, and all that was read from it is answered.
    Forget {
        peer: PeerId,
    },
    /// Read no more from the peer until it is resumed: too much of it waits.
    Pause {
        peer: PeerId,
    },
    Resume {
        peer: PeerId,
    },
    /// Try to write to the journal; answered by [`Input::Probed`].
    Probe,
    /// Remove bodies whose digest begins with one of these bytes, that nothing refers to and nobody put since `before`.
    Collect {
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    },
    /// A host setting changed (root/configChanged); the whole values object.
    Configure {
        values: wire::Object,
    },
}

/// Everything an agent needs to work on a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRun {
    pub run: RunId,
    pub provider: String,
    /// Names the conversation to the agent; opaque to it.
    pub session: ChannelUri,
    pub chat: ChannelUri,
    pub message: Value,
    /// The session's configuration values.
    pub config: wire::Object,
    pub working_directories: Vec<String>,
    /// Set when the turn is resumed.
    pub resume: Option<Option<Bytes>>,
    /// What a worker chat was spawned with.
    pub brief: Option<Bytes>,
    /// Where the turns before this one lie in the journal.
    pub history: HistoryAt,
    /// What a resumed turn has said so far: its response parts.
    pub said: Vec<Value>,
    /// The session has no title but the one it began with.
    pub untitled: bool,
    /// What the agent last noted about the session.
    pub notes: Option<Bytes>,
    pub turn_id: String,
    /// The user wants the agent to remember less before anything else; what was said with it.
    pub compact: Option<String>,
    /// Whether the message says something to the agent beside its commands.
    pub reaches_model: bool,
}

/// A message whose meaning is to be found out.
#[derive(Debug, Clone, PartialEq)]
pub struct Compose {
    /// As it was sent, without the bodies that were taken out of it early.
    pub message: wire::Object,
    /// Those bodies, as base64, by the index of their attachment.
    pub lifted: Vec<(usize, std::sync::Arc<String>)>,
    pub working_directories: Vec<String>,
    /// How many bytes may stay in one attachment, and in all of them.
    pub each_bytes: usize,
    pub left_bytes: usize,
}

/// The turns an agent may remember: those before a number, and what a side chat was made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistoryAt {
    pub chat: ChannelId,
    pub before_n: u64,
    /// A side chat: what it was made from comes first, through this turn ([`Query::Context`]).
    pub context_n: Option<u64>,
    /// Turns before this one are forgotten, but for what was said of them.
    pub compacted: Option<Compacted>,
}

/// A model's view that was shortened: turns before a number are told in a few words, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Compacted {
    pub from_n: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Why a peer is closed; decides the WebSocket close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Another connection with the same client id (G-20): 1008.
    Superseded,
    /// No acceptable version (H-023), after the error was sent.
    UnsupportedVersion,
    /// A limit was exceeded: 1008.
    Policy,
}

/// What one step said.
#[derive(Debug, Default)]
pub struct Output {
    /// The highest seq used so far; belongs into the batch even when there are no records (G-18).
    pub seq: Seq,
    pub records: Vec<Record>,
    /// Whether this step must be written before it is spoken; stays true when the records were taken out.
    pub wrote: bool,
    pub frames: Vec<Outgoing>,
    pub effects: Vec<Effect>,
    /// Who must hear of it if this cannot be written.
    pub owed: Vec<Owed>,
}

/// A message that was handled, and how its sender is told that it was not recorded after all (G-15).
#[derive(Debug, Clone)]
pub enum Owed {
    Answer {
        peer: PeerId,
        id: Id,
    },
    Refusal {
        peer: PeerId,
        channel: ChannelUri,
        action: AsSent,
        origin: Origin,
    },
}

/// What the kernel is told once about the host it decides for.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// The first is the default.
    pub agents: Vec<AgentFacts>,
    /// `file:` URI of the directory sessions get when they name none.
    pub default_directory: Option<String>,
    /// Absolute paths that working directories must lie in.
    pub roots: Vec<String>,
    pub version: String,
    /// Schema of the host's own settings and their values at start.
    pub config_schema: Value,
    pub config_values: wire::Object,
}

/// What the kernel must know of an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentFacts {
    pub provider: String,
    /// `AgentInfo` as clients see it.
    pub info: Value,
    /// `SessionConfigSchema` of its sessions.
    pub config_schema: Value,
    pub default_model: Option<String>,
    /// Whether it is reminded of earlier turns by what the journal holds of them, and by nothing else.
    pub remembers: bool,
    /// The sections of its system prompt, and which of them never leave the host.
    pub sections: Vec<SystemMessageSection>,
}

impl AgentFacts {
    /// `AgentInfo` as clients see it, with the catalogue of sections.
    pub(crate) fn published(&self) -> Value {
        let mut info = self.info.clone();
        if !self.sections.is_empty() {
            info[CATALOGUE_FIELD] = wire::action::to_value(&self.sections);
        }
        info
    }
}

impl HostFacts {
    /// Further fields of the root state: the catalogue again, where typed clients can read it.
    pub(crate) fn root_extra(&self) -> wire::Object {
        let agents = self.agents.iter();
        let agents = agents.filter(|agent| !agent.sections.is_empty());
        let by_provider: wire::Object = agents
            .map(|agent| {
                let sections = wire::action::to_value(&agent.sections);
                (agent.provider.clone(), sections)
            })
            .collect();
        if by_provider.is_empty() {
            return wire::Object::new();
        }
        let meta = json!({CATALOGUE_KEY: by_provider});
        wire::Object::from_iter([("_meta".to_owned(), meta)])
    }
}
