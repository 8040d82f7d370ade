//! Things that a program which embeds the host knows and a mention may name: a node of a canvas, a ticket (G-42).
//!
//! Must not know: messages.

use std::collections::BTreeSet;

use wire::Object;

/// Looks up entities. Called for every message and every mention, so it should be quick.
pub trait Entities: Send + Sync {
    /// The kinds of entities there are: `@node:n42` in a text is a mention only if `node` is among them (C-066).
    fn kinds(&self) -> BTreeSet<String>;

    /// Whether there is such a thing: `target` is the target of the mention, its `id` included.
    fn has(&self, kind: &str, target: &Object) -> bool;
}

/// There are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEntities;

impl Entities for NoEntities {
    fn kinds(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn has(&self, _: &str, _: &Object) -> bool {
        false
    }
}
