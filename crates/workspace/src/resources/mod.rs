//! Files as clients name them: by `file:` URIs, anywhere in the host's roots or in what the configuration grants (H-250).
//!
//! Promises: every operation resolves its path anew, links followed by the operating system, and works beneath a directory that
//! is already open: what is swapped for a link between a check and a use leads nowhere. Nothing of the host's own directory is
//! read, changed, moved or removed (G-55). A file is replaced whole or not at all; a copy of a tree appears whole or not at
//! all. Nothing is said of what lies outside, not even whether it exists. Every operation has a bound.
//! Must not know: who asks, how an answer travels.

mod append;
mod error;
mod facts;
mod move_copy;
mod read;
mod rename;
mod resolved_resource;
mod seen_changes;
mod tree;
mod watch;
mod watch_globs;
mod watched_directories;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

pub use error::ResourceError;
pub use facts::{ResourceFacts, ResourceKind};
pub use read::{ResourceBytes, ResourceEntry};
pub use seen_changes::ResourceChangeKind;
pub use watch::{ResourceChange, ResourceWatch, WatchRequest, WatchedBatch};
pub use write::{Placement, WriteRequest};

use crate::Confinement;

/// The files that clients may use. A handle: clones share the lock.
#[derive(Debug, Clone)]
pub struct ResourceFiles {
    confinement: Confinement,
    /// Held while a file is replaced or appended to, or a tree is moved: two clients must not undo each other's work.
    writing: Arc<Mutex<()>>,
}

/// What somebody wants to do with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceAccess {
    Read,
    Write,
}

/// A file or directory outside the roots that may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceGrant {
    /// Without links.
    pub path: PathBuf,
    pub write: bool,
}

impl ResourceFiles {
    pub fn new(confinement: Confinement) -> Self {
        Self { confinement, writing: Arc::default() }
    }
}

#[cfg(test)]
mod tests;
