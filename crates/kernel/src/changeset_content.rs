//! The files and operations of a changeset that was computed again, as actions.
//!
//! Promises: a first look, and one that finds most of it changed, is told whole; what little changed is told file by file, so that a
//! client with a long list before it is not sent all of it for one file (H-289). A file that is reviewed stays so as long as its content
//! does (H-288). Files have no order: who shows them sorts them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::state::ChangesetState;
use wire::{ActionKind, ChannelUri};

use crate::changeset_work::ComputedChangeset;
use crate::state::Step;

/// Most files in the state of one changeset: all travel in every snapshot.
const FILES_MAX: usize = 2_000;

/// Most files that are sent one by one.
const SINGLE_MAX: usize = 32;

pub(crate) fn cut(mut files: Vec<Value>) -> Vec<Value> {
    files.truncate(FILES_MAX);
    files
}

/// Makes files and operations of a changeset what was computed.
pub(crate) fn set_content(step: &mut Step, uri: &ChannelUri, computed: ComputedChangeset) {
    let plain = step.find_plain(uri);
    let Some(before) = plain.and_then(|plain| plain.state().changeset()) else {
        debug_assert!(false, "{uri} is a changeset");
        return;
    };
    let files = keep_reviews(before, cut(computed.files));
    let operations = keep_running(before, computed.operations);
    let has_operations = before.operations.as_ref() == Some(&operations);
    let (is_first, is_ready) = (before.status == "computing", before.status == "ready");
    let changes = FileDifference::between(&before.files, &files);
    if is_first || changes.is_most_of(before.files.len()) {
        let mut fields = json!({"files": files});
        if !has_operations {
            fields["operations"] = json!(operations);
        }
        if !has_operations || !changes.is_none() {
            step.act_as_host(uri, ActionKind::ChangesetContentChanged, fields);
        }
    } else {
        for id in changes.removed {
            let fields = json!({"fileId": id});
            step.act_as_host(uri, ActionKind::ChangesetFileRemoved, fields);
        }
        for file in changes.set {
            let fields = json!({"file": file});
            step.act_as_host(uri, ActionKind::ChangesetFileSet, fields);
        }
        if !has_operations {
            let fields = json!({"operations": operations});
            step.act_as_host(uri, ActionKind::ChangesetOperationsChanged, fields);
        }
    }
    if let Some(problem) = &computed.problem {
        let fields = json!({"status": "error", "error": unknown(problem)});
        step.act_as_host(uri, ActionKind::ChangesetStatusChanged, fields);
    } else if !is_ready {
        let fields = json!({"status": "ready"});
        step.act_as_host(uri, ActionKind::ChangesetStatusChanged, fields);
    }
}

/// `ErrorInfo` of a changeset that could not be found out, for people.
pub(crate) fn unknown(message: &str) -> Value {
    json!({"errorType": "changesUnknown", "message": message})
}

/// What is the same stays reviewed.
fn keep_reviews(before: &ChangesetState, mut files: Vec<Value>) -> Vec<Value> {
    for file in &mut files {
        let id = file["id"].as_str().unwrap_or_default();
        let known = before.file(id).filter(|known| known["edit"] == file["edit"]);
        if let Some(reviewed) = known.and_then(|known| known.get("reviewed")) {
            file["reviewed"] = reviewed.clone();
        }
    }
    files
}

/// Keeps the status of operations that run: it changes by an action of its own.
fn keep_running(before: &ChangesetState, mut operations: Vec<Value>) -> Vec<Value> {
    for operation in &mut operations {
        let id = operation["id"].as_str().unwrap_or_default();
        if let Some(known) = before.operation(id)
            && known["status"] == "running"
        {
            operation["status"] = json!("running");
        }
    }
    operations
}

/// The difference between two lists of files.
struct FileDifference {
    removed: Vec<String>,
    set: Vec<Value>,
}

impl FileDifference {
    fn between(before: &[Value], after: &[Value]) -> Self {
        let by_id = |files: &[Value]| -> BTreeMap<String, Value> {
            let named = files.iter().map(|file| {
                let id = file["id"].as_str().unwrap_or_default();
                (id.to_owned(), file.clone())
            });
            named.collect()
        };
        let (mut gone, after) = (by_id(before), by_id(after));
        let mut set = Vec::new();
        for (id, file) in after {
            if gone.remove(&id).as_ref() != Some(&file) {
                set.push(file);
            }
        }
        Self { removed: gone.into_keys().collect(), set }
    }

    fn is_none(&self) -> bool {
        self.removed.is_empty() && self.set.is_empty()
    }

    /// Whether telling all of it again is no more than telling what changed, of so many files.
    fn is_most_of(&self, files: usize) -> bool {
        let changed = self.removed.len() + self.set.len();
        changed > SINGLE_MAX || changed > files.max(1)
    }
}
