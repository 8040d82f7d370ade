//! Which session of the agent a chat has, as it is stored with the chat (AG-40).
//!
//! Promises: small; what cannot be read is as good as none.

use std::path::PathBuf;

use agent_api::CHAT_NOTES_BYTES_MAX;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChatNotes {
    /// Whose session it is: a fork begins with the notes of its source.
    pub(super) chat: String,
    /// The agent's id and command: another one has no such session.
    pub(super) agent: String,
    pub(super) version: Option<String>,
    pub(super) session: String,
    pub(super) cwd: PathBuf,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) dirs: Vec<PathBuf>,
    /// The last turn whose message the agent got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) through: Option<String>,
    /// The digest of what was appended to its prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<String>,
}

impl ChatNotes {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Nothing if there is too much to note: then the chat begins anew with the next process.
    pub(super) fn to_bytes(&self) -> Bytes {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        if bytes.len() <= CHAT_NOTES_BYTES_MAX { bytes.into() } else { Bytes::new() }
    }
}
