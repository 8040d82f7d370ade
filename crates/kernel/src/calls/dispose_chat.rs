//! `disposeChat`: ends one chat of a session; the only one cannot go (H-154, H-155, G-13).

use serde_json::Value;
use wire::published::commands::DisposeChatParams;
use wire::{ChannelUri, Id};

use super::uri;
use crate::chats;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, RequestStop};
use crate::state::{Kernel, Step};

/// The chat, which can be disposed of.
pub(super) fn gather(
    kernel: &Kernel,
    params: &DisposeChatParams,
    answers: &HandlerAnswers,
) -> Result<ChannelUri, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &uri, answers)?;
    if uri.is_root() || kernel.find_session(&uri).is_some() {
        return Err(uri::bad("`channel` must be a chat").into());
    }
    if kernel.find_chat(&uri).is_none() {
        return Err(uri::not_found(kernel, &uri).into());
    }
    if kernel.session_of(&uri).state().chats.len() < 2 {
        let message = "the only chat of a session cannot be disposed of; dispose of the session";
        return Err(uri::bad(message).into());
    }
    uri::check_writable(kernel)?;
    Ok(uri)
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, chat: &ChannelUri) {
    chats::dispose_chat(step, chat);
    step.respond(peer, id, &Value::Null);
}
