//! Commands whose text the agent knows: asked for while a message is understood, before it is recorded (MC-12).
//!
//! Promises: a message that names none costs nothing; a prompt that cannot be had refuses the message.
//! Must not know: where an agent has the text from.

use std::sync::Arc;

use agent_api::Agent;
use compositor::command::PromptUse;
use kernel::{ComposeTask, WorkFailed};
use serde_json::Value;

use super::Bodies;
use super::bodies::known_names;
use crate::compose::{KnownNames, compose_message, facts_of};

/// Prompts of one message.
const PROMPTS_MAX: usize = 8;

/// How such commands begin (G-74).
const PREFIX: &str = "/mcp:";

/// The texts of the prompts in a message, or why they cannot be had.
#[derive(Debug, Default)]
pub(super) struct PromptAnswers(Vec<(PromptUse, Result<String, String>)>);

impl PromptAnswers {
    pub(super) fn add_to(self, known: &mut KnownNames) {
        for (used, answer) in self.0 {
            known.catalogue.answer_prompt(used, answer);
        }
    }
}

impl Bodies {
    /// Asks an agent for the prompts that a message names.
    pub(super) async fn ask_for_prompts(
        &self,
        compose: &ComposeTask,
        agent: Option<&Arc<dyn Agent>>,
    ) -> Result<PromptAnswers, WorkFailed> {
        let (Some(agent), true) = (agent, may_name_prompt(&compose.message)) else {
            return Ok(PromptAnswers::default());
        };
        let mut facts = facts_of(&compose.context, &compose.working_directories);
        facts.plugins = self.plugins().of(&compose.context.session);
        agent.prepare_commands(&facts, &compose.context.switched_off).await;
        let (discovery, plugins, now) = (self.discovery(), self.plugins().clone(), self.now());
        let (reading, read_by) = (compose.clone(), Arc::clone(agent));
        let prompts = self.work(move |_| {
            let kinds = std::collections::BTreeSet::new();
            let known = known_names(&discovery, &plugins, &reading, Some(&*read_by), kinds);
            Ok(compose_message(&known, reading, now)?.prompts)
        });
        let mut answers = Vec::new();
        for (at, used) in prompts.await?.into_iter().enumerate() {
            let answer = if at < PROMPTS_MAX {
                agent.expand_command(&facts, &used.name, &used.words).await
            } else {
                Err(format!("a message has at most {PROMPTS_MAX} such commands"))
            };
            answers.push((used, answer));
        }
        Ok(PromptAnswers(answers))
    }
}

/// Whether a prompt may be in a message, by its beginning or by a chip.
fn may_name_prompt(message: &wire::Object) -> bool {
    let text = message.get("text").and_then(Value::as_str);
    let attachments = message.get("attachments").and_then(Value::as_array);
    let is_chip = |attachment: &Value| {
        let id = &attachment["_meta"]["compositor/part"]["id"];
        id.as_str().is_some_and(|id| id.starts_with(PREFIX))
    };
    text.is_some_and(|text| text.starts_with(PREFIX))
        || attachments.is_some_and(|all| all.iter().any(is_chip))
}
