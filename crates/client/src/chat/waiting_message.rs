//! Messages that wait for the agent: what there is, and how one is taken back.
//!
//! Promises: what was taken back carries what it carried before when it is sent again.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::state::PendingMessage;

use crate::ClientError;

use super::{AcceptedCompletions, OpenChat};

/// What a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitReason {
    /// The agent's next opportunity to take it in.
    Steering,
    /// A turn of its own.
    Turn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingMessage {
    pub id: String,
    pub text: String,
    pub waits_for: WaitReason,
    /// Whether it was sent from here.
    pub is_own: bool,
}

impl OpenChat {
    /// The messages that wait, in the order in which the agent gets them.
    pub fn waiting_messages(&self) -> Vec<WaitingMessage> {
        let Some(chat) = self.ahead() else {
            return Vec::new(); // between two connections the chat may not be held
        };
        let message = |waiting: &PendingMessage, waits_for| WaitingMessage {
            id: waiting.id.clone(),
            text: waiting.message["text"].as_str().unwrap_or("").to_owned(),
            waits_for,
            is_own: self.queued.contains(&waiting.id),
        };
        let steering =
            chat.steering_message.iter().map(|waiting| message(waiting, WaitReason::Steering));
        let queued = chat.queued_messages.iter().map(|waiting| message(waiting, WaitReason::Turn));
        steering.chain(queued).collect()
    }

    /// Takes a message back before the agent gets it; its text, or `None` if it does not wait any more.
    pub fn take_back(
        &mut self,
        id: &str,
        accepted: &mut AcceptedCompletions,
    ) -> Result<Option<String>, ClientError> {
        let Some((kind, message)) = self.find_waiting(id) else { return Ok(None) };
        self.dispatch(json!({"type": "chat/pendingMessageRemoved", "kind": kind, "id": id}))?;
        accepted.accept_all_of(&message);
        Ok(Some(message["text"].as_str().unwrap_or("").to_owned()))
    }

    fn find_waiting(&self, id: &str) -> Option<(&'static str, Arc<Value>)> {
        let chat = self.ahead()?;
        let is_it = |waiting: &&PendingMessage| waiting.id == id;
        let steering = chat.steering_message.iter().find(is_it);
        let queued = chat.queued_messages.iter().find(is_it);
        let steering = steering.map(|waiting| ("steering", waiting.message.clone()));
        steering.or_else(|| queued.map(|waiting| ("queued", waiting.message.clone())))
    }
}
