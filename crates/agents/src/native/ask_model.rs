//! One request to the model, and its answer.
//!
//! Promises: everything of an answer is sent on, also of one that broke off.
//! Must not know: what becomes of the calls.

use std::sync::Arc;

use agent_api::{AgentEvent, EventSink, TurnOver};

use super::answer::{ModelAnswer, Numbers};
use super::answer_sender::AnswerSender;
use super::offered_tools::OfferedTools;
use super::recorded_call::{self, CallContext, FailedCall};
use super::refusals::LearnedRefusal;
use crate::provider::{self, ModelRequest, ToolUse};

pub(super) enum AskError {
    TurnOver,
    Provider(FailedCall),
}

impl From<TurnOver> for AskError {
    fn from(_: TurnOver) -> Self {
        Self::TurnOver
    }
}

/// Asks the model and sends its answer on as it comes. What was `learned` is said when it begins to answer.
pub(super) async fn ask_model(
    offered: &OfferedTools<'_>,
    context: &CallContext<'_>,
    events: &dyn EventSink,
    request: &ModelRequest,
    numbers: &mut Numbers,
    learned: Option<LearnedRefusal>,
) -> Result<ModelAnswer, AskError> {
    let mut sender = AnswerSender::new(offered, context.round, events, numbers, learned);
    let asked = recorded_call::ask(context, request, &mut sender).await;
    if sender.shows_silence() {
        events.send(AgentEvent::Activity(None)).await?;
    }
    asked.map_err(AskError::Provider)?;
    let mut answer = sender.into_answer();
    if answer.items.is_none() {
        let calls: Vec<ToolUse> = answer.calls.iter().map(|call| call.tool_use.clone()).collect();
        let own = provider::own_items(context.endpoint.api(), &answer.text, &calls);
        answer.items = own.map(Arc::new);
    }
    Ok(answer)
}
