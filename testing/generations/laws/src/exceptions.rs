//! Where the law does not hold, by name and with the reason. Everything else is compared.

use serde_json::{Value, json};
use wire::{Action, ActionKind, Generation};

/// Something of a state that is not compared.
struct UncomparedState {
    /// The newest version it is true of.
    up_to: Generation,
    reason: &'static str,
    take_out: fn(&mut Value),
}

const UNCOMPARED: [UncomparedState; 11] = [
    UncomparedState {
        up_to: Generation::V1_0,
        reason: "fields nobody knows: a type keeps them only in what it cannot read (a call that waits for a sign-in, H-204)",
        take_out: |state| clear(state, "x-test"),
    },
    UncomparedState {
        up_to: Generation::V0_9,
        reason: "the order of chats: no action before 1.0 tells it (`session/chatsReordered`), and it is for show only",
        take_out: |state| sort_by(state, "chats", "resource"),
    },
    UncomparedState {
        up_to: Generation::V0_9,
        reason: "a chat's read and archived flags: their actions came with 1.0; the session's list of chats tells them",
        take_out: |state| keep_bits(state, "resource", 31),
    },
    UncomparedState {
        up_to: Generation::V0_8,
        reason: "`modifiedAt`: reducers up to 0.8 take the time of their own clock",
        take_out: |state| clear(state, "modifiedAt"),
    },
    UncomparedState {
        up_to: Generation::V0_8,
        reason: "`turnsNextCursor`: a cursor is one connection's; the host has none in the state that a resumed turn is told from",
        take_out: |state| clear(state, "turnsNextCursor"),
    },
    UncomparedState {
        up_to: Generation::V0_7,
        reason: "what a session does: reducers up to 0.7 count a tool that a client runs as waiting for the user",
        take_out: |state| keep_bits(state, "lifecycle", !31),
    },
    UncomparedState {
        up_to: Generation::V0_6,
        reason: "working directories: no action up to 0.6 changes them; the list of sessions tells the first",
        take_out: |state| clear(state, "workingDirectory"),
    },
    UncomparedState {
        up_to: Generation::V0_6,
        reason: "an empty `partialInput` beside none: a delta needed a text up to 0.6",
        take_out: |state| clear_if(state, "partialInput", &|value| value == ""),
    },
    UncomparedState {
        up_to: Generation::V0_5_2,
        reason: "the place of a question: up to 0.5.2 it is a part where it was answered, now it is one where it was asked",
        take_out: order_questions,
    },
    UncomparedState {
        up_to: Generation::V0_5_2,
        reason: "the order of what a session waits for: what became a thing that they do not know and back is last for them",
        take_out: |state| sort_by(state, "inputNeeded", "id"),
    },
    UncomparedState {
        up_to: Generation::V0_4,
        reason: "what a chat does in words: its action came with 0.5; the session's list of chats tells it",
        take_out: |state| {
            if state.get("resource").is_some() {
                clear(state, "activity");
            }
        },
    },
];

/// An action that is left out, by the state of 1.0 it would change.
struct UntoldAction {
    /// The newest version it is true of.
    up_to: Generation,
    reason: &'static str,
    applies: fn(&Action, &Value) -> bool,
}

const UNTOLD: [UntoldAction; 9] = [
    UntoldAction {
        up_to: Generation::V1_0,
        reason: "a turn beside the one that runs: the host starts none",
        applies: |action, chat| {
            action.kind == ActionKind::ChatTurnStarted && chat.get("activeTurn").is_some()
        },
    },
    UntoldAction {
        up_to: Generation::V1_0,
        reason: "a call or a question as a bare part: the host begins them by actions of their own",
        applies: |action, _| {
            let part = action.get("part").and_then(|part| part["kind"].as_str());
            action.kind == ActionKind::ChatResponsePart
                && matches!(part, Some("toolCall" | "inputRequest"))
        },
    },
    UntoldAction {
        up_to: Generation::V1_0,
        reason: "an edit of an input that is stored elsewhere, or of none: the host refuses it",
        applies: |action, chat| {
            action.present("editedToolInput").is_some()
                && call_of(action, chat).is_some_and(|call| !call["toolInput"].is_string())
        },
    },
    UntoldAction {
        up_to: Generation::V0_6,
        reason: "who contributed a call, and what for, if that is first known when it is ready: only its start told it up to 0.6",
        applies: |action, _| {
            let tells = |field| action.present(field).is_some();
            action.kind == ActionKind::ChatToolCallReady
                && (tells("contributor") || tells("intention"))
        },
    },
    UntoldAction {
        up_to: Generation::V0_6,
        reason: "a call that is made ready without the input it had: reducers up to 0.6 forget it",
        applies: |action, chat| {
            let had_input = |call: &Value| !call["toolInput"].is_null();
            action.kind == ActionKind::ChatToolCallReady
                && action.present("toolInput").is_none()
                && call_of(action, chat).is_some_and(had_input)
        },
    },
    UntoldAction {
        up_to: Generation::V0_5_2,
        reason: "a call that waits for an answer and is made ready once more: reducers up to 0.5.2 ignore it; the answer and the \
            result are told",
        applies: |action, chat| {
            let waits = |call: &Value| call["status"] == "pending-confirmation";
            action.kind == ActionKind::ChatToolCallReady && call_of(action, chat).is_some_and(waits)
        },
    },
    UntoldAction {
        up_to: Generation::V0_5_2,
        reason: "a result without output of a call that showed some: reducers up to 0.5.2 forget what was shown",
        applies: |action, chat| {
            let empty = action.get("result").is_some_and(|it| it["content"].is_null());
            let shown = call_of(action, chat).is_some_and(|call| call["content"].is_array());
            action.kind == ActionKind::ChatToolCallComplete && empty && shown
        },
    },
    UntoldAction {
        up_to: Generation::V0_5_2,
        reason: "`_meta` of a sign-in for a call: there was none up to 0.5.2, the call runs on",
        applies: |action, _| {
            let signs_in = matches!(
                action.kind,
                ActionKind::ChatToolCallAuthRequired | ActionKind::ChatToolCallAuthResolved
            );
            signs_in && action.present("_meta").is_some()
        },
    },
    UntoldAction {
        up_to: Generation::V0_5_0,
        reason: "a page of turns: it is the answer to `fetchTurns` up to 0.5.0",
        applies: |action, _| action.kind == ActionKind::ChatTurnsLoaded,
    },
];

/// Why an action is left out, if it is.
pub fn untold(generation: Generation, action: &Action, state: &Value) -> Option<&'static str> {
    let mut known = UNTOLD.iter().filter(|each| generation <= each.up_to);
    let untold = known.find(|each| (each.applies)(action, state));
    untold.map(|each| each.reason)
}

/// Takes what is not compared out of a state. The reasons.
pub fn take_out(generation: Generation, state: &mut Value) -> Vec<&'static str> {
    let known = UNCOMPARED.iter().filter(|each| generation <= each.up_to);
    known
        .map(|each| {
            (each.take_out)(state);
            each.reason
        })
        .collect()
}

/// The call of the running turn that an action is about.
fn call_of<'a>(action: &Action, chat: &'a Value) -> Option<&'a Value> {
    let parts = chat["activeTurn"]["responseParts"].as_array()?;
    let id = action.get("toolCallId")?;
    let mut calls = parts.iter().filter_map(|part| part.get("toolCall"));
    calls.find(|call| &call["toolCallId"] == id)
}

fn clear(value: &mut Value, field: &str) {
    clear_if(value, field, &|_| true);
}

fn clear_if(value: &mut Value, field: &str, is_it: &dyn Fn(&Value) -> bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != field || !is_it(value));
            let inner = fields.values_mut();
            inner.for_each(|value| clear_if(value, field, is_it));
        }
        Value::Array(items) => {
            let inner = items.iter_mut();
            inner.for_each(|value| clear_if(value, field, is_it));
        }
        _ => {}
    }
}

fn sort_by(state: &mut Value, list: &str, field: &str) {
    if let Some(Value::Array(entries)) = state.get_mut(list) {
        entries.sort_by_key(|entry| entry[field].to_string());
    }
}

/// Of states that have a field: only these bits of their status.
fn keep_bits(state: &mut Value, having: &str, bits: u64) {
    if state.get(having).is_some()
        && let Some(status) = state.get("status").and_then(Value::as_u64)
    {
        state["status"] = json!(status & bits);
    }
}

fn order_questions(state: &mut Value) {
    let order = |turn: &mut Value| {
        if let Some(Value::Array(parts)) = turn.get_mut("responseParts") {
            parts.sort_by_key(|part| part["kind"] == "inputRequest");
        }
    };
    if let Some(Value::Array(turns)) = state.get_mut("turns") {
        turns.iter_mut().for_each(order);
    }
    if let Some(turn) = state.get_mut("activeTurn") {
        order(turn);
    }
}
