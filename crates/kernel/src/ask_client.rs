//! Asking a client something: the request goes out, and its number and purpose are noted.

use serde::Serialize;
use wire::rpc;

use crate::frame::Frame;
use crate::io::{PeerId, Timer};
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
