//! What would become of a message before it is sent (`x-compose`, G-71).
//!
//! Promises: nothing is sent to anybody but the host, and nothing changes there.

use serde_json::{Value, json};
use wire::Object;
use wire::ext::compose::{COMPOSE, ComposeResult};

use super::OpenChat;
use crate::ClientError;

impl OpenChat {
    /// Checks a message for a model: the one named here, else by the message, else the one that the next message is for.
    pub async fn check_message(
        &self,
        mut message: Object,
        model: Option<&str>,
    ) -> Result<ComposeResult, ClientError> {
        let origin = json!({"kind": "user"});
        message.entry("origin").or_insert(origin);
        let next = || Some(self.next_model()?.id).filter(|_| !message.contains_key("model"));
        if let Some(model) = model.map(str::to_owned).or_else(next) {
            message.insert("model".to_owned(), json!({"id": model}));
        }
        let params = json!({"channel": self.chat.as_str(), "message": Value::Object(message)});
        let answer = self.live.request(COMPOSE, params).await?;
        serde_json::from_value(answer)
            .map_err(|error| ClientError::Unreadable(format!("a check of a message: {error}")))
    }
}
