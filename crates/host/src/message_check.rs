//! What would become of a message if it were sent to a chat: for its model, with what was refused there, in the room that is
//! left (`x-compose`, G-71).
//!
//! Promises: nothing is stored, staged or sent; no text of a system prompt is looked at. Blocks: run it on a thread that may
//! wait.
//! Must not know: who asks.

use std::collections::BTreeMap;

use agent_api::model_call::TOKEN_BYTES;
use agent_api::{ModelTerms, PartDecision, UserMessage};
use compositor::Part;
use compositor::compose::DetachedBody;
use compositor::lower::{Capabilities, Lowered, RequestBudget, Target, lower_into};
use compositor::resolve::{DocumentRead, InlineLimits, Resolved, Sources, resolve};
use kernel::{ContextUse, MessageCheck, WorkFailed};
use serde_json::Value;
use wire::ext::compose::{ComposeResult, ComposedPart, ContextRoom};
use wire::{Object, Timestamp};
use workspace::{Confinement, ContentStore, Workspace, WorkspaceSources};

use crate::blobs::Blobs;
use crate::compose::{KnownNames, compose_message, conflict_in};
use crate::document_reader::DocumentReader;
use crate::effects::read_body;
use crate::entities::Entities;

/// What there is around the message.
pub struct CheckContext<'a> {
    pub known: &'a KnownNames,
    /// Where files may be read; none are without.
    pub confinement: Option<&'a Confinement>,
    pub blobs: &'a dyn Blobs,
    pub entities: &'a dyn Entities,
    pub documents: &'a DocumentReader,
    pub now: Timestamp,
}

/// The `ComposeResult`. `terms_of` knows what a model makes of the message; an agent without models gets the text that
/// scripts see (G-06).
pub fn check_message(
    check: MessageCheck,
    context: &CheckContext<'_>,
    terms_of: impl FnOnce(&UserMessage) -> Option<ModelTerms>,
) -> Result<Value, WorkFailed> {
    let directories = check.compose.working_directories.clone();
    let composed = compose_message(context.known, check.compose, context.now)?;
    if let Some(conflict) = conflict_in(&composed) {
        return Err(WorkFailed(conflict.to_owned()));
    }
    let mut sources = WorkspaceSources {
        workspace: context
            .confinement
            .and_then(|confinement| Workspace::open(&directories, confinement).ok()),
        store: CheckStore {
            bodies: composed.bodies,
            blobs: context.blobs,
            entities: context.entities,
            documents: context.documents,
        },
    };
    let limits = InlineLimits::default();
    let mut resolved: BTreeMap<usize, Resolved> = BTreeMap::new();
    for (index, part) in composed.parts.iter().enumerate() {
        if let Some(found) = resolve(part, &mut sources, &limits) {
            resolved.insert(index, found);
        }
    }
    let message = UserMessage { parts: composed.parts, resolved };
    let terms = terms_of(&message);
    let checked = CheckedMessage {
        message,
        diagnostics: composed.diagnostics,
        reaches_model: composed.reaches_model,
    };
    let result = describe(checked, terms, &check.context_use, &mut sources);
    Ok(wire::action::to_value(&result))
}

/// A message, and the report for its user.
pub(crate) struct CheckedMessage {
    pub message: UserMessage,
    pub diagnostics: Vec<String>,
    pub reaches_model: bool,
}

/// What would become of a message for a model.
pub(crate) fn describe(
    checked: CheckedMessage,
    terms: Option<ModelTerms>,
    context_use: &ContextUse,
    sources: &mut dyn Sources,
) -> ComposeResult {
    let message = &checked.message;
    let target = terms.as_ref().map_or(Target::OpenaiChat, |terms| terms.target);
    let lowered = if checked.reaches_model {
        lower_message(message, terms.as_ref(), target, sources)
    } else {
        // no model is called (C-053)
        Lowered::default()
    };
    let mut diagnostics = checked.diagnostics;
    for diagnostic in lowered.diagnostics {
        if !diagnostics.contains(&diagnostic) {
            diagnostics.push(diagnostic);
        }
    }
    let decisions: Vec<PartDecision> = lowered
        .decisions
        .iter()
        .map(|decision| PartDecision::new(0, message.parts.get(decision.part), decision))
        .collect();
    let known = decisions.iter().filter_map(|decision| decision.tokens);
    let tokens = known.fold(0_u64, u64::saturating_add);
    let price = terms.as_ref().and_then(|terms| terms.input_price);
    let size = terms.as_ref().and_then(|terms| terms.context_tokens);
    ComposeResult {
        model: terms.map(|terms| terms.model),
        target: target.name().to_owned(),
        reaches_model: checked.reaches_model,
        diagnostics,
        tokens: count(tokens),
        tokens_complete: decisions.iter().all(|decision| decision.tokens.is_some()),
        cost: price.map(|price| tokens as f64 * price / 1_000_000.0),
        context: size.map(|size| room_in(size, context_use)),
        parts: decisions.into_iter().map(part_of).collect(),
    }
}

fn lower_message(
    message: &UserMessage,
    terms: Option<&ModelTerms>,
    target: Target,
    sources: &mut dyn Sources,
) -> Lowered {
    let capabilities = match terms {
        Some(terms) => terms.capabilities.clone(),
        None => Capabilities::built_in(target),
    };
    let mut budget = RequestBudget::new(&capabilities);
    if let Some(terms) = terms {
        budget.described = terms.described.clone();
    }
    let (parts, resolved) = (&message.parts, &message.resolved);
    lower_into(&mut budget, parts, resolved, target, &capabilities, sources)
}

fn part_of(decision: PartDecision) -> ComposedPart {
    ComposedPart {
        part: count(decision.part),
        kind: decision.kind,
        name: decision.name,
        treatment: decision.treatment.name().to_owned(),
        became: decision.became,
        why: decision.why,
        bytes: count(decision.bytes),
        tokens: decision.tokens.map(count),
    }
}

fn room_in(size: u64, context_use: &ContextUse) -> ContextRoom {
    let used = match context_use {
        ContextUse::Nothing => None,
        ContextUse::Reported(usage) => used_by(usage),
        ContextUse::Turn(turn) => {
            // What cannot be read says nothing.
            let turn: Value = serde_json::from_slice(&turn.json).unwrap_or_default();
            used_by(&turn["usage"])
        }
        ContextUse::Summary(bytes) => u64::try_from(bytes.div_ceil(TOKEN_BYTES)).ok(),
    };
    ContextRoom {
        size: count(size),
        used: used.map(count),
        left: count(size.saturating_sub(used.unwrap_or(0))),
    }
}

/// What a `UsageInfo` says of the context in use (G-45).
fn used_by(usage: &Value) -> Option<u64> {
    let sum = || {
        let input = usage["inputTokens"].as_u64()?;
        Some(input.saturating_add(usage["outputTokens"].as_u64().unwrap_or(0)))
    };
    // A request for a summary shows how long the conversation was before it.
    let is_summary = usage["_meta"]["greenroom.summary"] == true;
    usage["_meta"]["contextUsed"].as_u64().or_else(sum).filter(|_| !is_summary)
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Bodies of the message itself, and of what is stored already.
struct CheckStore<'a> {
    bodies: Vec<DetachedBody>,
    blobs: &'a dyn Blobs,
    entities: &'a dyn Entities,
    documents: &'a DocumentReader,
}

impl ContentStore for CheckStore<'_> {
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        let mut own = self.bodies.iter();
        if let Some(own) = own.find(|body| body.content_id == content_id) {
            return Some(own.bytes.to_vec());
        }
        read_body(self.blobs, content_id)
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None // nothing is copied for a message that is not sent
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        self.entities.has(kind, target)
    }

    fn read_document(&mut self, bytes: &[u8]) -> Option<DocumentRead> {
        self.documents.read(bytes)
    }
}
