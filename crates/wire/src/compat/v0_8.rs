//! Between 0.8 and 0.9: an error is a part of its turn, a turn can be resumed, a session that could not be made has *failed*,
//! messages may come from an automation, and a session is no longer forked when it is created.

use serde_json::{Value, json};

use super::shape::{action, for_each_message, for_each_turn, kind_of, text};
use super::{AfterAction, SnapshotOf, VersionStep, unchanged};
use crate::methods::Method;
use crate::state::ChatState;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_8,
    touches,
    down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action: unchanged::up_action,
    up_params,
};

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::ChatError
            | ActionKind::ChatTurnResume
            | ActionKind::ChatTurnStarted
            | ActionKind::ChatPendingMessageSet
            | ActionKind::ChatDraftChanged
            | ActionKind::ChatTurnsLoaded
    )
}

fn down_action(mut sent: Object, after: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::ChatError => {
            let error = sent.shift_remove("part").as_ref().map(error_of);
            sent.insert("error".to_owned(), error.unwrap_or_default());
            out.push(sent);
        }
        ActionKind::ChatTurnResume => match after {
            AfterAction::Chat(chat) => resume(chat, out),
            // A resume on another channel changes nothing there.
            AfterAction::Root | AfterAction::Session(_) => {}
        },
        ActionKind::ChatTurnsLoaded => {
            for_each_turn(&mut sent, down_turn);
            for_each_message(&mut sent, down_message);
            out.push(sent);
        }
        ActionKind::ChatTurnStarted
        | ActionKind::ChatPendingMessageSet
        | ActionKind::ChatDraftChanged => {
            for_each_message(&mut sent, down_message);
            out.push(sent);
        }
        _ => out.push(sent),
    }
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
            ("message", turn.message.clone()),
        ],
    ));
    for part in turn.parts.iter().filter(|part| part.kind() != "error") {
        let part = Value::Object(part.0.clone());
        let fields = [("turnId", turn_id.clone()), ("part", part)];
        out.push(action(ActionKind::ChatResponsePart.name(), &fields));
    }
    if let Some(usage) = &turn.usage {
        let fields = [("turnId", turn_id), ("usage", usage.clone())];
        out.push(action(ActionKind::ChatUsage.name(), &fields));
    }
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root => {}
        SnapshotOf::Session { .. } => {
            if text(state, "lifecycle") == Some("failed") {
                state.insert("lifecycle".to_owned(), json!("creationFailed"));
            }
        }
        SnapshotOf::Chat => {
            for_each_turn(state, down_turn);
            for_each_message(state, down_message);
        }
    }
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

fn down_message(message: &mut Object) {
    if let Some(Value::Object(origin)) = message.get_mut("origin")
        && text(origin, "kind") == Some("automation")
    {
        origin.insert("kind".to_owned(), json!("systemNotification"));
    }
}

/// A session that begins with the turns of another: the one way to fork across sessions, and kept as an extension.
fn up_params(method: Method, params: &mut Object) {
    if method == Method::CreateSession
        && let Some(fork) = params.shift_remove("fork")
    {
        params.insert("x-fork".to_owned(), fork);
    }
}
