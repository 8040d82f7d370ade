//! The connection to one agent process: requests both ways, and what becomes of them when the process ends.
//!
//! Promises: every request of ours ends once, by an answer, its time limit or the process's end; every request of the agent is answered
//! once; a session is never prompted while it is prompted. Nothing an agent sends or leaves unsent takes memory without bound.
//! Must not know: chats, turns, how anything is shown.

mod handshake;
mod inbox;
mod reader;
#[cfg(test)]
mod simulation;
mod supervise;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};

use super::line::LineReader;
use super::process::{ChildProcess, Launch, StderrTail};
use super::rpc::{self, AcpError, RequestId};
use crate::task;
pub(super) use handshake::{Abilities, ClientOffer, SignInMethod, initialize, read_methods};
pub(super) use inbox::{InboxItem, SessionInbox, SessionListener};
pub(super) use reader::{UpdateParams, UpdateTag};
pub(super) use supervise::{ConnectionEnd, EndKind};
use writer::Writer;

/// Requests of an agent that may be open at once.
pub(super) const QUESTIONS_MAX: usize = 256;

/// The connection to a process. Clones are the same one; it is stopped when all are gone.
#[derive(Clone)]
pub(super) struct AcpConnection {
    shared: Arc<SharedConnection>,
    /// Where its tasks run: who calls may be on a thread without a runtime.
    runtime: tokio::runtime::Handle,
    /// The last one stops the process.
    _owner: Arc<StopOnDrop>,
}

struct StopOnDrop(Arc<SharedConnection>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.want_stop(EndKind::Stopped);
    }
}

struct SharedConnection {
    tail: StderrTail,
    writer: Writer,
    table: Mutex<RequestTable>,
    /// Why it is to be stopped; the first reason counts.
    stop: Mutex<Option<EndKind>>,
    stop_wanted: Notify,
    end: watch::Sender<Option<Arc<ConnectionEnd>>>,
    /// Whether sessions can be closed (AG-12).
    closes_sessions: AtomicBool,
}

#[derive(Default)]
struct RequestTable {
    last_request: u64,
    waiting: BTreeMap<u64, RequestWaiter>,
    sessions: HashMap<String, Arc<SessionInbox>>,
    /// The agent's requests that are not answered.
    questions: HashMap<RequestId, OpenQuestion>,
    /// What was said of sessions whose names nobody knows yet, and how large it was.
    early: Vec<(String, acp::SessionUpdate, usize)>,
    /// Whether the agent last said that somebody is signed in.
    sign_in: Option<bool>,
}

struct OpenQuestion {
    /// The session that it is about.
    session: String,
    /// What is answered if nobody does.
    cancelled: Result<Value, AcpError>,
}

/// Who waits for an answer.
enum RequestWaiter {
    Caller(oneshot::Sender<Result<Box<RawValue>, RequestError>>),
    /// The answer names a session: what is said of it from then on must be heard.
    NewSession(OpenedSession),
    Prompt(Arc<SessionInbox>),
}

/// Where a new session is listened to, and the answer that named it.
type NewInbox = (Arc<SessionInbox>, Box<RawValue>);

struct OpenedSession {
    listener: Arc<dyn SessionListener>,
    caller: oneshot::Sender<Result<NewInbox, RequestError>>,
}

/// A request of the agent.
#[derive(Debug)]
pub(super) struct AgentQuestion {
    pub(super) id: RequestId,
    pub(super) kind: AgentQuestionKind,
}

/// A request for input. The fields of its form are sorted by name in the request; `order` has them as the agent wrote them.
#[derive(Debug)]
pub(super) struct AskedForm {
    pub(super) request: acp::CreateElicitationRequest,
    pub(super) order: Vec<String>,
}

#[derive(Debug)]
pub(super) enum AgentQuestionKind {
    Permission(Box<acp::RequestPermissionRequest>),
    Elicitation(Box<AskedForm>),
    ReadFile(acp::ReadTextFileRequest),
    WriteFile(Box<acp::WriteTextFileRequest>),
    Terminal(Box<TerminalRequest>),
}

/// What an agent wants of a terminal (AG-52).
#[derive(Debug)]
pub(super) enum TerminalRequest {
    Create(acp::CreateTerminalRequest),
    Output(acp::TerminalOutputRequest),
    WaitForExit(acp::WaitForTerminalExitRequest),
    Kill(acp::KillTerminalRequest),
    Release(acp::ReleaseTerminalRequest),
}

impl AgentQuestionKind {
    /// The answer to a question that nobody will answer.
    fn cancelled(&self) -> Result<Value, AcpError> {
        match self {
            Self::Permission(_) => Ok(json!({"outcome": {"outcome": "cancelled"}})),
            Self::Elicitation(_) => Ok(json!({"action": "cancel"})),
            Self::ReadFile(_) | Self::WriteFile(_) | Self::Terminal(_) => {
                Err(AcpError::new(rpc::REQUEST_CANCELLED, "no turn of this session is running"))
            }
        }
    }
}

/// Why a request came to nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum RequestError {
    #[error("{0}")]
    Refused(AcpError),
    #[error("no answer to `{method}` within {} seconds", limit.as_secs())]
    TimedOut { method: String, limit: Duration },
    #[error("{0}")]
    Ended(Arc<ConnectionEnd>),
    #[error("its answer to `{method}` cannot be read: {why}")]
    Unreadable { method: String, why: String },
}

impl SharedConnection {
    fn new(writer: Writer, tail: StderrTail) -> Arc<Self> {
        let (end, _) = watch::channel(None);
        Arc::new(Self {
            tail,
            writer,
            table: Mutex::default(),
            stop: Mutex::default(),
            stop_wanted: Notify::new(),
            end,
            closes_sessions: AtomicBool::new(false),
        })
    }

    fn want_stop(&self, why: EndKind) {
        let mut stop = self.stop.lock();
        stop.get_or_insert(why);
        self.stop_wanted.notify_one();
    }

    /// Answers a request of the agent, unless it was answered.
    fn answer(&self, id: &RequestId, answer: &Result<Value, AcpError>) {
        if self.table.lock().questions.remove(id).is_some() {
            self.writer.send(rpc::encode_answer(id, answer));
        }
    }

    /// Answers all that a session has asked.
    fn cancel_questions(&self, session: &str) {
        let mut table = self.table.lock();
        let of_session = table.questions.extract_if(|_, open| open.session == session);
        let open: Vec<(RequestId, OpenQuestion)> = of_session.collect();
        drop(table);
        for (id, question) in open {
            self.writer.send(rpc::encode_answer(&id, &question.cancelled));
        }
    }

    fn send_request(
        &self,
        method: &str,
        params: &impl Serialize,
        waiter: RequestWaiter,
    ) -> Result<u64, RequestError> {
        let mut table = self.table.lock();
        if let Some(end) = self.end.borrow().clone() {
            return Err(RequestError::Ended(end));
        }
        table.last_request += 1;
        let id = table.last_request;
        let line = rpc::encode_request(id, method, params).map_err(|error| {
            RequestError::Unreadable { method: method.to_owned(), why: error.to_string() }
        })?;
        table.waiting.insert(id, waiter);
        // Under the lock, so that requests are sent in the order of their numbers.
        self.writer.send(line);
        Ok(id)
    }
}

impl AcpConnection {
    /// Starts a process and the tasks that follow it.
    pub(super) fn start(
        launch: &Launch,
        tail: StderrTail,
        line_bytes_max: usize,
    ) -> io::Result<Self> {
        let (process, pipes) = ChildProcess::start(launch)?;
        let shared = SharedConnection::new(Writer::start(pipes.stdin), tail.clone());
        let errors = task::spawn(Box::pin(tail.follow(pipes.stderr)));
        let lines = LineReader::new(pipes.stdout, line_bytes_max);
        let reading = task::spawn(Box::pin(reader::read(Arc::clone(&shared), lines)));
        let supervising = supervise::supervise(Arc::clone(&shared), process, reading, errors);
        task::spawn(Box::pin(supervising));
        Ok(Self::of(shared))
    }

    fn of(shared: Arc<SharedConnection>) -> Self {
        Self {
            _owner: Arc::new(StopOnDrop(Arc::clone(&shared))),
            runtime: tokio::runtime::Handle::current(),
            shared,
        }
    }

    /// Does something beside who calls, which need not be a task.
    pub(super) fn spawn(&self, work: BoxFuture<'static, ()>) {
        task::spawn_on(&self.runtime, work);
    }

    /// Asks the agent something; what it answers, within the time.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<T, RequestError> {
        self.shared.writer.wait_for_room().await;
        let (caller, answer) = oneshot::channel();
        let id = self.shared.send_request(method, params, RequestWaiter::Caller(caller))?;
        let answer = self.wait_for_answer(method, id, answer, limit).await?;
        read_answer(method, &answer)
    }

    /// Asks for a session that the answer names, and listens to it from that moment on: `session/new`, `session/fork`.
    pub(super) async fn new_session(
        &self,
        method: &str,
        params: &impl Serialize,
        listener: Arc<dyn SessionListener>,
        limit: Duration,
    ) -> Result<(Arc<SessionInbox>, Value), RequestError> {
        let (caller, answer) = oneshot::channel();
        let waiter = RequestWaiter::NewSession(OpenedSession { listener, caller });
        let id = self.shared.send_request(method, params, waiter)?;
        let (inbox, answer) = self.wait_for_answer(method, id, answer, limit).await?;
        Ok((inbox, read_answer(method, &answer)?))
    }

    async fn wait_for_answer<T>(
        &self,
        method: &str,
        id: u64,
        answer: oneshot::Receiver<Result<T, RequestError>>,
        limit: Duration,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            // Whoever was to answer is gone: the connection's end was missed by a moment.
            Ok(Err(_)) => Err(RequestError::Ended(self.end())),
            Err(_) => {
                self.shared.table.lock().waiting.remove(&id);
                let method = method.to_owned();
                Err(RequestError::TimedOut { method, limit })
            }
        }
    }

    /// Listens to a session of before, whose name is known.
    pub(super) fn listen(
        &self,
        session: &str,
        listener: Arc<dyn SessionListener>,
    ) -> Arc<SessionInbox> {
        let inbox = SessionInbox::new(session.to_owned(), listener);
        inbox.expect_replay();
        let mut table = self.shared.table.lock();
        table.sessions.insert(session.to_owned(), Arc::clone(&inbox));
        if let Some(end) = self.shared.end.borrow().clone() {
            inbox.end(end);
        }
        inbox
    }

    /// Sessions can be closed: those that are open when it is stopped are.
    fn set_closes_sessions(&self, closes: bool) {
        self.shared.closes_sessions.store(closes, Ordering::Relaxed);
    }

    /// Nobody listens to this session any more.
    pub(super) fn forget(&self, session: &str) {
        self.shared.cancel_questions(session);
        self.shared.table.lock().sessions.remove(session);
    }

    /// Sends a prompt. The answer, and all that is said before it, comes to the inbox.
    pub(super) async fn prompt(
        &self,
        inbox: &Arc<SessionInbox>,
        prompt: &Value,
    ) -> Result<(), RequestError> {
        self.shared.writer.wait_for_room().await;
        inbox.begin_prompt();
        let params = json!({"sessionId": inbox.session, "prompt": prompt});
        let sent = self.shared.send_request(
            "session/prompt",
            &params,
            RequestWaiter::Prompt(Arc::clone(inbox)),
        );
        if let Err(error) = sent {
            inbox.take_back_prompt();
            return Err(error);
        }
        Ok(())
    }

    /// The turn is over: a prompt that is not answered is cancelled, and what was asked with it (AG-30). Whether one was. Does not wait.
    pub(super) fn end_turn(&self, inbox: &SessionInbox) -> bool {
        let is_prompted = inbox.stop_listening();
        if is_prompted {
            self.notify("session/cancel", &json!({"sessionId": inbox.session}));
        }
        self.shared.cancel_questions(&inbox.session);
        is_prompted
    }

    fn notify(&self, method: &str, params: &Value) {
        match rpc::encode_notification(method, params) {
            Ok(line) => self.shared.writer.send(line),
            Err(error) => {
                tracing::error!(%error, method, "a notification to an agent cannot be written")
            }
        }
    }

    pub(super) fn answer(&self, id: &RequestId, answer: &Result<Value, AcpError>) {
        self.shared.answer(id, answer);
    }

    /// Ends the process. Does not wait.
    pub(super) fn stop(&self, why: EndKind) {
        self.shared.want_stop(why);
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.end.borrow().is_some()
    }

    /// Tells of the end, without keeping the process running.
    pub(super) fn subscribe_end(&self) -> watch::Receiver<Option<Arc<ConnectionEnd>>> {
        self.shared.end.subscribe()
    }

    /// Waits for the end of the process, and of all that it started.
    #[cfg(test)]
    pub(super) async fn ended(&self) -> Arc<ConnectionEnd> {
        let mut end = self.subscribe_end();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_else(|| self.end()),
            Err(_) => self.end(),
        }
    }

    /// Its end, or what is true if nobody can say it any more.
    fn end(&self) -> Arc<ConnectionEnd> {
        let end = self.shared.end.borrow().clone();
        end.unwrap_or_else(|| Arc::new(ConnectionEnd::unknown(&self.shared.tail)))
    }

    pub(super) fn tail(&self) -> &StderrTail {
        &self.shared.tail
    }

    /// Whether somebody is signed in, as the agent last said it; none if it said nothing.
    pub(super) fn sign_in(&self) -> Option<bool> {
        self.shared.table.lock().sign_in
    }
}

fn read_answer<'a, T: Deserialize<'a>>(
    method: &str,
    answer: &'a RawValue,
) -> Result<T, RequestError> {
    serde_json::from_str(answer.get()).map_err(|error| RequestError::Unreadable {
        method: method.to_owned(),
        why: error.to_string(),
    })
}
