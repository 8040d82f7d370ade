//! Things that a program which embeds the host knows and a mention may name: a node of a canvas, a ticket (G-42).
//!
//! Must not know: messages.

use wire::Object;

/// Looks up entities. Called for every mention, so it should be quick.
pub trait Entities: Send + Sync {
    /// Whether there is such a thing: `target` is the target of the mention, its `id` included.
    fn has(&self, kind: &str, target: &Object) -> bool;
}

/// There are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEntities;

impl Entities for NoEntities {
    fn has(&self, _: &str, _: &Object) -> bool {
        false
    }
}
