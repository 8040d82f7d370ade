//! Chats beside the first one: new, forked, on the side, disposed of.

use serde_json::{Value, json};

use crate::scenario_client::ScenarioClient;

impl ScenarioClient {
    /// Asks for a chat in its session; the error if there is one.
    pub fn asks_for_chat(&self, chat: &str, more: Value) -> Result<(), Value> {
        let mut params = json!({"channel": self.session(), "chat": chat});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        let result = self.asks("createChat", params)?;
        assert_eq!(result, Value::Null, "H-012");
        Ok(())
    }

    /// The error code of a chat that must not come to be.
    #[track_caller]
    pub fn is_denied_chat(&self, chat: &str, more: Value) -> i64 {
        let error = self.asks_for_chat(chat, more);
        error.expect_err("should fail")["code"].as_i64().unwrap_or(0)
    }

    /// Creates a chat, watches it and is in it from now on.
    #[track_caller]
    pub fn creates_chat(&self, chat: &str) -> ScenarioClient {
        self.creates_chat_with(chat, json!({}))
    }

    #[track_caller]
    pub fn creates_chat_with(&self, chat: &str, more: Value) -> ScenarioClient {
        self.asks_for_chat(chat, more).expect("the chat is created");
        self.watches(chat);
        self.in_chat(chat)
    }

    /// Forks its chat at this turn, watches the fork and is in it from now on.
    #[track_caller]
    pub fn forks(&self, chat: &str, turn: &str) -> ScenarioClient {
        let source = json!({"kind": "fork", "chat": self.chat(), "turnId": turn});
        self.creates_chat_with(chat, json!({"source": source}))
    }

    /// Opens a side chat to its chat at this turn, watches it and is in it from now on.
    #[track_caller]
    pub fn steps_aside(&self, chat: &str, turn: &str) -> ScenarioClient {
        let source = json!({"kind": "sideChat", "chat": self.chat(), "turnId": turn});
        self.creates_chat_with(chat, json!({"source": source}))
    }

    pub fn disposes_of(&self, chat: &str) -> Result<(), Value> {
        let result = self.asks("disposeChat", json!({"channel": chat}))?;
        assert_eq!(result, Value::Null, "H-012");
        Ok(())
    }

    /// What its session's catalogue says of a chat.
    pub fn listed(&self, chat: &str) -> Value {
        let session = self.sees(&self.session());
        let chats = session["chats"].as_array().cloned().unwrap_or_default();
        let entry = chats.into_iter().find(|entry| entry["resource"] == chat);
        entry.unwrap_or(Value::Null)
    }

    /// URIs of the chats of its session, as this client sees them.
    pub fn chats(&self) -> Vec<String> {
        let session = self.sees(&self.session());
        let chats = session["chats"].as_array().cloned().unwrap_or_default();
        let uri = |chat: &Value| chat["resource"].as_str().unwrap_or("").to_owned();
        chats.iter().map(uri).collect()
    }
}
