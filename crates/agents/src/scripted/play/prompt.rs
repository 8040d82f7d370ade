//! `show_prompt`: the system prompt as every agent renders it, sent to the user instead of to a model.

use agent_api::{AgentEvent, TextKind};
use serde_json::json;

use super::{ScenePlayer, Stop};
use crate::prompt::{CustomInstructions, Prompt};

impl ScenePlayer<'_> {
    /// Sends one render as the JSON array of its sections.
    pub(super) async fn show_prompt(&self) -> Result<(), Stop> {
        let facts = self
            .session
            .gatherer
            .gather(&self.session.directories)
            .await;
        let prompt = Prompt {
            agent_name: "the scripted agent".to_owned(),
            environment_context: facts.environment,
            custom_instructions: CustomInstructions {
                files: facts.instructions,
            },
            ..Prompt::default()
        };
        let sections = self.events.render(prompt.render()).await?;
        let shown = sections.iter();
        let shown = shown.map(|section| json!({"id": section.id, "content": section.content}));
        let text = shown.collect::<serde_json::Value>().to_string();
        let part = self.part_number(0);
        let kind = TextKind::Markdown;
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        self.send(AgentEvent::Text { part, text }).await
    }
}
