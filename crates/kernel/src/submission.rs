//! A submitted message: what it means is found out before it is recorded, and recorded with it (C-080).
//!
//! A plain text means itself. Everything else is composed by the host first, which knows files and catalogues; then the
//! message is handled again and its rows are written in the transaction of the action that brings it.

use std::sync::Arc;

use bytes::Bytes;
use compositor::Part;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::{Digest, Object};

use crate::composed_message::ComposedMessage;
use crate::run::RestoreTask;

/// What is said of a message with more in it than a `/rewind` that asks how far: its own turn goes with those that are taken
/// back, and the rest would be lost.
pub(crate) const REWIND_ALONE: &str = "/rewind without a number takes its own message back, too: send it alone, or say how \
                                       many turns to take back, such as /rewind 2";

/// A command that the host carries out itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAction {
    /// With its slash.
    pub name: String,
    /// The text that came with it, as typed and as words.
    pub raw: String,
    pub argv: Vec<String>,
}

/// What a reference of a message turned out to be before it was recorded: its file was read from the client (C-021).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenPart {
    /// The index of the part.
    pub part: usize,
    /// Opaque, like that of a [`crate::FrozenRecord`].
    pub json: Bytes,
    pub digest: Option<Digest>,
}

/// A message and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// As it is recorded: bodies without room for them are references (G-32), all else is as it was sent.
    pub message: Object,
    pub metadata: Object,
    pub parts: Vec<Part>,
    pub frozen: Vec<FrozenPart>,
    pub actions: Vec<HostAction>,
    /// Whether anything but host actions is in it.
    pub reaches_model: bool,
    /// What the user should know of it.
    pub diagnostics: Vec<String>,
    /// Bytes that stay embedded.
    pub inline_bytes: usize,
    /// The commands there are, if that was asked.
    pub help: Option<String>,
    /// The model that its chat used last is gone, and the message names none.
    pub missing_model: Option<String>,
}

impl Submission {
    /// A text that means itself.
    pub fn plain(message: Object) -> Self {
        let submission = Self::plain_as_sent(&message);
        Self { message, ..submission }
    }

    /// What a text means that means itself, without the message.
    pub(crate) fn plain_as_sent(message: &Object) -> Self {
        let (parts, metadata) = compositor::plain_rows(message);
        Self {
            message: Object::new(),
            metadata,
            parts,
            frozen: Vec::new(),
            actions: Vec::new(),
            reaches_model: true,
            diagnostics: Vec::new(),
            inline_bytes: 0,
            help: None,
            missing_model: None,
        }
    }

    /// Whether working on it asks a model anything.
    pub(crate) fn calls_model(&self) -> bool {
        self.reaches_model || self.actions.iter().any(|action| action.name == "/compact")
    }

    /// Takes the model out of a message that asks none: what was not used is not recorded, and the chat keeps its model.
    pub(crate) fn drop_unused_model(&mut self) {
        if !self.calls_model() {
            self.message.shift_remove("model");
        }
    }

    /// Takes the message, for the action that brings it. What is left of it is what its rows need: which model it names.
    pub(crate) fn take_message(&mut self) -> Value {
        let model = self.message.get("model").cloned();
        let left = model.map(|model| ("model".to_owned(), model)).into_iter();
        Value::Object(std::mem::replace(&mut self.message, left.collect()))
    }

    /// Why a message cannot be carried out together with all that is in it.
    pub(crate) fn conflict(&self) -> Option<&'static str> {
        let commands = self.actions.iter().map(|action| (action.name.as_str(), &action.argv[..]));
        find_conflict(commands, self.reaches_model)
    }

    pub(crate) fn command_steps(&self) -> Vec<CommandStep> {
        self.actions.iter().cloned().map(CommandStep::Do).collect()
    }
}

/// Why commands of the host, by name and arguments, cannot be carried out together, or with what a model is asked beside them.
pub fn find_conflict<'a>(
    commands: impl IntoIterator<Item = (&'a str, &'a [String])>,
    reaches_model: bool,
) -> Option<&'static str> {
    let (mut number, mut takes_itself_back) = (0, false);
    for (name, arguments) in commands {
        number += 1;
        takes_itself_back |= name == "/rewind" && arguments.is_empty();
    }
    (takes_itself_back && (reaches_model || number > 1)).then_some(REWIND_ALONE)
}

/// What is remembered of a message until its turn works on it. The names in the journal are older than the fields' names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Submitted {
    /// The id of its row.
    pub id: String,
    #[serde(rename = "steps", default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandStep>,
    pub reaches_model: bool,
    #[serde(rename = "told", default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The model that its chat used last is gone, and the message named none: nothing is sent to another until somebody wants
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_model: Option<String>,
    /// The agent is to shorten its history; the instructions that came with the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<String>,
    /// What the message means, while that is in memory and its turn is about to begin: the agent need not wait for its rows to be read.
    #[serde(skip)]
    pub composed: Option<Arc<ComposedMessage>>,
}

/// A host command on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandStep {
    Do(HostAction),
    /// Done before the turn began: the text that reports it.
    Done(String),
    Failed(String),
    /// What is left of it when the turn begins: files.
    Restore(RestoreTask),
}

impl CommandStep {
    /// What the host asks the user about, if that is what it is for.
    pub(crate) fn restore_task(&self) -> Option<RestoreTask> {
        match self {
            Self::Restore(task) => Some(task.clone()),
            Self::Do(action) if !action.argv.is_empty() => None,
            Self::Do(action) => match action.name.as_str() {
                "/undo" => Some(RestoreTask::Undo),
                "/redo" => Some(RestoreTask::Redo),
                "/rewind" => Some(RestoreTask::ChooseTurns),
                _ => None,
            },
            Self::Done(_) | Self::Failed(_) => None,
        }
    }
}
