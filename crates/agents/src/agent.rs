//! What every agent looks like from outside: a turn goes in, events come out.
//!
//! Promises: a turn ends by returning, `Ok` for complete and `Err` for failed. A cancel drops the future, so every
//! await is a point where the turn may end; nothing an agent must do afterwards may be left behind one.
//! Must not know: channels, peers, sequence numbers.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use wire::ext::system_message_transform::SystemMessageSection;

use crate::message::{Outside, UserMessage};
use crate::prompt::Section;
use crate::sink::EventSink;

/// What an agent says about itself before any session exists.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentInfo {
    pub provider: String,
    pub display_name: String,
    pub description: String,
    pub models: Vec<ModelInfo>,
    /// `AgentCapabilities`: what is there is supported, what is absent must not be used.
    pub capabilities: Value,
    /// `SessionConfigSchema` of the agent's sessions.
    pub config_schema: Value,
    /// The model of a message that names none (G-12).
    pub default_model: Option<String>,
    /// Every section of its system prompt, none of them restricted: what is, the host decides.
    pub sections: Vec<SystemMessageSection>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    /// Further fields of `SessionModelInfo`.
    pub details: wire::Object,
}

impl AgentInfo {
    /// `AgentInfo` of AHP 1.0.
    pub fn to_wire(&self) -> Value {
        let models: Vec<Value> = self
            .models
            .iter()
            .map(|model| model.to_wire(&self.provider))
            .collect();
        json!({
            "provider": self.provider,
            "displayName": self.display_name,
            "description": self.description,
            "models": models,
            "capabilities": self.capabilities,
        })
    }
}

impl ModelInfo {
    /// `SessionModelInfo` of AHP 1.0.
    pub fn to_wire(&self, provider: &str) -> Value {
        let mut info = json!({"id": self.id, "provider": provider, "name": self.name});
        if let Some(info) = info.as_object_mut() {
            info.extend(self.details.clone());
        }
        info
    }
}

/// A kind of agent: the one thing that opens sessions of its own.
#[async_trait]
pub trait Agent: Send + Sync {
    fn info(&self) -> AgentInfo;

    /// Whether its turns need the turns before them.
    fn remembers(&self) -> bool {
        false
    }

    /// What its system prompt is when a session begins; nothing if it renders none then (G-02).
    async fn opening(&self, _session: SessionFacts, _config: wire::Object) -> Option<Vec<Section>> {
        None
    }

    async fn open(&self, session: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError>;
}

/// One conversation with an agent. Works on one turn at a time.
#[async_trait]
pub trait AgentSession: Send {
    async fn turn(&mut self, input: TurnInput, events: &EventSink) -> Result<(), AgentError>;
}

/// What an agent is told when a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Names the conversation; opaque.
    pub conversation: String,
    /// `file:` URIs, the default one first.
    pub working_directories: Vec<String>,
}

/// A turn of before, and what was said in it by users: the message that began it, then those that steered it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PastTurn {
    /// The whole `Turn`.
    pub turn: Value,
    pub messages: Vec<Arc<UserMessage>>,
}

/// What a turn is about.
#[derive(Debug, Clone)]
pub struct TurnInput {
    /// The text of the user's message, lowered (G-06).
    pub text: String,
    /// The whole `Message`.
    pub message: Value,
    /// What it means.
    pub user: Arc<UserMessage>,
    /// Whether it says anything but what the host has done already.
    pub reaches_model: bool,
    /// The agent is to remember less before anything else; what was said with that.
    pub compact: Option<String>,
    /// What messages refer to.
    pub outside: Outside,
    /// The session's configuration values.
    pub config: wire::Object,
    /// Set when the turn is resumed, with the last checkpoint if one was made (G-04).
    pub resume: Option<Option<Vec<u8>>>,
    /// What a worker was spawned with: the `brief` of its [`crate::Worker`].
    pub brief: Option<Vec<u8>>,
    /// The turns before this one, oldest first; only for an agent that [`Agent::remembers`].
    pub history: Vec<PastTurn>,
    /// What is left of turns that were forgotten.
    pub summary: Option<String>,
    /// Of a resumed turn: the response parts it has so far.
    pub said: Vec<Value>,
    /// The session has no title yet.
    pub untitled: bool,
    /// What the agent last noted about the session ([`crate::AgentEvent::Noted`]).
    pub notes: Option<Vec<u8>>,
}

/// Why a turn failed, or a session could not be opened. The user reads the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    pub error_type: String,
    pub message: String,
    pub resumable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_has_every_field_a_client_needs() {
        let info = AgentInfo {
            provider: "scripted".to_owned(),
            display_name: "Scripted agent".to_owned(),
            description: "Plays a script.".to_owned(),
            models: vec![ModelInfo {
                id: "m".to_owned(),
                name: "M".to_owned(),
                details: wire::Object::new(),
            }],
            capabilities: json!({}),
            config_schema: json!({"type": "object", "properties": {}}),
            default_model: Some("m".to_owned()),
            sections: Vec::new(),
        };
        let expected = json!({
            "provider": "scripted",
            "displayName": "Scripted agent",
            "description": "Plays a script.",
            "models": [{"id": "m", "provider": "scripted", "name": "M"}],
            "capabilities": {},
        });
        assert_eq!(info.to_wire(), expected);
    }
}
