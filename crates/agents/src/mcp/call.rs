//! One call of a tool: progress, questions in the middle of it, time limits, cancellation.
//!
//! Promises: whoever drops the future of a call cancels it at the server; the time that a user takes to answer a question
//! does not count (MC-10, MC-11).
//! Must not know: how progress and questions are shown.

use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientRequest, ProgressNotificationParam, RequestId, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::oneshot::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::content::McpResult;
use super::error::{McpError, clean};
use super::handler::{CallEvent, McpShared};
use super::http::challenge_of;
use crate::task;

/// How long a call may go without a sign of life, unless the declaration says otherwise.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(120);

/// How long a call may take.
const CALL_MAX: Duration = Duration::from_secs(600);

/// Progress is shown at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// What a call needs of who makes it.
#[async_trait]
pub trait CallHost: Send + Sync {
    /// One line that says how far the call is.
    async fn show_progress(&self, line: String);

    /// Asks the user. Dropped when nobody waits for the answer any more; then [`CallHost::withdraw`] follows.
    async fn elicit(&self, elicitation: Elicitation) -> ElicitationAnswer;

    /// Takes back the question that is open.
    async fn withdraw(&self);
}

/// A question of a server to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    pub message: String,
    pub form: ElicitationForm,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationForm {
    /// A JSON Schema of an object with plain fields.
    Fields(Value),
    /// A page to be opened by the user, never by us.
    Url(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    Accept(Option<Value>),
    Decline,
    Cancel,
}

type McpAnswer = Result<Result<ServerResult, ServiceError>, RecvError>;

/// Calls a tool.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    shared: &McpShared,
    request: CallToolRequestParams,
    silence_max: Duration,
    host: &dyn CallHost,
) -> Result<McpResult, McpError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
    let options = PeerRequestOptions::no_options();
    let sent = peer.send_request_with_option(request, options).await;
    let mut handle = sent.map_err(|_| shared.end_reason())?;
    let mut cancel = CancelCallOnDrop { request: Some((peer.clone(), handle.id.clone())) };
    let mut listening = shared.listen(handle.progress_token.clone());
    let mut ends_at = Instant::now() + CALL_MAX;
    let mut silent_at = Instant::now() + silence_max;
    let mut show_at = Instant::now();
    loop {
        tokio::select! {
            answer = &mut handle.rx => {
                cancel.request = None;
                return read_answer(answer, shared);
            }
            Some(event) = listening.events.recv() => {
                let began = Instant::now();
                match event {
                    CallEvent::Progress(progress) if began >= show_at => {
                        show_at = began + PROGRESS_EVERY;
                        host.show_progress(describe_progress(&progress)).await;
                    }
                    CallEvent::Progress(_) => {} // another was shown just now
                    CallEvent::Elicited(elicitation, reply) => tokio::select! {
                        answer = host.elicit(elicitation) => {
                            // Who asked may be gone.
                            let _ = reply.send(answer);
                        }
                        answer = &mut handle.rx => {
                            cancel.request = None;
                            host.withdraw().await;
                            return read_answer(answer, shared);
                        }
                    },
                }
                ends_at += began.elapsed();
                silent_at = Instant::now() + silence_max;
            }
            () = sleep_until(ends_at) => return Err(McpError::CallTooLong(CALL_MAX)),
            () = sleep_until(silent_at) => return Err(McpError::CallSilent(silence_max)),
        }
    }
}

fn read_answer(answer: McpAnswer, shared: &McpShared) -> Result<McpResult, McpError> {
    match answer {
        Ok(Ok(ServerResult::CallToolResult(result))) => Ok(McpResult::read(result)),
        Ok(Ok(_)) => Err(McpError::Unreadable),
        // The server did not take this very request, so that it can be made again.
        Ok(Err(ServiceError::TransportSend(error))) => match challenge_of(&error, shared) {
            Some(challenge) => Err(McpError::TokenWanted(challenge)),
            None => Err(shared.end_reason()),
        },
        Err(_) | Ok(Err(ServiceError::TransportClosed)) => Err(shared.end_reason()),
        Ok(Err(error)) => Err(McpError::of_request(error)),
    }
}

fn describe_progress(progress: &ProgressNotificationParam) -> String {
    let done = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().map(clean) {
        Some(message) if !message.is_empty() => format!("{done}: {message}"),
        _ => done,
    }
}

/// Tells the server that nobody waits for an answer any more.
struct CancelCallOnDrop {
    /// Absent once there is an answer.
    request: Option<(Peer<RoleClient>, RequestId)>,
}

impl Drop for CancelCallOnDrop {
    fn drop(&mut self) {
        let Some((peer, id)) = self.request.take() else {
            return; // it was answered
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return; // the host goes down, and the server with it
        };
        let cancelling = async move {
            let params = CancelledNotificationParam::new(
                Some(id),
                Some("the user stopped the call, or it took too long".to_owned()),
            );
            let cancelled = CancelledNotification::new(params);
            // A server that is gone needs not be told.
            let _ = peer.send_notification(cancelled.into()).await;
        };
        task::spawn_on(&runtime, Box::pin(cancelling));
    }
}
