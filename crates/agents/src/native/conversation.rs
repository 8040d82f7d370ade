//! The rounds of a turn: the model is asked, its calls are carried out, and it is asked again.
//!
//! Promises: every call has a result before the model is asked again.
//! Must not know: how the conversation began.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, AgentReply, EventSink, UserMessage};
use wire::published::state::UsageInfo;

use super::answer::{ModelAnswer, Numbers};
use super::ask_model::{AskError, ask_model};
use super::call;
use super::call_events::ToolContext;
use super::model_view::{HistoryEntry, ModelView};
use super::stop::TurnStop;
use super::{Model, prompt};
use crate::prompt::Prompt;
use crate::provider::{ModelEndpoint, ModelMessage, ModelRequest, StopReason, ToolUse, Usage};

/// Rounds of one turn: a model that goes in circles stops here.
const ROUNDS_MAX: usize = 100;

/// A conversation with a model, round by round.
pub(super) struct Conversation<'a> {
    pub model: &'a Model,
    pub endpoint: &'a ModelEndpoint,
    pub tool_context: ToolContext<'a>,
    pub view: ModelView<'a>,
    pub prompt: Prompt,
    /// The entries that the turn began with; the request begins with them.
    pub entries: Vec<HistoryEntry>,
    /// The position of the message that this turn answers.
    pub newest: usize,
    pub request: ModelRequest,
    pub numbers: Numbers,
    pub usage: Usage,
}

impl Conversation<'_> {
    /// Asks the model, carries out its calls and asks again, until it makes no more calls.
    pub(super) async fn run_rounds(mut self, rounds_before: usize) -> Result<(), TurnStop> {
        let events = self.tool_context.events;
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                self.take_steering().await?;
                // It may have changed in the middle of the turn, and the model should know.
                let mode = self.tool_context.mode().await?;
                prompt::apply_mode(&mut self.prompt, self.tool_context.tools, mode);
            }
            self.request.system = events.render(self.prompt.render()).await?;
            let answer = self.ask(rounds_before + round).await?;
            self.usage = report_usage(self.usage, answer.usage, self.model, events).await?;
            if answer.calls.is_empty() {
                return report_stop(&answer, events).await;
            }
            let results = call::run_calls(&self.tool_context, &answer.calls).await?;
            self.add_round(answer, results);
        }
        Err(TurnStop::Failed(AgentError {
            error_type: "tooManyRounds".to_owned(),
            message: format!(
                "the model was asked {ROUNDS_MAX} times in this turn; resume it to go on"
            ),
            resumable: true,
        }))
    }

    /// Asks the model; again without attachments if its server rejects them.
    async fn ask(&mut self, round: usize) -> Result<ModelAnswer, TurnStop> {
        loop {
            let ToolContext { shared, events, .. } = self.tool_context;
            let request = (round, &self.request);
            let asked = ask_model(shared, self.endpoint, request, &mut self.numbers, events);
            match asked.await {
                Ok(answer) => return Ok(answer),
                Err(AskError::TurnOver) => return Err(TurnStop::Over),
                Err(AskError::Provider(error)) => {
                    let (entries, newest) = (&self.entries, self.newest);
                    let retried = self
                        .view
                        .retry_without_rejected_media(error, entries, newest);
                    let messages = retried.await?;
                    self.request.messages.splice(..entries.len(), messages);
                }
            }
        }
    }

    fn add_round(&mut self, answer: ModelAnswer, results: Vec<String>) {
        assert_eq!(answer.calls.len(), results.len(), "every call has a result");
        let calls = answer.calls.into_iter().map(|call| call.tool_use);
        let calls: Vec<ToolUse> = calls.collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let messages = &mut self.request.messages;
        messages.push(ModelMessage::Assistant {
            text: answer.text,
            calls,
        });
        let results = ids.into_iter().zip(results);
        messages.extend(results.map(|(id, text)| ModelMessage::ToolResult { id, text }));
    }

    /// A round is over: takes the steering message that waits, if one does. The host makes it a part of the turn.
    async fn take_steering(&mut self) -> Result<(), TurnStop> {
        let steer = self.numbers.next();
        let events = self.tool_context.events;
        let reply = events.ask(AgentEvent::SteerPoint { steer }).await?;
        if let AgentReply::Steered {
            message: Some(message),
            message_id,
            ..
        } = reply
        {
            let user = match message_id {
                Some(id) => events.read_message(id).await,
                None => None,
            };
            let text = message["text"].as_str().unwrap_or("");
            let user = user.unwrap_or_else(|| Arc::new(UserMessage::text(text)));
            let message = self.view.lower_one(user).await?;
            self.request.messages.push(message);
        }
        Ok(())
    }
}

/// Reports the usage of the turn so far: each round adds to it.
async fn report_usage(
    before: Usage,
    round: Usage,
    model: &Model,
    events: &dyn EventSink,
) -> Result<Usage, TurnStop> {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    };
    let total = Usage {
        input_tokens: sum(before.input_tokens, round.input_tokens),
        output_tokens: sum(before.output_tokens, round.output_tokens),
        cache_read_tokens: sum(before.cache_read_tokens, round.cache_read_tokens),
    };
    if round != Usage::default() {
        let count = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
        let usage = UsageInfo {
            input_tokens: count(total.input_tokens),
            output_tokens: count(total.output_tokens),
            model: Some(model.id.clone()),
            cache_read_tokens: count(total.cache_read_tokens),
            meta: None,
        };
        events.send(AgentEvent::Usage(usage)).await?;
    }
    Ok(total)
}

/// The model has nothing more to do; if it was stopped, the user is told.
async fn report_stop(answer: &ModelAnswer, events: &dyn EventSink) -> Result<(), TurnStop> {
    let text = match &answer.stop {
        Some(StopReason::Length) => "The answer was cut off: it reached the model's output limit.",
        Some(StopReason::ContentFilter) => "The model's server cut the answer off.",
        Some(StopReason::End | StopReason::ToolCalls | StopReason::Other(_)) | None => {
            return Ok(());
        }
    };
    let text = text.to_owned();
    Ok(events.send(AgentEvent::Notice { text }).await?)
}
