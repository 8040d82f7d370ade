//! What a call was allowed to make of files (AG-51), and which command it was allowed to run (AG-52).
//!
//! Promises: what was asked about is kept as it was asked. Nothing that an agent says of a call, before, meanwhile or afterwards, allows
//! anything: only a decision does, only what it was about, and once.

use std::path::{Path, PathBuf};

use agent_api::RecordedEdit;

use super::Mapper;
use super::call::Stage;
use super::displayed_command::DisplayedCommand;

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
        Self { path, old_text: None, new_text: None }
    }
}

/// Files that the host writes for one call: all of them are recorded with each.
const MADE_MAX: usize = 64;

/// What a call asks for, what it was allowed, and what the host has made of that.
#[derive(Debug, Default)]
pub(super) struct CallConsent {
    asked: Vec<FileDiff>,
    allowed: Vec<FileDiff>,
    made: Vec<RecordedEdit>,
    asked_command: Option<DisplayedCommand>,
    allowed_command: Option<DisplayedCommand>,
}

impl CallConsent {
    /// It is asked about these changes and this command, and only about them.
    pub(super) fn ask(&mut self, diffs: Vec<FileDiff>, command: Option<DisplayedCommand>) {
        *self = Self {
            asked: diffs,
            made: std::mem::take(&mut self.made),
            asked_command: command,
            ..Self::default()
        };
    }

    /// It was decided about what was asked.
    pub(super) fn decide(&mut self, approved: bool) {
        let asked = std::mem::take(&mut self.asked);
        self.allowed = if approved { asked } else { Vec::new() };
        self.allowed_command = self.asked_command.take().filter(|_| approved);
    }

    /// The command that it was allowed to run, if it is this one and has not run yet.
    pub(super) fn take_command(
        &mut self,
        is_it: impl Fn(&DisplayedCommand) -> bool,
    ) -> Option<DisplayedCommand> {
        self.allowed_command.take_if(|allowed| is_it(allowed))
    }

    /// The changes of a file that were allowed, in the order in which they were told.
    fn approved_changes(&self, path: &Path) -> Vec<FileDiff> {
        let changes = self.allowed.iter().filter(|diff| diff.path == path);
        changes.cloned().collect()
    }
}

impl Mapper {
    /// The calls that run and were allowed to change this file, each with the changes that it asked for.
    pub(in super::super) fn allowed_edits(&self, path: &Path) -> Vec<(u64, Vec<FileDiff>)> {
        let earlier = self.earlier.iter().map(|(_, call)| call);
        let running = earlier
            .chain(self.calls.values())
            .filter(|call| call.stage == Stage::Running)
            .filter(|call| call.consent.made.len() < MADE_MAX);
        let edits = running.map(|call| (call.number, call.consent.approved_changes(path)));
        edits.filter(|(_, changes)| !changes.is_empty()).collect()
    }

    /// What the host has written for a call that was allowed.
    pub(in super::super) fn made_edits(&mut self, call: u64) -> Vec<RecordedEdit> {
        self.call_mut(call).map_or_else(Vec::new, |call| call.consent.made.clone())
    }

    /// The host has written a file as this call was allowed to. That was good for once: nothing more is allowed of this file.
    pub(in super::super) fn note_made(&mut self, call: u64, path: &Path, edits: Vec<RecordedEdit>) {
        if let Some(call) = self.call_mut(call) {
            call.consent.allowed.retain(|diff| diff.path != path);
            call.consent.made = edits;
        }
    }
}
