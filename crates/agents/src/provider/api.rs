//! The wire formats that are spoken, and how each wants its key.
//!
//! Must not know: what is asked.

use compositor::lower::Target;
use serde::{Deserialize, Serialize};

/// A wire format of model servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// OpenAI's Chat Completions, and all that speak like it.
    #[default]
    Chat,
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// Google's Gemini.
    Gemini,
}

impl Api {
    pub const ALL: [Self; 4] = [Self::Chat, Self::Anthropic, Self::Responses, Self::Gemini];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The shapes that users' messages have in it.
    pub fn target(self) -> Target {
        match self {
            Self::Chat => Target::OpenaiChat,
            Self::Anthropic => Target::Anthropic,
            Self::Responses => Target::OpenaiResponses,
            Self::Gemini => Target::Gemini,
        }
    }

    /// Whether its servers refuse a conversation as a whole for what is in it, and again for as long as that is in it. A refusal of
    /// other servers is what the model itself says.
    pub(crate) fn refuses_conversations(self) -> bool {
        match self {
            Self::Anthropic | Self::Gemini => true,
            Self::Chat | Self::Responses => false,
        }
    }

    /// The header that carries the key unless the configuration says otherwise (G-61).
    pub(super) fn key_header(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "authorization",
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
        }
    }

    /// Headers that every request has.
    pub(super) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
            Self::Chat | Self::Responses | Self::Gemini => &[],
        }
    }

    /// What a question adds to the query of its address.
    pub(super) fn query(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Gemini => &[("alt", "sse")],
            Self::Chat | Self::Anthropic | Self::Responses => &[],
        }
    }
}
