//! Vendors that can be named instead of an address (G-70).
//!
//! Must not know: keys.

use crate::provider::Api;

/// A vendor of models: where its server is, what it speaks, and where people keep its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vendor {
    pub name: &'static str,
    pub api: Api,
    pub base_url: &'static str,
    pub key_env: &'static str,
}

const VENDORS: [Vendor; 4] = [
    Vendor {
        name: "anthropic",
        api: Api::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        key_env: "ANTHROPIC_API_KEY",
    },
    Vendor {
        name: "openai",
        api: Api::Responses,
        base_url: "https://api.openai.com/v1",
        key_env: "OPENAI_API_KEY",
    },
    Vendor {
        name: "gemini",
        api: Api::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_env: "GEMINI_API_KEY",
    },
    Vendor {
        name: "openrouter",
        api: Api::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_env: "OPENROUTER_API_KEY",
    },
];

/// The vendor of a name.
pub(super) fn find(name: &str) -> Option<Vendor> {
    VENDORS.into_iter().find(|vendor| vendor.name == name)
}
