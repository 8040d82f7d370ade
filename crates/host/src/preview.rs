//! A look ahead: what a message would become here, and what each target would get of it. Nothing is stored, staged or
//! sent (`greenroom compose`).
//!
//! Must not know: sessions, the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agent_api::UserMessage;
use compositor::compose::{AttachmentBudget, DetachedBody};
use compositor::lower::{CapabilityMap, Lowered, Target, lower};
use compositor::resolve::{DocumentRead, InlineLimits, Resolved, resolve};
use compositor::{ComposeRefusal, Environment, Part, SubmittedMessage};
use kernel::ContextUse;
use serde_json::Value;
use wire::ext::compose::ComposeResult;
use wire::{Object, Timestamp, file_uri};
use workspace::UserDirectories;
use workspace::discovery::discover;
use workspace::{Confinement, ContentStore, Workspace, WorkspaceSources};

use crate::compose::conflict_in;
use crate::config::Model;
use crate::document_reader::DocumentReader;
use crate::message_check::{CheckedMessage, describe};

/// What there is around the message.
#[derive(Debug, Clone)]
pub struct PreviewContext<'a> {
    pub workspace: &'a Path,
    /// What the user keeps for agents in all projects.
    pub user: UserDirectories,
    /// Things that a mention may name: `kind` and `id`.
    pub entities: Vec<(String, String)>,
    pub capabilities: CapabilityMap,
    pub documents: &'a DocumentReader,
    pub now: Timestamp,
}

/// Why a message would not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreviewRefusal {
    #[error(transparent)]
    Compose(#[from] ComposeRefusal),
    #[error("{0}")]
    Conflict(&'static str),
}

/// What would become of a message.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    /// As they would be persisted.
    pub parts: Vec<Part>,
    /// Diagnostics for the user.
    pub diagnostics: Vec<String>,
    pub lowered: Vec<(Target, Lowered)>,
}

/// A message as it is composed here, and what it refers to.
struct ComposedHere<'a> {
    parts: Vec<Part>,
    resolved: BTreeMap<usize, Resolved>,
    diagnostics: Vec<String>,
    reaches_model: bool,
    sources: WorkspaceSources<PreviewStore<'a>>,
}

fn compose_here<'a>(
    input: SubmittedMessage,
    context: &'a PreviewContext<'_>,
) -> Result<ComposedHere<'a>, PreviewRefusal> {
    let directory = std::fs::canonicalize(context.workspace)
        .unwrap_or_else(|_| context.workspace.to_owned())
        .to_string_lossy()
        .into_owned();
    let directories = [file_uri::uri_of(directory.as_bytes())];
    // The user's own directory, for the user: no root confines it.
    let confinement = Confinement::none();
    let discovered = discover(&directories, &context.user, &[], &confinement);
    let skills = discovered.skills.iter().map(|skill| skill.name.clone());
    let kinds = context.entities.iter().map(|(kind, _)| kind.clone());
    let contexts = match &input {
        SubmittedMessage::Ahp(message) | SubmittedMessage::WithBodies { message, .. } => {
            compositor::ahp::contexts_in(message)
        }
        SubmittedMessage::Parts { .. } | SubmittedMessage::Text(_) => BTreeMap::new(),
    };
    let composed = compositor::compose(
        input,
        &Environment {
            catalogue: &discovered.catalogue,
            skills: &skills.collect(),
            contexts: &contexts,
            entity_kinds: &kinds.collect::<BTreeSet<_>>(),
            roots: &[directory],
            inline: AttachmentBudget::default(),
            now_ms: context.now.0,
        },
    )?;
    if let Some(conflict) = conflict_in(&composed) {
        return Err(PreviewRefusal::Conflict(conflict));
    }
    let mut sources = WorkspaceSources {
        workspace: Workspace::open_with_readable(&directories, None, &context.user, &confinement)
            .ok(),
        store: PreviewStore {
            bodies: composed.bodies,
            entities: &context.entities,
            documents: context.documents,
        },
    };
    let limits = InlineLimits::default();
    let mut resolved = BTreeMap::new();
    for (index, part) in composed.parts.iter().enumerate() {
        if let Some(discovered) = resolve(part, &mut sources, &limits) {
            resolved.insert(index, discovered);
        }
    }
    let warnings = discovered.warnings.iter().map(ToString::to_string);
    let mut diagnostics: Vec<String> = warnings.collect();
    diagnostics.extend(composed.diagnostics);
    Ok(ComposedHere {
        parts: composed.parts,
        resolved,
        diagnostics,
        reaches_model: composed.reaches_model,
        sources,
    })
}

/// What a model of this configuration would get of a message, as `x-compose` says it.
pub fn preview_for_model(
    input: SubmittedMessage,
    context: &PreviewContext<'_>,
    model: &Model,
) -> Result<ComposeResult, PreviewRefusal> {
    let ComposedHere { parts, resolved, diagnostics, reaches_model, mut sources } =
        compose_here(input, context)?;
    let message = UserMessage { parts, resolved };
    let terms = agents::native::model_terms(&context.capabilities, model, &message);
    let composed = CheckedMessage { message, diagnostics, reaches_model };
    let nothing_used = ContextUse::Nothing;
    Ok(describe(composed, Some(terms), &nothing_used, &mut sources))
}

/// What would become of a message if it were sent here.
pub fn preview(
    input: SubmittedMessage,
    context: &PreviewContext<'_>,
    targets: &[Target],
) -> Result<Preview, PreviewRefusal> {
    let mut composed = compose_here(input, context)?;
    let mut preview =
        Preview { parts: composed.parts, diagnostics: composed.diagnostics, lowered: Vec::new() };
    for target in targets {
        let lowered = if composed.reaches_model {
            let capabilities = context.capabilities.of(*target, None);
            let (parts, sources) = (&preview.parts, &mut composed.sources);
            lower(parts, &composed.resolved, *target, &capabilities, sources)
        } else {
            // No model is called (C-053).
            Lowered::default()
        };
        for diagnostic in &lowered.diagnostics {
            if !preview.diagnostics.contains(diagnostic) {
                preview.diagnostics.push(diagnostic.clone());
            }
        }
        preview.lowered.push((*target, lowered));
    }
    Ok(preview)
}

/// The bodies and entities of the message itself: nothing is stored.
struct PreviewStore<'a> {
    bodies: Vec<DetachedBody>,
    entities: &'a [(String, String)],
    documents: &'a DocumentReader,
}

impl ContentStore for PreviewStore<'_> {
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        let mut bodies = self.bodies.iter();
        let discovered = bodies.find(|body| body.content_id == content_id)?;
        Some(discovered.bytes.to_vec())
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        let id = target.get("id").and_then(Value::as_str);
        let mut entities = self.entities.iter();
        entities.any(|(known, named)| known == kind && Some(named.as_str()) == id)
    }

    fn read_document(&mut self, bytes: &[u8]) -> Option<DocumentRead> {
        self.documents.read(bytes)
    }
}
