//! What agents are told and asked outside of turns, and what they know.

use kernel::{ClientToken, McpServerRequest, SettingQuestion};
use serde_json::Value;
use wire::{ChannelUri, Object};

/// Everything, in order.
#[derive(Debug, Default)]
pub struct AgentsHeard {
    /// All settings of a session, as often as a client changed some.
    pub settings: Vec<(String, Object)>,
    pub tokens: Vec<ClientToken>,
    /// Principals whose tokens were forgotten.
    pub forgotten: Vec<String>,
    /// What clients want of MCP servers.
    pub mcp_requests: Vec<McpServerRequest>,
    /// Titles that clients gave.
    pub titles: Vec<String>,
    pub unloaded: Vec<String>,
    pub ended: Vec<String>,
    /// What was to be done to terminals.
    pub terminal_acts: Vec<(String, kernel::TerminalTask)>,
    pub asked: Vec<SettingQuestion>,
    /// The values that they know of every setting: `SessionConfigValueItem`s.
    pub values: Vec<Value>,
}

impl AgentsHeard {
    pub(crate) fn tell_values(&mut self, question: SettingQuestion) -> Vec<Value> {
        self.asked.push(question);
        self.values.clone()
    }

    pub(crate) fn hear_settings(&mut self, session: &ChannelUri, values: Object) {
        self.settings.push((session.to_string(), values));
    }
}
