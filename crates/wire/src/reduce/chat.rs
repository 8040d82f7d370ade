//! The reducers of a chat channel, one function per action: fields and streamed text.
//!
//! Turns, tool calls, input requests and pending messages have files of their own. Streamed text costs the same however
//! many parts a turn has.

use serde_json::Value;

use super::{
    Reduced, add_directory, input_request, optional_text, remove_directory, remove_entry, set,
    set_field, set_flag, tool_call, upsert,
};
use crate::Action;
use crate::state::{ActiveTurn, ChatState, ResponsePart, status};

pub(super) fn append_markdown(state: &mut ChatState, action: &Action) -> Reduced {
    append_text(state, action, "markdown")
}

pub(super) fn append_reasoning(state: &mut ChatState, action: &Action) -> Reduced {
    append_text(state, action, "reasoning")
}

pub(super) fn set_usage(state: &mut ChatState, action: &Action) -> Reduced {
    match (active(state, action), action.present("usage")) {
        (Some(turn), Some(usage)) => set(&mut turn.usage, Some(usage.clone())),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn set_draft(state: &mut ChatState, action: &Action) -> Reduced {
    set(&mut state.draft, action.present("draft").cloned())
}

pub(super) fn set_is_read(state: &mut ChatState, action: &Action) -> Reduced {
    set_flag(&mut state.status, status::IS_READ, action.flag("isRead"))
}

pub(super) fn set_is_archived(state: &mut ChatState, action: &Action) -> Reduced {
    set_flag(&mut state.status, status::IS_ARCHIVED, action.flag("isArchived"))
}

pub(super) fn set_activity(state: &mut ChatState, action: &Action) -> Reduced {
    set(&mut state.activity, optional_text(action, "activity"))
}

pub(super) fn set_movable(state: &mut ChatState, action: &Action) -> Reduced {
    match action.present("movable") {
        Some(movable) => set_field(&mut state.extra, "movable", Some(movable)),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_changesets(state: &mut ChatState, action: &Action) -> Reduced {
    set_field(&mut state.extra, "changesets", action.present("changesets"))
}

pub(super) fn set_canvases(state: &mut ChatState, action: &Action) -> Reduced {
    set_field(&mut state.extra, "canvases", action.present("canvases"))
}

pub(super) fn add_working_directory(state: &mut ChatState, action: &Action) -> Reduced {
    add_directory(&mut state.working_directories, action)
}

pub(super) fn remove_working_directory(state: &mut ChatState, action: &Action) -> Reduced {
    remove_directory(&mut state.working_directories, action)
}

/// The active turn, if it is the one the action names (H-173).
pub(super) fn active<'a>(state: &'a mut ChatState, action: &Action) -> Option<&'a mut ActiveTurn> {
    let turn_id = action.text("turnId")?;
    state.active_turn.as_mut().filter(|turn| turn.id == turn_id)
}

/// What the activity bits say while no error has ended the turn.
pub(super) fn refresh_status(state: &mut ChatState) -> Reduced {
    let activity = match &state.active_turn {
        Some(turn) if turn.parts.iter().any(waits_for_user) => status::INPUT_NEEDED,
        Some(_) => status::IN_PROGRESS,
        None => status::IDLE,
    };
    let bits = status::with_activity(state.status, activity); // H-178
    set(&mut state.status, bits)
}

fn waits_for_user(part: &ResponsePart) -> bool {
    input_request::is_open(part) || tool_call::is_blocking(part)
}

/// Appends to the part with this id, if it is of the kind this action streams into (H-172).
fn append_text(state: &mut ChatState, action: &Action, kind: &str) -> Reduced {
    let (Some(id), Some(text)) = (action.text("partId"), action.text("content")) else {
        return Reduced::Unchanged;
    };
    let Some(turn) = active(state, action) else { return Reduced::Unchanged };
    if text.is_empty() || turn.parts.get(id).is_none_or(|part| part.kind() != kind) {
        return Reduced::Unchanged;
    }
    match turn.parts.get_mut(id).map(|part| part.append("content", text)) {
        Some(true) => Reduced::Changed,
        Some(false) | None => Reduced::Unchanged,
    }
}

/// Adds a part. Errors enter by `chat/error` only (H-175).
pub(super) fn add_part(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(turn), Some(Value::Object(part))) = (active(state, action), action.get("part"))
    else {
        return Reduced::Unchanged;
    };
    let part = ResponsePart(part.clone());
    if part.kind() == "error" {
        return Reduced::Unchanged;
    }
    turn.parts.push(part);
    Reduced::Changed
}

pub(super) fn set_background_work(state: &mut ChatState, action: &Action) -> Reduced {
    let work = action.present("work");
    let Some(work) = work.filter(|work| work["id"].is_string()) else { return Reduced::Unchanged };
    match state.extra.get_mut("backgroundWork") {
        Some(Value::Array(list)) => upsert(list, "id", work),
        _ => {
            let list = Value::Array(vec![work.clone()]);
            set_field(&mut state.extra, "backgroundWork", Some(&list))
        }
    }
}

pub(super) fn remove_background_work(state: &mut ChatState, action: &Action) -> Reduced {
    match (state.extra.get_mut("backgroundWork"), action.text("id")) {
        (Some(Value::Array(list)), Some(id)) => remove_entry(list, "id", id),
        _ => Reduced::Unchanged,
    }
}
