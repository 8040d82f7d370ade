//! Messages that wait, and histories that are cut: queue, steering, truncate.

use serde_json::{Value, json};

use crate::scenario_client::ScenarioClient;

/// A user's message.
pub fn message(text: &str) -> Value {
    json!({"text": text, "origin": {"kind": "user"}})
}

impl ScenarioClient {
    pub fn pending_set(&self, kind: &str, id: &str, text: &str) -> Value {
        json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message(text)})
    }

    pub fn pending_removed(&self, kind: &str, id: &str) -> Value {
        json!({"type": "chat/pendingMessageRemoved", "kind": kind, "id": id})
    }

    /// Puts a message into the queue, or replaces the one with this id.
    pub fn queues(&self, id: &str, text: &str) -> Result<(), String> {
        self.tries(&self.chat(), self.pending_set("queued", id, text))
    }

    pub fn unqueues(&self, id: &str) -> Result<(), String> {
        self.tries(&self.chat(), self.pending_removed("queued", id))
    }

    pub fn reorders(&self, order: &[&str]) -> Result<(), String> {
        let action = json!({"type": "chat/queuedMessagesReordered", "order": order});
        self.tries(&self.chat(), action)
    }

    pub fn steers(&self, id: &str, text: &str) -> Result<(), String> {
        self.tries(&self.chat(), self.pending_set("steering", id, text))
    }

    pub fn unsteers(&self, id: &str) -> Result<(), String> {
        self.tries(&self.chat(), self.pending_removed("steering", id))
    }

    /// Ids of the messages that wait in its chat.
    pub fn queue(&self) -> Vec<String> {
        let waiting = self.sees(&self.chat())["queuedMessages"].as_array().cloned();
        let id = |message: &Value| message["id"].as_str().unwrap_or("").to_owned();
        waiting.unwrap_or_default().iter().map(id).collect()
    }

    /// Texts of the messages of all turns that this client sees in its chat, the running one last.
    pub fn sent_messages(&self) -> Vec<String> {
        let chat = self.sees(&self.chat());
        let turns = chat["turns"].as_array().cloned().unwrap_or_default();
        let turns = turns.iter().chain(chat.get("activeTurn"));
        let text = |turn: &Value| turn["message"]["text"].as_str().unwrap_or("").to_owned();
        turns.map(text).collect()
    }

    /// Starts so many turns, one after the other; their ids.
    pub fn sends_messages(&self, count: usize) -> Vec<String> {
        (0..count).map(|n| self.sends_message(&format!("m{n}"))).collect()
    }

    /// Ids of the turns that this client sees in its chat, the running one left out.
    pub fn turns(&self) -> Vec<String> {
        let turns = self.sees(&self.chat())["turns"].as_array().cloned();
        let id = |turn: &Value| turn["id"].as_str().unwrap_or("").to_owned();
        turns.unwrap_or_default().iter().map(id).collect()
    }

    /// Removes the turns after this one.
    pub fn truncates(&self, turn: &str) -> Result<(), String> {
        let action = json!({"type": "chat/truncated", "turnId": turn});
        self.tries(&self.chat(), action)
    }

    pub fn truncates_all(&self) -> Result<(), String> {
        self.tries(&self.chat(), json!({"type": "chat/truncated"}))
    }

    /// Loads the page before what it has.
    #[track_caller]
    pub fn fetches_turns(&self) -> Value {
        let mut params = json!({"channel": self.chat()});
        if let Some(cursor) = self.sees(&self.chat()).get("turnsNextCursor") {
            params["cursor"] = cursor.clone();
        }
        self.asks("fetchTurns", params).expect("a page is loaded")
    }
}
