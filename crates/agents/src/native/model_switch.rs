//! What a chat loses by going on with another model: it is said once, in the turn that changes it.
//!
//! Promises: nothing is said where nothing is lost.
//! Must not know: why somebody changes the model.

use std::collections::BTreeSet;

use agent_api::{PastTurn, TurnInput};
use compositor::lower::Capabilities;
use serde_json::Value;

use super::context::CompactionSettings;
use super::model_view::NativeBody;
use super::{Model, NativeContext, outputs};
use crate::provider::MediaKind;

/// Attachments that are named.
const NAMED_MAX: usize = 5;

/// Describes what this turn's model lacks of what the model before had. `described` are the
/// attachments of earlier messages that it only gets as text.
pub(super) fn describe(
    shared: &NativeContext,
    model: &Model,
    input: &TurnInput,
    described: &[NativeBody<'_>],
) -> Option<String> {
    if input.resume.is_some() {
        return None; // it was said when the turn began
    }
    let last = input.history.iter().rev().find(|past| model_of(past).is_some())?;
    let before = model_of(last).filter(|before| *before != model.id)?;
    let known = shared.models.find(before);
    let capabilities = known.as_ref();
    let capabilities = capabilities.map(|entry| entry.model.capabilities(&shared.capabilities));
    let losses: Vec<String> = [
        describe_tools(model, known.as_ref().map(|entry| &entry.model)),
        describe_media(described, capabilities.as_ref()),
        describe_window(model, last, shared.compaction),
        describe_thoughts(input, before),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!losses.is_empty()).then(|| {
        format!("This chat goes on with {} instead of {before}. {}", model.id, losses.join(" "))
    })
}

/// The model before could do something, and this one can only talk. Of a model that is gone nothing is known: it may have.
fn describe_tools(model: &Model, before: Option<&Model>) -> Option<String> {
    let could = before.is_none_or(Model::calls_tools);
    (could && !model.calls_tools()).then(|| {
        "It calls no tools: it neither reads nor changes files, and runs nothing.".to_owned()
    })
}

fn model_of(past: &PastTurn) -> Option<&str> {
    past.turn["message"]["model"]["id"].as_str()
}

/// Attachments that the model before took, and this one does not. Of a model that is gone nothing is known: it may have.
fn describe_media(described: &[NativeBody<'_>], before: Option<&Capabilities>) -> Option<String> {
    let was_taken = |kind: MediaKind| {
        before.is_none_or(|before| match kind {
            MediaKind::Image => before.image.is_some(),
            MediaKind::Document => before.pdf.is_some(),
            MediaKind::Audio => before.audio.is_some(),
            MediaKind::Video => before.video.is_some(),
        })
    };
    let lost: Vec<&NativeBody<'_>> = described.iter().filter(|body| was_taken(body.kind)).collect();
    let kinds: BTreeSet<MediaKind> = lost.iter().map(|body| body.kind).collect();
    let kinds: Vec<&str> = kinds.into_iter().map(MediaKind::plural).collect();
    let names: Vec<String> = lost.iter().take(NAMED_MAX).map(|body| body.name()).collect();
    let names = match lost.len().saturating_sub(NAMED_MAX) {
        _ if lost.is_empty() => return None,
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    Some(format!(
        "It does not take these {} of earlier messages as they are, and gets their text or a description: {names}.",
        kinds.join(" and ")
    ))
}

/// More in use than the model can read.
fn describe_window(
    model: &Model,
    last: &PastTurn,
    compaction: CompactionSettings,
) -> Option<String> {
    let used = last.turn["usage"]["_meta"]["contextUsed"].as_u64().or_else(|| {
        let input = last.turn["usage"]["inputTokens"].as_u64();
        input.filter(|_| last.turn["usage"]["_meta"]["turn"] != Value::Null)
    })?;
    let size = model.context();
    let what_happens = if compaction.auto {
        "what was before is summarised for it"
    } else {
        "the oldest turns are left out (`/compact` keeps a summary of them)"
    };
    (used > size)
        .then(|| format!("It reads {size} tokens, and the chat uses {used}: {what_happens}."))
}

fn describe_thoughts(input: &TurnInput, before: &str) -> Option<String> {
    let mut turns = input.history.iter();
    let is_lost = turns.any(|past| outputs::has_sealed(&past.outputs, before));
    is_lost.then(|| format!("What {before} thought is not passed on."))
}
