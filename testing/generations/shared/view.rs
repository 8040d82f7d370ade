//! What a session and its chats look like to one client, as JSON: the same questions for every version, whether the client is in
//! this process or in another.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, Default, Clone)]
pub struct View {
    pub session: Value,
    pub chats: BTreeMap<String, Value>,
}

impl View {
    /// The chats that the session lists.
    pub fn listed(&self) -> Vec<String> {
        let chats = self.session["chats"].as_array().into_iter().flatten();
        chats.filter_map(|chat| chat["resource"].as_str().map(str::to_owned)).collect()
    }

    pub fn first(&self) -> String {
        self.listed()[0].clone()
    }

    pub fn chat(&self) -> Value {
        self.chats[&self.first()].clone()
    }

    pub fn turns(&self) -> Vec<Value> {
        self.chat()["turns"].as_array().cloned().unwrap_or_default()
    }

    pub fn last_turn(&self) -> Value {
        self.turns().last().cloned().unwrap_or_default()
    }

    /// What was said, turn by turn: the same in every version.
    pub fn conversation(&self) -> Vec<String> {
        let text = |turn: &Value| {
            let parts = turn["responseParts"].as_array().into_iter().flatten();
            let said: String = parts.filter(|part| part["kind"] == "markdown").filter_map(|part| part["content"].as_str()).collect();
            format!("{} -> {said}", turn["message"]["text"].as_str().unwrap_or(""))
        };
        self.turns().iter().map(text).collect()
    }

    /// The tool call of the active turn that is in this state, with its part.
    pub fn waiting(&self, status: &str) -> Option<Value> {
        let chat = self.chat();
        let mut parts = chat["activeTurn"]["responseParts"].as_array()?.iter();
        parts.find(|part| part["toolCall"]["status"] == status).cloned()
    }

    /// The open question: a part of the turn since 0.6, beside it before.
    pub fn asked(&self) -> Option<Value> {
        let chat = self.chat();
        let parts = chat["activeTurn"]["responseParts"].as_array();
        let open = |part: &&Value| part["kind"] == "inputRequest" && part.get("response").is_none();
        let part = parts.into_iter().flatten().find(open);
        let request = part.map(|part| part["request"].clone());
        request.or_else(|| chat["inputRequests"].get(0).cloned())
    }
}
