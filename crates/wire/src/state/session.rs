//! The state of a session channel: what it is, its chats, who is active in it.

use serde::Serialize;
use serde_json::Value;

use super::{ConfigState, Fields, StateError};
use crate::Object;

/// A session. Optional fields without a field of their own here live in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    pub provider: String,
    pub title: String,
    pub status: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    pub lifecycle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directories: Option<Vec<String>>,
    pub active_clients: Vec<Value>,
    pub chats: Vec<ChatSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_chat: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customizations: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_needed: Vec<Value>,
    #[serde(flatten)]
    pub extra: Object,
}

/// A chat as its session's catalogue lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatSummary {
    pub resource: String,
    pub title: String,
    pub status: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<String>,
    pub modified_at: String,
    #[serde(flatten)]
    pub extra: Object,
}

impl SessionState {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a session", value)?;
        let chats = fields.list("chats").ok_or_else(|| fields.missing("chats"))?;
        Ok(Self {
            provider: fields.text("provider")?,
            title: fields.text("title")?,
            status: fields.status()?,
            activity: fields.optional_text("activity"),
            lifecycle: fields.text("lifecycle")?,
            working_directories: fields.texts("workingDirectories"),
            active_clients: fields
                .list("activeClients")
                .ok_or_else(|| fields.missing("activeClients"))?,
            chats: chats.into_iter().map(ChatSummary::from_value).collect::<Result<_, _>>()?,
            default_chat: fields.optional_text("defaultChat"),
            config: fields.take("config").map(ConfigState::from_value).transpose()?,
            customizations: fields.list("customizations"),
            input_needed: fields.list("inputNeeded").unwrap_or_default(),
            extra: fields.rest(),
        })
    }

    pub fn chat(&self, resource: &str) -> Option<&ChatSummary> {
        self.chats.iter().find(|chat| chat.resource == resource)
    }
}

impl ChatSummary {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a chat summary", value)?;
        Ok(Self {
            resource: fields.text("resource")?,
            title: fields.text("title")?,
            status: fields.status()?,
            activity: fields.optional_text("activity"),
            modified_at: fields.text("modifiedAt")?,
            extra: fields.rest(),
        })
    }
}
