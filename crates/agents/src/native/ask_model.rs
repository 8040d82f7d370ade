//! One request to the model, and its answer.
//!
//! Promises: what came of an answer is sent on, also of one that broke off.
//! Must not know: what becomes of the calls.

use agent_api::{EventSink, TurnOver};

use super::Shared;
use super::coalesce::EventCoalescer;
use crate::provider::{self, Endpoint, ModelRequest, ProviderError, StopReason, ToolUse, Usage};

/// What a model answered to one request.
#[derive(Debug, Default)]
pub(super) struct ModelAnswer {
    pub text: String,
    pub calls: Vec<RequestedCall>,
    pub usage: Usage,
    pub stop: Option<StopReason>,
}

/// A call that the model asked for, and the number it was announced under.
#[derive(Debug, Clone)]
pub(super) struct RequestedCall {
    pub number: u64,
    pub tool_use: ToolUse,
}

pub(super) enum AskError {
    TurnOver,
    Provider(ProviderError),
}

impl From<TurnOver> for AskError {
    fn from(_: TurnOver) -> Self {
        Self::TurnOver
    }
}

/// Numbers of parts and calls: each occurs once in a run.
#[derive(Debug, Default)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Under this name a call says in which round of its turn it was made: calls of one round saw nothing of each other.
pub(super) const ROUND: &str = "greenroom.round";

/// Asks the model and sends its answer on as it comes.
pub(super) async fn ask_model(
    shared: &Shared,
    endpoint: &Endpoint,
    (round, request): (usize, &ModelRequest),
    numbers: &mut Numbers,
    events: &dyn EventSink,
) -> Result<ModelAnswer, AskError> {
    let mut coalescer = EventCoalescer::new(&shared.tools, round, events, numbers);
    let asked = provider::ask(endpoint, request, &mut coalescer).await;
    coalescer.flush().await?;
    asked.map_err(AskError::Provider)?;
    Ok(coalescer.into_answer())
}
