//! The check of an action's payload against the shape of the published type of its kind (H-078).
//!
//! Promises: accepts what the published union of all actions accepts and nothing else; copies
//! nothing.
//! Must not know: who sent the action, what it does.
//!
//! `payloads.json` holds the shapes. A test writes it from the published types and fails while the
//! two differ. Decoding into the published types here took more than half of the compile time of
//! this crate, and copied each action.

mod shape;

use std::sync::LazyLock;

use serde_json::Value;

use self::shape::Shapes;
use super::kind::ActionKind;

/// The shapes of all published actions.
static PAYLOADS: LazyLock<Shapes> = LazyLock::new(|| {
    let read = serde_json::from_str(include_str!("payload/payloads.json"));
    let shapes = read.ok().and_then(|json: Value| Shapes::from_json(&json));
    shapes.unwrap_or_else(|| unreachable!("the shapes of payloads are written by a test"))
});

/// Reports if an action has the payload that its kind needs. Kinds without a published type accept
/// every payload.
pub(super) fn is_readable(kind: ActionKind, action: &Value) -> bool {
    !kind.is_published() || PAYLOADS.fits(kind, action)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace;
#[cfg(test)]
mod unions;
