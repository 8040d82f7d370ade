//! The whole way of a message from what was submitted to what is persisted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wire::Object;

use crate::ahp;
use crate::body::Bodies;
use crate::command::{self, ACTIONS_MAX, Action, Catalogue, host_actions};
use crate::diagnostics::Diagnostics;
use crate::part::{self, Part, View};
use crate::settle::{Piece, settle};
use crate::version::{self, SCHEMA_VERSION};

/// What was submitted.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A message of the protocol.
    Ahp(Object),
    /// Parts of somebody who knows them. What they say is not parsed again.
    Parts { parts: Vec<Value>, metadata: Object },
    /// What somebody typed.
    Text(String),
}

/// How much of what is attached may stay in the message (C-033).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineRoom {
    /// In one body, decoded.
    pub each_bytes: u64,
    /// In all bodies that the session has yet to take.
    pub left_bytes: u64,
}

impl Default for InlineRoom {
    fn default() -> Self {
        Self {
            each_bytes: 1_048_576,
            left_bytes: 20_971_520,
        }
    }
}

/// What there is around a message when it is submitted.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub catalogue: &'a Catalogue,
    /// The names of the skills that exist.
    pub skills: &'a BTreeSet<String>,
    /// What `@selection` and its like are at this moment. A name without parts, or that is not in here, stays a mention
    /// and the user is told.
    pub contexts: &'a BTreeMap<String, Vec<Part>>,
    /// Kinds of entities that a mention may name: `@node:n42` in a text is one only if `node` is among them.
    pub entity_kinds: &'a BTreeSet<String>,
    /// Absolute directories; relative paths belong to the first.
    pub roots: &'a [String],
    pub inline: InlineRoom,
    pub now_ms: i64,
}

/// A body that is to be kept before anything refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptBody {
    /// `sha256:<hex>`
    pub content_id: String,
    pub mime: String,
    pub bytes: Vec<u8>,
}

/// What a message became.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// As persisted.
    pub parts: Vec<Part>,
    /// `{schema_version, origin, model?, agent?, ahp?}`
    pub metadata: Object,
    /// Of a message of the protocol: as it is recorded and shown. Bodies without room are references (G-32), all else is
    /// as it came.
    pub message: Option<Object>,
    pub bodies: Vec<KeptBody>,
    /// What stays inline, to be counted against the session.
    pub inline_bytes: u64,
    pub diagnostics: Vec<String>,
    /// What the host does itself, in the order of the parts.
    pub actions: Vec<Action>,
    /// Whether there is anything for a model (C-053).
    pub reaches_model: bool,
}

/// Why a message is not taken; the peer hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("empty_message: there is nothing in it that somebody said")]
    EmptyMessage,
}

/// Whether a message is nothing but text: nothing in it has to be looked up, decoded or moved.
pub fn is_plain(message: &Object) -> bool {
    let text = message.get("text").and_then(Value::as_str).unwrap_or("");
    let attachments = message.get("attachments");
    let has_attachments =
        attachments.is_some_and(|all| all.as_array().is_none_or(|all| !all.is_empty()));
    let is_ours = message
        .get("_meta")
        .is_some_and(|meta| meta.get(ahp::MESSAGE_KEY).is_some());
    let begins = text.starts_with('/') || text.starts_with("\\/");
    !text.is_empty() && !has_attachments && !is_ours && !begins && !text.contains('@')
}

/// What [`compose`] would make of a plain message.
pub fn plain(message: &Object) -> Composed {
    let text = message.get("text").and_then(Value::as_str).unwrap_or("");
    Composed {
        parts: vec![Part::text(text)],
        metadata: ahp::metadata(message, message.clone()),
        message: Some(message.clone()),
        bodies: Vec::new(),
        inline_bytes: 0,
        diagnostics: Vec::new(),
        actions: Vec::new(),
        reaches_model: true,
    }
}

pub fn compose(input: Input, around: &Surroundings<'_>) -> Result<Composed, Refused> {
    let mut said = Diagnostics::default();
    let mut bodies = Bodies::new(around.inline);
    let (parts, metadata, message) = match input {
        Input::Ahp(mut message) => {
            let pieces = ahp::pieces(&mut message, around, &mut said);
            let settled = settle(pieces, around, &mut bodies, &mut said);
            let recorded = ahp::record(message, &settled);
            let metadata = ahp::metadata(&recorded.message, recorded.skeleton);
            (settled.parts, metadata, Some(recorded.message))
        }
        Input::Parts { parts, metadata } => {
            let pieces = pieces_of(parts, &mut said);
            let settled = settle(pieces, around, &mut bodies, &mut said);
            (settled.parts, versioned(metadata), None)
        }
        Input::Text(text) => {
            let pieces = ahp::text_pieces(&text, around, &mut said);
            let settled = settle(pieces, around, &mut bodies, &mut said);
            (settled.parts, versioned(Object::new()), None)
        }
    };
    if parts.iter().all(|part| part.kind() == "editor-context") {
        return Err(Refused::EmptyMessage);
    }
    let asked = parts.iter().filter(|part| is_action(part)).count();
    if asked > ACTIONS_MAX {
        said.say(|| format!("command: only the first {ACTIONS_MAX} of {asked} actions are done"));
    }
    Ok(Composed {
        actions: host_actions(&parts),
        reaches_model: reaches_model(&parts),
        parts,
        metadata,
        message,
        bodies: bodies.kept,
        inline_bytes: bodies.inline_bytes,
        diagnostics: said.finish(),
    })
}

fn pieces_of(parts: Vec<Value>, said: &mut Diagnostics) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(parts.len());
    for (index, value) in parts.into_iter().enumerate() {
        let part = version::part_of(value);
        if part.kind() == version::UNREADABLE {
            said.say(|| format!("part {index}: {}", part::NotAPart));
        }
        pieces.push(Piece::of(part.into_object()));
    }
    pieces
}

/// Metadata of somebody who knows parts: the version they were written in stays (C-087).
fn versioned(mut metadata: Object) -> Object {
    let version = metadata.get("schema_version").and_then(Value::as_i64);
    if version.is_none_or(|version| version < 1) {
        metadata.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
    }
    metadata
        .entry("origin")
        .or_insert_with(|| json!({"kind": "user"}));
    metadata
}

fn is_action(part: &Part) -> bool {
    matches!(part.view(), View::Command(command) if command::is_action(command.id))
}

/// Whether anything but host actions is in a message: what an editor adds by itself and blanks between actions are not
/// (C-053).
fn reaches_model(parts: &[Part]) -> bool {
    let is_said = |part: &Part| match part.view() {
        View::Command(_) => !is_action(part),
        View::EditorContext(_) => false,
        View::Text(text) => !text.text.trim().is_empty(),
        _ => true,
    };
    parts.iter().any(is_said) || !parts.iter().any(is_action)
}
