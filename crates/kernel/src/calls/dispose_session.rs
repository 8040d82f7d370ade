//! `disposeSession`: ends a session for everyone (H-118).

use serde_json::Value;
use wire::published::commands::DisposeSessionParams;
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError};

use super::uri;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, Stop};
use crate::sessions;
use crate::state::{Kernel, Step};

/// The session, which can be disposed of.
pub(super) fn gather(
    kernel: &Kernel,
    params: &DisposeSessionParams,
    answers: &HandlerAnswers,
) -> Result<ChannelUri, Stop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &uri, answers)?;
    if kernel.find_session(&uri).is_none() {
        let message = format!("there is no session {uri}");
        return Err(RpcError::new(code::SESSION_NOT_FOUND, message).into());
    }
    uri::check_writable(kernel)?;
    Ok(uri)
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, session: &ChannelUri) {
    sessions::dispose_session(step, session);
    step.respond(peer, id, &Value::Null);
}
