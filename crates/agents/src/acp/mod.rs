//! Agents of others, run as processes behind the host over the Agent Client Protocol (ACP).
//!
//! Must not know: channels, peers, sequence numbers.

pub mod config;
pub mod entry;
pub mod presets;

pub use config::{AcpAgentConfig, AcpAuth, EnvSource, Share, TrustPolicy};
pub use entry::{AgentEntry, EntryError};
