//! What becomes of a steering message that no turn took: it goes to the head of the queue, which is held (G-08).
//!
//! Must not know: how a turn or a queue starts. The ends of turns call this, and what starts turns depends on them.

use serde_json::json;
use wire::{ActionKind, ChannelUri};

use crate::state::Step;

/// Moves the steering message of a chat without a turn to the head of its queue, under the same id; what is known of it
/// stays with the id.
pub(crate) fn queue_leftover(step: &mut Step, uri: &ChannelUri) {
    let state = step.chat(uri).state();
    debug_assert!(state.active_turn.is_none(), "no turn is left to steer");
    let Some(left) = state.steering_message.clone() else {
        return; // the turn took what there was, or there was nothing
    };
    let waiting = state.queued_messages.iter().map(|other| other.id.clone());
    let mut order = vec![left.id.clone()];
    order.extend(waiting);
    let fields = json!({"kind": "steering", "id": left.id});
    step.act_as_host(uri, ActionKind::ChatPendingMessageRemoved, fields);
    let fields = json!({"kind": "queued", "id": left.id, "message": *left.message});
    step.act_as_host(uri, ActionKind::ChatPendingMessageSet, fields);
    if order.len() > 1 {
        // Set appends; only an order puts it first.
        let fields = json!({"order": order});
        step.act_as_host(uri, ActionKind::ChatQueuedMessagesReordered, fields);
    }
}
