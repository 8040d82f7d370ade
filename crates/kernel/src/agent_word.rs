//! Messages between agents and the host outside of turns: news of sessions, tokens, settings, MCP servers.

use std::fmt;

use agent_api::McpRequest;
use serde_json::Value;
use wire::ChannelUri;

/// What an agent says of a session between turns.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionNews {
    /// The agent that says it: one of another agent is not its to change.
    pub provider: String,
    pub session: ChannelUri,
    pub change: SessionChange,
}

/// What is different about a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Setting {
        name: String,
        value: Value,
    },
    Title(String),
    /// Its MCP servers, all of them.
    McpServers(Vec<Value>),
}

impl SessionChange {
    /// Whether both are about the same thing: the later one replaces the earlier.
    pub fn is_about_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Setting { name, .. }, Self::Setting { name: other, .. }) => name == other,
            (Self::Title(_), Self::Title(_)) | (Self::McpServers(_), Self::McpServers(_)) => true,
            (Self::Setting { .. } | Self::Title(_) | Self::McpServers(_), _) => false,
        }
    }
}

/// What a client wants of an MCP server of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerRequest {
    pub session: ChannelUri,
    pub provider: String,
    /// The customization's.
    pub id: String,
    pub request: McpRequest,
}

/// A setting whose values only its agent knows.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingQuestion {
    pub provider: String,
    /// Absent before there is a session.
    pub session: Option<ChannelUri>,
    pub property: String,
    /// Where the session works or would, as a `file:` URI.
    pub working_directory: Option<String>,
}

/// A token that a client brought for a resource which an agent advertises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientToken {
    pub provider: String,
    /// Whose it is: turns of nobody else use it (H-318). None for the people of the host itself.
    pub principal: Option<String>,
    pub resource: String,
    /// Empty: what was brought before is taken back.
    pub token: TokenText,
    pub expires_in_s: Option<u64>,
}

/// What nobody may read by chance.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(pub String);

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_in_no_debug_output() {
        let brought = ClientToken {
            provider: "p".to_owned(),
            principal: None,
            resource: "https://r".to_owned(),
            token: TokenText("sk-1".to_owned()),
            expires_in_s: None,
        };
        assert!(!format!("{brought:?}").contains("sk-1"));
    }
}
