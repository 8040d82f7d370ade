//! What talks to models and tools: the traits every agent implements, and the agents of this house.
//!
//! Promises: an agent is driven through [`Agent`] and [`AgentSession`] alone; dropping a turn's future stops it.
//! Must not know: channels, peers, sequence numbers.

pub mod agent;
pub mod event;
mod locale;
pub mod message;
pub mod native;
pub mod prompt;
pub mod provider;
pub mod scripted;
pub mod sink;
pub mod tool;

pub use agent::{
    Agent, AgentError, AgentInfo, AgentSession, ModelInfo, PastTurn, SessionFacts, TurnInput,
};
pub use event::{AgentEvent, AgentReply, TextKind, ToolStart, Worker};
pub use message::{Outside, ToLower, UserMessage, without_bodies};
pub use native::{Model, NativeAgent};
pub use scripted::{Script, ScriptError, ScriptedAgent};
pub use sink::{Ear, EventSink, NobodyWaits, Replies, TurnOver};
