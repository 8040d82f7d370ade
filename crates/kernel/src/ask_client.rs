//! Asking a client something: the request goes out, and its number and purpose are noted.

use serde::Serialize;
use wire::published::commands::ResourceReadParams;
use wire::{ChannelUri, rpc};

use crate::client_file::{ClientFile, ClientFileError};
use crate::frame::Frame;
use crate::io::{PeerId, Ticket, Timer};
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
    let request = step.add_request(Request {
        peer,
        sent,
        purpose,
    });
    step.send(peer, Frame::Text(rpc::request(request, method, params)));
    step.wake_in(Timer::Request { request }, deadline_ms);
    Ok(())
}

/// Asks a client for a file that a message of it names; says why not if it cannot be asked.
pub(crate) fn ask_for_file(
    step: &mut Step,
    peer: PeerId,
    uri: String,
) -> Result<Ticket, ClientFile> {
    let unread = |uri, why| ClientFile {
        uri,
        read: Err(why),
    };
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
    let (ms, purpose) = (
        step.limits().reverse_request_ms,
        Purpose::ReadFile {
            ticket,
            uri: uri.clone(),
        },
    );
    match ask_client(step, peer, "resourceRead", &params, ms, purpose) {
        Ok(()) => Ok(ticket),
        Err(_) => {
            step.end_work(ticket);
            Err(unread(uri, ClientFileError::Busy))
        }
    }
}
