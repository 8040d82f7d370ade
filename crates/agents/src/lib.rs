//! What talks to models and tools: the traits every agent implements, and the agents of this house.
//!
//! Promises: an agent is driven through [`Agent`] and [`AgentSession`] alone; dropping a turn's future stops it.
//! Must not know: channels, peers, sequence numbers.

pub mod agent;
pub mod scripted;

pub use agent::{
    Agent, AgentError, AgentEvent, AgentInfo, AgentSession, EventSink, ModelInfo, SessionFacts,
    TextKind, TurnInput, TurnOver,
};
pub use scripted::{Script, ScriptError, ScriptedAgent};
