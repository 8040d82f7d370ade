//! Agents that speak the Agent Client Protocol, each in processes of its own.
//!
//! Promises: nothing of the protocol's shapes leaves this module; processes live here and end with it.
//! Must not know: channels, peers, sequence numbers.

pub mod config;
mod connection;
pub mod entry;
mod label;
mod line;
mod mapper;
pub mod presets;
mod process;
mod rpc;

pub use config::{AcpAgentConfig, AcpAuth, EnvSource, Share, TrustPolicy};
pub use entry::{AgentEntry, EntryError};
