//! Requests and notifications of a server, and what its connection has in common with its calls.
//!
//! Promises: a server gets the working directories and answers to its questions, nothing else: sampling is refused (MC-2). A
//! question outside of a call is cancelled (MC-11). Nothing it sends is kept without a bound.
//! Must not know: who answers questions.
#![allow(deprecated, reason = "servers of today still ask for roots and log by the protocol")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::{Notify, mpsc, oneshot};

use super::auth::TokenChallenge;
use super::call::{Elicitation, ElicitationAnswer, ElicitationForm};
use super::error::{McpError, clean};
use super::log::ServerLog;
use crate::secret_values::SecretValues;

/// What may wait to be looked at by a call.
const EVENTS_MAX: usize = 16;

/// What happens in a call before it is answered.
pub(super) enum CallEvent {
    Progress(ProgressNotificationParam),
    Elicited(Elicitation, oneshot::Sender<ElicitationAnswer>),
}

/// What a connection and its calls share.
pub(super) struct McpShared {
    pub log: ServerLog,
    /// What the server knows and no text of it may show.
    pub secrets: SecretValues,
    /// URIs of the working directories.
    roots: Mutex<Vec<String>>,
    calls: Mutex<Vec<OpenCall>>,
    numbers: AtomicU64,
    /// Why the connection ended, if we ended it.
    failure: Mutex<Option<McpError>>,
    /// Whether requests have a token.
    pub has_token: bool,
    /// What the server last said for want of a token: for the handshake, since a call has it in its own error.
    challenge: Mutex<Option<TokenChallenge>>,
    /// A message was refused as such, by its status.
    was_refused: AtomicBool,
    /// There is such a reason: the connection is to be ended.
    pub failed: Notify,
    /// The server said that it has other tools, prompts or resources.
    pub lists_changed: Notify,
    changed: Mutex<ChangedLists>,
}

/// Which lists of a server are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ChangedLists {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
}

struct OpenCall {
    number: u64,
    token: ProgressToken,
    events: mpsc::Sender<CallEvent>,
}

/// A call that receives its events until this is dropped.
pub(super) struct Listening<'a> {
    shared: &'a McpShared,
    number: u64,
    pub events: mpsc::Receiver<CallEvent>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.shared.calls.lock().retain(|call| call.number != self.number);
    }
}

impl McpShared {
    pub(super) fn new(roots: Vec<String>, has_token: bool, secrets: SecretValues) -> Self {
        Self {
            log: ServerLog::new(secrets.clone()),
            secrets,
            roots: Mutex::new(roots),
            calls: Mutex::default(),
            numbers: AtomicU64::new(0),
            failure: Mutex::default(),
            has_token,
            challenge: Mutex::default(),
            was_refused: AtomicBool::new(false),
            failed: Notify::new(),
            lists_changed: Notify::new(),
            changed: Mutex::default(),
        }
    }

    /// The working directories are these now; whether they are others than before.
    pub(super) fn set_roots(&self, roots: Vec<String>) -> bool {
        let mut known = self.roots.lock();
        let is_new = *known != roots;
        *known = roots;
        is_new
    }

    fn roots(&self) -> Vec<String> {
        self.roots.lock().clone()
    }

    pub(super) fn listen(&self, token: ProgressToken) -> Listening<'_> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        self.calls.lock().push(OpenCall { number, token, events: sender });
        Listening { shared: self, number, events }
    }

    /// Notes that lists changed, to be asked for again.
    fn note_change(&self, note: impl FnOnce(&mut ChangedLists)) {
        let mut changed = self.changed.lock();
        note(&mut changed);
        drop(changed);
        self.lists_changed.notify_one();
    }

    /// The lists that changed since this was asked last.
    pub(super) fn take_changed(&self) -> ChangedLists {
        std::mem::take(&mut *self.changed.lock())
    }

    /// Ends the connection for a reason; the first one stays.
    pub(super) fn fail(&self, reason: McpError) {
        let mut failure = self.failure.lock();
        failure.get_or_insert(reason);
        drop(failure);
        self.failed.notify_one();
    }

    pub(super) fn note_refusal(&self) {
        self.was_refused.store(true, Ordering::Relaxed);
    }

    /// Whether a message was refused by its status: older servers take none where newer ones do.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed)
    }

    pub(super) fn note_challenge(&self, said: TokenChallenge) {
        *self.challenge.lock() = Some(said);
    }

    /// That the server wants a token, if it said so since this was asked last.
    pub(super) fn take_challenge(&self) -> Option<McpError> {
        self.challenge.lock().take().map(McpError::TokenWanted)
    }

    /// Why the connection ended.
    pub(super) fn end_reason(&self) -> McpError {
        let failure = self.failure.lock();
        failure.clone().unwrap_or_else(|| McpError::Ended(self.log.last_line()))
    }

    /// The call that a question belongs to: pipes do not say which, so it is the newest.
    fn newest_call(&self) -> Option<mpsc::Sender<CallEvent>> {
        self.calls.lock().last().map(|call| call.events.clone())
    }
}

/// Answers a server.
pub(super) struct McpHandler(pub Arc<McpShared>);

/// Who we are, and what a server may ask of us.
fn client_config() -> ClientConfig {
    let mut capabilities = ClientCapabilities::default();
    let mut roots = RootsCapabilities::default();
    roots.list_changed = Some(true);
    capabilities.roots = Some(roots);
    capabilities.elicitation = Some(
        ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new()),
    );
    let client = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
    let mut config = ClientConfig::new(capabilities, client);
    config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
    config
}

impl ClientHandler for McpHandler {
    fn get_info(&self) -> ClientConfig {
        client_config()
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let roots = self.0.roots().into_iter().map(Root::new).collect();
        Ok(ListRootsResult::new(roots))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let cancelled = || Ok(ElicitResult::new(ElicitationAction::Cancel));
        let Some(call) = self.0.newest_call() else {
            return cancelled(); // nobody looks
        };
        let Ok(elicitation) = read_elicitation(request) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline)); // it asks in a way that we did not offer
        };
        let (sender, answer) = oneshot::channel();
        // One question too many for a call is cancelled, too.
        if call.try_send(CallEvent::Elicited(elicitation, sender)).is_err() {
            return cancelled();
        }
        match answer.await {
            Ok(ElicitationAnswer::Accept(content)) => {
                let mut result = ElicitResult::new(ElicitationAction::Accept);
                result.content = content;
                Ok(result)
            }
            Ok(ElicitationAnswer::Decline) => Ok(ElicitResult::new(ElicitationAction::Decline)),
            Ok(ElicitationAnswer::Cancel) | Err(_) => cancelled(),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let calls = self.0.calls.lock();
        let call = calls.iter().find(|call| call.token == params.progress_token);
        if let Some(call) = call {
            // A call that is behind has progress to show already.
            let _ = call.events.try_send(CallEvent::Progress(params));
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match params.data {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        self.0.log.push_line(&clean(&text));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.note_change(|changed| changed.tools = true);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.note_change(|changed| changed.prompts = true);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.note_change(|changed| changed.resources = true);
    }
}

/// A question in our own terms.
fn read_elicitation(request: ElicitRequestParams) -> Result<Elicitation, serde_json::Error> {
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            Ok(Elicitation {
                message,
                form: ElicitationForm::Fields(serde_json::to_value(requested_schema)?),
            })
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            Ok(Elicitation { message, form: ElicitationForm::Url(url) })
        }
        _ => Err(serde::de::Error::custom("of no kind that we offered")),
    }
}
