//! `completions`: proposals for the text that a user is typing (H-241). The host computes them, because a step does no I/O.

use compositor::ahp::{CONTEXTS_KEY, context_names, names_in};
use serde_json::{Value, json};
use wire::published::commands::{CompletionItemKind, CompletionsParams};
use wire::rpc::code;
use wire::state::SessionState;
use wire::{ChannelUri, RpcError};

use super::uri;
use crate::channels::Session;
use crate::io::{CompletionAnswer, CompletionTask, MessageContext, PeerId};
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::prepare::message_context;
use crate::state::Kernel;
use crate::turn::agent::directories_of;

/// What may begin something that can be completed.
pub(super) const TRIGGER_CHARACTERS: [&str; 3] = ["@", "#", "/"];

/// The `CompletionsResult`.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CompletionsParams,
    answers: &HandlerAnswers,
) -> Result<Value, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &uri, answers)?;
    let working_directories = directories_at(kernel, &uri)?;
    let offset = u64::try_from(params.offset).map_err(|_| outside_text())?;
    if params.kind != CompletionItemKind::UserMessage {
        return Ok(json!({"items": []}));
    }
    match answers.completion_result() {
        None => Err(Pause::Work(HostWork::Complete(Box::new(CompletionTask {
            context: context_of(kernel, peer, &uri),
            working_directories,
            text: params.text.clone(),
            offset,
            contexts: contexts_at(kernel, &uri, params),
        })))
        .into()),
        Some(Ok(CompletionAnswer::Items(items))) => Ok(json!({"items": items})),
        Some(Ok(CompletionAnswer::OutsideText)) => Err(outside_text().into()),
        Some(Err(failed)) => Err(RpcError::new(code::INTERNAL_ERROR, failed.to_string()).into()),
    }
}

fn context_of(kernel: &Kernel, peer: PeerId, uri: &ChannelUri) -> MessageContext {
    let principal = kernel.peers().principal(peer);
    match kernel.find_chat(uri) {
        Some(chat) => message_context(kernel, chat.session(), Some(uri), principal),
        None => message_context(kernel, uri, None, principal),
    }
}

/// The contexts that clients send (C-065): those that this one names with its request, and those of the chat's draft.
fn contexts_at(kernel: &Kernel, uri: &ChannelUri, params: &CompletionsParams) -> Vec<String> {
    let named = params.meta.as_ref().and_then(|meta| meta.get(CONTEXTS_KEY));
    let mut names = named.map(names_in).unwrap_or_default();
    let chat = kernel.find_chat(uri);
    let draft = chat.and_then(|chat| chat.state().draft.as_ref()?.as_object());
    if let Some(draft) = draft {
        names.extend(context_names(draft));
    }
    names.into_iter().collect()
}

/// The session that somebody types into, or the session of that chat.
fn session_at<'k>(kernel: &'k Kernel, uri: &ChannelUri) -> Result<&'k SessionState, RpcError> {
    match kernel.find_chat(uri) {
        Some(chat) => Ok(kernel.session(chat.session()).state()),
        None => {
            kernel.find_session(uri).map(Session::state).ok_or_else(|| uri::not_found(kernel, uri))
        }
    }
}

/// The working directories of a chat or a session that somebody types into.
fn directories_at(kernel: &Kernel, uri: &ChannelUri) -> Result<Vec<String>, RpcError> {
    if uri.is_root() {
        return Err(uri::bad("`channel` must be a chat or a session"));
    }
    if kernel.find_chat(uri).is_some() {
        return Ok(directories_of(kernel, uri));
    }
    let directories = &session_at(kernel, uri)?.working_directories;
    Ok(directories.clone().unwrap_or_default())
}

fn outside_text() -> RpcError {
    uri::bad("`offset` must be from 0 to the length of `text` in UTF-16 units")
}
