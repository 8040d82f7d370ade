//! What an agent says while it works on a turn, and what it is told when it waits in the middle of one.
//!
//! Promises: whether an event is answered can be read from the event alone, and a reply names what it answers.
//! Must not know: channels, peers, sequence numbers.

use std::sync::Arc;

use serde_json::Value;
use wire::Object;

use crate::message::UserMessage;
use crate::prompt::Section;

/// What an agent says while it works on a turn. Parts and calls are named by numbers of the agent's own that occur once
/// in a turn, resumes included.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    PartOpened {
        part: u64,
        kind: TextKind,
    },
    /// More text for an open part. One event is one action on the wire: events are never merged.
    Text {
        part: u64,
        text: String,
    },
    /// A system notification.
    Notice {
        text: String,
    },
    /// `UsageInfo` of AHP 1.0.
    Usage(Value),
    Title(String),
    Activity(Option<String>),
    /// Opaque, at most 64 KiB; handed back when the turn is resumed (G-04).
    Checkpoint(Vec<u8>),
    /// Text, opaque, at most 64 KiB: kept with the session and handed to each of its turns. Replaces what was noted.
    Noted(Vec<u8>),
    /// A body to be kept, and to be referred to later; [`AgentReply::Kept`] follows.
    Keep {
        keep: u64,
        body: Vec<u8>,
        content_type: String,
    },
    /// Content that clients fetch by reference. The host keeps the body and names it.
    Content {
        body: Vec<u8>,
        content_type: String,
    },
    /// A tool call begins.
    ToolStarted {
        call: u64,
        start: ToolStart,
    },
    /// More of the input of a call that is not ready yet.
    ToolInput {
        call: u64,
        text: String,
    },
    /// The fields of `chat/toolCallReady` without its ids. With `confirmed` the call runs; without, someone is asked and
    /// [`AgentReply::ToolDecided`] follows. May be said again while the call runs (H-192).
    ToolReady {
        call: u64,
        fields: Object,
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
        request: Object,
    },
    /// A steering message can be taken now; [`AgentReply::Steered`] follows at once.
    SteerPoint {
        steer: u64,
    },
    /// What are the session's settings now? [`AgentReply::Settings`] follows at once.
    SettingsAsked {
        ask: u64,
    },
    /// The sections of the system prompt; [`AgentReply::Rendered`] follows, with what a client made of them.
    Render {
        render: u64,
        sections: Vec<Section>,
    },
    /// Only the last turns are remembered from now on, and of those before what is said here.
    Compacted {
        keep_turns: usize,
        summary: Option<String>,
    },
    /// What a model is shown of the user's messages of this turn; kept for inspectors, never seen by clients (G-37).
    Lowered {
        target: &'static str,
        model: String,
        blocks: Vec<Value>,
        diagnostics: Vec<String>,
    },
    /// A tool call that starts a worker; [`AgentReply::ToolEnded`] follows when the worker's turn is over.
    Spawned {
        call: u64,
        worker: Worker,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Markdown,
    Reasoning,
}

/// How a tool call is announced.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolStart {
    pub name: String,
    pub display_name: String,
    pub intention: Option<String>,
    /// An MCP server; client tools are called by [`AgentEvent::ClientTool`].
    pub contributor: Option<Value>,
    pub meta: Option<Object>,
}

/// A worker to be started.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Worker {
    pub title: String,
    /// `ChatInteractivity`; read-only if absent.
    pub interactivity: Option<String>,
    /// The worker's name inside the agent.
    pub agent_name: Option<String>,
    /// What the worker is to do: the text of its first message.
    pub task: String,
    /// Opaque, at most 64 KiB; handed to the worker's turns.
    pub brief: Vec<u8>,
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
        answers: Object,
    },
    /// The `ContentRef` of a body that was kept, or why it was not.
    Kept {
        keep: u64,
        reference: Result<Value, String>,
    },
    /// The steering `Message`, if one was waiting, and what it means.
    Steered {
        steer: u64,
        message: Option<Value>,
        user: Option<Arc<UserMessage>>,
    },
    /// The session's configuration values.
    Settings {
        ask: u64,
        values: Object,
    },
    /// The sections as the model is to read them.
    Rendered {
        render: u64,
        sections: Vec<Section>,
    },
}

/// What a reply is awaited for. A call waits for one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Awaited {
    Call(u64),
    Ask(u64),
    Steer(u64),
    Keep(u64),
    Settings(u64),
    Render(u64),
}

impl AgentEvent {
    /// What the host will answer, if it answers this event at all.
    pub(crate) fn awaits(&self) -> Option<Awaited> {
        match self {
            Self::ToolReady { call, fields } => {
                (!fields.contains_key("confirmed")).then_some(Awaited::Call(*call))
            }
            Self::ToolCompleted { call, review, .. } => review.then_some(Awaited::Call(*call)),
            Self::ClientTool { call, .. } | Self::Spawned { call, .. } => {
                Some(Awaited::Call(*call))
            }
            Self::Asked { ask, .. } => Some(Awaited::Ask(*ask)),
            Self::SteerPoint { steer } => Some(Awaited::Steer(*steer)),
            Self::Keep { keep, .. } => Some(Awaited::Keep(*keep)),
            Self::SettingsAsked { ask } => Some(Awaited::Settings(*ask)),
            Self::Render { render, .. } => Some(Awaited::Render(*render)),
            Self::PartOpened { .. }
            | Self::Text { .. }
            | Self::Notice { .. }
            | Self::Usage(_)
            | Self::Title(_)
            | Self::Activity(_)
            | Self::Checkpoint(_)
            | Self::Noted(_)
            | Self::Compacted { .. }
            | Self::Lowered { .. }
            | Self::Content { .. }
            | Self::ToolStarted { .. }
            | Self::ToolInput { .. }
            | Self::ToolContent { .. } => None,
        }
    }
}

impl AgentReply {
    pub(crate) fn answers(&self) -> Awaited {
        match self {
            Self::ToolDecided { call, .. }
            | Self::ResultDecided { call, .. }
            | Self::ToolEnded { call, .. } => Awaited::Call(*call),
            Self::Answered { ask, .. } => Awaited::Ask(*ask),
            Self::Steered { steer, .. } => Awaited::Steer(*steer),
            Self::Kept { keep, .. } => Awaited::Keep(*keep),
            Self::Settings { ask, .. } => Awaited::Settings(*ask),
            Self::Rendered { render, .. } => Awaited::Render(*render),
        }
    }
}
