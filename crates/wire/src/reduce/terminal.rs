//! The reducers of a terminal channel, one function per action. What a client types changes nothing: what the process answers
//! does (H-272).

use serde_json::{Value, json};

use super::{Reduced, set, set_field};
use crate::state::{TerminalPart, TerminalState};
use crate::{Action, Object};

pub(super) fn append_data(state: &mut TerminalState, action: &Action) -> Reduced {
    let Some(data) = action.text("data") else { return Reduced::Unchanged };
    let parts = state.content.len();
    state.append(data);
    if data.is_empty() && parts == state.content.len() {
        Reduced::Unchanged
    } else {
        Reduced::Changed
    }
}

pub(super) fn resize(state: &mut TerminalState, action: &Action) -> Reduced {
    match (action.integer("cols"), action.integer("rows")) {
        (Some(cols), Some(rows)) => {
            set(&mut state.cols, Some(cols)) | set(&mut state.rows, Some(rows))
        }
        _ => Reduced::Unchanged,
    }
}

pub(super) fn claim(state: &mut TerminalState, action: &Action) -> Reduced {
    match action.present("claim") {
        Some(claim) => set(&mut state.claim, claim.clone()),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_title(state: &mut TerminalState, action: &Action) -> Reduced {
    match action.text("title") {
        Some(title) => set(&mut state.title, title.to_owned()),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_cwd(state: &mut TerminalState, action: &Action) -> Reduced {
    match action.text("cwd") {
        Some(cwd) => set(&mut state.cwd, Some(cwd.to_owned())),
        None => Reduced::Unchanged,
    }
}

pub(super) fn exit(state: &mut TerminalState, action: &Action) -> Reduced {
    let mut lifecycle = json!({"status": "exited"});
    if let Some(code) = action.integer("exitCode") {
        lifecycle["exitCode"] = json!(code);
    }
    set(&mut state.lifecycle, lifecycle)
}

pub(super) fn clear(state: &mut TerminalState, _: &Action) -> Reduced {
    if state.content.is_empty() {
        return Reduced::Unchanged;
    }
    state.clear();
    Reduced::Changed
}

pub(super) fn detect_commands(state: &mut TerminalState, _: &Action) -> Reduced {
    set(&mut state.supports_command_detection, Some(true))
}

pub(super) fn start_command(state: &mut TerminalState, action: &Action) -> Reduced {
    let (Some(id), Some(line), Some(timestamp)) =
        (action.text("commandId"), action.text("commandLine"), action.integer("timestamp"))
    else {
        return Reduced::Unchanged;
    };
    let fields = [
        ("type", json!("command")),
        ("commandId", json!(id)),
        ("commandLine", json!(line)),
        ("timestamp", json!(timestamp)),
        ("isComplete", json!(false)),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    let part = TerminalPart::command(Object::from_iter(fields));
    state.content.push(part);
    state.supports_command_detection = Some(true);
    Reduced::Changed
}

pub(super) fn finish_command(state: &mut TerminalState, action: &Action) -> Reduced {
    let Some(id) = action.text("commandId") else { return Reduced::Unchanged };
    let mut parts = state.content.iter_mut();
    let Some(part) = parts.find(|part| part.command_id() == Some(id)) else {
        return Reduced::Unchanged;
    };
    let number = |field: &str| action.present(field).filter(|value| value.is_i64());
    set_field(&mut part.fields, "isComplete", Some(&Value::Bool(true)))
        | set_field(&mut part.fields, "exitCode", number("exitCode"))
        | set_field(&mut part.fields, "durationMs", number("durationMs"))
}
