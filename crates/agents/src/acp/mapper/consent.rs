//! What a call was allowed to make of files (AG-51).
//!
//! Promises: what was asked about is kept as it was asked. Nothing that an agent says of a call, before, meanwhile or afterwards, allows
//! anything: only a decision does, and only what it was about.

use std::path::{Path, PathBuf};

use super::Mapper;
use super::call::Stage;

/// A change that an agent tells of: whole texts or single lines, nobody knows (AG-27c).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct FileDiff {
    pub(in super::super) path: PathBuf,
    /// Absent of a new file, and where only the path is known.
    pub(in super::super) old_text: Option<String>,
    /// Absent where only the path is known.
    pub(in super::super) new_text: Option<String>,
}

impl FileDiff {
    /// Of a change of which only the path is known.
    pub(in super::super) fn of_path(path: PathBuf) -> Self {
        Self {
            path,
            old_text: None,
            new_text: None,
        }
    }
}

/// What a call asks for and what it was allowed.
#[derive(Debug, Default)]
pub(super) struct CallConsent {
    asked: Vec<FileDiff>,
    allowed: Vec<FileDiff>,
}

impl CallConsent {
    /// It is asked about these changes, and only about them.
    pub(super) fn ask(&mut self, diffs: Vec<FileDiff>) {
        *self = Self {
            asked: diffs,
            allowed: Vec::new(),
        };
    }

    /// It was decided about what was asked.
    pub(super) fn decide(&mut self, approved: bool) {
        let asked = std::mem::take(&mut self.asked);
        self.allowed = match approved {
            true => asked,
            false => Vec::new(),
        };
    }

    /// The changes of a file that were allowed, in the order in which they were told.
    fn allowed(&self, path: &Path) -> Vec<FileDiff> {
        let changes = self.allowed.iter().filter(|diff| diff.path == path);
        changes.cloned().collect()
    }
}

impl Mapper {
    /// The calls that run and were allowed to change this file, each with the changes that it asked for.
    pub(in super::super) fn allowed_edits(&self, path: &Path) -> Vec<(u64, Vec<FileDiff>)> {
        let running = self.calls.values();
        let running = running.filter(|call| call.stage == Stage::Running);
        let edits = running.map(|call| (call.number, call.consent.allowed(path)));
        edits.filter(|(_, changes)| !changes.is_empty()).collect()
    }
}
