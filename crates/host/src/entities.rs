//! Things that an embedder of the host knows and a mention may name: a node of a canvas, a ticket (G-42).

use wire::Object;

/// What exists. Asked for every mention, so answers should be quick.
pub trait Entities: Send + Sync {
    /// Whether there is such a thing: `target` is the target of the mention, its `id` included.
    fn has(&self, kind: &str, target: &Object) -> bool;
}

/// Nothing does.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEntities;

impl Entities for NoEntities {
    fn has(&self, _: &str, _: &Object) -> bool {
        false
    }
}
