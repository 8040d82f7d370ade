//! The reducers of a changeset channel, one function per action.

use serde_json::{Value, json};

use super::{Reduced, remove_entry, set, set_field, upsert};
use crate::Action;
use crate::state::ChangesetState;

pub(super) fn change_status(state: &mut ChangesetState, action: &Action) -> Reduced {
    let Some(status) = action.text("status") else { return Reduced::Unchanged };
    // An error belongs to its status alone: one that recovered has none (H-286).
    let error = action.present("error").filter(|_| status == "error").cloned();
    set(&mut state.status, status.to_owned()) | set(&mut state.error, error)
}

pub(super) fn set_file(state: &mut ChangesetState, action: &Action) -> Reduced {
    match action.present("file") {
        Some(file) => upsert(&mut state.files, "id", file),
        None => Reduced::Unchanged,
    }
}

pub(super) fn remove_file(state: &mut ChangesetState, action: &Action) -> Reduced {
    match action.text("fileId") {
        Some(id) => remove_entry(&mut state.files, "id", id),
        None => Reduced::Unchanged,
    }
}

pub(super) fn review_files(state: &mut ChangesetState, action: &Action) -> Reduced {
    let (Some(Value::Array(ids)), Some(reviewed)) = (action.get("files"), action.flag("reviewed"))
    else {
        return Reduced::Unchanged;
    };
    let ids: std::collections::HashSet<&str> = ids.iter().filter_map(Value::as_str).collect();
    let listed = |file: &Value| file["id"].as_str().is_some_and(|id| ids.contains(id));
    let mut reduced = Reduced::Unchanged;
    for file in state.files.iter_mut().filter(|file| listed(file)) {
        if let Value::Object(file) = file {
            reduced = reduced | set_field(file, "reviewed", Some(&json!(reviewed)));
        }
    }
    reduced
}

pub(super) fn replace_content(state: &mut ChangesetState, action: &Action) -> Reduced {
    let Some(Value::Array(files)) = action.get("files") else { return Reduced::Unchanged };
    let mut reduced = set(&mut state.files, files.clone());
    if let Some(Value::Array(operations)) = action.get("operations") {
        reduced = reduced | set(&mut state.operations, Some(operations.clone()));
    }
    reduced
}

pub(super) fn set_operations(state: &mut ChangesetState, action: &Action) -> Reduced {
    let operations = action.get("operations").and_then(Value::as_array);
    set(&mut state.operations, operations.cloned())
}

pub(super) fn change_operation_status(state: &mut ChangesetState, action: &Action) -> Reduced {
    let (Some(operations), Some(id), Some(status)) =
        (state.operations.as_mut(), action.text("operationId"), action.text("status"))
    else {
        return Reduced::Unchanged;
    };
    let operation = operations.iter_mut().find(|operation| operation["id"] == id);
    let Some(Value::Object(operation)) = operation else { return Reduced::Unchanged };
    let error = action.present("error").filter(|_| status == "error");
    set_field(operation, "status", Some(&json!(status))) | set_field(operation, "error", error)
}

pub(super) fn clear(state: &mut ChangesetState, _: &Action) -> Reduced {
    set(&mut state.files, Vec::new())
}
