//! The host's own requests to clients: a frame goes out to one peer, and its answer, its deadline or the peer's end comes back,
//! exactly once.

use serde_json::Value;
use wire::{Id, RpcError};

use crate::client_file::{ClientFile, ClientQuestion};
use crate::follow_up::FollowUp;
use crate::host_guard::HostGuard;
use crate::io::{Effect, PeerId, Ticket};
use crate::pause::HostWorkResult;
use crate::render;
use crate::rendered::RequestEnd;
use crate::requests::{Purpose, Request};
use crate::state::Step;

/// A client answered. What it was not asked, or not any more, is ignored.
pub(crate) fn answer(
    step: &mut Step,
    peer: PeerId,
    id: &Id,
    result: Result<Value, RpcError>,
    bytes: usize,
    hold: HostGuard,
) {
    let request = match id {
        Id::Number(number) => number.as_u64(),
        _ => None,
    };
    let request = request.filter(|request| step.requests().is_asked(*request, peer));
    if let Some(request) = request {
        let reply = match result {
            Ok(value) => RequestEnd::Result { value, bytes, hold },
            Err(error) => RequestEnd::Error(error),
        };
        end(step, request, reply);
    }
}

/// A request had its time.
pub(crate) fn time_out(step: &mut Step, request: u64) {
    end(step, request, RequestEnd::Timeout);
}

/// A connection is gone: nothing it was asked will be answered.
pub(crate) fn end_requests_of(step: &mut Step, peer: PeerId) {
    for request in step.requests().of_peer(peer) {
        end(step, request, RequestEnd::PeerGone);
    }
}

fn end(step: &mut Step, request: u64, reply: RequestEnd) {
    let Some(Request { sent, purpose, .. }) = step.requests_mut().end(request) else {
        return; // it was answered before its deadline
    };
    debug_assert!(sent <= step.now(), "time does not run backwards");
    let ms = u64::try_from(step.now().ms_since(sent)).unwrap_or(0);
    match purpose {
        Purpose::Render(pending) => render::finish_transform(step, *pending, reply, ms),
        Purpose::ReadFile { ticket, uri } => finish_file(step, ticket, uri, reply),
        Purpose::AnswerHost { ask, question } => answer_host(step, ask, question, reply),
    }
}

/// Passes a client's answer to the host.
fn answer_host(step: &mut Step, ask: u64, question: ClientQuestion, reply: RequestEnd) {
    let bytes_max = step.limits().client_file_bytes_max;
    let hold = hold_of(&reply);
    let answer = question.answer_of(reply, bytes_max);
    step.effect(Effect::ClientAnswered { ask, answer, hold });
}

/// What an answer takes of its connection's room until it is used.
fn hold_of(reply: &RequestEnd) -> HostGuard {
    match reply {
        RequestEnd::Result { hold, .. } => hold.clone(),
        RequestEnd::Error(_) | RequestEnd::Timeout | RequestEnd::PeerGone => HostGuard::default(),
    }
}

/// A file that a message waits for was read, or was not: the message goes on.
fn finish_file(step: &mut Step, ticket: Ticket, uri: String, reply: RequestEnd) {
    let bytes_max = step.limits().client_file_bytes_max;
    let hold = hold_of(&reply);
    let file = ClientFile::of_reply(uri, reply, bytes_max);
    // Nobody waits for it if its peer is gone.
    if let Some(peer) = step.end_work(ticket) {
        let done = HostWorkResult::ClientFileRead { file, _hold: hold };
        step.peers_mut().answer_work(peer, ticket, done);
        step.follow_up(FollowUp::ResumePeer(peer));
    }
}
