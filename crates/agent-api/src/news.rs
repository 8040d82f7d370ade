//! What an agent says between turns, or of what no turn is about.
//!
//! Promises: sending news never blocks, and what waits is bounded: newer news about the same thing takes the place
//! of the older one.
//! Must not know: who receives it.

use serde_json::Value;

use crate::agent::AgentInfo;

/// Where news of an agent goes.
pub trait HostNews: Send + Sync {
    /// The agent's models or description changed. Everybody who is offered agents hears
    /// of it. [`crate::Agent::info`] says the same from now on. A provider that the host has no agent of is not taken.
    fn agent_changed(&self, info: AgentInfo);

    /// A setting of a session has another value now, without a client having set it. A value that the setting cannot have is
    /// not taken.
    fn setting_changed(&self, conversation: &str, name: &str, value: Value);

    /// The MCP servers of a session as they are now: all of them, as `McpServerCustomization`s with their states.
    fn mcp_servers(&self, conversation: &str, servers: Vec<Value>);

    /// A title for a session; one that a client has set stays.
    fn title(&self, conversation: &str, title: String);
}
