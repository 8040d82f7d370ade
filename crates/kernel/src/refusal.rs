//! Why a client's action may not be recorded, and how deep what clients send may nest.

use serde_json::Value;

/// Why an action is refused, as its sender gets it (H-066).
#[derive(Debug)]
pub(crate) struct Refusal(pub String);

impl Refusal {
    pub(crate) fn because(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Deepest nesting of an action: in a snapshot it lies a few levels deeper than it came, and must still be readable by
/// clients whose JSON readers stop at 127.
pub(crate) const ACTION_DEPTH_MAX: usize = 112;

/// Deepest nesting of what a request brings into state: it lies as deep there as what an action brings.
pub(crate) const CONTENT_DEPTH_MAX: usize = ACTION_DEPTH_MAX - 1;

pub(crate) fn depth_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth_of).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
