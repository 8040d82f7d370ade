//! Messages that wait: one steering message for the running turn, a queue for the turns after it (H-230 to H-234, G-08). Steering
//! that its turn did not take never waits for another: it begins one, or joins the held queue.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::published::state::PendingMessageKind;
use wire::reduce::Reduced;
use wire::state::{ChatState, PendingMessage};
use wire::{Action, ActionKind, ChannelUri};

use crate::channels::Chat;
use crate::host_command;
use crate::message::{self, is_longer_than, size_of, too_large};
use crate::pause::HandlerAnswers;
use crate::record::Record;
use crate::record_message::{record_message, record_plain_message};
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};
use crate::steering_agent::offer_waiting;
use crate::submission::Submission;
use crate::turn::start::{author_of, begin_turn};

/// Longest id of a waiting message, in bytes.
const ID_BYTES_MAX: usize = 256;

fn is_queued(action: &Action) -> bool {
    action.text("kind") == Some("queued")
}

/// May a client put this message to wait?
pub(crate) fn check_set(
    kernel: &Kernel,
    chat: &Chat,
    action: &mut Action,
    answers: &HandlerAnswers,
) -> Result<(), Refusal> {
    check_kind(action)?;
    let id = action.text("id").unwrap_or("").to_owned();
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(Refusal(format!("`id` must have 1 to {ID_BYTES_MAX} bytes")));
    }
    let queue = &chat.state().queued_messages;
    let steering = chat.state().steering_message.as_ref();
    let known = queue.iter().any(|waiting| waiting.id == id);
    let steers = steering.is_some_and(|waiting| waiting.id == id);
    if (steers && is_queued(action)) || (known && !is_queued(action)) {
        // Reducers remove both when the queued one starts.
        return Err(Refusal::because("a message of the other kind waits under this id"));
    }
    let most = kernel.limits().queued_messages_max;
    if is_queued(action) && !known && queue.len() >= most {
        return Err(Refusal(format!("at most {most} messages may wait in a chat")));
    }
    let bytes_max = kernel.limits().waiting_bytes_max;
    if (action.get("message")).is_some_and(|message| is_longer_than(message, bytes_max)) {
        return Err(too_large(kernel));
    }
    let Some(Value::Object(message)) = action.body.get_mut("message") else {
        return Err(Refusal::because("`message` is missing"));
    };
    message::check(kernel, chat, message, answers)?;
    let waiting: usize = queue
        .iter()
        .chain(steering)
        .filter(|other| other.id != id)
        .map(|other| size_of(&*other.message))
        .sum();
    if waiting + size_of(message) > bytes_max {
        return Err(too_large(kernel));
    }
    Ok(())
}

/// Only what waits can be removed (H-233).
pub(crate) fn check_removed(state: &ChatState, action: &Action) -> Result<(), Refusal> {
    check_kind(action)?;
    let id = action.text("id");
    let waits = if is_queued(action) {
        let mut queue = state.queued_messages.iter();
        queue.any(|waiting| Some(waiting.id.as_str()) == id)
    } else {
        state.steering_message.as_ref().map(|waiting| waiting.id.as_str()) == id
    };
    if waits { Ok(()) } else { Err(Refusal::because("no message with this id waits")) }
}

/// The order as it is echoed names every message that waits: named ones first, the others as they stood, strangers left
/// out (H-234, G-13). Published reducers sort what is not named.
pub(crate) fn check_reordered(state: &ChatState, action: &mut Action) -> Result<(), Refusal> {
    let Some(Value::Array(named)) = action.get("order") else {
        return Err(Refusal::because("`order` is missing"));
    };
    let waiting = state.queued_messages.iter().map(|other| other.id.as_str());
    let mut left: BTreeSet<&str> = waiting.clone().collect();
    let named = named.iter().filter_map(Value::as_str);
    let order: Vec<&str> = named.chain(waiting).filter(|id| left.remove(id)).collect();
    let order = json!(order);
    action.body.insert("order".to_owned(), order);
    Ok(())
}

fn check_kind(action: &Action) -> Result<(), Refusal> {
    match action.text("kind") {
        Some("steering" | "queued") => Ok(()),
        _ => Err(Refusal::because("`kind` must be `steering` or `queued`")),
    }
}

/// A message is put to wait. In an idle chat that starts what is next, even if nothing changed (G-08).
pub(crate) fn set(
    step: &mut Step,
    uri: &ChannelUri,
    action: Action,
    submission: Submission,
    sender: &Sender,
) {
    let queued = is_queued(&action);
    let id = action.text("id").unwrap_or("").to_owned();
    if step.act(uri, action, Some(sender)) == Reduced::Changed {
        // What an update means replaces what the message meant before.
        let (_, before) = step.chat_mut(uri).take_message(&id);
        if let Some(before) = before {
            step.record(Record::MessageGone { id: before.id });
        }
        let mut submitted = record_message(step, uri, submission, None);
        // It may wait for long, and others with it: what it means is read when its turn comes.
        submitted.composed = None;
        let author = author_of(step, sender);
        step.chat_mut(uri).put_message(id, author, submitted);
    }
    if queued {
        let session = step.chat(uri).session().clone();
        step.session_mut(&session).set_start_when_ready(uri, true);
    } else {
        offer_waiting(step, uri);
    }
    start_next(step, uri);
}

/// Starts what is next in an idle chat: steering that no turn took, then the head of the queue.
pub(crate) fn start_next(step: &mut Step, uri: &ChannelUri) {
    let Some(chat) = step.find_chat(uri) else {
        return; // it was disposed of in this step
    };
    let state = chat.state();
    if state.active_turn.is_some() || step.runs().is_stopping() {
        return; // it is next when the turn ends, or after the restart when somebody wants it to be
    }
    let queued = state.queued_messages.first().cloned();
    if let Some(steering) = state.steering_message.clone() {
        // Like a turn of a client it is recorded while the session is being created, and runs after that (G-09).
        start_waiting(step, uri, PendingMessageKind::Steering, steering);
    } else if let Some(queued) = queued
        && step.session_of(uri).is_ready()
    {
        start_waiting(step, uri, PendingMessageKind::Queued, queued); // otherwise when the session is ready
    }
}

/// Begins a turn with a message that waited.
fn start_waiting(
    step: &mut Step,
    uri: &ChannelUri,
    kind: PendingMessageKind,
    next: PendingMessage,
) {
    let (author, mut submitted) = step.chat_mut(uri).take_message(&next.id);
    if let Some(submitted) = &mut submitted {
        let commands = std::mem::take(&mut submitted.commands);
        submitted.commands = host_command::rewind_first(step, uri, commands);
    }
    if kind == PendingMessageKind::Queued {
        let fields = json!({"kind": "queued", "id": next.id});
        step.act_as_host(uri, ActionKind::ChatPendingMessageRemoved, fields); // H-231
    }
    let turn_id = step.chat(uri).free_turn_id(step.seq());
    // The start itself removes steering by its id: a removal before would say that the last turn took it.
    let fields = json!({
        "turnId": turn_id,
        "startedAt": step.now().to_rfc3339(),
        "message": *next.message,
        "queuedMessageId": next.id,
    });
    let started = step.act_as_host(uri, ActionKind::ChatTurnStarted, fields);
    assert!(started, "an idle chat takes a turn");
    let submitted = match submitted {
        Some(submitted) => {
            let id = submitted.id.clone();
            step.record(Record::MessageStarted { id, turn_id });
            submitted
        }
        // Set before messages had rows.
        None => record_plain_message(step, uri, &next.message, &turn_id),
    };
    begin_turn(step, uri, author, submitted);
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
