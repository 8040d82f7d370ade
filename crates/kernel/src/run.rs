//! A turn's agent at work: what it needs, what it says, what it is told.

use bytes::Bytes;
use serde_json::Value;
use wire::ChannelUri;

use crate::io::RunId;
use crate::record::ChannelId;
use crate::rendered::{Rendered, Section};

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
