//! What the agent does at a limit of its budget (G-69): it asks the user before it asks a model once more.
//!
//! Promises: no call of a model begins without the host's permit; nobody answers for the user.
//! Must not know: what the limits are, where it is counted.

use agent_api::{
    AgentError, AgentEvent, AgentReply, CallEstimate, CallKind, CallPermit, EventSink,
    InputRequest, ReachedLimit, StoreError, TurnOver,
};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;

use super::Model;
use super::stop::TurnStop;
use crate::provider::{ModelMessage, ModelRequest, Usage};

/// The instruction before the model's last answer.
pub(super) const SUM_UP: &str = "The budget for this work is used up: this is your last answer, and you have no tools for it. \
     Sum up for the user what is done, what is not, and how to go on.";

/// The question, and what may be answered.
const QUESTION: &str = "budget";
const MORE: &str = "more";
const FINISH: &str = "finish";

/// Numbers of these questions, beyond all others of a turn.
const ASKS_FROM: u64 = 1 << 48;

/// Bytes of text that are about a token, and what an image or a document is at least taken for.
const BYTES_PER_TOKEN: usize = 4;
const MEDIA_BYTES: usize = 4_096;

/// Fields of blocks that hold a body.
const MEDIA_FIELDS: [&str; 5] = ["data", "url", "image_url", "file_data", "fileUri"];

/// Asks for the calls of one turn.
#[derive(Debug)]
pub(super) struct CallBudget {
    /// A worker asks nobody: few people look at its chat, and the turn that it works for asks before its own next call.
    is_worker: bool,
    asked: u64,
    /// A notice has said that the model's price is not known.
    told_unpriced: bool,
    /// The user wanted one last call, and that is made.
    is_finished: bool,
}

/// How the model may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    Call,
    /// Once more, without tools.
    LastCall,
}

enum LimitDecision {
    More,
    Finish,
    Stop,
}

impl CallBudget {
    pub(super) fn new(is_worker: bool) -> Self {
        Self { is_worker, asked: 0, told_unpriced: false, is_finished: false }
    }

    /// Waits until the model may be asked; ends the turn if the user wants no more.
    pub(super) async fn admit(
        &mut self,
        request: &ModelRequest,
        model: &Model,
        events: &dyn EventSink,
    ) -> Result<Admitted, TurnStop> {
        if self.is_finished {
            let text = "Stopped at a limit: the last call that was allowed is made.".to_owned();
            events.send(AgentEvent::Notice { text }).await?;
            return Err(TurnStop::Ended);
        }
        let estimate = estimate(request, model);
        loop {
            let permit = events.begin_call(estimate, CallKind::Usual).await;
            let reached = match permit.map_err(uncounted)? {
                CallPermit::Granted { unpriced } => {
                    self.tell_unpriced(unpriced, model, events).await?;
                    return Ok(Admitted::Call);
                }
                CallPermit::Reached(reached) => reached,
            };
            if self.is_worker {
                return Err(TurnStop::Failed(AgentError {
                    error_type: "budgetReached".to_owned(),
                    message: format!("stopped at a limit: {}", join(&reached, "; ")),
                    resumable: true,
                }));
            }
            match self.ask_user(&reached, events).await? {
                LimitDecision::More => events.extend_budget().await.map_err(uncounted)?,
                LimitDecision::Finish => {
                    events.begin_call(estimate, CallKind::Last).await.map_err(uncounted)?;
                    self.is_finished = true;
                    return Ok(Admitted::LastCall);
                }
                LimitDecision::Stop => {
                    let text = format!("Stopped at a limit: {}.", join(&reached, "; "));
                    events.send(AgentEvent::Notice { text }).await?;
                    return Err(TurnStop::Ended);
                }
            }
        }
    }

    async fn tell_unpriced(
        &mut self,
        unpriced: bool,
        model: &Model,
        events: &dyn EventSink,
    ) -> Result<(), TurnOver> {
        if !unpriced || self.told_unpriced {
            return Ok(());
        }
        self.told_unpriced = true;
        let text = format!(
            "Money is limited, but what the model `{}` costs is not known: its calls are not counted as money. Set its `prices`.",
            model.id
        );
        events.send(AgentEvent::Notice { text }).await
    }

    async fn ask_user(
        &mut self,
        reached: &[ReachedLimit],
        events: &dyn EventSink,
    ) -> Result<LimitDecision, TurnOver> {
        let ask = ASKS_FROM + self.asked;
        self.asked += 1;
        let request = limit_request(reached);
        let asked = AgentEvent::InputRequested { ask, request };
        let AgentReply::Answered { response, answers, .. } = events.ask(asked).await? else {
            return Err(TurnOver); // replies are routed by what they answer
        };
        let chosen = answers
            .get(QUESTION)
            .and_then(|answer| answer["value"]["value"].as_str())
            .filter(|_| response == ChatInputResponseKind::Accept);
        Ok(match chosen {
            Some(MORE) => LimitDecision::More,
            Some(FINISH) => LimitDecision::Finish,
            // Whoever does not answer allows nothing.
            _ => LimitDecision::Stop,
        })
    }
}

/// The setting as sessions offer it (G-69).
pub(super) fn schema() -> Value {
    json!({
        "type": "number",
        "title": "Budget",
        "description": "What this session may spend on models, in US dollars; at the limit it asks before it goes on. 0: no limit of its own.",
        "minimum": 0,
        "sessionMutable": true,
    })
}

fn limit_request(reached: &[ReachedLimit]) -> InputRequest {
    let question = json!({
        "kind": "single-select",
        "id": QUESTION,
        "message": "Go on?",
        "required": true,
        "options": [
            {"id": MORE, "label": "More: the same again"},
            {"id": FINISH, "label": "Finish: one last answer, without tools"},
            {"id": "stop", "label": "Stop here"},
        ],
    });
    InputRequest {
        message: Some(format!("A limit of the budget is reached:\n\n- {}", join(reached, "\n- "))),
        url: None,
        questions: vec![question],
    }
}

fn join(reached: &[ReachedLimit], separator: &str) -> String {
    let words: Vec<String> = reached.iter().map(ToString::to_string).collect();
    words.join(separator)
}

/// A budget that cannot be counted is none: the model is not asked.
fn uncounted(error: StoreError) -> TurnStop {
    TurnStop::Failed(AgentError {
        error_type: "budgetUnwritable".to_owned(),
        message: format!(
            "what this call uses cannot be counted to the budget: {error}; resume the turn to try again"
        ),
        resumable: true,
    })
}

/// What a request uses at least: its own text.
pub(super) fn estimate(request: &ModelRequest, model: &Model) -> CallEstimate {
    let system = request.system.iter().map(|section| section.content.len());
    let tools =
        request.tools.iter().map(|tool| tool.description.len() + bytes_of(&tool.parameters));
    let messages = request.messages.iter().map(|message| match message {
        ModelMessage::User(content) => bytes_of(content),
        ModelMessage::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| call.name.len() + call.input.len());
            text.len() + calls.sum::<usize>()
        }
        ModelMessage::ToolResult { text, blocks, .. } => {
            text.len() + blocks.iter().map(bytes_of).sum::<usize>()
        }
    });
    let bytes: usize = system.chain(tools).chain(messages).sum();
    let tokens = (bytes / BYTES_PER_TOKEN) as u64;
    let prompt = Usage { input_tokens: Some(tokens), ..Usage::default() };
    let prices = model.facts().prices;
    CallEstimate { tokens, usd: prices.and_then(|prices| prices.cost(prompt)) }
}

/// The text in a value. Bodies are not text: what they cost is not to be seen in their size.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value {
                Value::String(body) if MEDIA_FIELDS.contains(&key.as_str()) => {
                    body.len().min(MEDIA_BYTES)
                }
                value => bytes_of(value),
            })
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use agent_api::{BudgetScope, BudgetUnit};

    use super::*;

    #[test]
    fn a_request_is_estimated_by_its_text_and_the_prices_of_its_model() {
        let model: Model = toml::from_str(
            "id = \"m\"\nbase_url = \"http://h/v1\"\nprices = { input = 2.0, output = 9.0 }\n",
        )
        .unwrap();
        let image = json!({"type": "image", "source": {"data": "x".repeat(1_000_000)}});
        let request = ModelRequest {
            messages: vec![
                ModelMessage::User(json!("x".repeat(4_000))),
                ModelMessage::User(json!([image])),
            ],
            ..ModelRequest::default()
        };
        let estimated = estimate(&request, &model);
        assert!((2_000..2_100).contains(&estimated.tokens), "{estimated:?}");
        assert_eq!(estimated.usd, Some(estimated.tokens as f64 * 2.0 / 1_000_000.0));
    }

    #[test]
    fn the_question_names_every_limit_and_three_answers() {
        let reached =
            |scope, unit| ReachedLimit { scope, unit, allowance: 10.0, spent: 12.0, is_own: false };
        let request = limit_request(&[
            reached(BudgetScope::Turn, BudgetUnit::Tokens),
            reached(BudgetScope::Day, BudgetUnit::Seconds),
        ]);
        let message = request.message.unwrap();
        assert!(message.contains("budget.turn.tokens"), "{message}");
        assert!(message.contains("budget.day.seconds"), "{message}");
        let options = request.questions[0]["options"].as_array().unwrap();
        let ids: Vec<&Value> = options.iter().map(|option| &option["id"]).collect();
        assert_eq!(ids, ["more", "finish", "stop"]);
    }
}
