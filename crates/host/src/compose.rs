//! Composes a message before it is recorded: decodes it, detects types, stores its bodies, looks up commands and
//! mentions (C-040, G-32).
//!
//! Promises: bodies are on disk when it returns. Blocks: run it on a thread that may wait.
//! Must not know: whether the message is accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::{Agent, SessionFacts};
use compositor::ahp::contexts_in;
use compositor::command::CommandEffect;
use compositor::command::agent::{AgentCommandEntry, AgentCommands};
use compositor::compose::{AttachmentBudget, Composed};
use compositor::{Catalogue, Environment, SubmittedMessage};
use kernel::{BodyData, ComposeTask, HostAction, MessageContext, Submission, WorkFailed};
use serde_json::Value;
use wire::{Object, Timestamp, file_uri};

use crate::blobs::Blobs;
use crate::client_files::freeze_client_files;

/// The commands and skills that a message may name, by its working directories.
#[derive(Debug, Clone)]
pub struct KnownNames {
    pub catalogue: Catalogue,
    pub skills: BTreeSet<String>,
    /// Kinds of entities that the embedder knows (G-42).
    pub entity_kinds: BTreeSet<String>,
}

impl Default for KnownNames {
    fn default() -> Self {
        Self {
            catalogue: Catalogue::built_in(),
            skills: BTreeSet::new(),
            entity_kinds: BTreeSet::new(),
        }
    }
}

/// Where a message is typed, as an agent knows it.
pub(crate) fn facts_of(context: &MessageContext, working_directories: &[String]) -> SessionFacts {
    let chat = context.chat.as_ref().map(ToString::to_string);
    SessionFacts {
        conversation: context.session.to_string(),
        chat: chat.unwrap_or_default(),
        principal: context.principal.clone(),
        working_directories: working_directories.to_vec(),
        attachments: None,
        plugins: Vec::new(),
    }
}

/// The commands of an agent where a message is typed, as far as it has listed them (AG-28).
pub(crate) fn commands_of(
    agent: Option<&dyn Agent>,
    context: &MessageContext,
    working_directories: &[String],
) -> AgentCommands {
    let Some(agent) = agent else {
        return AgentCommands::default(); // it is gone, and a turn will say so
    };
    let commands =
        agent.commands(&facts_of(context, working_directories)).into_iter().map(|command| {
            AgentCommandEntry {
                name: command.name,
                description: command.description,
                hint: command.hint,
                expands: command.expands,
            }
        });
    AgentCommands {
        commands: commands.collect(),
        compact_refusal: agent.has_own_commands().then(|| {
            let name = agent.info().display_name;
            format!("{name} keeps its own memory of this chat and has no such command")
        }),
    }
}

/// What a message means. Nothing is stored.
pub(crate) fn compose_message(
    known: &KnownNames,
    compose: ComposeTask,
    now: Timestamp,
) -> Result<Composed, WorkFailed> {
    let roots: Vec<String> = compose
        .working_directories
        .iter()
        .filter_map(|uri| String::from_utf8(file_uri::path_of(uri)?).ok())
        .collect();
    let around = Environment {
        catalogue: &known.catalogue,
        skills: &known.skills,
        contexts: &contexts_in(&compose.message),
        entity_kinds: &known.entity_kinds,
        roots: &roots,
        inline: AttachmentBudget {
            each_bytes: compose.each_bytes as u64,
            left_bytes: compose.left_bytes as u64,
        },
        now_ms: now.0,
    };
    let submitted = with_bodies(compose.message, compose.detached);
    compositor::compose(submitted, &around).map_err(|refused| WorkFailed(refused.to_string()))
}

/// Why a message could not be sent with all that is in it.
pub(crate) fn conflict_in(composed: &Composed) -> Option<&'static str> {
    let commands = composed.actions.iter().map(|action| (action.name.as_str(), &action.argv[..]));
    kernel::find_conflict(commands, composed.reaches_model)
}

/// Composes a message and stores its bodies.
pub fn compose_and_store(
    store: &dyn Blobs,
    known: &KnownNames,
    mut compose: ComposeTask,
    now: Timestamp,
) -> Result<Box<Submission>, WorkFailed> {
    let client_files = std::mem::take(&mut compose.client_files);
    let mut composed = compose_message(known, compose, now)?;
    for body in &composed.bodies {
        let stored = store.put_named(&body.digest, &body.bytes, now);
        stored.map_err(|error| WorkFailed(error.to_string()))?;
    }
    let frozen =
        freeze_client_files(store, &composed.parts, client_files, &mut composed.diagnostics, now)?;
    let actions: Vec<HostAction> = composed
        .actions
        .into_iter()
        .map(|action| HostAction { name: action.name, raw: action.raw, argv: action.argv })
        .collect();
    let help =
        actions.iter().any(|action| action.name == "/help").then(|| format_help(&known.catalogue));
    Ok(Box::new(Submission {
        message: composed.message.unwrap_or_default(),
        metadata: composed.metadata,
        parts: composed.parts,
        frozen,
        actions,
        reaches_model: composed.reaches_model,
        diagnostics: composed.diagnostics,
        inline_bytes: usize::try_from(composed.inline_bytes).unwrap_or(usize::MAX),
        help,
        missing_model: None,
    }))
}

/// A message with the bodies that were detached from it early. What could not be decoded is put back: the compositor says
/// what is wrong with it.
fn with_bodies(mut message: Object, detached: Vec<(usize, BodyData)>) -> SubmittedMessage {
    let mut bodies = BTreeMap::new();
    for (index, data) in detached {
        match data {
            BodyData::Bytes(bytes) => {
                bodies.insert(index, bytes);
            }
            BodyData::Base64(text) => {
                let attachments = message.get_mut("attachments");
                if let Some(attachment) = attachments.and_then(|all| all.get_mut(index)) {
                    attachment["data"] = Value::String(Arc::unwrap_or_clone(text));
                }
            }
        }
    }
    SubmittedMessage::WithBodies { message, bodies }
}

/// Formats the list of commands for the user, as Markdown.
fn format_help(catalogue: &Catalogue) -> String {
    let mut text = "What can be typed here:\n".to_owned();
    let can_be_done = |effect: &CommandEffect| !matches!(effect, CommandEffect::Refused { .. });
    for (id, entry) in catalogue.iter().filter(|(_, it)| can_be_done(&it.effect)) {
        text.push_str("\n- `");
        text.push_str(id);
        if let Some(hint) = &entry.argument_hint {
            text.push(' ');
            text.push_str(hint);
        }
        text.push('`');
        if let Some(description) = &entry.description {
            text.push_str(": ");
            text.push_str(description);
        }
    }
    text.push_str(
        "
- `@file:PATH` or `#file:PATH`, `@skill:NAME`: show the model a file, suggest a skill",
    );
    text
}
