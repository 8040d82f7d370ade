//! The scripted agent: plays its script. Needs no model, no key, no network.
//!
//! Promises: the same script and the same message give the same events. It uses the same interface as every agent.
//! Must not know: channels, peers, sequence numbers; that it is used in tests.

mod builtin;
mod number;
mod play;
mod script;
mod shape;
mod step;
mod substitute;

use std::sync::Arc;

use agent_api::{Agent, AgentError, AgentInfo, AgentSession, ModelInfo, SessionFacts};
use async_trait::async_trait;
use serde_json::{Value, json};
use workspace::Confinement;

use crate::prompt::{self, ProjectFactsReader};

pub use crate::locale::Locale;
pub use script::{Script, ScriptError};

/// The provider id.
pub const PROVIDER: &str = "scripted";

/// An agent that plays a script.
#[derive(Debug, Clone)]
pub struct ScriptedAgent {
    script: Arc<Script>,
    locale: Locale,
    gatherer: ProjectFactsReader,
}

impl ScriptedAgent {
    /// The agent with a script, which agents may have in common, in the language of the process.
    pub fn new(script: impl Into<Arc<Script>>) -> Self {
        Self::with_locale(script, Locale::of_environment())
    }

    pub fn with_locale(script: impl Into<Arc<Script>>, locale: Locale) -> Self {
        Self { script: script.into(), locale, gatherer: ProjectFactsReader::default() }
    }

    /// Looks for instructions of the project above working directories too, as far as this allows, and nowhere else.
    #[must_use]
    pub fn with_confinement(self, confinement: Confinement) -> Self {
        let gatherer = ProjectFactsReader::with_confinement(confinement);
        Self { gatherer, ..self }
    }

    /// The agent with the built-in script.
    pub fn builtin() -> Self {
        Self::new(builtin::script())
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    fn info(&self) -> AgentInfo {
        let model = self.script.model.clone();
        AgentInfo {
            provider: PROVIDER.to_owned(),
            display_name: "Scripted agent".to_owned(),
            description: "Plays a script: for a first look, for tests and for client builders. Uses no model."
                .to_owned(),
            models: vec![ModelInfo { id: model.clone(), name: model.clone(), details: wire::Object::new() }],
            capabilities: json!({"multipleChats": {"fork": true, "sideChat": true}}), // G-01
            config_schema: config_schema(),
            renamed_settings: Vec::new(),
            default_model: Some(model),
            sections: prompt::catalogue(),
            protected_resources: Vec::new(),
            customizations: Vec::new(),
        }
    }

    async fn open(&self, session: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError> {
        let script = Arc::clone(&self.script);
        let context = play::SessionContext {
            gatherer: self.gatherer.clone(),
            directories: session.working_directories,
        };
        Ok(Box::new(play::ScriptedSession::new(script, self.locale, context)))
    }
}

fn config_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "pace": {
                "type": "string",
                "title": "Pace",
                "description": "How fast the script's text appears.",
                "enum": ["instant", "typing"],
                "enumLabels": ["At once", "Like typing"],
                "enumDescriptions": ["Every chunk at once.", "20 ms between chunks."],
                "default": "instant",
                "sessionMutable": true,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_chats_forks_and_side_chats_are_offered() {
        let info = ScriptedAgent::builtin().info().to_wire();
        assert_eq!(
            info["capabilities"],
            json!({"multipleChats": {"fork": true, "sideChat": true}})
        );
        let read: Result<wire::published::state::AgentInfo, _> = serde_json::from_value(info);
        let chats = read.unwrap().capabilities.unwrap().multiple_chats.unwrap();
        assert_eq!((chats.fork, chats.side_chat), (Some(true), Some(true)));
    }

    #[test]
    fn the_model_is_the_scripts() {
        let script = Script::parse(r#"{"model": "mine", "scenes": []}"#).unwrap();
        let info = ScriptedAgent::new(script).info();
        assert_eq!(info.default_model.as_deref(), Some("mine"));
        assert_eq!(
            info.to_wire()["models"],
            json!([{"id": "mine", "provider": "scripted", "name": "mine"}])
        );
        assert_eq!(ScriptedAgent::builtin().info().default_model.as_deref(), Some("scripted-1"));
    }
}
