//! A turn for tests: a user's message and nothing else.

use std::sync::Arc;

use agent_api::{SharedSources, TurnInput, UserMessage};
use serde_json::json;
use wire::Object;

pub(crate) fn user_turn(turn_id: &str, text: &str) -> TurnInput {
    TurnInput {
        switched_off: Default::default(),
        turn_id: turn_id.to_owned(),
        last_turn_id: None,
        text: text.to_owned(),
        message: json!({"text": text}).into(),
        custom_agent: None,
        user: Arc::new(UserMessage::text(text)),
        reaches_model: true,
        compact: None,
        sources: SharedSources::default(),
        summary: None,
        config: Object::new(),
        resume: None,
        brief: None,
        history: Vec::new(),
        response_parts: Vec::new(),
        usage: None,
        summarised_rounds: 0,
        untitled: false,
        chat_notes: None,
        refusals: None,
        outputs: Vec::new(),
    }
}
