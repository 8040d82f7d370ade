//! The reducer of a chat channel: fields, streamed text, waiting messages.
//!
//! Turns, tool calls and input requests have files of their own. Streamed text costs the same however many parts a
//! turn has.

use ahp_types::actions::ActionType;
use serde_json::Value;

use super::session::flag;
use super::{
    Reduced, add_directory, input_request, optional_text, put, put_field, remove_directory,
    remove_entry, tool_call, turn, upsert,
};
use crate::Action;
use crate::families::{root_actions, session_actions, side_channel_actions};
use crate::state::{ActiveTurn, ChatState, Part, PendingMessage, status};

pub fn reduce_chat(state: &mut ChatState, action: &Action) -> Reduced {
    match &action.kind {
        ActionType::ChatTurnStarted => turn::started(state, action),
        ActionType::ChatTurnComplete => turn::complete(state, action),
        ActionType::ChatTurnCancelled => turn::cancelled(state, action),
        ActionType::ChatError => turn::error(state, action),
        ActionType::ChatTurnResume => turn::resumed(state, action),
        ActionType::ChatTruncated => turn::truncated(state, action),
        ActionType::ChatTurnsLoaded => turn::loaded(state, action),
        ActionType::ChatDelta => append_text(state, action, "markdown"),
        ActionType::ChatReasoning => append_text(state, action, "reasoning"),
        ActionType::ChatResponsePart => response_part(state, action),
        ActionType::ChatUsage => match (active(state, action), action.present("usage")) {
            (Some(turn), Some(usage)) => put(&mut turn.usage, Some(usage.clone())),
            _ => Reduced::Unchanged,
        },
        ActionType::ChatToolCallStart => tool_call::start(state, action),
        ActionType::ChatToolCallDelta => tool_call::delta(state, action),
        ActionType::ChatToolCallReady => tool_call::step(state, action, tool_call::ready),
        ActionType::ChatToolCallConfirmed => tool_call::step(state, action, tool_call::confirmed),
        ActionType::ChatToolCallComplete => tool_call::step(state, action, tool_call::complete),
        ActionType::ChatToolCallResultConfirmed => {
            tool_call::step(state, action, tool_call::result_confirmed)
        }
        ActionType::ChatToolCallContentChanged => tool_call::content_changed(state, action),
        ActionType::ChatToolCallAuthRequired => {
            tool_call::step(state, action, tool_call::auth_required)
        }
        ActionType::ChatToolCallAuthResolved => {
            tool_call::step(state, action, tool_call::auth_resolved)
        }
        ActionType::ChatInputRequested => input_request::requested(state, action),
        ActionType::ChatInputAnswerChanged => input_request::answer_changed(state, action),
        ActionType::ChatInputCompleted => input_request::completed(state, action),
        ActionType::ChatPendingMessageSet => pending_set(state, action),
        ActionType::ChatPendingMessageRemoved => pending_removed(state, action),
        ActionType::ChatQueuedMessagesReordered => queue_reordered(state, action),
        ActionType::ChatDraftChanged => put(&mut state.draft, action.present("draft").cloned()),
        ActionType::ChatIsReadChanged => {
            flag(&mut state.status, status::IS_READ, action.flag("isRead"))
        }
        ActionType::ChatIsArchivedChanged => flag(
            &mut state.status,
            status::IS_ARCHIVED,
            action.flag("isArchived"),
        ),
        ActionType::ChatActivityChanged => {
            put(&mut state.activity, optional_text(action, "activity"))
        }
        ActionType::ChatBackgroundWorkSet => background_work_set(state, action),
        ActionType::ChatBackgroundWorkRemoved => background_work_removed(state, action),
        ActionType::ChatMovableChanged => match action.present("movable") {
            Some(movable) => put_field(&mut state.extra, "movable", Some(movable)),
            None => Reduced::Unchanged,
        },
        ActionType::ChatChangesetsChanged => {
            put_field(&mut state.extra, "changesets", action.present("changesets"))
        }
        ActionType::ChatCanvasesChanged => {
            put_field(&mut state.extra, "canvases", action.present("canvases"))
        }
        ActionType::ChatWorkingDirectorySet => {
            add_directory(&mut state.working_directories, action)
        }
        ActionType::ChatWorkingDirectoryRemoved => {
            remove_directory(&mut state.working_directories, action)
        }
        root_actions!() => Reduced::Unchanged,
        session_actions!() => Reduced::Unchanged,
        side_channel_actions!() => Reduced::Unchanged,
        ActionType::Unknown(_) => Reduced::Unchanged,
    }
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
    put(&mut state.status, bits)
}

fn waits_for_user(part: &Part) -> bool {
    input_request::is_open(part) || tool_call::is_blocking(part)
}

/// Appends to the part with this id, if it is of the kind this action streams into (H-172).
fn append_text(state: &mut ChatState, action: &Action, kind: &str) -> Reduced {
    let (Some(id), Some(text)) = (action.text("partId"), action.text("content")) else {
        return Reduced::Unchanged;
    };
    let Some(turn) = active(state, action) else {
        return Reduced::Unchanged;
    };
    if text.is_empty() || turn.parts.get(id).is_none_or(|part| part.kind() != kind) {
        return Reduced::Unchanged;
    }
    match turn
        .parts
        .get_mut(id)
        .map(|part| part.append("content", text))
    {
        Some(true) => Reduced::Changed,
        Some(false) | None => Reduced::Unchanged,
    }
}

/// Adds a part. Errors enter by `chat/error` only (H-175).
fn response_part(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(turn), Some(Value::Object(part))) = (active(state, action), action.get("part"))
    else {
        return Reduced::Unchanged;
    };
    let part = Part(part.clone());
    if part.kind() == "error" {
        return Reduced::Unchanged;
    }
    turn.parts.push(part);
    Reduced::Changed
}

/// Which of the two places for waiting messages an action means.
enum Pending {
    Steering,
    Queued,
}

fn pending_kind(action: &Action) -> Option<Pending> {
    match action.text("kind")? {
        "steering" => Some(Pending::Steering),
        "queued" => Some(Pending::Queued),
        _ => None,
    }
}

/// Steering has one slot; the queue takes a message by its id or at its end (H-230).
fn pending_set(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(kind), Some(id), Some(message)) = (
        pending_kind(action),
        action.text("id"),
        action.present("message"),
    ) else {
        return Reduced::Unchanged;
    };
    let entry = PendingMessage {
        id: id.to_owned(),
        message: message.clone(),
    };
    match kind {
        Pending::Steering => put(&mut state.steering_message, Some(entry)),
        Pending::Queued => match state.queued_messages.iter_mut().find(|old| old.id == id) {
            Some(old) => put(old, entry),
            None => {
                state.queued_messages.push(entry);
                Reduced::Changed
            }
        },
    }
}

fn pending_removed(state: &mut ChatState, action: &Action) -> Reduced {
    match (pending_kind(action), action.text("id")) {
        (Some(Pending::Steering), Some(id)) => remove_steering(state, id),
        (Some(Pending::Queued), Some(id)) => remove_queued(state, id),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn remove_steering(state: &mut ChatState, id: &str) -> Reduced {
    match &state.steering_message {
        Some(message) if message.id == id => put(&mut state.steering_message, None),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn remove_queued(state: &mut ChatState, id: &str) -> Reduced {
    let before = state.queued_messages.len();
    state.queued_messages.retain(|message| message.id != id);
    if state.queued_messages.len() == before {
        Reduced::Unchanged
    } else {
        Reduced::Changed
    }
}

/// Named messages first, in the order named; the others after them as they stood (H-234).
fn queue_reordered(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(Value::Array(order)) = action.get("order") else {
        return Reduced::Unchanged;
    };
    let mut waiting = state.queued_messages.clone();
    let mut reordered = Vec::with_capacity(waiting.len());
    for id in order {
        let named = waiting
            .iter()
            .position(|message| Some(message.id.as_str()) == id.as_str());
        if let Some(position) = named {
            reordered.push(waiting.remove(position));
        }
    }
    reordered.append(&mut waiting);
    put(&mut state.queued_messages, reordered)
}

fn background_work_set(state: &mut ChatState, action: &Action) -> Reduced {
    let work = action.present("work");
    let Some(work) = work.filter(|work| work["id"].is_string()) else {
        return Reduced::Unchanged;
    };
    match state.extra.get_mut("backgroundWork") {
        Some(Value::Array(list)) => upsert(list, "id", work),
        _ => {
            let list = Value::Array(vec![work.clone()]);
            put_field(&mut state.extra, "backgroundWork", Some(&list))
        }
    }
}

fn background_work_removed(state: &mut ChatState, action: &Action) -> Reduced {
    match (state.extra.get_mut("backgroundWork"), action.text("id")) {
        (Some(Value::Array(list)), Some(id)) => remove_entry(list, "id", id),
        _ => Reduced::Unchanged,
    }
}
