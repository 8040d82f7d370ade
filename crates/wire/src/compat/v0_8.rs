//! Between 0.8 and 0.9: an error is a part of its turn, a turn can be resumed, most enums are open, annotations have an origin and
//! terminals a lifecycle, and a session is no longer forked when it is created.

use serde_json::{Value, json};

use super::shape::{action, for_each_turn, kind_of, text};
use super::{AfterAction, Receiving, SnapshotOf, VersionStep, closed_enums, plain, unchanged};
use crate::content;
use crate::methods::{Call, Method, ResourceCall};
use crate::rpc::{RpcError, code};
use crate::state::ChatState;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_8,
    touches,
    down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action,
    up_params,
};

fn touches(kind: ActionKind) -> bool {
    plain::changes_in_0_8(kind)
        || matches!(
            kind,
            ActionKind::RootAgentsChanged
                | ActionKind::SessionActiveClientSet
                | ActionKind::SessionInputNeededSet
                | ActionKind::SessionCustomizationsChanged
                | ActionKind::SessionCustomizationUpdated
                | ActionKind::SessionCustomizationToggled
                | ActionKind::SessionMcpServerStateChanged
                | ActionKind::ChatError
                | ActionKind::ChatTurnResume
                | ActionKind::ChatTurnStarted
                | ActionKind::ChatTurnsLoaded
                | ActionKind::ChatToolCallReady
                | ActionKind::ChatToolCallConfirmed
                | ActionKind::ChatToolCallAuthRequired
                | ActionKind::ChatPendingMessageSet
                | ActionKind::ChatDraftChanged
        )
}

fn down_action(mut sent: Object, after: AfterAction, out: &mut Vec<Object>) {
    let before = out.len();
    match kind_of(&sent) {
        ActionKind::ChatError => {
            let error = sent.shift_remove("part").as_ref().map(error_of);
            sent.insert("error".to_owned(), error.unwrap_or_default());
            out.push(sent);
        }
        ActionKind::ChatTurnResume => match after {
            AfterAction::Chat(chat) => resume(chat, out),
            // A resume on another channel changes nothing there.
            AfterAction::Root | AfterAction::Session(_) | AfterAction::Changeset(_) => {}
        },
        ActionKind::ChatTurnsLoaded => {
            for_each_turn(&mut sent, down_turn);
            out.push(sent);
        }
        _ => {
            plain::down_action_to_0_8(&mut sent, after);
            out.push(sent);
        }
    }
    out.iter_mut().skip(before).for_each(closed_enums::fit);
}

/// What an error part holds, in the form that `chat/error` and a turn had.
fn error_of(part: &Value) -> Value {
    part.get("error").cloned().unwrap_or_default()
}

/// A resumed turn, told with older words: the turn is taken back and started again with what it had said.
fn resume(chat: &ChatState, out: &mut Vec<Object>) {
    let Some(turn) = &chat.active_turn else {
        return; // refused: nothing runs
    };
    let kept = chat.turns.last().map(|last| ("turnId", json!(last.id)));
    out.push(action(ActionKind::ChatTruncated.name(), kept.as_slice()));
    let turn_id = json!(turn.id);
    out.push(action(
        ActionKind::ChatTurnStarted.name(),
        &[
            ("turnId", turn_id.clone()),
            ("startedAt", json!(turn.started_at)),
            ("message", Value::clone(&turn.message)),
        ],
    ));
    for part in turn.parts.iter().filter(|part| part.kind() != "error") {
        let is_open = part.0.get("response").is_none_or(Value::is_null);
        match part.0.get("request") {
            // Asked again: a part alone would not say that the chat waits.
            Some(request) if part.kind() == "inputRequest" && is_open => {
                let fields = [("request", request.clone())];
                out.push(action(ActionKind::ChatInputRequested.name(), &fields));
            }
            _ => {
                let part = Value::Object(part.0.clone());
                let fields = [("turnId", turn_id.clone()), ("part", part)];
                out.push(action(ActionKind::ChatResponsePart.name(), &fields));
            }
        }
    }
    if let Some(usage) = &turn.usage {
        let fields = [("turnId", turn_id), ("usage", usage.clone())];
        out.push(action(ActionKind::ChatUsage.name(), &fields));
    }
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root => plain::down_terminals(state),
        SnapshotOf::Plain(kind) => plain::down_state_to_0_8(kind, state),
        SnapshotOf::Session { .. } => {}
        SnapshotOf::Chat => for_each_turn(state, down_turn),
    }
    closed_enums::fit(state);
}

/// The error of a turn stood beside its parts. Only a turn that ended with one had it: one that was resumed forgot it.
fn down_turn(turn: &mut Object) {
    let is_failed = text(turn, "state") == Some("error");
    let Some(Value::Array(parts)) = turn.get_mut("responseParts") else {
        return; // a turn without parts has no error among them
    };
    let is_error = |part: &Value| part["kind"] == "error";
    let error = parts.iter().rev().find(|part| is_error(part)).map(error_of);
    parts.retain(|part| !is_error(part));
    if let Some(error) = error.filter(|_| is_failed) {
        turn.insert("error".to_owned(), error);
    }
}

fn up_action(sent: &mut Object, receiving: &Receiving) {
    plain::up_action_from_0_8(sent, receiving);
}

/// What a terminal is claimed for that names a session and no chat: the session's default chat, which whoever loads it knows.
pub const DEFAULT_CHAT: &str = "x-defaultChat:";

fn up_params(method: Method, params: &mut Object) {
    match method {
        // A session that begins with the turns of another: the one way to fork across sessions, and kept as an extension.
        Method::CreateSession => {
            if let Some(fork) = params.shift_remove("fork") {
                params.insert("x-fork".to_owned(), fork);
            }
        }
        Method::CreateTerminal => plain::up_claim(params, DEFAULT_CHAT),
        _ => {}
    }
}

/// Content that is not there had an error of its own; its number was given up with 0.9.
const CONTENT_NOT_FOUND: i32 = -32006;

pub(super) fn down_error(call: &Call, error: &mut RpcError) {
    if let Call::Resource(call) = call
        && let ResourceCall::Read(params) = &**call
        && error.code == code::NOT_FOUND
        && params.uri.starts_with(content::SCHEME)
    {
        error.code = CONTENT_NOT_FOUND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::decode_call;

    #[test]
    fn content_that_is_not_there_had_an_error_of_its_own() {
        let code_of = |generation, uri: &str| {
            let call = decode_call("resourceRead", json!({"uri": uri})).unwrap();
            let mut error = RpcError::new(code::NOT_FOUND, "");
            super::super::down_error(generation, &call, &mut error);
            error.code
        };
        let content = "ahp-content:/sha256/00";
        assert_eq!(code_of(Generation::V0_8, content), -32006);
        assert_eq!(code_of(Generation::V0_4, content), -32006);
        assert_eq!(code_of(Generation::V0_9, content), -32008);
        assert_eq!(code_of(Generation::V0_8, "x:/elsewhere"), -32008);
    }
}
