//! Composes a message: from what was submitted to what is persisted.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde_json::{Value, json};
use wire::Object;

use crate::ahp;
use crate::body::BodyCollector;
use crate::command::{
    ACTIONS_MAX, Catalogue, CommandAction, CommandEffect, PromptUse, args, host_actions,
};
use crate::diagnostics::Diagnostics;
use crate::normalize::{SubmittedPart, normalize};
use crate::part::{self, Part, View};
use crate::version::{self, SCHEMA_VERSION};

/// A submitted message.
#[derive(Debug, Clone, PartialEq)]
pub enum SubmittedMessage {
    /// A message of the protocol.
    Ahp(Object),
    /// One whose large bodies came apart from it, decoded, by the number of their attachment.
    WithBodies { message: Object, bodies: BTreeMap<usize, Bytes> },
    /// Parts from a client that knows them. Their text is not parsed again.
    Parts { parts: Vec<Value>, metadata: Object },
    /// Text that a person typed.
    Text(String),
}

/// How many bytes of attachments may stay in the message (C-033).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachmentBudget {
    /// In one body, decoded.
    pub each_bytes: u64,
    /// In all bodies that the session has yet to take.
    pub left_bytes: u64,
}

impl Default for AttachmentBudget {
    fn default() -> Self {
        Self { each_bytes: 1_048_576, left_bytes: 20_971_520 }
    }
}

/// What a message may refer to when it is submitted: commands, skills, contexts, directories, limits.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    pub catalogue: &'a Catalogue,
    /// The names of the skills that exist.
    pub skills: &'a BTreeSet<String>,
    /// What `@selection` and its like are at this moment. A name without parts, or that is not in here, stays a mention
    /// and the diagnostics say so.
    pub contexts: &'a BTreeMap<String, Vec<Part>>,
    /// Kinds of entities that a mention may name: `@node:n42` in a text is one only if `node` is among them.
    pub entity_kinds: &'a BTreeSet<String>,
    /// Absolute directories; relative paths belong to the first.
    pub roots: &'a [String],
    pub inline: AttachmentBudget,
    pub now_ms: i64,
}

/// A body outside of the message: to be stored before anything refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachedBody {
    pub digest: wire::Digest,
    /// `sha256:<hex>`
    pub content_id: String,
    pub mime: String,
    pub bytes: Bytes,
}

/// A composed message.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// As persisted.
    pub parts: Vec<Part>,
    /// `{schema_version, origin, model?, agent?, ahp?}`
    pub metadata: Object,
    /// Of a message of the protocol: as it is recorded and sent to clients. Detached bodies are references (G-32), all else is
    /// unchanged.
    pub message: Option<Object>,
    pub bodies: Vec<DetachedBody>,
    /// What stays inline, to be counted against the session.
    pub inline_bytes: u64,
    pub diagnostics: Vec<String>,
    /// What the host does itself, in the order of the parts.
    pub actions: Vec<CommandAction>,
    /// Whether there is anything for a model (C-053).
    pub reaches_model: bool,
    /// Prompts whose texts must be asked for first: such a message is not to be sent as it is here.
    pub prompts: Vec<PromptUse>,
}

/// Why a message is refused; sent to the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeRefusal {
    #[error("empty_message: The message is empty")]
    EmptyMessage,
    /// A command that cannot be done here.
    #[error("{id}: {reason}")]
    Command { id: String, reason: String },
}

/// Whether a message is nothing but text: nothing in it has to be looked up, decoded or moved.
pub fn is_plain(message: &Object) -> bool {
    let text = message.get("text").and_then(Value::as_str).unwrap_or("");
    let attachments = message.get("attachments");
    let has_attachments =
        attachments.is_some_and(|all| all.as_array().is_none_or(|all| !all.is_empty()));
    let has_skeleton =
        message.get("_meta").is_some_and(|meta| meta.get(ahp::MESSAGE_KEY).is_some());
    let may_be_command = text.starts_with('/') || text.starts_with("\\/");
    let may_mention = text.contains('@') || text.contains("#file:");
    !text.is_empty() && !has_attachments && !has_skeleton && !may_be_command && !may_mention
}

/// The rows of a plain message: its parts, and its metadata.
pub fn plain_rows(message: &Object) -> (Vec<Part>, Object) {
    let text = message.get("text").and_then(Value::as_str).unwrap_or("");
    let metadata = ahp::metadata(message, message.clone());
    (vec![Part::text(text)], metadata)
}

/// What [`compose`] would make of a plain message.
pub fn compose_plain(message: Object) -> Composed {
    let (parts, metadata) = plain_rows(&message);
    Composed {
        parts,
        metadata,
        message: Some(message),
        bodies: Vec::new(),
        inline_bytes: 0,
        diagnostics: Vec::new(),
        actions: Vec::new(),
        reaches_model: true,
        prompts: Vec::new(),
    }
}

pub fn compose(
    input: SubmittedMessage,
    environment: &Environment<'_>,
) -> Result<Composed, ComposeRefusal> {
    let mut diagnostics = Diagnostics::default();
    let mut bodies = BodyCollector::new(environment.inline);
    let (parts, metadata, message) = match input {
        SubmittedMessage::Ahp(message) => {
            let apart = BTreeMap::new();
            compose_ahp(message, apart, environment, &mut bodies, &mut diagnostics)
        }
        SubmittedMessage::WithBodies { message, bodies: apart } => {
            compose_ahp(message, apart, environment, &mut bodies, &mut diagnostics)
        }
        SubmittedMessage::Parts { parts, metadata } => {
            let submitted = read_parts(parts, &mut diagnostics);
            let normalized = normalize(submitted, environment, &mut bodies, &mut diagnostics);
            (normalized.parts, with_version(metadata), None)
        }
        SubmittedMessage::Text(text) => {
            let submitted = ahp::read_text(&text, environment, &mut diagnostics);
            let normalized = normalize(submitted, environment, &mut bodies, &mut diagnostics);
            (normalized.parts, with_version(Object::new()), None)
        }
    };
    if parts.iter().all(|part| part.kind() == "editor-context") {
        return Err(ComposeRefusal::EmptyMessage);
    }
    if let Some(refusal) = find_refused(&parts, environment.catalogue) {
        return Err(refusal);
    }
    let action_count = parts.iter().filter(|part| is_action(part)).count();
    if action_count > ACTIONS_MAX {
        diagnostics.report(|| {
            format!("command: only the first {ACTIONS_MAX} of {action_count} actions are done")
        });
    }
    Ok(Composed {
        actions: host_actions(&parts),
        reaches_model: reaches_model(&parts),
        prompts: find_prompts(&parts, environment.catalogue),
        parts,
        metadata,
        message,
        bodies: bodies.detached,
        inline_bytes: bodies.inline_bytes,
        diagnostics: diagnostics.finish(),
    })
}

fn find_refused(parts: &[Part], catalogue: &Catalogue) -> Option<ComposeRefusal> {
    parts.iter().find_map(|part| {
        let View::Command(command) = part.view() else { return None };
        let reason = match &catalogue.lookup(command.id)?.effect {
            CommandEffect::Refused { reason } => reason,
            CommandEffect::Prompt { answers, .. } => {
                let (raw, _) = args::read(command.args);
                answers.get(&raw)?.as_ref().err()?
            }
            _ => return None,
        };
        Some(ComposeRefusal::Command { id: command.id.to_owned(), reason: reason.clone() })
    })
}

/// Prompts that nobody has said the text of.
fn find_prompts(parts: &[Part], catalogue: &Catalogue) -> Vec<PromptUse> {
    let expanded: BTreeSet<usize> = parts.iter().filter_map(origin_of).collect();
    let commands = parts.iter().enumerate().filter_map(|(at, part)| {
        let View::Command(command) = part.view() else { return None };
        let CommandEffect::Prompt { name, answers } = &catalogue.lookup(command.id)?.effect else {
            return None;
        };
        let (raw, words) = args::read(command.args);
        let is_open = !answers.contains_key(&raw) && !expanded.contains(&at);
        is_open.then(|| PromptUse { id: command.id.to_owned(), name: name.clone(), raw, words })
    });
    commands.collect()
}

/// The part that a part was made from.
fn origin_of(part: &Part) -> Option<usize> {
    let origin = part.object().get("derived_from")?.get("part")?.as_u64()?;
    usize::try_from(origin).ok()
}

fn compose_ahp(
    mut message: Object,
    apart: BTreeMap<usize, Bytes>,
    environment: &Environment<'_>,
    bodies: &mut BodyCollector,
    diagnostics: &mut Diagnostics,
) -> (Vec<Part>, Object, Option<Object>) {
    let submitted = ahp::read_message(&mut message, apart, environment, diagnostics);
    let normalized = normalize(submitted, environment, bodies, diagnostics);
    let recorded = ahp::record(message, &normalized);
    let metadata = ahp::metadata(&recorded.message, recorded.skeleton);
    (normalized.parts, metadata, Some(recorded.message))
}

fn read_parts(parts: Vec<Value>, diagnostics: &mut Diagnostics) -> Vec<SubmittedPart> {
    let mut submitted = Vec::with_capacity(parts.len());
    for (index, value) in parts.into_iter().enumerate() {
        let part = version::part_of(value);
        if part.kind() == version::UNREADABLE {
            diagnostics.report(|| format!("part {index}: {}", part::NotAPart));
        }
        submitted.push(SubmittedPart::from_object(part.into_object()));
    }
    submitted
}

/// Metadata from a client that knows parts: the version they were written in stays (C-087).
fn with_version(mut metadata: Object) -> Object {
    let version = metadata.get("schema_version").and_then(Value::as_i64);
    if version.is_none_or(|version| version < 1) {
        metadata.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
    }
    metadata.entry("origin").or_insert_with(|| json!({"kind": "user"}));
    metadata
}

fn is_action(part: &Part) -> bool {
    matches!(part.view(), View::Command(command) if command.is_action())
}

/// Whether anything but host actions is in a message: what an editor adds by itself beside the text and blanks between
/// actions are not (C-053).
pub(crate) fn reaches_model(parts: &[Part]) -> bool {
    let is_for_model = |part: &Part| match part.view() {
        View::Command(_) => !is_action(part),
        View::EditorContext(_) => false,
        View::Text(text) => !text.text.trim().is_empty() && !is_beside_text(part),
        _ => !is_beside_text(part),
    };
    parts.iter().any(is_for_model) || !parts.iter().any(is_action)
}

/// Whether a part is an attachment without a place in the text, like the open file that goes with every message.
fn is_beside_text(part: &Part) -> bool {
    let is_attachment = match part.kind() {
        "file-ref" | "file-attachment" | "directory-ref" | "ahp-attachment" => true,
        "text" => part.object().contains_key("ahp"),
        _ => false,
    };
    is_attachment && part.anchor().is_none() && !part.object().contains_key("derived_from")
}
