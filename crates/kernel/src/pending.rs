//! Messages that wait: one steering message for the running turn, a queue for the turns after it (H-230 to H-234, G-08).

use std::collections::BTreeSet;

use agent_api::AgentReply;
use serde_json::{Value, json};
use wire::reduce::Reduced;
use wire::state::ChatState;
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::channel::ChatChannel;
use crate::io::{Effect, RunId};
use crate::load::Memo;
use crate::message::{size_of, too_large};
use crate::record::Record;
use crate::speak::Sender;
use crate::submit::Submission;

/// Longest id of a waiting message, in bytes.
const ID_BYTES_MAX: usize = 256;

fn is_queued(action: &Action) -> bool {
    action.text("kind") == Some("queued")
}

pub(crate) fn validate_set(
    kernel: &Kernel,
    chat: &ChatChannel,
    mut action: Action,
    memo: &Memo,
) -> Result<Permit, Refusal> {
    kind_of(&action)?;
    let id = action.text("id").unwrap_or("").to_owned();
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return Err(Refusal(format!("`id` must have 1 to {ID_BYTES_MAX} bytes")));
    }
    let queue = &chat.state.queued_messages;
    let known = queue.iter().any(|waiting| waiting.id == id);
    let steers = chat.state.steering_message.as_ref();
    let steers = steers.is_some_and(|waiting| waiting.id == id);
    if (steers && is_queued(&action)) || (known && !is_queued(&action)) {
        // Reducers take both away when the queued one starts.
        return Err(Refusal::because(
            "a message of the other kind waits under this id",
        ));
    }
    if is_queued(&action) && !known && queue.len() >= kernel.limits.queued_messages_max {
        return Err(Refusal(format!(
            "at most {} messages may wait in a chat",
            kernel.limits.queued_messages_max
        )));
    }
    let Some(Value::Object(message)) = action.body.get_mut("message") else {
        return Err(Refusal::because("`message` is missing"));
    };
    kernel.check_message(chat, message, memo)?;
    let new = size_of(&Value::Object(message.clone()));
    let steering = chat.state.steering_message.as_ref();
    let waiting = queue.iter().chain(steering).filter(|other| other.id != id);
    let waiting: usize = waiting.map(|other| size_of(&other.message)).sum();
    if waiting + new > kernel.limits.waiting_bytes_max {
        return Err(too_large(kernel));
    }
    Ok(Permit(action))
}

/// Only what waits can be removed (H-233).
pub(crate) fn validate_removed(state: &ChatState, action: Action) -> Result<Permit, Refusal> {
    kind_of(&action)?;
    let id = action.text("id");
    let waits = if is_queued(&action) {
        let mut queue = state.queued_messages.iter();
        queue.any(|waiting| Some(waiting.id.as_str()) == id)
    } else {
        let steering = state.steering_message.as_ref();
        steering.map(|waiting| waiting.id.as_str()) == id
    };
    if waits {
        Ok(Permit(action))
    } else {
        Err(Refusal::because("no message with this id waits"))
    }
}

/// The order as it is echoed names every message that waits: named ones first, the others as they stood, strangers left
/// out (H-234, G-13). Published reducers sort what is not named.
pub(crate) fn validate_reordered(state: &ChatState, mut action: Action) -> Result<Permit, Refusal> {
    let Some(Value::Array(named)) = action.get("order") else {
        return Err(Refusal::because("`order` is missing"));
    };
    let waiting = state.queued_messages.iter().map(|other| other.id.as_str());
    let mut left: BTreeSet<&str> = waiting.clone().collect();
    let named = named.iter().filter_map(Value::as_str);
    let order: Vec<&str> = named.chain(waiting).filter(|id| left.remove(id)).collect();
    let order = json!(order);
    action.body.insert("order".to_owned(), order);
    Ok(Permit(action))
}

fn kind_of(action: &Action) -> Result<(), Refusal> {
    match action.text("kind") {
        Some("steering" | "queued") => Ok(()),
        _ => Err(Refusal::because("`kind` must be `steering` or `queued`")),
    }
}

impl Kernel {
    /// A message is put to wait. In the queue of an idle chat it starts what is at the head, even if nothing changed
    /// (G-08).
    pub(crate) fn set_pending(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        submission: Option<Submission>,
        sender: &Sender,
    ) {
        let queued = is_queued(&action);
        let id = action.text("id").unwrap_or("").to_owned();
        if self.act(uri, action, Some(sender)) == Reduced::Changed {
            if let Some(submission) = submission {
                // An update is understood anew (compositor 3.5).
                self.forget_messages(uri, std::slice::from_ref(&id));
                let submitted = self.record_submission(uri, submission, None);
                if let Some(chat) = self.chat_mut(uri) {
                    chat.messages.insert(id.clone(), submitted);
                }
            }
            if let Some(chat) = self.chat_mut(uri).filter(|_| queued) {
                chat.authors.insert(id, sender.origin.client_id.clone());
            }
            self.chat_followed(uri);
        }
        if queued {
            self.wait_for_ready(uri, true);
            self.start_queued(uri);
        }
    }

    /// A queue that is set while its session is being created starts when that is ready; a cancel holds it again.
    pub(crate) fn wait_for_ready(&mut self, uri: &ChannelUri, waits: bool) {
        let Some(session) = self.chat(uri).map(|chat| chat.session.clone()) else {
            return;
        };
        if let Some(channel) = self.session_mut(&session)
            && channel.state.lifecycle == "creating"
        {
            match waits {
                true => channel.eager.insert(uri.clone()),
                false => channel.eager.remove(uri),
            };
        }
    }

    /// Starts the message at the head of the queue, if the chat is idle and its session takes turns.
    pub(crate) fn start_queued(&mut self, uri: &ChannelUri) {
        let Some(chat) = self.chat(uri) else { return };
        let ready = self
            .session_state(&chat.session)
            .is_some_and(|session| session.lifecycle == "ready");
        let Some(next) = chat.state.queued_messages.first().cloned() else {
            return;
        };
        if !ready || self.stopping || chat.state.active_turn.is_some() {
            return;
        }
        let mut submitted = self
            .chat_mut(uri)
            .and_then(|chat| chat.messages.remove(&next.id));
        if let Some(submitted) = &mut submitted {
            let steps = std::mem::take(&mut submitted.steps);
            submitted.steps = self.rewind_first(uri, steps);
        }
        let fields = json!({"kind": "queued", "id": next.id});
        self.act(
            uri,
            Action::host("chat/pendingMessageRemoved", fields),
            None,
        ); // H-231
        let turn_id = self.free_turn_id(uri);
        let fields = json!({
            "turnId": turn_id,
            "startedAt": self.now.to_rfc3339(),
            "message": next.message,
            "queuedMessageId": next.id,
        });
        if self.act(uri, Action::host("chat/turnStarted", fields), None) == Reduced::Changed {
            let author = self
                .chat_mut(uri)
                .and_then(|chat| chat.authors.remove(&next.id));
            let submitted = match submitted {
                Some(submitted) => {
                    let id = submitted.id.clone();
                    self.out
                        .records
                        .push(Record::MessageStarted { id, turn_id });
                    submitted
                }
                // Put there before messages had rows.
                None => self.record_plain(uri, &next.message, &turn_id),
            };
            self.turn_started(uri, author, submitted);
        }
    }

    /// A turn id from the seq that will create it. Seqs only rise, so nobody but a client that guessed it can have
    /// taken it (G-26).
    pub(crate) fn free_turn_id(&self, uri: &ChannelUri) -> String {
        let base = format!("t{}", self.seq.0 + 1);
        let taken = |id: &str| {
            self.chat(uri)
                .is_some_and(|chat| chat.foreseen.contains(id))
        };
        let mut id = base.clone();
        let mut suffix = 0;
        while taken(&id) {
            suffix += 1;
            id = format!("{base}-{suffix}");
        }
        id
    }

    /// The agent is at a point where it takes a steering message, if one waits (H-232).
    pub(crate) fn take_steering(&mut self, uri: &ChannelUri, run: RunId, steer: u64) {
        let waiting = self
            .chat_state(uri)
            .and_then(|state| state.steering_message.clone());
        let mut message_id = None;
        let message = waiting.map(|waiting| {
            let submitted = self
                .chat_mut(uri)
                .and_then(|chat| chat.messages.remove(&waiting.id));
            if let (Some(submitted), Some(turn_id)) = (submitted, self.active_turn_id(uri)) {
                let id = submitted.id.clone();
                self.out
                    .records
                    .push(Record::MessageStarted { id, turn_id });
                message_id = Some(submitted.id);
            }
            let fields = json!({"kind": "steering", "id": waiting.id});
            self.act(
                uri,
                Action::host("chat/pendingMessageRemoved", fields),
                None,
            );
            self.chat_followed(uri);
            self.keep_steering(uri, &waiting.message);
            waiting.message
        });
        let reply = AgentReply::Steered {
            steer,
            message,
            message_id,
        };
        self.out.effects.push(Effect::Reply { run, reply });
    }

    /// What was taken is a part of the turn, in the step that takes it: an agent that is reminded by the journal would
    /// not know of it any more, and people would not find it in what was said.
    fn keep_steering(&mut self, uri: &ChannelUri, message: &Value) {
        let session = self
            .chat(uri)
            .and_then(|chat| self.session_state(&chat.session));
        let agents = &self.facts.agents;
        let agent = session.and_then(|session| {
            let mut agents = agents.iter();
            agents.find(|agent| agent.provider == session.provider)
        });
        let Some(turn_id) = self.active_turn_id(uri) else {
            return;
        };
        if !agent.is_some_and(|agent| agent.needs_history) {
            return;
        }
        let text = message["text"].as_str().unwrap_or("");
        let part = json!({
            "kind": "systemNotification",
            "content": format!("Said in between: {text}"),
            "_meta": {wire::meta::STEERING: message},
        });
        let fields = json!({"turnId": turn_id, "part": part});
        self.act(uri, Action::host("chat/responsePart", fields), None);
    }

    /// Messages that waited are not to be sent any more.
    pub(crate) fn forget_messages(&mut self, uri: &ChannelUri, ids: &[String]) {
        for id in ids {
            let Some(chat) = self.chat_mut(uri) else {
                return;
            };
            if let Some(submitted) = chat.messages.remove(id) {
                let id = submitted.id;
                self.out.records.push(Record::MessageGone { id });
                self.undo.touch(uri);
                self.dirty.insert(uri.clone());
            }
        }
    }
}

/// Whether a client took a turn id that the host could come to use: `t` and a seq that is yet to come.
pub(crate) fn is_foreseen(turn_id: &str, seq: u64) -> bool {
    let number = turn_id.strip_prefix('t').map(|rest| {
        let end = rest.find('-').unwrap_or(rest.len());
        &rest[..end]
    });
    number
        .and_then(|number| number.parse::<u64>().ok())
        .is_some_and(|number| number > seq)
}
