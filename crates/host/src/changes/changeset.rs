//! Changes as clients see them: files of a changeset, and what can be done with them.
//!
//! Promises: a file that was moved and not changed is one entry (G-53). What is not kept says so.
//! Must not know: how changes are found.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::Digest;

use super::{ChangedSide, ChangesTotal, FileChanges, RecordedChange};

impl ChangesTotal {
    /// `ChangesSummary`
    pub(crate) fn to_value(self) -> Value {
        json!({"files": self.files, "additions": self.added, "deletions": self.removed})
    }
}

impl FileChanges {
    /// `ChangesetFile`s, in the order of their paths.
    pub(crate) fn changeset_files(&self) -> Vec<Value> {
        let moved = self.moved_files();
        let mut files = Vec::new();
        for file in self.files.values() {
            match moved.get(file.uri.as_str()) {
                Some(Some(from)) => files.push(entry_of(Some(from), file)),
                Some(None) => {} // shown where it went
                None => files.push(entry_of(None, file)),
            }
        }
        files
    }

    /// Files that were moved and not changed: by where they are now, where they were; where they were leads nowhere.
    fn moved_files(&self) -> BTreeMap<&str, Option<&RecordedChange>> {
        let content = |side: Option<ChangedSide>| {
            let side = side.filter(|side| side.bytes > 0)?;
            Some((side.digest?, side.mode.unwrap_or(0) & 0o170000))
        };
        let mut gone: BTreeMap<(Digest, u32), Vec<&RecordedChange>> = BTreeMap::new();
        for file in self.files.values().rev() {
            if let (Some(key), None) = (content(file.before), file.after) {
                gone.entry(key).or_default().push(file);
            }
        }
        let mut moved = BTreeMap::new();
        for file in self.files.values() {
            if let (None, Some(key)) = (file.before, content(file.after))
                && let Some(from) = gone.get_mut(&key).and_then(Vec::pop)
            {
                moved.insert(from.uri.as_str(), None);
                moved.insert(file.uri.as_str(), Some(from));
            }
        }
        moved
    }
}

fn entry_of(from: Option<&RecordedChange>, file: &RecordedChange) -> Value {
    let stats = match from {
        Some(_) => json!({"added": 0, "removed": 0}),
        None => json!({"added": file.stats.added, "removed": file.stats.removed}),
    };
    let mut edit = json!({"diff": stats});
    let before = match from {
        Some(from) => from.before.map(|side| (&from.uri, side)),
        None => file.before.map(|side| (&file.uri, side)),
    };
    if let Some((uri, side)) = before {
        edit["before"] = side_of(uri, side);
    }
    if let Some(side) = file.after {
        edit["after"] = side_of(&file.uri, side);
    }
    let mut entry = json!({"id": file.uri, "edit": edit});
    let before = before.map(|(_, side)| side);
    if let Some(meta) = meta_of(before, file.after) {
        entry["_meta"] = meta;
    }
    entry
}

/// `FileEditSide`
fn side_of(uri: &str, side: ChangedSide) -> Value {
    let content = match side.digest {
        Some(digest) => {
            let name = uri.rsplit('/').next().unwrap_or(uri);
            json!({"uri": digest.uri_with_name(name), "sizeHint": side.bytes})
        }
        // Not kept: all that can be named is where it lies.
        None => json!({"uri": uri, "sizeHint": side.bytes}),
    };
    json!({"uri": uri, "content": content})
}

/// What an edit does not say: permissions, links, submodules, contents that are not kept.
fn meta_of(before: Option<ChangedSide>, after: Option<ChangedSide>) -> Option<Value> {
    let mode = |side: Option<ChangedSide>| side.and_then(|side| side.mode);
    let is_special = |side: Option<ChangedSide>| mode(side).is_some_and(|mode| mode > 0o7777);
    let modes = (mode(before), mode(after));
    let is_changed = matches!(modes, (Some(before), Some(after)) if before != after);
    let mut meta = json!({});
    if is_changed || is_special(before) || is_special(after) {
        for (name, mode) in [("modeBefore", modes.0), ("modeAfter", modes.1)] {
            if let Some(mode) = mode {
                let file_type = if mode > 0o7777 { 0 } else { 0o100000 };
                meta[name] = json!(format!("{:06o}", mode | file_type));
            }
        }
    }
    let is_missing = |side: Option<ChangedSide>| side.is_some_and(|side| side.digest.is_none());
    if is_missing(before) || is_missing(after) {
        meta["contentNotKept"] = json!(true);
    }
    let is_empty = meta.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then_some(meta)
}

fn operation(id: &str, label: &str, description: &str, icon: &str, scopes: &[&str]) -> Value {
    json!({
        "id": id,
        "label": label,
        "description": description,
        "icon": icon,
        "group": "changes",
        "scopes": scopes,
        "status": "idle",
    })
}

fn asking(mut operation: Value, confirmation: &str) -> Value {
    operation["confirmation"] = json!(confirmation);
    operation
}

const ALL: &[&str] = &["changeset", "resource"];

pub(crate) fn operations_of_turn() -> Vec<Value> {
    let restore = operation(
        "restore",
        "Restore",
        "Makes the files what they were before this turn, whatever later turns did to them",
        "history",
        ALL,
    );
    let discard =
        operation("discard", "Discard", "Takes back what this turn changed", "discard", ALL);
    vec![
        asking(discard, "Take back what this turn changed in these files?"),
        asking(restore, "Make these files what they were before this turn?"),
    ]
}

pub(crate) fn operations_of_session() -> Vec<Value> {
    let discard = operation(
        "discard",
        "Discard",
        "Makes files what they were before this session changed them",
        "discard",
        ALL,
    );
    vec![asking(discard, "Make these files what they were before this session?")]
}

pub(crate) fn operations_of_uncommitted() -> Vec<Value> {
    let discard = operation(
        "discard",
        "Discard",
        "Makes files what the last commit has of them; new files are removed",
        "discard",
        ALL,
    );
    let commit = operation(
        "commit",
        "Commit",
        "Commits what is staged, or everything if nothing is. Runs the hooks of this repository",
        "check",
        &["changeset"],
    );
    vec![
        asking(
            discard,
            "Discard these changes? New files are removed. This cannot be undone by git.",
        ),
        operation("stage", "Stage", "Adds files to the next commit", "add", ALL),
        commit,
    ]
}

pub(crate) fn operations_of_branch(base: &str) -> Vec<Value> {
    let description = format!("Merges what is committed here into {base}");
    let merge = operation("merge", "Merge", &description, "git-merge", &["changeset"]);
    vec![asking(merge, &format!("Merge into {base}?"))]
}

#[cfg(test)]
mod tests {
    use agent_api::{FileContent, RecordedEdit};

    use super::*;

    fn side(byte: u8, mode: u32) -> ChangedSide {
        ChangedSide { digest: Some(Digest::new([byte; 32])), mode: Some(mode), bytes: 5 }
    }

    fn changes(files: &[(&str, Option<ChangedSide>, Option<ChangedSide>)]) -> FileChanges {
        let mut changes = FileChanges::default();
        for (uri, before, after) in files {
            changes.add_edit(&RecordedEdit {
                uri: (*uri).to_owned(),
                before: before.map(|_| FileContent { digest: Digest::new([0; 32]), mode: None }),
                after: None,
                new_directories: 0,
                is_made: false,
            });
            let file = changes.files.get_mut(*uri).unwrap();
            (file.before, file.after) = (*before, *after);
        }
        changes
    }

    #[test]
    fn a_move_is_one_entry_and_a_copy_is_none() {
        let changes = changes(&[
            ("file:///w/a", Some(side(1, 0o644)), None),
            ("file:///w/b", None, Some(side(1, 0o644))),
            ("file:///w/c", None, Some(side(1, 0o644))),
        ]);
        let files = changes.changeset_files();
        assert_eq!(files.len(), 2);
        assert_eq!(files[0]["edit"]["before"]["uri"], "file:///w/a");
        assert_eq!(files[0]["edit"]["after"]["uri"], "file:///w/b");
        assert_eq!(files[0]["id"], "file:///w/b");
        assert!(files[1]["edit"]["before"].is_null());
    }

    #[test]
    fn permissions_links_and_what_is_not_kept_are_said() {
        let large = ChangedSide { digest: None, ..side(0, 0o644) };
        let changes = changes(&[
            ("file:///w/l", None, Some(side(1, 0o120000))),
            ("file:///w/m", Some(side(2, 0o644)), Some(side(2, 0o755))),
            ("file:///w/z", Some(large), None),
        ]);
        let files = changes.changeset_files();
        assert_eq!(files[0]["_meta"], json!({"modeAfter": "120000"}));
        let modes = json!({"modeBefore": "100644", "modeAfter": "100755"});
        assert_eq!(files[1]["_meta"], modes);
        assert_eq!(files[2]["_meta"], json!({"contentNotKept": true}));
    }
}
