//! The list of a host's sessions.
//!
//! Promises: a summary preserves unknown fields.

use serde_json::{Value, json};
use wire::ChannelUri;
use wire::uri::UriError;

use crate::{ClientError, Live};

/// What a host's list says about a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary(Value);

impl SessionSummary {
    pub fn new(summary: Value) -> Self {
        Self(summary)
    }

    /// The summary as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The session's channel, as text.
    pub fn resource(&self) -> &str {
        self.text("resource")
    }

    pub fn uri(&self) -> Result<ChannelUri, UriError> {
        ChannelUri::parse(self.resource())
    }

    pub fn title(&self) -> &str {
        self.text("title")
    }

    /// The bits of [`wire::state::status`]; none of them if it is missing.
    pub fn status(&self) -> u32 {
        let bits = self.0["status"].as_u64();
        bits.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(0)
    }

    /// When it was modified last, as RFC 3339.
    pub fn modified_at(&self) -> &str {
        self.text("modifiedAt")
    }

    /// Whether the list names this chat as one of the session.
    pub fn has_chat(&self, chat: &ChannelUri) -> bool {
        let mut chats = self.0["chats"].as_array().into_iter().flatten();
        chats.any(|entry| entry["resource"] == chat.as_str())
            || self.0["defaultChat"] == chat.as_str()
    }

    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or("")
    }
}

impl Live {
    /// The sessions of the host, the newest first: the first page, which is more than a person reads.
    pub async fn list_sessions(&self) -> Result<Vec<SessionSummary>, ClientError> {
        self.list_page(json!({}))
            .await
            .map(|(sessions, _)| sessions)
    }

    /// The session that was used last, if there is one.
    pub async fn latest_session(&self) -> Result<Option<SessionSummary>, ClientError> {
        let (sessions, _) = self.list_page(json!({"limit": 1})).await?;
        Ok(sessions.into_iter().next())
    }

    /// All sessions of the host, the newest first, page by page.
    pub async fn list_all_sessions(&self) -> Result<Vec<SessionSummary>, ClientError> {
        let mut sessions = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let (page, next) = self.list_page(params).await?;
            sessions.extend(page);
            // A host that repeats itself would be asked forever.
            if next.is_none() || next == cursor {
                return Ok(sessions);
            }
            cursor = next;
        }
    }

    /// A page of the list, and where the next one begins.
    async fn list_page(
        &self,
        mut params: Value,
    ) -> Result<(Vec<SessionSummary>, Option<String>), ClientError> {
        params["channel"] = json!(ChannelUri::root().as_str());
        let mut page = self.request("listSessions", params).await?;
        let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
            return Err(ClientError::Unreadable(
                "a session list without `items`".to_owned(),
            ));
        };
        let next = page["nextCursor"].as_str().map(str::to_owned);
        Ok((items.into_iter().map(SessionSummary).collect(), next))
    }
}
