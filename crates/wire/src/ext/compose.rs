//! `x-compose`: what a message would become if it were sent, before anybody sends it (G-71).
//!
//! Promises: no text of a system prompt is in it.
//! Must not know: how a message is understood.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Object;

/// The request; it also announces the extension in `InitializeResult._meta`.
pub const COMPOSE: &str = "x-compose";

const EXTENSION_VERSION: u32 = 1;

/// `x-compose`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComposeParams {
    /// The chat that it would be sent to; of a session, its default chat.
    pub channel: String,
    /// A `Message`.
    pub message: Object,
    /// Instead of the message's own: a `ModelSelection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Object>,
}

/// What would become of the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComposeResult {
    /// The model that would be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The shapes it would be sent in.
    pub target: String,
    /// Whether a model would be asked at all.
    pub reaches_model: bool,
    pub parts: Vec<ComposedPart>,
    /// What the user would be told.
    pub diagnostics: Vec<String>,
    /// What the parts are estimated to take, as far as that can be known.
    pub tokens: u32,
    /// Whether all of them are in it.
    pub tokens_complete: bool,
    /// What that costs in US dollars, if the model has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The model's window, if its size is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextRoom>,
}

/// What would become of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComposedPart {
    pub part: u32,
    /// The part's type.
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `text`, `native`, `described` or `left out`.
    pub treatment: String,
    /// What it would be in the request.
    pub became: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub bytes: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
}

/// The room in a model's window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextRoom {
    pub size: u32,
    /// What the server last reported for this chat; none if no model was asked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u32>,
    /// What is left for this message and what comes after it.
    pub left: u32,
}

/// The entry of `InitializeResult._meta`.
pub fn support() -> Value {
    json!({"version": EXTENSION_VERSION})
}
