//! What restoring would do to files as they are now: which are to be changed, which somebody else changed, which cannot be.
//!
//! Promises: reads only; one file at a time is in memory. A content that no turn recorded is somebody else's.
//! Must not know: which command it is for.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::{AgentError, FileContent};
use wire::Digest;
use workspace::{DiffStats, FILE_BYTES_MAX, FileError, FileNow, Workspace, WorkspacePath};

use super::run_blocking;
use super::turns::FileTurn;
use crate::blobs::Found;
use crate::effects::Bodies;

/// The files of a session, and the store that has their earlier contents. Clones share both.
#[derive(Clone)]
pub(super) struct Files {
    pub workspace: Workspace,
    pub bodies: Bodies,
}

/// A file that turns changed, and what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChangedFile {
    uri: String,
    /// Absent if it was not there.
    wanted: Option<FileContent>,
    /// How many directories were made for it.
    directories: usize,
    /// Its permissions were changed, or it was or is a link.
    sets_mode: bool,
    may_be_link: bool,
    /// Every content that turns recorded of it since: these are kept, so nothing is lost if one is replaced.
    known: BTreeSet<Digest>,
}

/// What is to be done to files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RestorePlan {
    pub files: Vec<PlannedFile>,
    /// Why others cannot be restored.
    pub problems: Vec<String>,
}

/// What is to be done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedFile {
    pub uri: String,
    /// As people read it.
    pub path: String,
    pub wanted: Option<FileContent>,
    pub directories: usize,
    /// It gets the permissions that it had.
    pub sets_mode: bool,
    /// It was or is a link, so one is no surprise.
    pub may_be_link: bool,
    /// What it holds now: it is restored only if it still does.
    pub seen: Option<Digest>,
    /// Somebody changed it after the agent did.
    pub is_foreign: bool,
    pub stats: DiffStats,
}

/// What restoring does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreAction {
    Restored,
    Removed,
    Recreated,
}

impl PlannedFile {
    pub(super) fn fate(&self) -> RestoreAction {
        match (self.seen, self.wanted) {
            (_, None) => RestoreAction::Removed,
            (None, Some(_)) => RestoreAction::Recreated,
            (Some(_), Some(_)) => RestoreAction::Restored,
        }
    }
}

impl RestorePlan {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.problems.is_empty()
    }

    /// The same, without the files that somebody else changed.
    pub(super) fn without_foreign_changes(mut self) -> Self {
        self.files.retain(|file| !file.is_foreign);
        self
    }
}

/// The files that some turns changed, and what they were before the first of those. `since` are all turns from then on.
pub(super) fn changes_of(turns: &[&FileTurn], since: &[FileTurn]) -> Vec<ChangedFile> {
    let mut changes: Vec<ChangedFile> = Vec::new();
    let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
    for edit in turns.iter().flat_map(|turn| &turn.edits) {
        if !indexes.contains_key(edit.uri.as_str()) {
            indexes.insert(&edit.uri, changes.len());
            changes.push(ChangedFile {
                uri: edit.uri.clone(),
                wanted: edit.before,
                directories: edit.new_directories,
                sets_mode: false,
                may_be_link: false,
                known: BTreeSet::new(),
            });
        }
        let change = indexes.get(edit.uri.as_str());
        if let Some(change) = change.and_then(|index| changes.get_mut(*index)) {
            change.sets_mode |= edit.changes_mode();
            change.may_be_link |= edit.has_link();
        }
    }
    for edit in since.iter().flat_map(|turn| &turn.edits) {
        let change = indexes.get(edit.uri.as_str());
        if let Some(change) = change.and_then(|index| changes.get_mut(*index)) {
            let contents = edit.before.iter().chain(&edit.after);
            change.known.extend(contents.map(|content| content.digest));
        }
    }
    changes
}

impl Files {
    /// What restoring would do now.
    pub(super) async fn plan(&self, changes: Vec<ChangedFile>) -> Result<RestorePlan, AgentError> {
        let files = self.clone();
        let planned = run_blocking(move |cancellation| {
            let mut plan = RestorePlan::default();
            for change in changes {
                if cancellation.is_cancelled() {
                    break; // nobody reads the plan any more
                }
                match files.plan_one(change) {
                    Ok(Some(file)) => plan.files.push(file),
                    Ok(None) => {}
                    Err(problem) => plan.problems.push(problem),
                }
            }
            plan
        });
        planned.await
    }

    /// `None` if the file is what it was.
    fn plan_one(&self, change: ChangedFile) -> Result<Option<PlannedFile>, String> {
        let path = self.workspace.path_of_uri(&change.uri).map_err(|error| error.to_string())?;
        let now = self.look_at(&path, change.may_be_link).map_err(|error| error.to_string())?;
        let seen = now.as_ref().map(|now| now.digest);
        let wanted_mode = change.wanted.and_then(|wanted| wanted.mode);
        let mode = now.as_ref().map(|now| now.mode);
        let has_mode = !change.sets_mode || wanted_mode.is_none() || wanted_mode == mode;
        if seen == change.wanted.map(|wanted| wanted.digest) && has_mode {
            return Ok(None);
        }
        let display_path = self.workspace.display_path(&path);
        let wanted = match change.wanted {
            Some(wanted) => self.read(&display_path, wanted.digest)?,
            None => Vec::new(),
        };
        let bytes = now.as_ref().map(|now| &now.bytes[..]);
        Ok(Some(PlannedFile {
            stats: DiffStats::between(bytes, &wanted),
            is_foreign: seen.is_some_and(|seen| !change.known.contains(&seen)),
            uri: change.uri,
            path: display_path,
            wanted: change.wanted,
            directories: change.directories,
            sets_mode: change.sets_mode,
            may_be_link: change.may_be_link,
            seen,
        }))
    }

    /// What is at a path now. A link is only looked at where one was recorded.
    pub(super) fn look_at(
        &self,
        path: &WorkspacePath,
        may_be_link: bool,
    ) -> Result<Option<FileNow>, FileError> {
        if may_be_link { self.workspace.look_at_any(path) } else { self.workspace.look_at(path) }
    }

    /// What a file held.
    pub(super) fn read(&self, path: &str, digest: Digest) -> Result<Vec<u8>, String> {
        match self.bodies.store().read(&digest, FILE_BYTES_MAX) {
            Ok(Found::Body(body)) => Ok(body),
            Ok(Found::Missing) => Err(format!("what {path} held is not kept any more")),
            Ok(Found::TooLarge { .. }) => Err(format!("what {path} held is too large")),
            Err(error) => {
                tracing::error!(%error, "an earlier content of a file cannot be read");
                Err(format!("what {path} held cannot be read"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_api::RecordedEdit;

    use super::*;

    fn content(byte: u8) -> Option<FileContent> {
        let digest = Digest::new([byte; 32]);
        Some(FileContent { digest, mode: None })
    }

    fn turn(id: &str, edits: &[(&str, Option<FileContent>, Option<FileContent>)]) -> FileTurn {
        let edit = |(uri, before, after): &(&str, Option<FileContent>, Option<FileContent>)| {
            RecordedEdit {
                uri: (*uri).to_owned(),
                before: *before,
                after: *after,
                new_directories: usize::from(before.is_none()),
                is_made: false,
            }
        };
        FileTurn {
            id: id.to_owned(),
            name: String::new(),
            edits: edits.iter().map(edit).collect(),
            restores: None,
        }
    }

    #[test]
    fn a_file_becomes_what_it_was_before_its_first_change() {
        let first = turn("t1", &[("a", content(1), content(2)), ("a", content(2), content(3))]);
        let second = turn("t2", &[("b", None, content(5)), ("a", content(3), content(4))]);
        let others = turn("t3", &[("a", content(4), content(6)), ("c", content(7), content(8))]);
        let changes = changes_of(&[&first, &second], &[first.clone(), second.clone(), others]);
        let known = |change: &ChangedFile| {
            change.known.iter().map(|known| known.as_bytes()[0]).collect::<Vec<u8>>()
        };
        assert_eq!(changes.len(), 2);
        assert_eq!((changes[0].uri.as_str(), changes[0].wanted), ("a", content(1)));
        assert_eq!(known(&changes[0]), [1, 2, 3, 4, 6]);
        assert_eq!((changes[1].uri.as_str(), changes[1].wanted), ("b", None));
        assert_eq!((changes[1].directories, known(&changes[1])), (1, vec![5]));
    }
}
