//! Turns that a model's server refused for what is in them: they are left out of later requests, or every later turn would be refused.
//!
//! Promises: another model is told of them, and so is one that said itself why it does not answer.

use agent_api::PastTurn;

use super::outputs::OutputSource;
use super::stop::REFUSAL;

/// What the model reads instead of such a turn.
const LEFT_OUT: &str = "A message that you did not answer is left out of this conversation, with all that was done for it.";

/// What stands for a turn that this very model's server refused; none if it was not.
pub(super) fn notice_of(past: &PastTurn, source: &OutputSource) -> Option<String> {
    let mut parts = past.turn["responseParts"].as_array().into_iter().flatten();
    let ended_by = parts.rfind(|part| part["kind"] == "error")?;
    let is_refused = ended_by["error"]["errorType"] == REFUSAL;
    let model = past.turn["message"]["model"]["id"].as_str();
    let is_own = model == Some(&source.model) && source.api.refuses_conversations();
    (is_refused && is_own).then(|| LEFT_OUT.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::history::recall_turns;
    use super::*;
    use crate::provider::Api;

    fn turn(parts: Value) -> PastTurn {
        PastTurn {
            turn: json!({"message": {"text": "this", "model": {"id": "m"}}, "responseParts": parts}),
            messages: Vec::new(),
            outputs: Vec::new(),
        }
    }

    #[test]
    fn a_turn_is_left_out_for_the_model_whose_server_refused_it() {
        let said = json!({"kind": "markdown", "content": "Well"});
        let refused = json!({"kind": "error", "error": {"errorType": "refusal"}});
        let failed = json!({"kind": "error", "error": {"errorType": "modelUnavailable"}});
        let turns = [turn(json!([said, failed])), turn(json!([said, refused]))];
        let recalled = |api: Api, model: &str| {
            let source =
                OutputSource { api, model: model.to_owned(), findings: Default::default() };
            recall_turns(&turns, 0, u64::MAX, &source)
        };
        for api in [Api::Anthropic, Api::Gemini] {
            let same = recalled(api, "m");
            assert_eq!(same.entries.len(), 2, "{api:?}");
            assert_eq!(same.notices, [LEFT_OUT]);
            assert_eq!(recalled(api, "other").entries.len(), 4, "{api:?}");
        }
        for api in [Api::Chat, Api::Responses] {
            assert_eq!(recalled(api, "m").entries.len(), 4, "{api:?}");
        }
    }
}
