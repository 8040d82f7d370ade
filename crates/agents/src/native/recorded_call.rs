//! A request to the model that is recorded before it is sent, and how it ended.
//!
//! Promises: each attempt is a call of its own; what is recorded are the bytes that are sent; a call whose answer nobody waits
//! for any more is recorded as abandoned.
//! Must not know: any wire format, what becomes of the answer.

use agent_api::{
    CallEnd, CallId, CallPurpose, HostServices, ModelCall, ModelCallOutcome, PartDecision, Section,
};

use super::Model;
use super::usage::cost_of;
use crate::provider::{
    self, AnswerCancelled, ModelEndpoint, ModelEvent, ModelEventSink, ModelRequest, ProviderError,
    ProviderErrorKind, StopReason, Usage,
};

/// What is asked, by whom, and what is known of it besides the request.
pub(super) struct CallContext<'a> {
    pub purpose: CallPurpose,
    pub round: usize,
    pub model: &'a Model,
    pub endpoint: &'a ModelEndpoint,
    /// The system prompt before anybody rewrote it.
    pub sections_before: &'a [Section],
    pub decisions: Vec<PartDecision>,
    pub host: &'a dyn HostServices,
}

/// A call that failed.
#[derive(Debug)]
pub(super) struct FailedCall {
    pub error: ProviderError,
    /// What its server counted until then.
    pub usage: Usage,
    /// Whether the server had begun to work on it: then it costs something.
    pub is_billed: bool,
}

/// Asks a model and sends its answer on until it stops.
pub(super) async fn ask(
    context: &CallContext<'_>,
    request: &ModelRequest,
    sink: impl ModelEventSink,
) -> Result<(), FailedCall> {
    let encoded = provider::encode(context.endpoint, request);
    let (url, headers) = encoded.describe_head(context.endpoint);
    let call = ModelCall {
        purpose: context.purpose,
        round: u64::try_from(context.round).unwrap_or(u64::MAX),
        api: context.endpoint.api().name(),
        model: context.model.id.clone(),
        url,
        headers,
        body: encoded.body.clone(),
        sections_before: context.sections_before.to_vec(),
        sections_after: request.system.clone(),
        decisions: context.decisions.clone(),
    };
    let id = context.host.record_call(call).await;
    let mut sent = ObservedCall {
        id,
        context,
        sink,
        usage: Usage::default(),
        has_begun: false,
        end: CallEnd::default(),
    };
    let asked = provider::send(context.endpoint, encoded, &mut sent).await;
    if let Err(error) = &asked {
        let reason = error.to_string();
        sent.end.outcome = match error.kind {
            ProviderErrorKind::Rejected | ProviderErrorKind::Unauthorized => {
                ModelCallOutcome::Refused(reason)
            }
            _ if error.blame.is_some() => ModelCallOutcome::Refused(reason),
            _ => ModelCallOutcome::Failed(reason),
        };
    }
    asked.map_err(|error| {
        let is_billed = match error.kind {
            ProviderErrorKind::Interrupted | ProviderErrorKind::Unreadable => true,
            ProviderErrorKind::Rejected
            | ProviderErrorKind::Unauthorized
            | ProviderErrorKind::Unavailable => sent.has_begun,
        };
        FailedCall { error, usage: sent.usage, is_billed }
    })
}

/// A call that was sent. How it ended is recorded when it is dropped.
struct ObservedCall<'a, S> {
    id: Option<CallId>,
    context: &'a CallContext<'a>,
    sink: S,
    usage: Usage,
    /// Something of an answer came.
    has_begun: bool,
    end: CallEnd,
}

impl<S: ModelEventSink> ModelEventSink for &mut ObservedCall<'_, S> {
    async fn accept(&mut self, event: ModelEvent) -> Result<(), AnswerCancelled> {
        self.has_begun |= !matches!(&event, ModelEvent::Waiting(_) | ModelEvent::Silent(_));
        match &event {
            ModelEvent::Usage(usage) => self.usage = *usage,
            ModelEvent::Waiting(_) => self.end.repeats += 1,
            ModelEvent::Stopped(reason) => {
                let reason = describe_stop(reason).to_owned();
                self.end.outcome = ModelCallOutcome::Answered(reason);
            }
            _ => {}
        }
        self.sink.accept(event).await
    }
}

impl<S> Drop for ObservedCall<'_, S> {
    fn drop(&mut self) {
        let Some(id) = self.id else {
            return; // it is not recorded
        };
        let end = CallEnd {
            input_tokens: self.usage.input_tokens,
            output_tokens: self.usage.output_tokens,
            cache_read_tokens: self.usage.cache_read_tokens,
            cache_write_tokens: self.usage.cache_write_tokens,
            cost: cost_of(self.usage, self.context.model),
            ..std::mem::take(&mut self.end)
        };
        self.context.host.record_call_end(id, end);
    }
}

fn describe_stop(reason: &StopReason) -> &str {
    match reason {
        StopReason::End => "end",
        StopReason::ToolCalls => "tool calls",
        StopReason::Length => "output limit",
        StopReason::ContentFilter => "content filter",
        StopReason::Refusal => "refusal",
        StopReason::Paused => "paused",
        StopReason::Other(other) => other,
    }
}
