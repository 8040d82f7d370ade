//! What is half typed in a chat, left for later, here or in another client.
//!
//! Promises: what this client put into the draft it takes out again when it sends (H-236); another client's stays.

use serde_json::json;

use crate::ClientError;

use super::OpenChat;
use super::messages::message;

/// Who put the draft into the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftOwner {
    ThisClient,
    /// Another client, or there is none.
    NotThisClient,
}

impl DraftOwner {
    /// A draft that is there when a chat is opened is taken over: its text goes into this client's editor.
    pub(super) fn when_opened(has_draft: bool) -> Self {
        if has_draft { Self::ThisClient } else { Self::NotThisClient }
    }
}

impl OpenChat {
    /// The text that was left to be sent later.
    pub fn draft_text(&self) -> Option<String> {
        let chat = self.ahead()?;
        let text = chat.draft.as_ref()?["text"].as_str()?;
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    /// Leaves what is half typed for later; an empty text removes this client's draft.
    pub fn save_draft(&mut self, text: &str) -> Result<(), ClientError> {
        if text.is_empty() {
            return self.clear_draft();
        }
        self.draft = DraftOwner::ThisClient;
        let draft = message(text, self.next_model().as_ref(), &[]);
        self.dispatch(json!({"type": "chat/draftChanged", "draft": draft})).map(drop)
    }

    pub(super) fn clear_draft(&mut self) -> Result<(), ClientError> {
        let has_draft = self.ahead().is_some_and(|chat| chat.draft.is_some());
        if self.draft == DraftOwner::ThisClient && has_draft {
            self.dispatch(json!({"type": "chat/draftChanged"}))?;
        }
        self.draft = DraftOwner::NotThisClient;
        Ok(())
    }
}
