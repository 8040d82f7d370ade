//! What an agent sends while it works on a turn: the one type from agents to the kernel.
//!
//! Promises: whether an event is answered can be read from the event alone. Bodies too large for state are detached
//! before the kernel sees an event.
//! Must not know: channels, peers, sequence numbers.

use bytes::Bytes;
use serde_json::{Value, json};
use wire::Object;
use wire::published::state::{ContentRef, UsageInfo};

use crate::agent::AgentError;
use crate::recorded_edit::RecordedEdit;
use crate::reply::AwaitedReply;
use crate::section::Section;
use crate::tool::{MalformedField, ToolReady, ToolResult, ToolStart};

/// Longest notes of an agent about a chat.
pub const CHAT_NOTES_BYTES_MAX: usize = 4 << 10;

/// What an agent sends while it works on a turn. Parts and calls are named by numbers of the agent's own that occur
/// once in a turn, resumes included.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    PartOpened {
        part: u64,
        kind: TextKind,
    },
    /// More text for an open part. One event is one action on the wire, unless the agent lets pieces be joined ([`crate::Agent::joins_text`]).
    Text {
        part: u64,
        text: String,
    },
    /// A system notification.
    Notice {
        text: String,
    },
    Usage(UsageInfo),
    Title(String),
    Activity(Option<String>),
    /// Opaque, at most `checkpoint_bytes_max`; handed back when the turn is resumed (G-04).
    Checkpoint(Bytes),
    /// What the agent wants to know again in later turns of this chat: text, opaque, at most [`CHAT_NOTES_BYTES_MAX`].
    /// Replaces what was noted before. A fork of the chat begins with its source's, a side chat without; turns that are cut off leave it as it is.
    /// [`crate::AgentReply::ChatNoted`] follows when it is on the disk.
    ChatNotes(Bytes),
    /// The user chose another value of a setting of the session, in answer to a call. A value that the setting cannot have is
    /// said and not taken.
    SettingChosen {
        name: String,
        value: Value,
    },
    /// What the model's server refused in this chat: text, opaque, at most `checkpoint_bytes_max`, handed to each turn of
    /// the chat (G-50). Replaces the earlier record; empty clears it.
    Refusals(Bytes),
    /// Content that clients fetch by reference; its body is stored already ([`crate::HostServices::store_body`]).
    ContentRef(ContentRef),
    /// A tool call begins.
    ToolStarted {
        call: u64,
        start: Box<ToolStart>,
    },
    /// More of the input of a call that is not ready yet.
    ToolInput {
        call: u64,
        text: String,
    },
    /// With `confirmed` the call runs; without, someone is asked and [`crate::AgentReply::ToolDecided`] follows; of a call
    /// that a client was to carry out and gave up instead, [`crate::AgentReply::ToolEnded`]. May be sent again while the
    /// call runs or waits (H-192, H-205).
    ToolReady {
        call: u64,
        ready: Box<ToolReady>,
    },
    /// Output so far as `ToolResultContent` blocks, replaced whole.
    ToolContent {
        call: u64,
        content: Vec<Value>,
    },
    /// A call that may change things is about to begin: the files that it is about to change, as far as that is known, as they are before and will be after: recorded before anything is
    /// changed, so that it can be undone whatever becomes of the call. All of them each time: what is left out was not made after all. Their content is stored already
    /// ([`crate::HostServices::store_body`]). What is sent and asked afterwards is answered when this is on the disk.
    ToolEdits {
        call: u64,
        edits: Vec<RecordedEdit>,
    },
    /// A running call of an MCP server waits for a token, as the `McpAuthRequirement` says.
    /// [`crate::AgentReply::ToolEnded`] follows only if somebody gives the call up.
    ToolAuthRequired {
        call: u64,
        auth: Value,
    },
    /// Such a call goes on. Means nothing once it was given up.
    ToolAuthResolved {
        call: u64,
    },
    /// With `review` someone is asked first and [`crate::AgentReply::ResultDecided`] follows (H-200).
    ToolCompleted {
        call: u64,
        result: ToolResult,
        review: bool,
    },
    /// A call to a tool that an active client offers; [`crate::AgentReply::ToolEnded`] follows in any case (G-07).
    ClientTool {
        call: u64,
        name: String,
        input: Value,
        timeout_ms: u64,
    },
    /// Waits for the end of a call that was started for a client to carry out ([`crate::ToolExecutor::Client`]) and that
    /// is confirmed; [`crate::AgentReply::ToolEnded`] follows in any case (G-07).
    ClientToolAwaited {
        call: u64,
        timeout_ms: u64,
    },
    /// A call that is not carried out: ready and over in one step, so that no client sees it run.
    ToolRefused {
        call: u64,
        ready: Box<ToolReady>,
        result: ToolResult,
    },
    /// A question to the user; [`crate::AgentReply::Answered`] follows.
    InputRequested {
        ask: u64,
        request: InputRequest,
    },
    /// A steering message can be taken now; [`crate::AgentReply::Steered`] follows at once.
    SteerPoint {
        steer: u64,
    },
    /// Waits for a steering message; [`crate::AgentReply::SteeringWaits`] follows as soon as one waits that the agent was not
    /// told of yet, or that was changed since. The message stays where it is. One wait at a time: a later one takes the place
    /// of the one before.
    SteeringAwaited {
        steer: u64,
    },
    /// The agent has taken a steering message that it was told of. It leaves the queue as at a
    /// [steer point](AgentEvent::SteerPoint). If it was changed or removed meanwhile, a notice says that the agent had it.
    SteeringTaken {
        pending_id: String,
    },
    /// The agent does not ask any more whether a call may run: the call is skipped, and nobody can confirm it. Means nothing
    /// once it was confirmed.
    ConfirmationWithdrawn {
        call: u64,
    },
    /// The agent does not wait for the answer to a question any more: nobody can answer it. Means nothing once it was
    /// answered.
    QuestionWithdrawn {
        ask: u64,
    },
    /// Asks for the session's settings as they are now; [`crate::AgentReply::Settings`] follows at once.
    SettingsRequested {
        ask: u64,
    },
    /// Asks which tools the active clients offer now; [`crate::AgentReply::ClientTools`] follows at once.
    ClientToolsRequested {
        ask: u64,
    },
    /// The sections of a system prompt, in order; [`crate::AgentReply::Rendered`] follows within a deadline, with what a
    /// client made of them.
    Render {
        render: u64,
        sections: Vec<Section>,
    },
    /// A tool call that starts a worker chat: a new one, or one that the agent started and that runs.
    /// [`crate::AgentReply::ToolEnded`] follows when the worker's turn is over.
    Spawned {
        call: u64,
        worker: Box<Worker>,
    },
    /// From now on the agent remembers only the last turns, and of those before only the summary.
    Compacted {
        keep_turns: usize,
        /// How many rounds of this turn the summary covers too; none if earlier turns are kept.
        rounds: u64,
        summary: Option<String>,
    },
    /// The user chose how many turns to take back: this one goes with them, and begins anew as the record of it. Sent by who
    /// works on the turn of that command; means nothing in any other.
    Rewind {
        turns: usize,
    },
    /// The turn's future returned `Ok`. Sent by the host's runner, not by the agent.
    Completed,
    /// The turn's future returned an error or panicked. Sent by the host's runner, not by the agent.
    Failed(AgentError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Markdown,
    Reasoning,
}

/// A `ChatInputRequest` without its id and answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRequest {
    pub message: Option<String>,
    pub url: Option<String>,
    /// `ChatInputQuestion`s as JSON: fields that the protocol does not know are handed on.
    pub questions: Vec<Value>,
}

impl InputRequest {
    /// Reads a request that came as JSON.
    pub fn from_object(mut fields: Object) -> Result<Self, MalformedField> {
        let mut text = |name: &'static str| match fields.shift_remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(MalformedField(name)),
        };
        let (message, url) = (text("message")?, text("url")?);
        let questions = match fields.shift_remove("questions") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(questions)) => questions,
            Some(_) => return Err(MalformedField("questions")),
        };
        Ok(Self { message, url, questions })
    }

    /// The fields of a `ChatInputRequest`, without `id`.
    pub fn into_object(self) -> Object {
        let mut fields = Object::new();
        if let Some(message) = self.message {
            fields.insert("message".to_owned(), json!(message));
        }
        if let Some(url) = self.url {
            fields.insert("url".to_owned(), json!(url));
        }
        if !self.questions.is_empty() {
            fields.insert("questions".to_owned(), Value::Array(self.questions));
        }
        fields
    }
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
    /// The `ModelSelection` of that message; that of the turn that starts it if absent.
    pub model: Option<Value>,
    /// Text, opaque, at most `checkpoint_bytes_max`; handed to the worker's turns.
    pub brief: Bytes,
}

impl AgentEvent {
    /// Whether who asks this waits for people, or for a worker that counts its own time.
    pub fn pauses_work(&self) -> bool {
        match self {
            Self::ToolReady { ready, .. } => ready.confirmed.is_none(),
            Self::ToolCompleted { review, .. } => *review,
            Self::InputRequested { .. } | Self::Spawned { .. } | Self::ToolAuthRequired { .. } => {
                true
            }
            _ => false,
        }
    }

    /// What the host will answer, if it answers this event at all.
    pub fn awaits(&self) -> Option<AwaitedReply> {
        match self {
            Self::ToolReady { call, ready } => {
                ready.confirmed.is_none().then_some(AwaitedReply::Call(*call))
            }
            Self::ToolCompleted { call, review, .. } => review.then_some(AwaitedReply::Call(*call)),
            Self::ClientTool { call, .. }
            | Self::ClientToolAwaited { call, .. }
            | Self::ToolAuthRequired { call, .. }
            | Self::Spawned { call, .. } => Some(AwaitedReply::Call(*call)),
            Self::InputRequested { ask, .. } => Some(AwaitedReply::Answer(*ask)),
            Self::SteerPoint { steer } => Some(AwaitedReply::Steering(*steer)),
            Self::SteeringAwaited { steer } => Some(AwaitedReply::SteeringMessage(*steer)),
            Self::ChatNotes(_) => Some(AwaitedReply::ChatNotes),
            Self::SettingsRequested { ask } => Some(AwaitedReply::Settings(*ask)),
            Self::ClientToolsRequested { ask } => Some(AwaitedReply::ClientTools(*ask)),
            Self::Render { render, .. } => Some(AwaitedReply::Render(*render)),
            Self::PartOpened { .. }
            | Self::Text { .. }
            | Self::Notice { .. }
            | Self::Usage(_)
            | Self::Title(_)
            | Self::Activity(_)
            | Self::Checkpoint(_)
            | Self::SteeringTaken { .. }
            | Self::ConfirmationWithdrawn { .. }
            | Self::QuestionWithdrawn { .. }
            | Self::SettingChosen { .. }
            | Self::Refusals(_)
            | Self::ContentRef(_)
            | Self::ToolStarted { .. }
            | Self::ToolInput { .. }
            | Self::ToolContent { .. }
            | Self::ToolEdits { .. }
            | Self::ToolAuthResolved { .. }
            | Self::ToolRefused { .. }
            | Self::Compacted { .. }
            | Self::Rewind { .. }
            | Self::Completed
            | Self::Failed(_) => None,
        }
    }
}
