//! What is prompted: the message in the agent's shapes, and what it must know before.

use std::sync::Arc;

use agent_api::{Lowering, UserMessage};
use compositor::lower::{Capabilities, Target};
use serde_json::{Value, json};

use super::super::connection::Abilities;
use super::super::errors;
use super::super::transcript;
use super::prepare::PreparedTurn;
use super::{AcpTurn, TurnStopped};
use crate::lower::lower_message;

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The blocks of a turn's prompt, and how its message was lowered, to be recorded.
pub(super) async fn blocks(
    turn: &AcpTurn<'_>,
    prepared: &PreparedTurn,
) -> Result<(Vec<Value>, Option<Lowering>), TurnStopped> {
    let input = &turn.input;
    if prepared.has_message && input.resume.is_some() {
        let resume = transcript::resume_prompt(&input.response_parts);
        return Ok((vec![text_block(&resume)], None));
    }
    let abilities = &prepared.process.abilities;
    let (mut blocks, lowering) = match &input.compact {
        Some(instructions) => (vec![compact_command(turn, prepared, instructions)?], None),
        None => {
            let lowering = lower(turn, abilities, Arc::clone(&input.user)).await;
            (lowering.blocks.clone(), Some(lowering))
        }
    };
    if blocks.is_empty() {
        blocks.push(text_block(&input.text));
    }
    if let Some(text) = &prepared.transcript {
        let block = transcript::to_block(text, abilities.embedded_context);
        // A command is the first that an agent reads, or it is none.
        let is_command = blocks
            .first()
            .is_some_and(|block| block["text"].as_str().is_some_and(|text| text.starts_with('/')));
        let at = usize::from(is_command);
        blocks.insert(at, block);
    }
    Ok((blocks, lowering))
}

/// `/compact` is the agent's own command, or there is none.
fn compact_command(
    turn: &AcpTurn<'_>,
    prepared: &PreparedTurn,
    instructions: &str,
) -> Result<Value, TurnStopped> {
    let view = prepared.session.reported.view();
    let is_known = |commands: &[agent_api::AgentCommand]| {
        commands.iter().any(|command| command.name == "compact")
    };
    if !is_known(&view.commands) && !is_known(&turn.core.known.get().agent_commands()) {
        return Err(errors::no_compact(&turn.core.config).into());
    }
    let text = format!("/compact {instructions}");
    Ok(text_block(text.trim_end()))
}

/// A message in the agent's shapes.
pub(super) async fn lower(
    turn: &AcpTurn<'_>,
    abilities: &Abilities,
    message: Arc<UserMessage>,
) -> Lowering {
    let takes = json!({
        "image": abilities.images,
        "audio": abilities.audio,
        "embeddedContext": abilities.embedded_context,
    })
    .as_object()
    .cloned()
    .unwrap_or_default();
    let capabilities = Capabilities::built_in(Target::Acp).with_prompt_capabilities(&takes);
    let lowered = lower_message(&turn.input.sources, message, Target::Acp, capabilities).await;
    Lowering {
        target: Target::Acp.name(),
        model: turn.chosen_model().unwrap_or(super::super::known::DEFAULT_MODEL).to_owned(),
        blocks: lowered.blocks,
        diagnostics: lowered.diagnostics,
    }
}
