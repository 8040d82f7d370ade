//! A model's answers as its server wants them back: recorded when they are whole, found again when the turn is history.
//!
//! Promises: what goes back is what came, so that a conversation that grew begins with the same bytes; it goes back to the
//! same model over the same wire format alone, and only for an answer that the chat shows as it was.
//! Must not know: any wire format.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::ModelOutput;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::ModelAnswer;
use super::orphans::Findings;
use crate::provider::{self, Api, ToolUse};

/// An answer that takes more is not recorded: later requests hold it as the chat has it.
const OUTPUT_BYTES_MAX: usize = 2 << 20;

/// Which model made an answer, over which wire format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputSource {
    pub api: Api,
    /// The model by its id in the configuration.
    pub model: String,
    /// What is known of calls that have no end.
    pub findings: Findings,
}

/// As it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredOutput {
    api: Api,
    model: String,
    /// How much text the chat shows of it.
    text_bytes: usize,
    /// The ids of its calls, as the model made them.
    calls: Vec<String>,
    items: Vec<Value>,
}

/// An answer that its server paused: the next one goes on with it.
pub(super) struct PausedAnswer {
    text_bytes: usize,
    items: Option<Arc<Vec<Value>>>,
}

impl PausedAnswer {
    pub(super) fn of(answer: &ModelAnswer) -> Self {
        Self { text_bytes: answer.text.len(), items: answer.items.clone() }
    }
}

/// The answer of a round, with what was paused of it before; none if it is too large to be recorded.
pub(super) fn record(
    source: &OutputSource,
    round: usize,
    paused: &[PausedAnswer],
    answer: &ModelAnswer,
) -> Option<ModelOutput> {
    let mut items = Vec::new();
    for paused in paused {
        items.extend(paused.items.as_ref()?.iter().cloned());
    }
    items.extend(answer.items.as_ref()?.iter().cloned());
    let paused_bytes: usize = paused.iter().map(|paused| paused.text_bytes).sum();
    let calls = answer.calls.iter().map(|call| call.tool_use.id.clone());
    let stored = StoredOutput {
        api: source.api,
        model: source.model.clone(),
        text_bytes: paused_bytes + answer.text.len(),
        calls: calls.collect(),
        items,
    };
    let json = wire::rpc::to_json(&stored);
    (json.len() <= OUTPUT_BYTES_MAX).then(|| ModelOutput {
        round: u64::try_from(round).unwrap_or(u64::MAX),
        json: Bytes::from(json),
    })
}

/// Whether something of a model was recorded that only its server can read.
pub(super) fn has_sealed(outputs: &[ModelOutput], model: &str) -> bool {
    outputs.iter().any(|output| {
        let stored = serde_json::from_slice::<StoredOutput>(&output.json);
        // What cannot be read is nobody's.
        stored.is_ok_and(|stored| {
            stored.model == model && provider::has_additions(stored.api, &stored.items)
        })
    })
}

/// What was recorded of a turn, by round, and what is known of its calls.
#[derive(Debug, Default)]
pub(super) struct TurnOutputs {
    answers: BTreeMap<u64, StoredOutput>,
    findings: Findings,
}

impl TurnOutputs {
    /// What of it may go back to a model.
    pub(super) fn read(outputs: &[ModelOutput], source: &OutputSource) -> Self {
        let read = outputs.iter().filter_map(|output| {
            // What cannot be read is sent as the chat has it.
            let stored: StoredOutput = serde_json::from_slice(&output.json).ok()?;
            let is_ours = stored.api == source.api && stored.model == source.model;
            is_ours.then_some((output.round, stored))
        });
        Self { answers: read.collect(), findings: Findings::clone(&source.findings) }
    }

    /// What is known of a call that has no end.
    pub(super) fn finding(&self, call_id: &str) -> Option<&str> {
        self.findings.get(call_id).map(String::as_str)
    }

    /// The answer of a round, if the chat shows it as it was. Its calls get the ids that the model gave them.
    pub(super) fn restore(
        &mut self,
        round: u64,
        text: &str,
        calls: &mut [ToolUse],
    ) -> Option<Arc<Vec<Value>>> {
        let stored = self.answers.remove(&round)?;
        if stored.text_bytes != text.len() || stored.calls.len() != calls.len() {
            return None;
        }
        for (call, id) in calls.iter_mut().zip(stored.calls) {
            call.id = id;
        }
        Some(Arc::new(stored.items))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(model: &str) -> OutputSource {
        OutputSource { api: Api::Anthropic, model: model.to_owned(), findings: Findings::default() }
    }

    fn answer(text: &str, items: Value) -> ModelAnswer {
        ModelAnswer {
            text: text.to_owned(),
            items: items.as_array().cloned().map(Arc::new),
            ..ModelAnswer::default()
        }
    }

    #[test]
    fn an_answer_goes_back_to_its_model_alone_and_only_as_it_was() {
        let items = json!([{"type": "thinking", "signature": "s"}]);
        let recorded = record(&source("m"), 3, &[], &answer("hi", items.clone())).unwrap();
        let read = |model| TurnOutputs::read(std::slice::from_ref(&recorded), &source(model));
        let restored = read("m").restore(3, "hi", &mut []);
        assert_eq!(restored.map(|it| json!(*it)), Some(items));
        assert_eq!(read("m").restore(3, "hi there", &mut []), None);
        assert_eq!(read("m").restore(2, "hi", &mut []), None);
        assert_eq!(read("other").restore(3, "hi", &mut []), None);
    }

    #[test]
    fn what_was_paused_goes_back_with_what_went_on() {
        let paused = PausedAnswer::of(&answer("", json!([{"type": "server_tool_use"}])));
        let rest = answer("hi", json!([{"type": "text"}]));
        let recorded = record(&source("m"), 0, &[paused], &rest).unwrap();
        let restored = TurnOutputs::read(&[recorded], &source("m")).restore(0, "hi", &mut []);
        assert_eq!(restored.map(|items| items.len()), Some(2));
        let unknown = PausedAnswer { text_bytes: 0, items: None };
        assert_eq!(record(&source("m"), 0, &[unknown], &rest), None);
    }

    #[test]
    fn what_is_too_large_or_unreadable_is_not_used() {
        let large = "x".repeat(OUTPUT_BYTES_MAX);
        assert_eq!(record(&source("m"), 0, &[], &answer("", json!([large]))), None);
        let broken = ModelOutput { round: 0, json: Bytes::from_static(b"{") };
        let mut outputs = TurnOutputs::read(&[broken], &source("m"));
        assert_eq!(outputs.restore(0, "", &mut []), None);
    }
}
