//! Asking a client something: the request goes out, and its number and purpose are noted.

use serde::Serialize;
use serde_json::json;
use wire::published::commands::ResourceReadParams;
use wire::{ChannelUri, rpc};

use crate::client_file::{ClientFile, ClientFileError, ClientQuestion};
use crate::frame::Frame;
use crate::host_guard::HostGuard;
use crate::io::{Effect, PeerId, Ticket, Timer};
use crate::requests::{Purpose, Request};
use crate::state::Step;

/// Asks a client something; gives the purpose back if it is asked too much already.
pub(crate) fn ask_client<T: Serialize>(
    step: &mut Step,
    peer: PeerId,
    method: &str,
    params: &T,
    deadline_ms: u64,
    purpose: Purpose,
) -> Result<(), Purpose> {
    if step.requests().count_of(peer) >= step.limits().requests_in_flight_max {
        return Err(purpose);
    }
    let sent = step.now();
    let request = step.add_request(Request { peer, sent, purpose });
    debug_assert!(
        step.requests().count_of(peer) <= step.limits().requests_in_flight_max,
        "no client is asked more than it may be"
    );
    step.send(peer, Frame::Text(rpc::request(request, method, params)));
    step.wake_in(Timer::Request { request }, deadline_ms);
    Ok(())
}

/// Asks a client about its files for the host. The host is answered however it ends.
pub(crate) fn ask_for_host(step: &mut Step, ask: u64, client_id: &str, question: ClientQuestion) {
    let peer = step.peers().peer_of(client_id);
    let Some(peer) = peer.filter(|peer| !step.peers().is_gone(*peer)) else {
        return fail(step, ask, ClientFileError::PeerGone);
    };
    let (method, mut params) = (question.method(), question.params());
    params["channel"] = json!(ChannelUri::root().as_str());
    let ms = question.time_ms(step.limits().reverse_request_ms);
    let purpose = Purpose::AnswerHost { ask, question };
    if ask_client(step, peer, method, &params, ms, purpose).is_err() {
        fail(step, ask, ClientFileError::Busy);
    }
}

fn fail(step: &mut Step, ask: u64, why: ClientFileError) {
    step.effect(Effect::ClientAnswered { ask, answer: Err(why), hold: HostGuard::default() });
}

/// Asks a client for a file that a message of it names; says why not if it cannot be asked.
pub(crate) fn ask_for_file(
    step: &mut Step,
    peer: PeerId,
    uri: String,
) -> Result<Ticket, ClientFile> {
    let unread = |uri, why| ClientFile { uri, read: Err(why) };
    if step.peers().is_gone(peer) {
        return Err(unread(uri, ClientFileError::PeerGone));
    }
    let params = ResourceReadParams {
        channel: ChannelUri::root().to_string(),
        meta: None,
        uri: uri.clone(),
        encoding: None,
    };
    let ticket = step.start_work(peer);
    let (ms, purpose) =
        (step.limits().reverse_request_ms, Purpose::ReadFile { ticket, uri: uri.clone() });
    match ask_client(step, peer, "resourceRead", &params, ms, purpose) {
        Ok(()) => Ok(ticket),
        Err(_) => {
            step.end_work(ticket);
            Err(unread(uri, ClientFileError::Busy))
        }
    }
}
