//! Between 0.6 and 0.7: one working directory, where there are several now; the input of a tool call is a text; what a command
//! in a terminal came to is a block of its own.

use serde_json::{Value, json};

use super::shape::{for_each_tool_call, kind_of, object_mut, objects_mut, replace_field, text};
use super::{AfterAction, SnapshotOf, VersionStep, unchanged};
use crate::methods::Method;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_6,
    touches,
    down_action,
    down_state,
    down_summary: down_directories,
    up_action: unchanged::up_action,
    up_params,
};

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::SessionChatAdded
            | ActionKind::SessionChatUpdated
            | ActionKind::SessionInputNeededSet
            | ActionKind::ChatToolCallDelta
            | ActionKind::ChatToolCallReady
            | ActionKind::ChatToolCallConfirmed
            | ActionKind::ChatToolCallComplete
            | ActionKind::ChatToolCallContentChanged
            | ActionKind::ChatTurnsLoaded
    )
}

fn down_action(mut sent: Object, _: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::SessionChatAdded => down_directories_in(&mut sent, "summary"),
        ActionKind::SessionChatUpdated => down_directories_in(&mut sent, "changes"),
        ActionKind::ChatToolCallDelta => {
            let content = sent.entry("content").or_insert(Value::Null);
            if content.is_null() {
                *content = json!("");
            }
        }
        ActionKind::ChatToolCallReady | ActionKind::ChatToolCallConfirmed => {
            down_input(&mut sent);
        }
        ActionKind::ChatToolCallComplete => {
            if let Some(result) = object_mut(&mut sent, "result") {
                down_content(result);
            }
        }
        ActionKind::ChatToolCallContentChanged => down_content(&mut sent),
        _ => for_each_tool_call(&mut sent, down_tool_call),
    }
    out.push(sent);
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    down_directories(state);
    match of {
        SnapshotOf::Root | SnapshotOf::Plain(_) => {}
        SnapshotOf::Session { .. } => {
            for chat in objects_mut(state, "chats") {
                down_directories(chat);
            }
            for_each_tool_call(state, down_tool_call);
        }
        SnapshotOf::Chat => for_each_tool_call(state, down_tool_call),
    }
}

/// The first of several is the one that older clients know.
fn down_directories(holder: &mut Object) {
    let first = |all: Value| match all {
        Value::Array(all) => all.into_iter().next(),
        _ => None,
    };
    replace_field(holder, "workingDirectories", "workingDirectory", first);
}

fn down_directories_in(sent: &mut Object, field: &str) {
    if let Some(holder) = object_mut(sent, field) {
        down_directories(holder);
    }
}

fn down_tool_call(call: &mut Object) {
    down_input(call);
    down_content(call);
}

/// An input that is stored elsewhere is told by its address: a text, as inputs were, and `resourceRead` reads it.
fn down_input(call: &mut Object) {
    if let Some(Value::Object(stored)) = call.get("toolInput") {
        let address = text(stored, "uri").unwrap_or_default().to_owned();
        call.insert("toolInput".to_owned(), Value::String(address));
    }
}

fn down_content(holder: &mut Object) {
    let Some(Value::Array(blocks)) = holder.get_mut("content") else {
        return; // a call that said nothing yet
    };
    let mut older = Vec::with_capacity(blocks.len());
    for mut block in std::mem::take(blocks) {
        let ended = block.as_object_mut().and_then(completed_command);
        older.push(block);
        older.extend(ended);
    }
    *blocks = older;
}

/// What a command in a terminal came to, beside the terminal itself.
fn completed_command(block: &mut Object) -> Option<Value> {
    if text(block, "type") != Some("terminal") {
        return None;
    }
    let Some(Value::Object(result)) = block.shift_remove("result") else {
        return None;
    };
    let mut ended = json!({"type": "terminalComplete"});
    if let Some(resource) = block.get("resource") {
        ended["resource"] = resource.clone();
    }
    for field in ["exitCode", "preview", "truncated"] {
        if let Some(value) = result.get(field) {
            ended[field] = value.clone();
        }
    }
    Some(ended)
}

fn up_params(method: Method, params: &mut Object) {
    match method {
        Method::CreateSession => {
            // What is no text is refused by the types.
            let several = |one: Value| (!one.is_null()).then(|| Value::Array(vec![one]));
            replace_field(params, "workingDirectory", "workingDirectories", several);
        }
        Method::CreateChat => {
            if let Some(source) = object_mut(params, "source") {
                source.entry("kind").or_insert(json!("fork"));
            }
        }
        _ => {}
    }
}
