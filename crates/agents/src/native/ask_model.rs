//! One request to the model, and its answer.
//!
//! Promises: what came of an answer is sent on, also of one that broke off.
//! Must not know: what becomes of the calls.

use agent_api::{EventSink, TurnOver};

use super::answer::{ModelAnswer, Numbers};
use super::answer_sender::AnswerSender;
use super::offered_tools::OfferedTools;
use crate::provider::{self, ModelEndpoint, ModelRequest, ProviderError};

pub(super) enum AskError {
    TurnOver,
    Provider(ProviderError),
}

impl From<TurnOver> for AskError {
    fn from(_: TurnOver) -> Self {
        Self::TurnOver
    }
}

/// Asks the model and sends its answer on as it comes.
pub(super) async fn ask_model(
    offered: &OfferedTools<'_>,
    endpoint: &ModelEndpoint,
    (round, request): (usize, &ModelRequest),
    numbers: &mut Numbers,
    events: &dyn EventSink,
) -> Result<ModelAnswer, AskError> {
    let mut sender = AnswerSender::new(offered, round, events, numbers);
    let asked = provider::ask(endpoint, request, &mut sender).await;
    asked.map_err(AskError::Provider)?;
    Ok(sender.into_answer())
}
