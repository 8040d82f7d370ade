//! Between 0.5.1 and 0.5.2: additive, but that an answered question and what a command came to left no block behind.

use serde_json::Value;

use super::shape::{for_each_tool_call, kind_of, object_mut, objects_mut};
use super::{AfterAction, SnapshotOf, VersionStep, unchanged};
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_5_1,
    touches,
    down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action: unchanged::up_action,
    up_params: unchanged::up_params,
};

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::ChatToolCallComplete
            | ActionKind::ChatToolCallContentChanged
            | ActionKind::ChatTurnsLoaded
    )
}

fn down_action(mut sent: Object, _: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::ChatToolCallComplete => {
            if let Some(result) = object_mut(&mut sent, "result") {
                down_content(result);
            }
        }
        ActionKind::ChatToolCallContentChanged => down_content(&mut sent),
        ActionKind::ChatTurnsLoaded => down_chat(&mut sent),
        ActionKind::ChatResponsePart if sent.get("part").is_some_and(is_question) => return,
        _ => for_each_tool_call(&mut sent, down_content),
    }
    out.push(sent);
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root => {}
        SnapshotOf::Session { .. } => for_each_tool_call(state, down_content),
        SnapshotOf::Chat => down_chat(state),
    }
}

fn down_chat(holder: &mut Object) {
    for turn in objects_mut(holder, "turns") {
        drop_questions(turn);
    }
    if let Some(turn) = object_mut(holder, "activeTurn") {
        drop_questions(turn);
    }
    for_each_tool_call(holder, down_content);
}

fn drop_questions(turn: &mut Object) {
    if let Some(Value::Array(parts)) = turn.get_mut("responseParts") {
        parts.retain(|part| !is_question(part));
    }
}

fn is_question(part: &Value) -> bool {
    part["kind"] == "inputRequest"
}

fn down_content(holder: &mut Object) {
    if let Some(Value::Array(blocks)) = holder.get_mut("content") {
        blocks.retain(|block| block["type"] != "terminalComplete");
    }
}
