//! Between 0.5.2 and 0.6: open questions stand beside the turn, not in it; nobody signs in for a tool call; a turn has no times.

use serde_json::{Value, json};

use super::shape::{action, for_each_tool_call, kind_of, object_mut, objects_mut, text};
use super::{AfterAction, Receiving, SnapshotOf, VersionStep, plain, unchanged};
use crate::state::status;
use crate::{ActionKind, Generation, Object, Timestamp};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_5_2,
    touches,
    down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action,
    up_params: unchanged::up_params,
};

fn touches(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::SessionInputNeededSet | ActionKind::ChatTurnsLoaded)
}

fn down_action(mut sent: Object, _: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::SessionInputNeededSet => {
            match sent.get("request") {
                Some(request) if !is_known_request(request) => {
                    // There was no such thing to wait for. One with this id that they know has become it.
                    let id = request.get("id").cloned().unwrap_or_default();
                    let removed = ActionKind::SessionInputNeededRemoved.name();
                    sent = action(removed, &[("id", id)]);
                }
                _ => for_each_tool_call(&mut sent, down_tool_call),
            }
        }
        ActionKind::ChatTurnsLoaded => down_turns(&mut sent),
        ActionKind::ChangesetFilesReviewChanged => plain::down_review_to_0_5_2(&mut sent),
        _ => for_each_tool_call(&mut sent, down_tool_call),
    }
    out.push(sent);
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root | SnapshotOf::Plain(_) => {}
        SnapshotOf::Session { .. } => {
            if let Some(Value::Array(needed)) = state.get_mut("inputNeeded") {
                needed.retain(is_known_request);
                if needed.is_empty() {
                    state.shift_remove("inputNeeded");
                    rest(state);
                }
            }
            for_each_tool_call(state, down_tool_call);
        }
        SnapshotOf::Chat => {
            let turn = object_mut(state, "activeTurn");
            let open = turn.map(take_open_questions).unwrap_or_default();
            if !open.is_empty() {
                state.insert("inputRequests".to_owned(), Value::Array(open));
            }
            down_turns(state);
            for_each_tool_call(state, down_tool_call);
            down_status(state);
        }
    }
}

/// A session that waits for nothing does nothing: that is all that its activity tells.
fn rest(session: &mut Object) {
    let bits = session.get("status").and_then(Value::as_u64);
    if let Some(bits) = bits.and_then(|bits| u32::try_from(bits).ok()) {
        let idle = status::with_activity(bits, status::IDLE);
        session.insert("status".to_owned(), json!(idle));
    }
}

/// A chat that waits for nothing but a sign-in works on.
fn down_status(chat: &mut Object) {
    let bits = chat.get("status").and_then(Value::as_u64);
    let bits = bits.and_then(|bits| u32::try_from(bits).ok());
    let Some(bits) = bits.filter(|_| chat.contains_key("activeTurn") && !waits(chat)) else {
        return; // what it does is as it was
    };
    let working = status::with_activity(bits, status::IN_PROGRESS);
    chat.insert("status".to_owned(), json!(working));
}

fn waits(chat: &mut Object) -> bool {
    let mut waits = chat.contains_key("inputRequests");
    if let Some(turn) = object_mut(chat, "activeTurn") {
        for part in objects_mut(turn, "responseParts") {
            let call = object_mut(part, "toolCall");
            let status = call.and_then(|call| text(call, "status"));
            waits |= status.is_some_and(|status| status.starts_with("pending-"));
        }
    }
    waits
}

/// A question nobody answered left no trace in a turn that is over.
fn down_turns(holder: &mut Object) {
    for turn in objects_mut(holder, "turns") {
        let _ = take_open_questions(turn);
    }
}

/// The requests of a turn that have no answer, taken out of its parts.
fn take_open_questions(turn: &mut Object) -> Vec<Value> {
    let Some(Value::Array(parts)) = turn.get_mut("responseParts") else { return Vec::new() };
    let (open, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(parts).into_iter().partition(is_open_question);
    *parts = others;
    let request = |mut part: Value| part.get_mut("request").map(Value::take);
    open.into_iter().filter_map(request).collect()
}

fn is_open_question(part: &Value) -> bool {
    part["kind"] == "inputRequest" && part.get("response").is_none_or(Value::is_null)
}

/// Their reducers find no other kind again.
fn is_known_request(request: &Value) -> bool {
    let kind = request.get("kind").and_then(Value::as_str);
    matches!(kind, Some("chatInput" | "toolConfirmation" | "toolClientExecution"))
}

/// A call that waits for a sign-in is one that runs.
fn down_tool_call(call: &mut Object) {
    if text(call, "status") == Some("auth-required") {
        call.insert("status".to_owned(), json!("running"));
        call.shift_remove("auth");
    }
}

fn up_action(sent: &mut Object, receiving: &Receiving) {
    match kind_of(sent) {
        ActionKind::ChatTurnStarted => {
            let now = || json!(receiving.now.to_rfc3339());
            sent.entry("startedAt").or_insert_with(now);
        }
        ActionKind::ChatTurnCancelled => {
            let turn = receiving.chat.and_then(|chat| chat.active_turn.as_ref());
            let started = turn.and_then(|turn| Timestamp::parse_rfc3339(&turn.started_at));
            let lasted = started.map_or(0, |started| receiving.now.ms_since(started).max(0));
            sent.entry("duration").or_insert_with(|| json!(lasted));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::object;
    use super::*;

    #[test]
    fn a_session_that_waits_for_a_sign_in_alone_waits_for_nothing() {
        let entry = Object::new();
        let of = SnapshotOf::Session { resource: "s:/1", summary: &entry };
        let sign_in = json!({"id": "a", "kind": "toolAuthentication"});
        let question = json!({"id": "b", "kind": "chatInput"});
        let waits = status::INPUT_NEEDED | status::IS_ARCHIVED;
        let mut session = object(json!({"status": waits, "inputNeeded": [sign_in]}));
        down_state(of, &mut session);
        let idle = status::IDLE | status::IS_ARCHIVED;
        assert_eq!(Value::Object(session), json!({"status": idle}));
        let mut session = object(json!({"status": waits, "inputNeeded": [sign_in, question]}));
        down_state(of, &mut session);
        let expected = json!({"status": waits, "inputNeeded": [question]});
        assert_eq!(Value::Object(session), expected);
    }
}
