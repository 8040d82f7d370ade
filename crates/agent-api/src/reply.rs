//! What an agent that waits in the middle of a turn is answered: the one type from the kernel to agents.
//!
//! Promises: a reply names what it answers.
//! Must not know: channels, peers, sequence numbers.

use serde_json::Value;
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use crate::section::Section;
use crate::tool::{ClientToolOffer, ToolResult};

/// The answer to an event that awaits one ([`crate::AgentEvent::awaits`]).
#[derive(Debug, Clone, PartialEq)]
pub enum AgentReply {
    ToolDecided {
        call: u64,
        approved: bool,
        /// The input as it is now, edited or not; absent if it never had an inline one.
        input: Option<String>,
        /// The `ConfirmationOption` that was chosen, as it was offered.
        selected_option: Option<Value>,
        /// The `Message` of the client that denied, and its reason as text.
        suggestion: Option<Value>,
        reason: Option<Value>,
    },
    ResultDecided {
        call: u64,
        approved: bool,
    },
    /// A client's tool or a worker is done.
    ToolEnded {
        call: u64,
        result: ToolResult,
    },
    /// The `ChatInputAnswer`s are named by their questions.
    Answered {
        ask: u64,
        response: ChatInputResponseKind,
        answers: Object,
        /// Who answered, by a name for the record (TR-7).
        answered_by: Option<String>,
    },
    /// The steering `Message`, if one was waiting, and the name under which its parts are stored
    /// ([`crate::HostServices::read_message`]).
    Steered {
        steer: u64,
        message: Option<Value>,
        message_id: Option<String>,
    },
    /// The notes of a [`crate::AgentEvent::ChatNotes`] are on disk, or a notice says why not.
    ChatNoted,
    /// A steering `Message` waits, and goes on waiting until the agent [has taken it](crate::AgentEvent::SteeringTaken).
    SteeringWaits {
        steer: u64,
        message: Value,
        /// The name under which its parts are stored ([`crate::HostServices::read_message`]).
        message_id: Option<String>,
        /// Its id among the messages that wait.
        pending_id: String,
    },
    /// The session's configuration values.
    Settings {
        ask: u64,
        values: Object,
    },
    /// Each name once, in the order of the names.
    ClientTools {
        ask: u64,
        tools: Vec<ClientToolOffer>,
    },
    /// The sections as the model is to read them.
    Rendered {
        render: u64,
        sections: Vec<Section>,
    },
}

/// What a reply is awaited for. A call waits for one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AwaitedReply {
    Call(u64),
    Answer(u64),
    Steering(u64),
    SteeringMessage(u64),
    ChatNotes,
    Settings(u64),
    ClientTools(u64),
    Render(u64),
}

impl AgentReply {
    pub fn answers(&self) -> AwaitedReply {
        match self {
            Self::ToolDecided { call, .. }
            | Self::ResultDecided { call, .. }
            | Self::ToolEnded { call, .. } => AwaitedReply::Call(*call),
            Self::Answered { ask, .. } => AwaitedReply::Answer(*ask),
            Self::Steered { steer, .. } => AwaitedReply::Steering(*steer),
            Self::SteeringWaits { steer, .. } => AwaitedReply::SteeringMessage(*steer),
            Self::ChatNoted => AwaitedReply::ChatNotes,
            Self::Settings { ask, .. } => AwaitedReply::Settings(*ask),
            Self::ClientTools { ask, .. } => AwaitedReply::ClientTools(*ask),
            Self::Rendered { render, .. } => AwaitedReply::Render(*render),
        }
    }
}
