//! A turn for an agent to work on, as the kernel hands it to the host. What the agent sends and is answered meanwhile is
//! in `agent_api`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use wire::ChannelUri;

use crate::composed_message::ComposedMessage;
use crate::ids::{ChannelId, RunId};

/// Everything an agent needs to work on a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRun {
    pub run: RunId,
    pub provider: String,
    /// Names the conversation to the agent; opaque to it.
    pub session: ChannelUri,
    pub chat: ChannelUri,
    /// The session's number, which no other session ever has.
    pub session_id: ChannelId,
    /// Shared with the state of its chat.
    pub message: Arc<Value>,
    /// What the message means, if it was just composed: then its rows need not be read. None if it waited in the queue, if the turn is
    /// resumed, if this run restores files, or if the host was started since.
    pub composed: Option<Arc<ComposedMessage>>,
    /// The name of the custom agent that the message names, if the session still has it and it is switched on.
    pub custom_agent: Option<String>,
    /// The client whose files the turn can use: the one that began it. `None` once it was resumed, which anybody may do.
    pub author: Option<String>,
    /// Whose tokens the turn uses: the principal who began or resumed it. None for the people of the host itself (H-318).
    pub principal: Option<String>,
    /// The session's configuration values.
    pub config: wire::Object,
    pub working_directories: Vec<String>,
    /// Ids of customizations that are switched off.
    pub switched_off: BTreeSet<String>,
    /// Set when the turn is resumed.
    pub resume: Option<Option<Bytes>>,
    /// What a worker chat was spawned with.
    pub brief: Option<Bytes>,
    /// Where the turns before this one lie in the journal.
    pub history: HistoryAt,
    /// The response parts of a resumed turn.
    pub said: Vec<Value>,
    /// The last usage that a resumed turn reported.
    pub usage: Option<Value>,
    /// The session has no title but the one it began with.
    pub untitled: bool,
    /// What the agent last noted about this chat.
    pub chat_notes: Option<Bytes>,
    /// What the model's server refused in this chat, as the agent recorded it.
    pub refusals: Option<Bytes>,
    pub turn_id: String,
    /// The turn before this one, as the chat is now.
    pub last_turn_id: Option<String>,
    /// The turn that what this one spends counts to: its own, or that of the chat whose call started this worker (G-69).
    pub budget_turn: (ChannelId, String),
    /// The agent is to shorten its history first; the user's instructions for that.
    pub compact: Option<String>,
    /// Whether the message says something to the agent beside its commands.
    pub reaches_model: bool,
    /// Set if no agent is to work now: the host restores files, and asks the user about it, as an agent would.
    pub restore: Option<RestoreTask>,
}

/// What the host does itself in the turn of a command, asking the user as an agent would: it makes files again what they were
/// (G-67).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RestoreTask {
    /// Those of the last turn that changed any and was not undone.
    Undo,
    /// Those of the last undo, if nothing was changed since.
    Redo,
    /// No files yet: how many turns are to be cut off? [`agent_api::AgentEvent::Rewind`] says it.
    ChooseTurns,
    /// Those of turns that were just cut off.
    Rewind {
        turn_ids: Vec<String>,
        /// The number of the last of them, and how many numbers before it they may have.
        through_n: u64,
        numbers: u64,
    },
}

/// The turns an agent may remember: those before a number, and what a side chat was made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HistoryAt {
    pub chat: ChannelId,
    pub before_n: u64,
    /// A side chat: what it was made from comes first, through this turn ([`Query::Context`]).
    pub context_n: Option<u64>,
    /// The summary that stands for earlier turns, if there is one.
    pub compacted: Option<Compacted>,
}

/// A shortened history: turns before a number are replaced by a summary, or left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Compacted {
    pub from_n: u64,
    /// How many rounds of the turn with that number are summarised too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl Compacted {
    /// Whether everything it summarises lies before a number.
    pub(crate) fn is_before(&self, n: u64) -> bool {
        match self.rounds {
            0 => self.from_n <= n,
            _ => self.from_n < n,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
