//! How the agent of a turn gets a steering message: at a point where it takes one, or by waiting for one and saying afterwards that
//! it has it (H-232).
//!
//! Promises: an agent is offered a message once, and again only if it was changed. A message that an agent has is a part of the
//! turn, whatever its author did to it meanwhile.

use std::sync::Arc;

use agent_api::AgentReply;
use serde_json::{Value, json};
use wire::{ActionKind, ChannelUri};

use crate::agent_action::{keep_line_breaks, notice};
use crate::io::{Effect, RunId};
use crate::record::Record;
use crate::record_message::record_plain_message;
use crate::state::Step;

/// The agent is at a point where it takes a steering message, if one waits (H-232).
pub(crate) fn take_steering(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    run: RunId,
    steer: u64,
) {
    let waiting = step.chat(uri).state().steering_message.clone();
    let (mut message, mut message_id) = (None, None);
    if let Some(waiting) = waiting {
        message_id = take_from_queue(step, uri, turn_id, &waiting.id);
        let agent = step.find_agent(&step.session_of(uri).state().provider);
        if agent.is_some_and(|agent| agent.needs_history) {
            // It would not know of it any more. Another one remembers by itself.
            show_steering(step, uri, turn_id, &waiting.message);
        }
        message = Some(Arc::unwrap_or_clone(waiting.message));
    }
    let reply = AgentReply::Steered { steer, message, message_id };
    step.effect(Effect::Reply { run, reply });
}

/// The agent waits for a steering message from now on.
pub(crate) fn await_steering(step: &mut Step, uri: &ChannelUri, steer: u64) {
    if let Some(run) = step.run_mut(uri) {
        run.await_steering(steer);
    }
    offer_waiting(step, uri);
}

/// Offers the steering message to the agent that waits for one, if it is new to it.
pub(crate) fn offer_waiting(step: &mut Step, uri: &ChannelUri) {
    let chat = step.chat(uri);
    let Some(waiting) = chat.state().steering_message.clone() else {
        return; // it is offered when there is one
    };
    let submitted = chat.private().messages.get(&waiting.id);
    let message_id = submitted.map(|submitted| submitted.id.clone());
    let Some(run) = step.run_mut(uri) else {
        return; // the message begins a turn of its own
    };
    let run_id = run.id();
    // Otherwise nobody asks, or it knows the message already.
    if let Some(steer) = run.offer_steering(&waiting) {
        let reply = AgentReply::SteeringWaits {
            steer,
            message: Arc::unwrap_or_clone(waiting.message),
            message_id,
            pending_id: waiting.id,
        };
        step.effect(Effect::Reply { run: run_id, reply });
    }
}

/// The agent has the message that it was offered. One that was changed or removed meanwhile is shown as what it was: the agent acts on
/// that. A changed one goes on waiting.
pub(crate) fn take_offered(step: &mut Step, uri: &ChannelUri, turn_id: &str, pending_id: &str) {
    let run = step.run_mut(uri);
    let Some(offered) = run.and_then(|run| run.take_offered_steering(pending_id)) else {
        return; // an agent can only take what it was offered, and once
    };
    let waiting = step.chat(uri).state().steering_message.as_ref();
    let still_waits = waiting == Some(&offered);
    let was_changed = waiting.is_some_and(|waiting| waiting.id == offered.id);
    if still_waits {
        take_from_queue(step, uri, turn_id, &offered.id);
        return show_steering(step, uri, turn_id, &offered.message);
    }
    show_steering(step, uri, turn_id, &offered.message);
    record_plain_message(step, uri, &offered.message, turn_id);
    let text = if was_changed {
        "The agent had already received the original; your edit is still waiting."
    } else {
        "The agent had already received this message when you removed it."
    };
    notice(step, uri, turn_id, text);
}

/// A steering message is of the turn from now on; the name of its parts.
fn take_from_queue(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    pending_id: &str,
) -> Option<String> {
    let (_, submitted) = step.chat_mut(uri).take_message(pending_id);
    let message_id = submitted.map(|submitted| submitted.id);
    if let Some(id) = message_id.clone() {
        let turn_id = turn_id.to_owned();
        step.record(Record::MessageStarted { id, turn_id });
    }
    let fields = json!({"kind": "steering", "id": pending_id});
    step.act_as_host(uri, ActionKind::ChatPendingMessageRemoved, fields);
    debug_assert!(
        step.chat(uri).state().steering_message.is_none(),
        "a message that the agent has waits no more"
    );
    message_id
}

/// Steering that was taken is a part of the turn, in the step that takes it: who reads the turn later would not know of it, and people
/// would not find it in what was said.
fn show_steering(step: &mut Step, uri: &ChannelUri, turn_id: &str, message: &Value) {
    let text = message["text"].as_str().unwrap_or("");
    let part = json!({
        "kind": "systemNotification",
        "content": format!("You added: {}", keep_line_breaks(text)),
        "_meta": {wire::meta::STEERING: message},
    });
    let fields = json!({"turnId": turn_id, "part": part});
    step.act_as_host(uri, ActionKind::ChatResponsePart, fields);
}
