//! `x-compose`: what a message would become if it were sent (G-71). Nothing changes.

use bytes::Bytes;
use serde_json::Value;
use wire::ext::compose::ComposeParams;
use wire::rpc::code;
use wire::{ChannelUri, Object, RpcError};

use super::uri;
use crate::io::{ComposeTask, ContextUse, MessageCheck, PeerId};
use crate::load::need_channel;
use crate::message::{self, need_attached_channels};
use crate::pause::{HostWork, Pause, RequestStop};
use crate::peers::ParkedMessage;
use crate::prepare::message_context;
use crate::state::Kernel;
use crate::turn::agent::directories_of;

/// The answer, once the host has found out.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &ComposeParams,
    waiting: &ParkedMessage,
) -> Result<Value, RequestStop> {
    if !kernel.facts().clients_have_token {
        let message = "messages are checked for clients with the host's token only, and this host asks for none; \
                       `greenroom compose` works without a host";
        return Err(RpcError::new(code::PERMISSION_DENIED, message).into());
    }
    let answers = &waiting.answers;
    let chat = find_chat(kernel, params, waiting)?;
    let mut sent = params.message.clone();
    if let Some(model) = &params.model {
        sent.insert("model".to_owned(), Value::Object(model.clone()));
    }
    need_attached_channels(kernel, Some(&sent), answers)?;
    let mut checked = sent.clone();
    message::check(kernel, kernel.chat(&chat), &mut checked, answers)
        .map_err(|refusal| uri::bad(refusal.0))?;
    match answers.message_check_result() {
        None => {
            let check = describe_check(kernel, peer, &chat, sent, &checked, waiting);
            Err(Pause::Work(HostWork::CheckMessage(Box::new(check))).into())
        }
        Some(Ok(answer)) => Ok(answer.clone()),
        Some(Err(failed)) => Err(uri::bad(failed.to_string()).into()),
    }
}

/// The chat that is meant: of a session, its default one.
fn find_chat(
    kernel: &Kernel,
    params: &ComposeParams,
    waiting: &ParkedMessage,
) -> Result<ChannelUri, RequestStop> {
    let named = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &named, &waiting.answers)?;
    if kernel.find_chat(&named).is_some() {
        return Ok(named);
    }
    let session = kernel.find_session(&named).ok_or_else(|| uri::not_found(kernel, &named))?;
    let Some(default) = &session.state().default_chat else {
        return Err(uri::bad("this session has no default chat yet; name a chat").into());
    };
    let chat = uri::parse("defaultChat", default)?;
    need_channel(kernel, &chat, &waiting.answers)?;
    match kernel.find_chat(&chat) {
        Some(_) => Ok(chat),
        None => Err(uri::not_found(kernel, &chat).into()),
    }
}

/// `sent` is the message as it came, `checked` has the model in it that would be asked.
fn describe_check(
    kernel: &Kernel,
    peer: PeerId,
    chat: &ChannelUri,
    sent: Object,
    checked: &Object,
    waiting: &ParkedMessage,
) -> MessageCheck {
    let attachments = sent.get("attachments").and_then(Value::as_array);
    let detached = (0..attachments.map_or(0, Vec::len)).filter_map(|index| {
        let data = waiting.detached.find(&format!("/attachments/{index}"))?;
        Some((index, data.clone()))
    });
    let model = checked.get("model").and_then(|model| model["id"].as_str());
    let limits = kernel.limits();
    MessageCheck {
        compose: ComposeTask {
            context: message_context(
                kernel,
                kernel.chat(chat).session(),
                Some(chat),
                kernel.peers().principal(peer),
            ),
            detached: detached.collect(),
            message: sent,
            client_files: Vec::new(), // they are asked for when it is sent
            working_directories: directories_of(kernel, chat),
            each_bytes: limits.inline_body_bytes,
            left_bytes: limits.inline_message_bytes,
        },
        provider: kernel.session_of(chat).state().provider.clone(),
        model: model.map(str::to_owned),
        refusals: kernel.chat(chat).private().refusals.clone().map(Bytes::from),
        context_use: context_use_of(kernel, chat),
    }
}

fn context_use_of(kernel: &Kernel, uri: &ChannelUri) -> ContextUse {
    let chat = kernel.chat(uri);
    let state = chat.state();
    let active = state.active_turn.as_ref();
    if let Some(usage) = active.and_then(|turn| turn.usage.clone()) {
        return ContextUse::Reported(usage);
    }
    if let Some(compacted) = &chat.private().compacted
        && compacted.from_n >= chat.next_n()
    {
        return ContextUse::Summary(compacted.summary.as_ref().map_or(0, String::len));
    }
    match state.turns.last() {
        Some(turn) => ContextUse::Turn(turn.clone()),
        None => ContextUse::Nothing,
    }
}
