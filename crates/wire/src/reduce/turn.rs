//! The reducers of turns: start, the three ways to end, resume, truncate, load older ones from history.

use std::sync::Arc;

use serde_json::{Value, json};

use super::chat::{active, refresh_status};
use super::pending_message::{remove_queued, remove_steering};
use super::{Reduced, set, set_flag, tool_call};
use crate::state::{ActiveTurn, ChatState, Outcome, ResponsePart, Turn, TurnList, status};
use crate::time::add_ms_to_rfc3339;
use crate::{Action, Object};

/// Makes a new active turn; one that still runs is lost, so the host refuses a second (H-170).
pub(super) fn start(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(id), Some(started_at), Some(message)) =
        (action.text("turnId"), action.text("startedAt"), action.present("message"))
    else {
        return Reduced::Unchanged;
    };
    let turn = ActiveTurn::new(id, started_at, message.clone());
    let mut reduced = set(&mut state.active_turn, Some(turn))
        | refresh_status(state)
        | set(&mut state.modified_at, started_at.to_owned())
        | set_flag(&mut state.status, status::IS_READ, Some(false));
    if let Some(queued) = action.text("queuedMessageId") {
        reduced = reduced | remove_steering(state, queued) | remove_queued(state, queued);
    }
    reduced
}

pub(super) fn complete(state: &mut ChatState, action: &Action) -> Reduced {
    end(state, action, "complete", None)
}

pub(super) fn cancel(state: &mut ChatState, action: &Action) -> Reduced {
    end(state, action, "cancelled", None)
}

/// Ends the turn with its error as the last part; the status says so until the next turn (H-175).
pub(super) fn fail(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(Value::Object(part)) = action.get("part") else { return Reduced::Unchanged };
    let mut part = part.clone();
    part.insert("kind".to_owned(), json!("error"));
    let ended = end(state, action, "error", Some(part));
    if ended == Reduced::Changed {
        state.status = status::with_activity(state.status, status::ERROR);
    }
    ended
}

/// Moves the active turn to the completed ones. A start time that cannot be read leaves it running (H-171).
fn end(state: &mut ChatState, action: &Action, outcome: &str, last: Option<Object>) -> Reduced {
    let (Some(turn), Some(duration)) = (active(state, action), action.integer("duration")) else {
        return Reduced::Unchanged;
    };
    let duration = duration.max(0);
    let Some(modified_at) = add_ms_to_rfc3339(&turn.started_at, duration) else {
        return Reduced::Unchanged;
    };
    let Some(turn) = state.active_turn.take() else {
        unreachable!("the turn that was just found");
    };
    let completed = complete_turn(turn, duration, outcome, last);
    Arc::make_mut(&mut state.turns).items_mut().push(Arc::new(completed));
    state.modified_at = modified_at;
    // A turn ended, so the state changed whatever the status was before.
    let _ = refresh_status(state);
    Reduced::Changed
}

impl ActiveTurn {
    /// The turn as it would be if it were cancelled now.
    pub fn as_if_cancelled(&self) -> Arc<Turn> {
        Arc::new(complete_turn(self.clone(), 0, "cancelled", None))
    }
}

/// The completed turn. Its message and parts are moved: they may be large.
fn complete_turn(turn: ActiveTurn, duration: i64, outcome: &str, last: Option<Object>) -> Turn {
    let parts = turn.parts.into_parts().map(close).chain(last).map(Value::Object).collect();
    let mut json = Object::new();
    json.insert("id".to_owned(), Value::String(turn.id));
    json.insert("startedAt".to_owned(), Value::String(turn.started_at));
    json.insert("duration".to_owned(), json!(duration));
    json.insert("message".to_owned(), Arc::unwrap_or_clone(turn.message));
    json.insert("responseParts".to_owned(), Value::Array(parts));
    if let Some(usage) = turn.usage {
        json.insert("usage".to_owned(), usage);
    }
    json.insert("state".to_owned(), json!(outcome));
    for (field, value) in turn.extra {
        // An unknown field does not replace one of those above.
        json.entry(field).or_insert(value);
    }
    Turn::from_value(&Value::Object(json))
        .unwrap_or_else(|error| unreachable!("each field it needs was just set: {error}"))
}

/// A part as it stays: no tool call is open after its turn, input requests keep their lack of an answer (H-174).
fn close(part: ResponsePart) -> Object {
    let is_call = part.kind() == "toolCall";
    let mut json = part.0;
    if is_call
        && let Some(Value::Object(call)) = json.get_mut("toolCall")
        && let Some(skipped) = tool_call::skip(call)
    {
        *call = skipped;
    }
    json
}

/// Continues the last turn, if its error said that this is possible (H-176).
pub(super) fn resume(state: &mut ChatState, action: &Action) -> Reduced {
    let last = state.turns.last();
    let resumable = last.filter(|turn| {
        Some(turn.id.as_str()) == action.text("turnId")
            && turn.outcome == Outcome::Error { resumable: true }
    });
    let (None, Some(turn)) = (&state.active_turn, resumable) else { return Reduced::Unchanged };
    let Value::Object(mut json) = turn.value() else { return Reduced::Unchanged };
    json.shift_remove("duration");
    json.shift_remove("state");
    if super::present(&json, "startedAt").is_none() {
        json.insert("startedAt".to_owned(), json!(state.modified_at));
    }
    json.retain(|field, value| field != "usage" || !value.is_null());
    let Ok(turn) = ActiveTurn::from_value(Value::Object(json)) else { return Reduced::Unchanged };
    Arc::make_mut(&mut state.turns).items_mut().pop();
    state.active_turn = Some(turn);
    Reduced::Changed
        | refresh_status(state)
        | set_flag(&mut state.status, status::IS_READ, Some(false))
}

/// Removes the turns after the named one, or none at all; what runs is dropped (H-237).
pub(super) fn truncate(state: &mut ChatState, action: &Action) -> Reduced {
    let keep = match action.text("turnId") {
        None => 0,
        Some(id) => match state.turns.position(id) {
            Some(position) => position + 1,
            None => return Reduced::Unchanged,
        },
    };
    let mut reduced = Reduced::Unchanged;
    if keep < state.turns.len() {
        Arc::make_mut(&mut state.turns).items_mut().truncate(keep);
        reduced = Reduced::Changed;
    }
    if keep == 0 {
        reduced = reduced | set(&mut state.turns_next_cursor, None);
    }
    reduced | set(&mut state.active_turn, None) | refresh_status(state)
}

/// Inserts older turns before the ones that are there; a turn that is there already is not moved (H-240).
pub(super) fn load_older(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(Value::Array(turns)) = action.get("turns") else { return Reduced::Unchanged };
    let mut older: Vec<Arc<Turn>> = turns
        .iter()
        .filter_map(|turn| Turn::from_value(turn).ok())
        .filter(|turn| state.turns.position(&turn.id).is_none())
        .map(Arc::new)
        .collect();
    let mut reduced = Reduced::Unchanged;
    if !older.is_empty() {
        older.extend(state.turns.as_slice().iter().cloned());
        state.turns = Arc::new(TurnList::new(older));
        reduced = Reduced::Changed;
    }
    reduced | set(&mut state.turns_next_cursor, super::optional_text(action, "turnsNextCursor"))
}
