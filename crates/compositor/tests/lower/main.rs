//! What is sent to targets of persisted parts: every rule of docs/rules/compositor.md on it, by its number.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "../vectors/mod.rs"]
mod vectors;

mod attachments;
mod bodies;
mod by_vector;
mod capabilities;
mod invariants;
mod limits;
mod references;
mod texts;

use std::collections::BTreeMap;

use compositor::Part;
use compositor::lower::{Capabilities, Lowered, Target, lower};
use serde_json::Value;

use vectors::Memory;

/// What the built-in capability map lets a target get of parts.
fn lower_for(target: Target, parts: &Value, sources: &mut Memory) -> Lowered {
    let parts: Vec<Part> = vectors::parts(parts);
    let capabilities = Capabilities::built_in(target);
    lower(&parts, &BTreeMap::new(), target, &capabilities, sources)
}

/// The texts sent to Chat Completions, other blocks by their type.
fn chat(parts: &Value, sources: &mut Memory) -> Vec<String> {
    let blocks = lower_for(Target::OpenaiChat, parts, sources).blocks;
    let text = |block: Value| match &block["text"] {
        Value::String(text) => text.clone(),
        _ => format!("({})", block["type"].as_str().unwrap()),
    };
    blocks.into_iter().map(text).collect()
}
