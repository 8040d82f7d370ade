//! What a watch saw, until it is told: one entry a path, however often that changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Paths of one batch; of more, only that something changed is told.
pub(super) const CHANGES_MAX: usize = 2_048;

/// What became of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceChangeKind {
    Added,
    Updated,
    Deleted,
}

/// Changes of one batch, by path beneath the resource.
#[derive(Debug, Default)]
pub(super) struct SeenChanges {
    pub(super) changes: BTreeMap<PathBuf, SeenPath>,
    pub(super) is_incomplete: bool,
}

/// What was seen of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenPath {
    before: EarlierState,
    /// It was removed or moved away after that.
    left: bool,
}

/// Whether a path was there before the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierState {
    Absent,
    Present,
    /// Something was moved there, perhaps over something else.
    Unknown,
}

impl SeenChanges {
    pub(super) fn add(&mut self, path: PathBuf, before: EarlierState, left: bool) {
        if let Some(seen) = self.changes.get_mut(&path) {
            seen.left |= left;
        } else if self.changes.len() < CHANGES_MAX {
            self.changes.insert(path, SeenPath { before, left });
        } else {
            self.is_incomplete = true;
        }
    }
}

impl SeenPath {
    /// What a batch comes to for one path; `None` if it came and went.
    pub(super) fn kind(self, is_there: bool) -> Option<ResourceChangeKind> {
        match (self.before, is_there) {
            (EarlierState::Absent, false) => None,
            (EarlierState::Absent, true) => Some(ResourceChangeKind::Added),
            (EarlierState::Present, true) => Some(ResourceChangeKind::Updated),
            (EarlierState::Present | EarlierState::Unknown, false) => {
                Some(ResourceChangeKind::Deleted)
            }
            // Two files that exchange their names were both there.
            (EarlierState::Unknown, true) if self.left => Some(ResourceChangeKind::Updated),
            (EarlierState::Unknown, true) => Some(ResourceChangeKind::Added),
        }
    }
}
