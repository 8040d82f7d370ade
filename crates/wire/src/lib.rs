//! What both sides of the wire agree on: JSON-RPC messages, channel URIs, actions, state, reducers, versions.
//!
//! Promises: every function here is pure. Input from outside never panics. Unknown fields survive.
//! Must not know: I/O, async runtimes, the host.

pub mod action;
pub mod bounds;
pub mod compat;
pub mod content;
pub mod dialect;
pub mod ext;
pub mod file_uri;
pub mod force;
pub mod mcp_uri;
pub mod meta;
pub mod methods;
pub mod percent;
pub mod quirks;
pub mod reduce;
pub mod rpc;
pub mod state;
pub mod time;
pub mod uri;
pub mod version;

pub use action::{Action, ActionKind, Origin};
/// The published types, for the crates that read params decoded by them.
pub use ahp_types as published;
pub use content::{Digest, NamedBody};
pub use force::ForceOffer;
pub use rpc::{Id, Incoming, RpcError};
pub use time::Timestamp;
pub use uri::{ChannelUri, SessionPart};
pub use version::{Generation, Version};

/// A JSON object that preserves the order of its fields.
pub type Object = serde_json::Map<String, serde_json::Value>;
