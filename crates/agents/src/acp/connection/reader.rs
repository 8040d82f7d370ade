//! What an agent sends, to who waits for it.
//!
//! Promises: what nobody knows is answered or passed over at once (AG-20); a line that is no message is held like what the agent prints
//! for people, and ends the connection when there are too many (AG-17).
//! Must not know: what is done with updates and questions.

use std::borrow::Cow;
use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;

use super::inbox::SessionInbox;
use super::{
    AgentQuestion, AgentQuestionKind, AskedForm, EndKind, OpenQuestion, OpenedSession,
    QUESTIONS_MAX, RequestError, RequestWaiter, SharedConnection, TerminalRequest,
};
use crate::acp::line::LineReader;
use crate::acp::rpc::{self, AcpError, NoMessage, RequestId, RpcMessage};

/// Lines in a row that are no JSON: whatever this is, it does not speak the protocol.
const GARBAGE_LINES_MAX: usize = 3;

/// What is held of sessions whose names nobody knows yet.
const EARLY_MAX: usize = 16;
const EARLY_BYTES_MAX: usize = 8 * 1_024 * 1_024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct UpdateParams<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(in super::super) update: &'a RawValue,
}

#[derive(Deserialize)]
pub(in super::super) struct UpdateTag<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    tag: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SessionOf<'a> {
    #[serde(borrow, rename = "sessionId", default)]
    session: Option<Cow<'a, str>>,
}

/// Reads until the output ends.
pub(super) async fn read<R: AsyncRead + Unpin>(
    shared: Arc<SharedConnection>,
    mut lines: LineReader<R>,
) {
    let mut garbage = 0;
    loop {
        // An agent that asks and does not read the answers is not heard until it does.
        shared.writer.wait_for_room().await;
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => return shared.want_stop(EndKind::Protocol(error.to_string())),
        };
        if line.is_empty() {
            continue;
        }
        match rpc::decode(&line) {
            Ok(message) => {
                garbage = 0;
                receive(&shared, message, line.len()).await;
            }
            Err(why) => {
                shared.tail.push_line(&line);
                if why == NoMessage::NotJson {
                    garbage += 1;
                }
            }
        }
        if garbage == GARBAGE_LINES_MAX {
            let text = format!("it printed {GARBAGE_LINES_MAX} lines in a row that are no JSON");
            return shared.want_stop(EndKind::Protocol(text));
        }
    }
}

async fn receive(shared: &SharedConnection, message: RpcMessage<'_>, bytes: usize) {
    match message {
        RpcMessage::Response { id, outcome } => receive_response(shared, id, outcome),
        RpcMessage::Request { id, method, params } => {
            receive_request(shared, id, &method, params, bytes).await
        }
        RpcMessage::Notification { method, params } => match &*method {
            "session/update" => receive_update(shared, params, bytes).await,
            "$/cancel_request" => withdraw(shared, params),
            "_auth/status_update" => {
                if let Some(is_signed_in) = read_sign_in(params) {
                    shared.table.lock().sign_in = Some(is_signed_in);
                }
            }
            _ => {} // AG-20: extensions that we do not know
        },
    }
}

fn receive_response(
    shared: &SharedConnection,
    id: Option<u64>,
    outcome: Result<&RawValue, AcpError>,
) {
    let waiter = id.and_then(|id| shared.table.lock().waiting.remove(&id));
    let outcome = outcome.map(ToOwned::to_owned);
    match waiter {
        Some(RequestWaiter::Caller(caller)) => {
            // Who asked may have stopped waiting.
            let _ = caller.send(outcome.map_err(RequestError::Refused));
        }
        Some(RequestWaiter::NewSession(new)) => open_session(shared, new, outcome),
        Some(RequestWaiter::Prompt(inbox)) => inbox.end_prompt(outcome),
        // An answer after its time limit, or to a question that nobody asked.
        None => shared.tail.push_line(b"[an answer that nobody waits for]"),
    }
}

fn open_session(
    shared: &SharedConnection,
    new: OpenedSession,
    outcome: Result<Box<RawValue>, AcpError>,
) {
    let opened = outcome.map_err(RequestError::Refused).and_then(|answer| {
        let named: SessionOf<'_> = super::read_answer("session/new", &answer)?;
        let session = named.session.ok_or_else(|| RequestError::Unreadable {
            method: "session/new".to_owned(),
            why: "it names no session".to_owned(),
        })?;
        let inbox = SessionInbox::new(session.clone().into_owned(), new.listener);
        let mut table = shared.table.lock();
        table.sessions.insert(session.clone().into_owned(), Arc::clone(&inbox));
        let (early, others) =
            std::mem::take(&mut table.early).into_iter().partition(|(of, ..)| *of == session);
        table.early = others;
        drop(table);
        let early: Vec<(String, acp::SessionUpdate, usize)> = early;
        for (_, update, _) in early {
            inbox.deliver(update, 0);
        }
        drop(session);
        Ok((inbox, answer))
    });
    // Who asked may have stopped waiting; the session stays known, and is of no use to anybody.
    let _ = new.caller.send(opened);
}

async fn receive_update(shared: &SharedConnection, params: Option<&RawValue>, bytes: usize) {
    let Some(params) = read_params::<UpdateParams<'_>>(shared, params) else {
        return; // said in the tail
    };
    let inbox = shared.table.lock().sessions.get(&*params.session_id).cloned();
    let Some(tag) = read_params::<UpdateTag<'_>>(shared, Some(params.update)) else {
        return; // said in the tail
    };
    let tells_of_trouble = tells_of_trouble(&tag.tag, params.update);
    if let Some(inbox) = &inbox
        && !is_about_session(&tag.tag)
        && !inbox.wants_content()
        && !(tells_of_trouble && inbox.is_settled())
    {
        return; // AG-43: said before, or too late; it is counted
    }
    let Some(update) = read_params::<acp::SessionUpdate>(shared, Some(params.update)) else {
        return; // said in the tail
    };
    match inbox {
        Some(inbox) => {
            inbox.deliver(update, bytes);
            inbox.wait_for_room().await;
        }
        None if is_about_session(&tag.tag) || tells_of_trouble => {
            let early = &mut shared.table.lock().early;
            early.push((params.session_id.into_owned(), update, bytes));
            let size = |early: &[(String, acp::SessionUpdate, usize)]| {
                early.iter().map(|(.., bytes)| bytes).sum::<usize>()
            };
            while early.len() > EARLY_MAX || size(early) > EARLY_BYTES_MAX {
                early.remove(0);
            }
        }
        None => {} // a session that nobody has, or has no longer
    }
}

/// Whether an update says something of its session that is true between turns, too.
fn is_about_session(tag: &str) -> bool {
    matches!(
        tag,
        "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "usage_update"
    )
}

/// Whether an update may tell of something that went wrong while no turn listens: a notice, or the failed call by which one agent says
/// that an MCP server did not start (MC-9).
fn tells_of_trouble(tag: &str, update: &RawValue) -> bool {
    match tag {
        "notice" | "compaction_update" => true,
        "tool_call" => update.get().contains("__startup"),
        _ => false,
    }
}

async fn receive_request(
    shared: &SharedConnection,
    id: RequestId,
    method: &str,
    params: Option<&RawValue>,
    bytes: usize,
) {
    let kind = match method {
        "session/request_permission" => {
            parse(params).map(|r| AgentQuestionKind::Permission(Box::new(r)))
        }
        "elicitation/create" => {
            read_form(params).map(|form| AgentQuestionKind::Elicitation(Box::new(form)))
        }
        "fs/read_text_file" => parse(params).map(AgentQuestionKind::ReadFile),
        "fs/write_text_file" => parse(params).map(|r| AgentQuestionKind::WriteFile(Box::new(r))),
        "terminal/create" => parse(params).map(|r| of_terminal(TerminalRequest::Create(r))),
        "terminal/output" => parse(params).map(|r| of_terminal(TerminalRequest::Output(r))),
        "terminal/wait_for_exit" => {
            parse(params).map(|r| of_terminal(TerminalRequest::WaitForExit(r)))
        }
        "terminal/kill" => parse(params).map(|r| of_terminal(TerminalRequest::Kill(r))),
        "terminal/release" => parse(params).map(|r| of_terminal(TerminalRequest::Release(r))),
        _ => Err(AcpError::new(rpc::METHOD_NOT_FOUND, format!("Method not found: {method}"))),
    };
    let refuse =
        |answer: Result<Value, AcpError>| shared.writer.send(rpc::encode_answer(&id, &answer));
    let kind = match kind {
        Ok(kind) => kind,
        Err(error) => return refuse(Err(error)),
    };
    let session = parse::<SessionOf<'_>>(params).ok();
    let session = session.and_then(|of| of.session);
    let inbox = session.and_then(|session| shared.table.lock().sessions.get(&*session).cloned());
    let Some(inbox) = inbox else {
        return refuse(kind.cancelled()); // nobody could answer
    };
    match register(shared, &id, &inbox.session, &kind) {
        Registered::Open => {}
        Registered::TooMany => {
            inbox.note_refusal();
            return refuse(kind.cancelled());
        }
        Registered::Twice => return refuse(kind.cancelled()),
    }
    let question = AgentQuestion { id: id.clone(), kind };
    match inbox.ask(Box::new(question), bytes) {
        Ok(()) => inbox.wait_for_room().await,
        Err(question) => shared.answer(&id, &question.kind.cancelled()),
    }
}

fn of_terminal(request: TerminalRequest) -> AgentQuestionKind {
    AgentQuestionKind::Terminal(Box::new(request))
}

#[derive(Deserialize, Default)]
struct FormFields {
    #[serde(rename = "requestedSchema", default)]
    schema: FormSchema,
}

#[derive(Deserialize, Default)]
struct FormSchema {
    #[serde(default)]
    properties: serde_json::Map<String, Value>,
}

/// The typed request has lost the order of the form's fields.
fn read_form(params: Option<&RawValue>) -> Result<AskedForm, AcpError> {
    let request = parse(params)?;
    let fields: FormFields = parse(params)?;
    let order = fields.schema.properties.into_iter().map(|(name, _)| name);
    Ok(AskedForm { request, order: order.collect() })
}

/// What became of a question of the agent.
enum Registered {
    /// It is to be answered.
    Open,
    TooMany,
    /// One of this name is open.
    Twice,
}

/// Notes a question that is to be answered.
fn register(
    shared: &SharedConnection,
    id: &RequestId,
    session: &str,
    kind: &AgentQuestionKind,
) -> Registered {
    let questions = &mut shared.table.lock().questions;
    if questions.contains_key(id) {
        return Registered::Twice;
    }
    if questions.len() >= QUESTIONS_MAX {
        return Registered::TooMany;
    }
    let question = OpenQuestion { session: session.to_owned(), cancelled: kind.cancelled() };
    questions.insert(id.clone(), question);
    Registered::Open
}

fn withdraw(shared: &SharedConnection, params: Option<&RawValue>) {
    let id = parse::<Value>(params).ok().map(|params| RequestId::new(&params["requestId"]));
    let Some(id) = id else {
        return; // names nothing
    };
    let inbox = {
        let table = shared.table.lock();
        let question = table.questions.get(&id);
        question.and_then(|question| table.sessions.get(&question.session).cloned())
    };
    let cancelled = AcpError::new(rpc::REQUEST_CANCELLED, "Request cancelled");
    shared.answer(&id, &Err(cancelled));
    if let Some(inbox) = inbox {
        inbox.withdraw(id);
    }
}

/// Whether somebody is signed in, if that is what it says; nothing else is held of it.
fn read_sign_in(params: Option<&RawValue>) -> Option<bool> {
    let params: Value = parse(params).ok()?;
    let status = params.get("authStatus").unwrap_or(&params);
    let kind = status.get("kind").or_else(|| status.get("state"))?;
    Some(!matches!(kind.as_str()?, "none" | "unauthenticated" | "signed_out" | "logged_out"))
}

fn parse<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, AcpError> {
    let params = params.map_or("null", RawValue::get);
    serde_json::from_str(params)
        .map_err(|error| AcpError::new(rpc::INVALID_PARAMS, format!("Invalid params: {error}")))
}

/// Parameters of a notification; one that cannot be read is said in the agent's log and passed over.
fn read_params<'a, T: Deserialize<'a>>(
    shared: &SharedConnection,
    params: Option<&'a RawValue>,
) -> Option<T> {
    match parse(params) {
        Ok(read) => Some(read),
        Err(error) => {
            let line = format!("[an update that cannot be read: {}]", error.message);
            shared.tail.push_line(line.as_bytes());
            None
        }
    }
}
