//! The steps that show something: content by reference, the system prompt as every agent renders it, and the blocks that
//! a model would be sent.

use std::sync::Arc;

use agent_api::{AgentEvent, Lowering, Section, TextKind};
use compositor::lower::{Capabilities, Target};
use serde_json::{Value, json};
use wire::Digest;

use super::super::step::{ContentRef, unknown_target};
use super::{ScenePlayer, SceneStop};
use crate::lower::lower_message;
use crate::prompt::{CustomInstructions, Prompt};

impl ScenePlayer<'_> {
    /// Stores content and refers to it; if it cannot be stored, a notice says so.
    pub(super) async fn show_content(&self, content: &ContentRef) -> Result<(), SceneStop> {
        let body = self.scope.substitute(&content.text).into_bytes();
        let content_type = self.scope.substitute(&content.content_type);
        let bytes = body.len();
        let stored = self.events.store_body(body, &content_type).await;
        self.send(match stored {
            Ok(content) => AgentEvent::ContentRef(content),
            Err(error) => AgentEvent::Notice {
                text: format!("{bytes} bytes of {content_type} are lost: {error}"),
            },
        })
        .await
    }

    /// Sends the blocks for a target, as JSON text.
    pub(super) async fn show_lowered(&mut self, target: &str) -> Result<(), SceneStop> {
        let name = self.scope.substitute(target);
        let Some(target) = Target::from_name(&name) else {
            return Err(self.play_error("show_lowered", &unknown_target(&name)));
        };
        let capabilities = Capabilities::built_in(target);
        let user = Arc::clone(&self.input.user);
        let sources = &self.input.sources;
        let lowered = lower_message(sources, user, target, capabilities).await;
        let model = self.input.message["model"]["id"].as_str();
        let lowering = Lowering {
            target: target.name(),
            model: model.unwrap_or("").to_owned(),
            blocks: lowered.blocks.clone(),
            diagnostics: lowered.diagnostics,
        };
        self.events.record_lowering(lowering).await;
        let (part, kind) = (self.part_number(0), TextKind::Markdown);
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        let text = Value::Array(lowered.blocks).to_string();
        self.send(AgentEvent::Text { part, text }).await
    }

    /// Sends one render as the JSON array of its sections. Everybody who sees the chat sees it, so of what is restricted only
    /// the digest is in it.
    pub(super) async fn show_prompt(&self) -> Result<(), SceneStop> {
        let facts = self.session.gatherer.gather(&self.session.directories).await;
        let prompt = Prompt {
            agent_name: "the scripted agent".to_owned(),
            environment_context: facts.environment,
            custom_instructions: CustomInstructions {
                listed: Vec::new(),
                files: facts.instructions,
            },
            ..Prompt::default()
        };
        let sections = self.events.render(prompt.render()).await?;
        let text = sections.iter().map(show_section).collect::<Value>().to_string();
        let part = self.part_number(0);
        let kind = TextKind::Markdown;
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        self.send(AgentEvent::Text { part, text }).await
    }
}

fn show_section(section: &Section) -> Value {
    if section.restricted {
        json!({
            "id": section.id,
            "restricted": true,
            "sha256": Digest::of(section.content.as_bytes()).to_string(),
        })
    } else {
        json!({"id": section.id, "content": section.content})
    }
}
