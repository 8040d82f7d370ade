//! Turns that are older than what the host sent when the chat was opened.

use serde_json::json;

use crate::ClientError;

use super::OpenChat;

impl OpenChat {
    /// Asks for a page of older turns; they are in the state when this is done. What is returned does not borrow the chat.
    pub fn fetch_earlier_turns(
        &self,
    ) -> impl Future<Output = Result<(), ClientError>> + Send + use<> {
        let cursor = self.confirmed().and_then(|chat| chat.turns_next_cursor.clone());
        let params = json!({"channel": self.chat.as_str(), "cursor": cursor});
        let live = self.live.clone();
        async move { live.request("fetchTurns", params).await.map(drop) }
    }
}
