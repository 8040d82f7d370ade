//! Sending: a message starts a turn, waits in the queue, or steers the turn that runs; a turn is cancelled or resumed.
//!
//! Promises: a message that is sent while the agent works waits in the queue, and so does one that another client's turn
//! came before.

use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;
use wire::Timestamp;
use wire::state::Outcome;

use crate::ClientError;

use super::{AcceptedCompletions, ChatError, MessageAttachment, ModelSelection, OpenChat, now};

/// Turns that are remembered until the host may have refused them: one is under way at a time, the rest is slack.
const STARTED_MAX: usize = 16;

/// How a message went off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// It starts a turn.
    Started { turn_id: String },
    /// It waits for the turn that is running.
    Queued,
}

impl OpenChat {
    /// Sends a message, now or when the agent is done.
    pub fn send(&mut self, text: &str) -> Result<Sent, ClientError> {
        self.send_with(text, &[])
    }

    /// Sends a message with what was accepted while it was typed.
    pub fn send_with(
        &mut self,
        text: &str,
        attachments: &[MessageAttachment],
    ) -> Result<Sent, ClientError> {
        let message = message(text, self.next_model().as_ref(), attachments);
        let sent = if self.is_working() {
            self.queue_message(&message)?;
            Sent::Queued
        } else {
            let turn_id = self.dispatch_turn(&message)?;
            if self.queue_if_refused.len() == STARTED_MAX {
                self.queue_if_refused.remove(0);
            }
            self.queue_if_refused.push(turn_id.clone());
            Sent::Started { turn_id }
        };
        self.clear_draft()?;
        Ok(sent)
    }

    /// Starts a turn, whether or not one is running; the host refuses it then. Returns the turn's id.
    pub fn start_turn(
        &mut self,
        text: &str,
        attachments: &[MessageAttachment],
    ) -> Result<String, ClientError> {
        let message = message(text, self.next_model().as_ref(), attachments);
        self.dispatch_turn(&message)
    }

    fn dispatch_turn(&self, message: &Value) -> Result<String, ClientError> {
        let turn_id = format!("turn-{}", Uuid::now_v7());
        self.dispatch(json!({
            "type": "chat/turnStarted",
            "turnId": turn_id,
            "startedAt": now().to_rfc3339(),
            "message": message,
        }))?;
        Ok(turn_id)
    }

    /// Tells the agent something while it works.
    pub fn steer(
        &mut self,
        text: &str,
        attachments: &[MessageAttachment],
    ) -> Result<(), ClientError> {
        let id = format!("steering-{}", Uuid::now_v7());
        self.dispatch(json!({
            "type": "chat/pendingMessageSet",
            "kind": "steering",
            "id": id,
            "message": message(text, self.next_model().as_ref(), attachments),
        }))?;
        self.queued.push(id);
        self.clear_draft()
    }

    pub(super) fn queue_message(&mut self, message: &Value) -> Result<(), ClientError> {
        let id = format!("queued-{}", Uuid::now_v7());
        if let Some(chat) = self.ahead() {
            let waits = |id: &String| {
                let mut waiting = chat.steering_message.iter().chain(&chat.queued_messages);
                waiting.any(|waiting| waiting.id == *id)
            };
            self.queued.retain(waits);
        }
        self.dispatch(json!({
            "type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message,
        }))?;
        self.queued.push(id);
        Ok(())
    }

    /// Sets a queue in motion that is paused since a turn was cancelled or failed (G-08); `false` if it is empty.
    pub fn release_queue(&self) -> Result<bool, ClientError> {
        let chat = self.ahead();
        let Some(head) = chat.as_ref().and_then(|chat| chat.queued_messages.first()) else {
            return Ok(false);
        };
        self.dispatch(json!({
            "type": "chat/pendingMessageSet", "kind": "queued", "id": head.id, "message": *head.message,
        }))?;
        Ok(true)
    }

    /// Cancels the turn that is running; `false` if none is.
    pub fn cancel(&self) -> Result<bool, ClientError> {
        let chat = self.ahead();
        let Some(turn) = chat.as_ref().and_then(|chat| chat.active_turn.as_ref()) else {
            return Ok(false);
        };
        let started = Timestamp::parse_rfc3339(&turn.started_at);
        let duration = started.map_or(0, |started| now().ms_since(started));
        self.dispatch(
            json!({"type": "chat/turnCancelled", "turnId": turn.id, "duration": duration}),
        )?;
        Ok(true)
    }

    /// Takes up the last turn again, if it failed in a way that allows it.
    pub fn resume(&self) -> Result<(), ChatError> {
        let chat = self.ahead().ok_or(ChatError::Gone)?;
        if chat.active_turn.is_some() {
            return Err(ChatError::TurnRunning);
        }
        let last = chat.turns.last().ok_or(ChatError::NoTurn)?;
        if last.outcome != (Outcome::Error { resumable: true }) {
            return Err(ChatError::NotResumable);
        }
        self.dispatch(json!({"type": "chat/turnResume", "turnId": last.id}))?;
        Ok(())
    }

    /// Goes back to before a turn: it and those after it are removed from the chat.
    pub fn rewind_before(&self, turn_id: &str) -> Result<(), ChatError> {
        let chat = self.ahead().ok_or(ChatError::Gone)?;
        let index = match &chat.active_turn {
            Some(turn) if turn.id == turn_id => chat.turns.len(),
            _ => chat.turns.position(turn_id).ok_or(ChatError::NoTurn)?,
        };
        let mut action = json!({"type": "chat/truncated"});
        let before = index.checked_sub(1);
        match before.and_then(|before| chat.turns.as_slice().get(before)) {
            Some(before) => action["turnId"] = json!(before.id),
            // Without a turn to keep everything would go, also what is not held here.
            None if chat.turns_next_cursor.is_some() => return Err(ChatError::EarlierTurnsNotHeld),
            None => {}
        }
        self.dispatch(action)?;
        Ok(())
    }

    /// The last message of the chat, which can be written anew: its turn and its text.
    pub fn last_message(&self, accepted: &mut AcceptedCompletions) -> Option<(String, String)> {
        let chat = self.ahead()?;
        let (id, message) = match &chat.active_turn {
            Some(turn) => (turn.id.clone(), turn.message.clone()),
            None => {
                let last = chat.turns.last()?;
                (last.id.clone(), Arc::new(last.value()["message"].take()))
            }
        };
        let text = message["text"].as_str()?.to_owned();
        accepted.accept_all_of(&message);
        Some((id, text))
    }

    /// The turn that runs, else the last one.
    pub fn last_turn_id(&self) -> Option<String> {
        let chat = self.ahead()?;
        match &chat.active_turn {
            Some(turn) => Some(turn.id.clone()),
            None => chat.turns.last().map(|turn| turn.id.clone()),
        }
    }

    /// Whether anything was said in the chat.
    pub fn has_turns(&self) -> bool {
        let chat = self.ahead();
        chat.is_some_and(|chat| chat.active_turn.is_some() || !chat.turns.is_empty())
    }

    /// The texts of the messages in the history, the oldest first.
    pub fn history(&self) -> Vec<String> {
        let chat = self.confirmed();
        let turns = chat.as_ref().map_or(&[][..], |chat| chat.turns.as_slice());
        let texts = turns.iter().filter_map(|turn| {
            let message = &turn.value()["message"];
            message["text"].as_str().map(str::to_owned)
        });
        texts.collect()
    }
}

pub(super) fn message(
    text: &str,
    model: Option<&ModelSelection>,
    attachments: &[MessageAttachment],
) -> Value {
    let mut message = json!({"text": text, "origin": {"kind": "user"}});
    if let Some(model) = model {
        message["model"] = json!({"id": model.id});
        if !model.settings.is_empty() {
            message["model"]["config"] = json!(model.settings);
        }
    }
    if !attachments.is_empty() {
        let attachments = attachments.iter().map(|attachment| attachment.0.clone());
        message["attachments"] = attachments.collect();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_model_and_carries_its_attachments() {
        assert_eq!(message("hi", None, &[]), json!({"text": "hi", "origin": {"kind": "user"}}));
        let attachment = MessageAttachment(json!({"type": "simple"}));
        let mut model = ModelSelection { id: "m".to_owned(), ..ModelSelection::default() };
        assert_eq!(
            message("hi", Some(&model), &[attachment]),
            json!({
                "text": "hi", "origin": {"kind": "user"},
                "model": {"id": "m"}, "attachments": [{"type": "simple"}],
            })
        );
        model.settings.insert("effort".to_owned(), json!("high"));
        assert_eq!(
            message("hi", Some(&model), &[])["model"],
            json!({"id": "m", "config": {"effort": "high"}})
        );
    }
}
