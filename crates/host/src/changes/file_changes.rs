//! The files that a turn or a session changed, as they are kept: what each was before and is after, by content.
//!
//! Promises: each path once; a file that is again what it was is not in it. What is read back is what was written, or an
//! error.
//! Must not know: how changes are found.

use std::collections::BTreeMap;

use agent_api::{FileContent, RecordedEdit};
use bytes::Bytes;
use serde_json::{Value, json};
use wire::{Digest, rpc};
use workspace::{DiffStats, FileSide};

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangedSide {
    /// Absent if the content is not kept: it is too large, or could not be had.
    pub digest: Option<Digest>,
    pub mode: Option<u32>,
    /// Zero where it is not known.
    pub bytes: u64,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedChange {
    pub uri: String,
    pub before: Option<ChangedSide>,
    pub after: Option<ChangedSide>,
    pub new_directories: usize,
    pub stats: DiffStats,
}

/// Sums for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChangesTotal {
    pub files: usize,
    pub added: u64,
    pub removed: u64,
}

/// What a turn or a session changed, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FileChanges {
    pub files: BTreeMap<String, RecordedChange>,
    /// What is not known, in words.
    pub problems: Vec<String>,
}

/// What was kept of changes cannot be read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what was recorded of these changes is damaged; the files themselves are as they are")]
pub(crate) struct DamagedChanges;

impl ChangedSide {
    fn to_value(self) -> Value {
        let mut side = json!({"bytes": self.bytes});
        if let Some(digest) = self.digest {
            side["uri"] = json!(digest.uri());
        }
        if let Some(mode) = self.mode {
            side["mode"] = json!(mode);
        }
        side
    }

    fn from_value(value: &Value) -> Option<Self> {
        let mode = value["mode"].as_u64();
        let digest = match &value["uri"] {
            Value::Null => None,
            uri => Some(Digest::from_uri(uri.as_str()?)?),
        };
        Some(Self {
            digest,
            mode: mode.and_then(|mode| u32::try_from(mode).ok()),
            bytes: value["bytes"].as_u64().unwrap_or(0),
        })
    }

    fn content(self) -> Option<FileContent> {
        let (digest, mode) = (self.digest?, self.mode);
        Some(FileContent { digest, mode })
    }
}

impl From<FileContent> for ChangedSide {
    fn from(content: FileContent) -> Self {
        Self { digest: Some(content.digest), mode: content.mode, bytes: 0 }
    }
}

impl From<FileSide> for ChangedSide {
    fn from(side: FileSide) -> Self {
        Self { digest: side.digest, mode: Some(side.mode), bytes: side.bytes }
    }
}

impl RecordedChange {
    fn is_nothing(&self) -> bool {
        match (&self.before, &self.after) {
            (None, None) => true,
            (Some(before), Some(after)) => {
                let has_same_mode =
                    before.mode == after.mode || before.mode.is_none() || after.mode.is_none();
                before.digest.is_some() && before.digest == after.digest && has_same_mode
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// As an edit that can be taken back; `None` if what it was is not kept.
    pub(crate) fn edit(&self) -> Option<RecordedEdit> {
        let side = |side: &Option<ChangedSide>| match side {
            None => Some(None),
            Some(side) => side.content().map(Some),
        };
        Some(RecordedEdit {
            uri: self.uri.clone(),
            before: side(&self.before)?,
            // What it became need not be kept for that.
            after: side(&self.after).flatten(),
            new_directories: self.new_directories,
            is_made: false,
        })
    }

    fn to_value(&self) -> Value {
        let mut file =
            json!({"uri": self.uri, "added": self.stats.added, "removed": self.stats.removed});
        for (name, side) in [("before", self.before), ("after", self.after)] {
            if let Some(side) = side {
                file[name] = side.to_value();
            }
        }
        if self.new_directories > 0 {
            file["newDirectories"] = json!(self.new_directories);
        }
        file
    }

    fn from_value(value: &Value) -> Option<Self> {
        let side = |name: &str| match &value[name] {
            Value::Null => Some(None),
            side => ChangedSide::from_value(side).map(Some),
        };
        let count = |name: &str| value[name].as_u64().unwrap_or(0);
        let lines = |name: &str| u32::try_from(count(name)).unwrap_or(u32::MAX);
        Some(Self {
            uri: value["uri"].as_str()?.to_owned(),
            before: side("before")?,
            after: side("after")?,
            new_directories: usize::try_from(count("newDirectories")).unwrap_or(0),
            stats: DiffStats { added: lines("added"), removed: lines("removed") },
        })
    }
}

impl FileChanges {
    /// Why nothing is known, in words; `None` if something is, or if there is nothing to know.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_unknown = self.files.is_empty() && !self.problems.is_empty();
        is_unknown.then(|| self.problems.join("; "))
    }

    pub(crate) fn to_json(&self) -> Bytes {
        let files: Vec<Value> = self.files.values().map(RecordedChange::to_value).collect();
        Bytes::from(rpc::to_json(&json!({"files": files, "problems": self.problems})))
    }

    /// What was written by `to_json`. One damaged part makes all of it an error: what is left of it would pass for everything.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, DamagedChanges> {
        let value: Value = serde_json::from_slice(json).map_err(|_| DamagedChanges)?;
        let list = |name: &str| value[name].as_array().ok_or(DamagedChanges);
        let files = list("files")?.iter().map(RecordedChange::from_value);
        let problems = list("problems")?.iter().map(|problem| Some(problem.as_str()?.to_owned()));
        Ok(Self {
            files: files
                .map(|file| file.map(|file| (file.uri.clone(), file)))
                .collect::<Option<_>>()
                .ok_or(DamagedChanges)?,
            problems: problems.collect::<Option<_>>().ok_or(DamagedChanges)?,
        })
    }

    /// An edit that was made after all that is in here.
    pub(crate) fn add_edit(&mut self, edit: &RecordedEdit) {
        let after = edit.after.map(ChangedSide::from);
        let file = self.files.entry(edit.uri.clone()).or_insert_with(|| RecordedChange {
            uri: edit.uri.clone(),
            before: edit.before.map(ChangedSide::from),
            after: None,
            new_directories: edit.new_directories,
            stats: DiffStats::default(),
        });
        file.after = after;
    }

    /// Changes that were made after all that is in here.
    pub(crate) fn add(&mut self, later: &Self) {
        for (uri, file) in &later.files {
            match self.files.get_mut(uri) {
                Some(earlier) => earlier.after = file.after,
                None => {
                    self.files.insert(uri.clone(), file.clone());
                }
            }
        }
    }

    /// Leaves out everything but one file, and where it was if it was moved.
    pub(crate) fn keep_only(&mut self, uri: &str) {
        let entries = self.changeset_files();
        let entry = entries.iter().find(|entry| entry["id"] == uri);
        let from = entry
            .and_then(|entry| entry["edit"]["before"]["uri"].as_str())
            .unwrap_or(uri)
            .to_owned();
        self.files.retain(|own, _| own == uri || *own == from);
    }

    /// A file that is in here is something else now.
    pub(crate) fn set_after(&mut self, uri: &str, after: Option<ChangedSide>) {
        if let Some(file) = self.files.get_mut(uri) {
            file.after = after;
        }
    }

    /// Leaves out what is again as it was.
    pub(crate) fn remove_nothings(&mut self) {
        self.files.retain(|_, file| !file.is_nothing());
    }

    pub(crate) fn total(&self) -> ChangesTotal {
        let stats = self.files.values().map(|file| file.stats);
        stats.fold(ChangesTotal::default(), |sum, stats| ChangesTotal {
            files: sum.files + 1,
            added: sum.added + u64::from(stats.added),
            removed: sum.removed + u64::from(stats.removed),
        })
    }

    /// Every content that is named.
    pub(crate) fn digests(&self) -> impl Iterator<Item = Digest> {
        let sides = self.files.values().flat_map(|file| [file.before, file.after]);
        sides.flatten().filter_map(|side| side.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(byte: u8) -> Option<FileContent> {
        let digest = Digest::new([byte; 32]);
        let mode = Some(0o644);
        Some(FileContent { digest, mode })
    }

    fn edit(uri: &str, before: Option<FileContent>, after: Option<FileContent>) -> RecordedEdit {
        RecordedEdit { uri: uri.to_owned(), before, after, new_directories: 0, is_made: false }
    }

    #[test]
    fn several_edits_of_a_file_are_one_change() {
        let mut changes = FileChanges::default();
        changes.add_edit(&edit("a", content(1), content(2)));
        changes.add_edit(&edit("a", content(2), content(3)));
        changes.add_edit(&edit("b", None, content(4)));
        changes.add_edit(&edit("b", content(4), None));
        changes.add_edit(&edit("c", content(5), None));
        changes.remove_nothings();
        let uris: Vec<&str> = changes.files.keys().map(String::as_str).collect();
        assert_eq!(uris, ["a", "c"], "what was made and removed again is nothing");
        let read = FileChanges::from_json(&changes.to_json()).unwrap();
        assert_eq!(read, changes);
        let edits: Vec<RecordedEdit> =
            read.files.values().filter_map(RecordedChange::edit).collect();
        assert_eq!(edits, [edit("a", content(1), content(3)), edit("c", content(5), None)]);
        // A later turn takes one of them back.
        let mut later = FileChanges::default();
        later.add_edit(&edit("a", content(3), content(1)));
        let mut session = read;
        session.add(&later);
        session.remove_nothings();
        assert_eq!(session.files.len(), 1);
        assert_eq!(session.digests().count(), 1);
    }

    #[test]
    fn what_is_not_kept_cannot_be_taken_back() {
        let large = ChangedSide { digest: None, mode: Some(0o644), bytes: 1 << 30 };
        let file = RecordedChange {
            uri: "l".to_owned(),
            before: Some(large),
            after: None,
            new_directories: 0,
            stats: DiffStats::default(),
        };
        assert_eq!(file.edit(), None);
        let made = RecordedChange { before: None, after: Some(large), ..file };
        assert_eq!(made.edit(), Some(edit("l", None, None)), "it can be removed");
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let mut changes = FileChanges::default();
        changes.add_edit(&edit("a", content(1), content(2)));
        let whole = String::from_utf8(changes.to_json().to_vec()).unwrap();
        let cut = whole.get(..whole.len() / 2).unwrap().to_owned();
        for json in [
            "",
            "7",
            "{}",
            &cut,
            &whole.replace("\"uri\":\"a\"", "\"uri\":7"),
            &whole.replace("ahp-content", "?"),
            &whole.replace("\"problems\":[]", "\"problems\":[7]"),
        ] {
            let read = FileChanges::from_json(json.as_bytes());
            assert_eq!(read, Err(DamagedChanges), "{json}");
        }
        assert_eq!(FileChanges::from_json(whole.as_bytes()), Ok(changes));
    }
}
