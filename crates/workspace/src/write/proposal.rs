//! What one call was shown of the file that it changes, and what it is about to write.
//!
//! Promises: it counts for that call alone, whatever other calls of the session propose meanwhile, also for the same file; it is
//! forgotten with its call.
//! Must not know: how files are opened.

use std::sync::Arc;

use parking_lot::Mutex;
use wire::{Digest, NamedBody};

use super::target::WriteTarget;
use crate::{Workspace, WorkspacePath};

/// The proposal of one call, if there is one. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallProposal(Arc<Mutex<Option<Proposal>>>);

/// What a file was when a change to it was proposed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proposal {
    /// Which file: the name that the change gives may lead to another by now.
    pub(super) path: WorkspacePath,
    before: Option<Digest>,
    pub(super) lineage: Option<u64>,
    /// Set once it was said what exactly is written.
    pub(super) pin: Option<PinnedContents>,
}

/// What both sides of a change hold that is about to be made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PinnedContents {
    /// Without links.
    pub(super) path: WorkspacePath,
    /// Absent for a new file.
    pub(super) before: Option<NamedBody>,
    pub(super) after: NamedBody,
    /// How many directories are made for it: they are removed when it is undone.
    pub(super) new_directories: usize,
}

impl Workspace {
    /// The same directories, for one call: what it proposes is its own.
    pub fn for_call(&self) -> Self {
        Self { proposal: CallProposal::default(), ..self.clone() }
    }
}

impl CallProposal {
    pub(super) fn set(&self, proposal: Proposal) {
        *self.0.lock() = Some(proposal);
    }

    pub(super) fn get(&self) -> Option<Proposal> {
        self.0.lock().clone()
    }

    /// The change is made, or never will be.
    pub(super) fn take(&self) -> Option<Proposal> {
        self.0.lock().take()
    }

    /// The change is about to be made, and is to be exactly this.
    pub(super) fn pin(&self, contents: PinnedContents) {
        let mut proposal = self.0.lock();
        let before = contents.before.as_ref().map(NamedBody::digest);
        let proposal =
            proposal.get_or_insert_with(|| Proposal::new(contents.path.clone(), before, None));
        proposal.pin = Some(contents);
    }
}

impl Proposal {
    pub(super) fn new(path: WorkspacePath, before: Option<Digest>, lineage: Option<u64>) -> Self {
        Self { path, before, lineage, pin: None }
    }

    /// Whether a file is the one that the change was proposed for, and exactly what it was then.
    pub(super) fn is_for(&self, path: &WorkspacePath, now: Option<Digest>) -> bool {
        self.path == *path && self.before == now
    }
}

impl PinnedContents {
    /// Whether a change would be made to another file, to another content of it, or make something else of it.
    pub(super) fn differs_from(&self, target: &WriteTarget, after: &NamedBody) -> bool {
        let before = self.before.as_ref().map(NamedBody::digest);
        self.path != target.path
            || self.new_directories != target.new_directories
            || before != target.digest()
            || self.after.digest() != after.digest()
    }
}
