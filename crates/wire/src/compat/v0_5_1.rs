//! Between 0.5.1 and 0.5.2: additive, but that an answered question and what a command came to left no block behind, and that
//! nobody asked for an MCP server to start or stop.

use serde_json::{Value, json};

use super::shape::{action, for_each_tool_call, kind_of, object_mut, objects_mut};
use super::{AfterAction, SnapshotOf, VersionStep, plain, unchanged};
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
        ActionKind::SessionMcpServerStartRequested
            | ActionKind::SessionMcpServerStopRequested
            | ActionKind::ChatToolCallComplete
            | ActionKind::ChatToolCallContentChanged
            | ActionKind::ChatTurnsLoaded
    )
}

fn down_action(mut sent: Object, after: AfterAction, out: &mut Vec<Object>) {
    if plain::down_review_to_0_5_1(&sent, after, out) {
        return;
    }
    match kind_of(&sent) {
        ActionKind::SessionMcpServerStartRequested => sent = server_state(&sent, "starting"),
        ActionKind::SessionMcpServerStopRequested => sent = server_state(&sent, "stopped"),
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

/// What a request to start or stop makes of a server at once.
fn server_state(sent: &Object, kind: &str) -> Object {
    let id = sent.get("id").cloned().unwrap_or_default();
    let fields = [("id", id), ("state", json!({"kind": kind}))];
    action(ActionKind::SessionMcpServerStateChanged.name(), &fields)
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root | SnapshotOf::Plain(_) => {}
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

#[cfg(test)]
mod tests {
    use super::super::tests::down;
    use super::*;

    #[test]
    fn a_server_that_is_asked_to_start_or_stop_does_so_for_those_who_cannot_ask() {
        let stop = json!({"type": "session/mcpServerStopRequested", "id": "m"});
        assert_eq!(down(Generation::V0_5_2, stop.clone(), AfterAction::Root), vec![stop.clone()]);
        let stopped = json!({"type": "session/mcpServerStateChanged", "id": "m", "state": {"kind": "stopped"}});
        for generation in [Generation::V0_5_1, Generation::V0_4] {
            assert_eq!(down(generation, stop.clone(), AfterAction::Root), vec![stopped.clone()]);
        }
    }
}
