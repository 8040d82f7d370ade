//! The agents: the scripted one, the native one with its providers, tools and prompt sections, and external ones over ACP.
//!
//! Promises: an agent is driven through `agent_api` alone; dropping a turn's future stops it.
//! Must not know: channels, peers, sequence numbers.

pub mod acp;
mod call_output;
mod data_file;
mod isolation;
mod locale;
pub mod lower;
pub mod mcp;
mod mcp_settings;
pub mod model_data;
pub mod native;
pub mod permission;
pub mod prompt;
pub mod provider;
pub mod scripted;
mod secret_values;
mod server_entry;
mod settings_entry;
pub mod sink;
mod task;
#[cfg(test)]
mod test_turn;
pub mod tool;
pub mod trust;
pub mod user_command;

pub use mcp_settings::McpSettings;
pub use native::{Model, NativeAgent};
pub use scripted::{Script, ScriptError, ScriptedAgent};
pub use settings_entry::SettingsEntryError;
