//! Pending messages of a chat: the steering message and the queue.

use std::sync::Arc;

use serde_json::Value;

use super::{Reduced, set};
use crate::Action;
use crate::state::{ChatState, PendingMessage};

/// Which pending messages an action means.
enum PendingMessageKind {
    Steering,
    Queued,
}

fn kind_of(action: &Action) -> Option<PendingMessageKind> {
    match action.text("kind")? {
        "steering" => Some(PendingMessageKind::Steering),
        "queued" => Some(PendingMessageKind::Queued),
        _ => None,
    }
}

/// Steering has one slot; the queue takes a message by its id or at its end (H-230).
pub(super) fn set_message(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(kind), Some(id), Some(message)) =
        (kind_of(action), action.text("id"), action.present("message"))
    else {
        return Reduced::Unchanged;
    };
    let entry = PendingMessage { id: id.to_owned(), message: Arc::new(message.clone()) };
    match kind {
        PendingMessageKind::Steering => set(&mut state.steering_message, Some(entry)),
        PendingMessageKind::Queued => {
            match state.queued_messages.iter_mut().find(|old| old.id == id) {
                Some(old) => set(old, entry),
                None => {
                    state.queued_messages.push(entry);
                    Reduced::Changed
                }
            }
        }
    }
}

pub(super) fn remove(state: &mut ChatState, action: &Action) -> Reduced {
    match (kind_of(action), action.text("id")) {
        (Some(PendingMessageKind::Steering), Some(id)) => remove_steering(state, id),
        (Some(PendingMessageKind::Queued), Some(id)) => remove_queued(state, id),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn remove_steering(state: &mut ChatState, id: &str) -> Reduced {
    match &state.steering_message {
        Some(message) if message.id == id => set(&mut state.steering_message, None),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn remove_queued(state: &mut ChatState, id: &str) -> Reduced {
    let before = state.queued_messages.len();
    state.queued_messages.retain(|message| message.id != id);
    if state.queued_messages.len() == before { Reduced::Unchanged } else { Reduced::Changed }
}

/// Named messages first, in the order named; the others after them in their old order (H-234).
pub(super) fn reorder(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(Value::Array(order)) = action.get("order") else { return Reduced::Unchanged };
    let mut waiting = state.queued_messages.clone();
    let mut reordered = Vec::with_capacity(waiting.len());
    for id in order {
        let named = waiting.iter().position(|message| Some(message.id.as_str()) == id.as_str());
        if let Some(position) = named {
            reordered.push(waiting.remove(position));
        }
    }
    reordered.append(&mut waiting);
    set(&mut state.queued_messages, reordered)
}
