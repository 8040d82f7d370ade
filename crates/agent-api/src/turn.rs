//! What a turn is about, as its agent gets it.
//!
//! Must not know: where any of it is stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::host::ModelOutput;
use crate::message::{SharedSources, UserMessage};

/// A message that begins with this is a command for a terminal, not for a model: the user runs it.
pub const COMMAND_PREFIX: &str = "!";

/// What a turn is about.
#[derive(Debug, Clone)]
pub struct TurnInput {
    pub turn_id: String,
    /// The turn before this one in the chat, as the chat is now: after turns were cut off, or in a fork, it is not the one that an
    /// agent may have noted.
    pub last_turn_id: Option<String>,
    /// The text of the user's message; lowered (G-06), unless the agent [lowers messages
    /// itself](crate::Agent::lowers_messages).
    pub text: String,
    /// The whole `Message`.
    pub message: Arc<Value>,
    /// The name of the custom agent that it names, as the session lists it; none if the session does not list it any more.
    pub custom_agent: Option<String>,
    /// Its typed parts.
    pub user: Arc<UserMessage>,
    /// Whether it says anything but what the host has done already.
    pub reaches_model: bool,
    /// Set if the agent is to compact its history before anything else: the instructions that came with the command.
    pub compact: Option<String>,
    /// What messages refer to.
    pub sources: SharedSources,
    /// The session's configuration values.
    pub config: wire::Object,
    /// Ids of customizations that are switched off.
    pub switched_off: BTreeSet<String>,
    /// Set when the turn is resumed, with the last checkpoint if one was made (G-04).
    pub resume: Option<Option<Bytes>>,
    /// What a worker was spawned with: the `brief` of its [`crate::Worker`].
    pub brief: Option<Bytes>,
    /// The turns before this one, oldest first; only for an agent that [needs them](crate::Agent::needs_history).
    pub history: Vec<PastTurn>,
    /// The summary of turns that were compacted.
    pub summary: Option<String>,
    /// How many rounds of the turn after them it summarises too: of the first of the history, or of this turn if there is none.
    pub summarised_rounds: u64,
    /// The response parts that a resumed turn has so far.
    pub response_parts: Vec<Value>,
    /// The `UsageInfo` that a resumed turn reported last.
    pub usage: Option<Value>,
    /// The session has no title yet.
    pub untitled: bool,
    /// What the agent last [noted](crate::AgentEvent::ChatNotes) about this chat.
    pub chat_notes: Option<Bytes>,
    /// The [refusals](crate::AgentEvent::Refusals) that the agent last recorded in this chat.
    pub refusals: Option<Bytes>,
    /// What was recorded of the model's answers in a resumed turn.
    pub outputs: Vec<ModelOutput>,
}

/// A turn of before, and its users' messages: the one that began it, then those that steered it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PastTurn {
    /// The whole `Turn`.
    pub turn: Value,
    pub messages: Vec<Arc<UserMessage>>,
    /// What its agent [recorded](crate::HostServices::record_output) of its model's answers.
    pub outputs: Vec<ModelOutput>,
}
