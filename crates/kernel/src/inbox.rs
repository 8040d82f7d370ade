//! Messages of peers: each is decoded once, handled in order, and waits where its handler has to.

use serde_json::Value;
use wire::action::ActionError;
use wire::compat::{self, Receiving};
use wire::methods::{self, Call, Method};
use wire::rpc::code;
use wire::{ActionKind, ChannelUri, Generation, Id, Incoming, Object, Origin, RpcError, bounds};

use crate::ask_client::ask_for_file;
use crate::bodies::SentAction;
use crate::calls::{self, unsubscribe};
use crate::client_dispatch::ClientDispatch;
use crate::clients;
use crate::dispatch;
use crate::follow_up::FollowUp;
use crate::frame::Frame;
use crate::host_guard::HostGuard;
use crate::io::{CloseReason, Effect, FailureReply, PeerId, Ticket};
use crate::limits::Limits;
use crate::pause::{ActionStop, HostWork, HostWorkResult, Pause, RequestStop};
use crate::peers::{InboxOutcome, Message, ParkedMessage};
use crate::received::Received;
use crate::reverse_request;
use crate::rights;
use crate::selection;
use crate::state::{Sender, Step};

/// A message arrived. `ping` and answers pass at once, whatever the peer waits for (H-010).
pub(crate) fn receive(step: &mut Step, peer: PeerId, received: Received) {
    match received.message {
        Incoming::Request { id, method, .. } if method == "ping" => {
            step.send(peer, Frame::value(&id, &Value::Null));
        }
        Incoming::Response { id, result } => {
            reverse_request::answer(step, peer, &id, result, received.bytes, received.hold);
        }
        Incoming::Request { .. } | Incoming::Notification { .. } => {
            match step.offer_message(peer, received) {
                Some(InboxOutcome::Handle(received)) => begin(step, peer, received),
                Some(InboxOutcome::Parked { pause: true }) => step.effect(Effect::Pause { peer }),
                Some(InboxOutcome::TooMany(id)) => {
                    let most = step.limits().requests_in_flight_max;
                    let message = format!("more than {most} requests in flight");
                    let error = RpcError::new(code::INVALID_REQUEST, message);
                    step.fail(peer, &id, &error);
                }
                // It waits; or its connection is gone, so there is nobody to answer.
                Some(InboxOutcome::Parked { pause: false }) | None => {}
            }
        }
    }
}

/// Decodes a message that is due, and handles it.
pub(crate) fn begin(step: &mut Step, peer: PeerId, received: Received) {
    debug_assert!(
        !step.peers().is_drained(peer),
        "a peer's next message is begun after the one before has ended"
    );
    let (bodies, hold) = (received.bodies.clone(), received.hold.clone());
    match decode(step, peer, received) {
        Some(message) => handle(step, peer, Box::new(ParkedMessage::new(message, bodies, hold))),
        None => end(step, peer),
    }
}

/// A message that is to be handled. What is malformed is answered if it can be: nothing can be answered to a notification
/// (H-009).
fn decode(step: &mut Step, peer: PeerId, received: Received) -> Option<Message> {
    let generation = step.ready(peer).map(|ready| ready.generation);
    match received.message {
        Incoming::Request { id, method, mut params } => {
            let limits = step.limits();
            let within = match Method::from_name(&method) {
                Some(known) => bounds::check_params(known, &params, |bound| limits.of(bound)),
                None => Ok(()), // refused unread
            };
            if let (Some(generation), Some(known)) = (generation, Method::from_name(&method)) {
                compat::up_params(generation, known, &mut params);
            }
            let call = match within {
                Ok(()) if is_newer(generation, &method) => Err(RpcError::new(
                    code::METHOD_NOT_FOUND,
                    format!("`{method}` came with a later version than the one this client speaks"),
                )),
                Ok(()) => methods::decode_call(&method, params),
                Err(over) => Err(RpcError::new(code::INVALID_PARAMS, over.to_string())),
            };
            match call {
                Ok(call) => Some(Message::Call { id, call: Box::new(call) }),
                Err(error) => {
                    step.fail(peer, &id, &error);
                    step.reply_if_write_fails(FailureReply::Answer { peer, id });
                    None
                }
            }
        }
        Incoming::Notification { method, params } => match method.as_str() {
            "dispatchAction" => {
                let mut dispatch = methods::decode_dispatch(params).ok()?;
                let as_sent = up_action(step, peer, &mut dispatch);
                let kind = check_action(&dispatch.action, step.limits())
                    .map_err(|error| name_as_sent(error, as_sent.as_ref()));
                let Value::Object(action) = dispatch.action else {
                    return None; // no object is no action
                };
                let sent = match &kind {
                    // What is too large is let go at once: its sender recognises it by what is left.
                    Err(ActionError::OverBound(_)) => SentAction::abridge(&action),
                    Ok(_) | Err(_) => SentAction::new(action, received.bodies, received.hold)
                        .with_sent_form(as_sent),
                };
                Some(Message::Dispatch(Box::new(ClientDispatch {
                    channel: dispatch.channel,
                    client_seq: dispatch.client_seq,
                    sent,
                    kind,
                })))
            }
            "unsubscribe" => {
                let uri = params["channel"].as_str()?;
                let uri = ChannelUri::parse(uri).ok()?;
                Some(Message::Unsubscribe(uri))
            }
            _ => None, // a notification nobody knows is ignored
        },
        Incoming::Response { .. } => None, // answers never wait
    }
}

/// Whether a method is newer than the client's version. Before a version is negotiated none is.
fn is_newer(generation: Option<Generation>, method: &str) -> bool {
    match (generation, Method::from_name(method)) {
        (Some(generation), Some(method)) => !compat::has_method(generation, method),
        (None, _) | (_, None) => false,
    }
}

/// An error about an action names it as its sender does.
fn name_as_sent(error: ActionError, as_sent: Option<&Object>) -> ActionError {
    let name = as_sent.and_then(|sent| sent.get("type")?.as_str());
    match (error, name) {
        (ActionError::BadPayload(_), Some(name)) => ActionError::BadPayload(name.to_owned()),
        (error, _) => error,
    }
}

/// Makes an action of an older client one of the current version. What it was, if that was something else.
fn up_action(step: &Step, peer: PeerId, dispatch: &mut methods::Dispatch) -> Option<Object> {
    let Some(ready) = step.ready(peer).filter(|ready| ready.generation < Generation::V1_0) else {
        return None; // it speaks the current version, or none yet: then the action is refused
    };
    let session = step.find_session(&dispatch.channel);
    let chat = step.find_chat(&dispatch.channel);
    let owner = dispatch.channel.session_part().map(|(owner, _)| owner);
    let claimed = dispatch.action["claim"]["session"]
        .as_str()
        .and_then(|uri| ChannelUri::parse(uri).ok())
        .and_then(|uri| step.find_session(&uri));
    let receiving = Receiving {
        client_id: &ready.client_id,
        now: step.now(),
        session: session.map(|session| session.state()),
        chat: chat.map(|chat| chat.state()),
        owner: owner.as_ref().map(ChannelUri::as_str),
        default_chat: claimed.and_then(|session| session.state().default_chat.as_deref()),
    };
    let before = dispatch.action.clone();
    compat::up_action(ready.generation, &mut dispatch.action, &receiving);
    let before = Some(before).filter(|before| *before != dispatch.action);
    if ready.generation == Generation::V0_4
        && let Some(chat) = chat
        && let Some(Value::Object(message)) = dispatch.action.get_mut("message")
    {
        selection::put_into(step, chat, message);
    }
    match before {
        Some(Value::Object(before)) => Some(before),
        _ => None,
    }
}

/// Checks a client's action: first its size, then its payload.
fn check_action(action: &Value, limits: &Limits) -> Result<ActionKind, ActionError> {
    if let Value::Object(fields) = action {
        let name = fields.get("type").and_then(Value::as_str);
        let kind = name.map_or(ActionKind::Unknown, ActionKind::from_name);
        bounds::check_action(kind, fields, |bound| limits.of(bound))?;
    }
    wire::action::check_payload(action)
}

/// A peer's current message may go on: something it waited for is there.
pub(crate) fn resume(step: &mut Step, peer: PeerId) {
    // Something else may still block it, or it may be gone with its peer.
    if let Some(waiting) = step.peers_mut().take_current(peer) {
        handle(step, peer, waiting);
    }
}

fn handle(step: &mut Step, peer: PeerId, waiting: Box<ParkedMessage>) {
    let paused = match &waiting.message {
        Message::Call { id, call } => handle_call(step, peer, id, call, &waiting),
        Message::Dispatch(action) => handle_dispatch(step, peer, action, &waiting),
        Message::Unsubscribe(uri) => handle_unsubscribe(step, peer, uri, &waiting),
    };
    match paused {
        Ok(()) => end(step, peer),
        Err(pause) => park(step, peer, waiting, pause),
    }
}

fn handle_call(
    step: &mut Step,
    peer: PeerId,
    id: &Id,
    call: &Call,
    waiting: &ParkedMessage,
) -> Result<(), Pause> {
    match calls::handle(step, peer, id, call, waiting) {
        Ok(()) => {}
        Err(RequestStop::Pause(pause)) => return Err(pause),
        Err(RequestStop::Fail(mut error)) => {
            if let Some(ready) = step.ready(peer) {
                compat::down_error(ready.generation, call, &mut error);
            }
            step.fail(peer, id, &error);
        }
    }
    let id = id.clone();
    step.reply_if_write_fails(FailureReply::Answer { peer, id });
    Ok(())
}

fn handle_dispatch(
    step: &mut Step,
    peer: PeerId,
    action: &ClientDispatch,
    waiting: &ParkedMessage,
) -> Result<(), Pause> {
    let Some(ready) = step.ready(peer) else {
        return Ok(()); // nothing counts before `initialize` (H-020)
    };
    let sender = Sender {
        peer,
        origin: Origin { client_id: ready.client_id.clone(), client_seq: action.client_seq },
        as_sent: action.sent.as_sent(),
    };
    let may = rights::check_action(step, peer, &action.kind).map_err(ActionStop::from);
    let gather = || dispatch::gather(step, &sender.origin.client_id, action, &waiting.answers);
    match may.and_then(|()| gather()) {
        Err(ActionStop::Pause(pause)) => return Err(pause),
        Err(ActionStop::Refuse(refusal)) => {
            let sent = action.sent.clone();
            step.refuse(&sender, &action.channel, sent, refusal.0);
        }
        Ok(permitted) => dispatch::apply(step, permitted, &sender),
    }
    step.reply_if_write_fails(FailureReply::Refusal {
        peer,
        channel: action.channel.clone(),
        action: action.sent.clone(),
        origin: sender.origin,
    });
    Ok(())
}

fn handle_unsubscribe(
    step: &mut Step,
    peer: PeerId,
    uri: &ChannelUri,
    waiting: &ParkedMessage,
) -> Result<(), Pause> {
    // Nothing ends if there was no subscription, and nothing is answered.
    if let Some(ended) = unsubscribe::gather(step, peer, uri, &waiting.answers)? {
        unsubscribe::apply(step, peer, ended);
    }
    Ok(())
}

/// The current message of a peer waits.
fn park(step: &mut Step, peer: PeerId, mut waiting: Box<ParkedMessage>, pause: Pause) {
    match pause {
        Pause::Read(queries) => step.park_for_reads(peer, waiting, queries),
        Pause::Work(mut work) => {
            if let HostWork::StoreResult { result, .. } = &mut work {
                waiting.answers.set_detached_result(std::mem::take(result));
            }
            let ticket = step.start_work(peer);
            step.effect(work_effect(ticket, work));
            waiting.tickets.push(ticket);
            step.peers_mut().park_current(peer, waiting);
        }
        Pause::AskClient(uris) => ask_for_files(step, peer, waiting, uris),
        Pause::After(older) => {
            if !step.peers().is_gone(older) {
                let why = CloseReason::Superseded;
                step.effect(Effect::Close { peer: older, why });
            }
            // The older connection may still change what was read so far.
            waiting.answers = Default::default();
            waiting.after = Some(older);
            step.peers_mut().park_current(peer, waiting);
        }
    }
}

/// The current message waits for files that only its client can read.
fn ask_for_files(
    step: &mut Step,
    peer: PeerId,
    mut waiting: Box<ParkedMessage>,
    uris: Vec<String>,
) {
    for uri in uris {
        match ask_for_file(step, peer, uri) {
            Ok(ticket) => waiting.tickets.push(ticket),
            Err(file) => {
                let hold = HostGuard::default(); // nothing was sent
                let done = HostWorkResult::ClientFileRead { file, _hold: hold };
                waiting.answers.add_work(done);
            }
        }
    }
    if waiting.is_blocked() {
        step.peers_mut().park_current(peer, waiting)
    } else {
        // nobody could be asked: it goes on without
        handle(step, peer, waiting)
    }
}

fn work_effect(ticket: Ticket, work: HostWork) -> Effect {
    match work {
        HostWork::Fetch(fetch) => Effect::Fetch { ticket, fetch },
        HostWork::Complete(complete) => Effect::Complete { ticket, complete },
        HostWork::ChangeModels(change) => Effect::ChangeModels { ticket, change },
        HostWork::StoreBodies(bodies) | HostWork::StoreResult { bodies, .. } => {
            Effect::StoreBodies { ticket, bodies }
        }
        HostWork::Compose(compose) => Effect::Compose { ticket, compose },
        HostWork::CheckMessage(check) => Effect::CheckMessage { ticket, check },
        HostWork::ListSettingValues(question) => Effect::ListSettingValues { ticket, question },
        HostWork::OperateChangeset(operation) => Effect::OperateChangeset { ticket, operation },
        HostWork::UseFiles(task) => Effect::UseFiles { ticket, task },
        HostWork::BeginWatch(task) => Effect::BeginWatch { ticket, task },
        HostWork::CheckWorktree(facts) => Effect::CheckWorktree { ticket, facts },
    }
}

/// Host work that a message waits for is done.
pub(crate) fn finish_work(step: &mut Step, ticket: Ticket, done: HostWorkResult) {
    // Nobody waits for it if its peer is gone.
    if let Some(peer) = step.end_work(ticket) {
        step.peers_mut().answer_work(peer, ticket, done);
        resume(step, peer);
    } else if let HostWorkResult::WatchBegun(Ok(watch)) = done {
        step.effect(Effect::EndWatch { watch });
    }
}

/// The current message is done: the next one is due when everything that follows from this one is done.
fn end(step: &mut Step, peer: PeerId) {
    let (next, resume) = step.end_current_message(peer);
    if resume {
        step.effect(Effect::Resume { peer });
    }
    match next {
        Some(received) => {
            step.follow_up(FollowUp::NextMessage { peer, received: Box::new(received) })
        }
        None if step.peers().is_gone(peer) => clients::remove_peer(step, peer),
        None => {}
    }
}
