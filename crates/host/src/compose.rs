//! What a message means, found out before it is recorded: decoded, sniffed, its bodies kept, commands and mentions looked
//! up (house 2, C-040, G-32).
//!
//! Promises: bodies are on disk when the answer is given. Blocks: run it where waiting harms nobody.
//! Must not know: whether the message is accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compositor::compose::InlineBudget;
use compositor::{Catalogue, Environment, Input};
use kernel::{Compose, ErrandFailed, HostAction, Submission};
use serde_json::Value;
use wire::{Object, Timestamp, file_uri};

use crate::blobs::Blobs;

/// What may be named in the working directories of a message.
#[derive(Debug, Clone)]
pub struct Known {
    pub catalogue: Catalogue,
    pub skills: BTreeSet<String>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            catalogue: Catalogue::built_in(),
            skills: BTreeSet::new(),
        }
    }
}

/// Finds out what a message means and keeps its bodies.
pub fn understand(
    store: &dyn Blobs,
    known: &Known,
    compose: Compose,
    now: Timestamp,
) -> Result<Box<Submission>, ErrandFailed> {
    let roots: Vec<String> = compose
        .working_directories
        .iter()
        .filter_map(|uri| String::from_utf8(file_uri::path_of(uri)?).ok())
        .collect();
    let around = Environment {
        catalogue: &known.catalogue,
        skills: &known.skills,
        contexts: &BTreeMap::new(),
        entity_kinds: &BTreeSet::new(),
        roots: &roots,
        inline: InlineBudget {
            each_bytes: compose.each_bytes as u64,
            left_bytes: compose.left_bytes as u64,
        },
        now_ms: now.0,
    };
    let message = whole(compose.message, compose.lifted);
    let composed = compositor::compose(Input::Ahp(message), &around)
        .map_err(|refused| ErrandFailed(refused.to_string()))?;
    for body in &composed.bodies {
        let kept = store.put(&body.bytes, now);
        kept.map_err(|error| ErrandFailed(error.to_string()))?;
    }
    let actions: Vec<HostAction> = composed
        .actions
        .into_iter()
        .map(|action| HostAction {
            name: action.name,
            raw: action.raw,
            argv: action.argv,
        })
        .collect();
    let help = actions
        .iter()
        .any(|action| action.name == "/help")
        .then(|| help(&known.catalogue));
    Ok(Box::new(Submission {
        message: composed.message.unwrap_or_default(),
        metadata: composed.metadata,
        parts: composed.parts,
        actions,
        reaches_model: composed.reaches_model,
        diagnostics: composed.diagnostics,
        inline_bytes: usize::try_from(composed.inline_bytes).unwrap_or(usize::MAX),
        help,
    }))
}

/// The message with the bodies in it that were taken out early.
fn whole(mut message: Object, lifted: Vec<(usize, Arc<String>)>) -> Object {
    let Some(attachments) = message.get_mut("attachments") else {
        return message;
    };
    for (index, data) in lifted {
        if let Some(attachment) = attachments.get_mut(index) {
            let data = Arc::try_unwrap(data).unwrap_or_else(|data| (*data).clone());
            attachment["data"] = Value::String(data);
        }
    }
    message
}

/// The commands there are, for people.
fn help(catalogue: &Catalogue) -> String {
    let mut lines = vec!["What can be typed here:".to_owned()];
    for (id, entry) in catalogue.iter() {
        let mut line = id.to_owned();
        if let Some(hint) = &entry.argument_hint {
            line.push(' ');
            line.push_str(hint);
        }
        if let Some(description) = &entry.description {
            line.push_str(": ");
            line.push_str(description);
        }
        lines.push(line);
    }
    lines.push("@file:PATH, @skill:NAME: show the model a file, suggest a skill".to_owned());
    lines.join("\n")
}
