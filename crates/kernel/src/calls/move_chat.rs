//! `moveChat`: within a session, to another, or to one of its own (H-156, H-157, G-57).

use serde_json::json;
use wire::published::commands::{ChatMoveDestination, MoveChatParams};
use wire::rpc::code;
use wire::state::SessionState;
use wire::{ChannelUri, Id, RpcError};

use super::uri::{self, bad};
use crate::chat_move::{self, ChatMove, MoveTarget};
use crate::io::PeerId;
use crate::load::{need_channel, need_channels};
use crate::pause::{HandlerAnswers, RequestStop};
use crate::state::{Kernel, Step};

/// The move, of which nothing can go wrong any more.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &MoveChatParams,
    answers: &HandlerAnswers,
) -> Result<ChatMove, RequestStop> {
    let chat = uri::parse("channel", &params.channel)?;
    need_channel(kernel, &chat, answers)?;
    let Some(found) = kernel.find_chat(&chat) else {
        return Err(uri::not_found(kernel, &chat).into());
    };
    let from = found.session().clone();
    if found.state().extra.get("movable") != Some(&json!(true)) {
        let message = format!(
            "{chat} cannot be moved: it came with its session, is its default, or works for a call"
        );
        return Err(bad(message).into());
    }
    let mut moved = vec![chat.clone()];
    moved.extend(descendants(kernel.session(&from).state(), &chat));
    let wanted: Vec<_> = moved.iter().map(|uri| (uri.clone(), 1)).collect();
    need_channels(kernel, &wanted, answers)?;
    let is_active = |uri: &&ChannelUri| {
        let chat = kernel.find_chat(uri);
        chat.is_some_and(|chat| chat.state().active_turn.is_some())
    };
    let to = match &params.destination {
        ChatMoveDestination::Session(to) => {
            let session = uri::parse("destination.session", &to.session)?;
            need_channel(kernel, &session, answers)?;
            if kernel.find_session(&session).is_none() {
                return Err(uri::not_found(kernel, &session).into());
            }
            let after = to.after.as_deref();
            let after = after.map(|after| uri::parse("destination.after", after)).transpose()?;
            check_anchor(kernel, &session, &chat, after.as_ref())?;
            MoveTarget::Session { session, after }
        }
        ChatMoveDestination::NewSession(_) => {
            check_copyable(kernel, &from)?;
            MoveTarget::New {
                session: free_name(kernel, &from, &chat, answers)?,
                creator: kernel.ready(peer).map(|ready| ready.client_id.clone()),
            }
        }
        ChatMoveDestination::Unknown(_) => {
            return Err(bad("`destination.kind` must be `session` or `newSession`").into());
        }
    };
    let stays = matches!(&to, MoveTarget::Session { session, .. } if *session == from);
    if !stays && let Some(active) = moved.iter().find(is_active) {
        let message = format!("a turn runs in {active}; move the chat when it is over");
        return Err(RpcError::new(code::TURN_IN_PROGRESS, message).into());
    }
    if let MoveTarget::Session { session, .. } = &to
        && !stays
    {
        check_fits(kernel, &from, session, &moved)?;
    }
    uri::check_writable(kernel)?;
    Ok(ChatMove { chats: moved, from, to })
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, planned: ChatMove) {
    let session = chat_move::move_chat(step, planned);
    step.respond(peer, id, &json!({"session": session.as_str()}));
}

/// The chats that work for a chat, and for those.
fn descendants(session: &SessionState, chat: &ChannelUri) -> Vec<ChannelUri> {
    let mut found: Vec<ChannelUri> = vec![chat.clone()];
    let mut looked = 0;
    while let Some(parent) = found.get(looked).cloned() {
        looked += 1;
        let workers = session.chats.iter().filter(|entry| {
            let origin = entry.extra.get("origin");
            origin
                .is_some_and(|origin| origin["kind"] == "tool" && origin["chat"] == parent.as_str())
        });
        for worker in workers.filter_map(|entry| ChannelUri::parse(&entry.resource).ok()) {
            if !found.contains(&worker) {
                found.push(worker);
            }
        }
    }
    found.split_off(1)
}

fn check_anchor(
    kernel: &Kernel,
    session: &ChannelUri,
    chat: &ChannelUri,
    after: Option<&ChannelUri>,
) -> Result<(), RpcError> {
    let Some(after) = after else { return Ok(()) };
    if after != chat && kernel.session(session).state().chat(after.as_str()).is_some() {
        Ok(())
    } else {
        Err(bad("`destination.after` must be another chat of that session"))
    }
}

/// Whether a session like this one could be made: it would fail as this one did, or have nobody to work for it.
fn check_copyable(kernel: &Kernel, from: &ChannelUri) -> Result<(), RpcError> {
    let session = kernel.session(from);
    if session.is_failed() {
        let message =
            "the chat's session could not be created; another one like it could not be, either";
        return Err(bad(message));
    }
    let provider = &session.state().provider;
    match kernel.find_agent(provider) {
        Some(_) => Ok(()),
        None => Err(bad(format!(
            "the agent `{provider}` is not there any more and takes no new session"
        ))),
    }
}

/// Whether chats can work in another session as they did in theirs.
fn check_fits(
    kernel: &Kernel,
    from: &ChannelUri,
    to: &ChannelUri,
    moved: &[ChannelUri],
) -> Result<(), RpcError> {
    let (source, target) = (kernel.session(from).state(), kernel.session(to).state());
    if kernel.session(to).is_failed() {
        return Err(bad("that session could not be created and takes no chats"));
    }
    if source.provider != target.provider {
        return Err(bad(format!(
            "that session has another agent: `{}`, not `{}`",
            target.provider, source.provider
        )));
    }
    let agent = kernel.find_agent(&target.provider);
    if agent.is_none_or(|agent| !agent.info["capabilities"]["multipleChats"].is_object()) {
        return Err(bad("this agent has only one chat in a session")); // H-141
    }
    let most = kernel.limits().chats_max;
    if target.chats.len() + moved.len() > most {
        return Err(bad(format!("a session has at most {most} chats (chats_max)")));
    }
    let known = target.working_directories.as_deref().unwrap_or(&[]);
    let mut own = moved
        .iter()
        .filter_map(|chat| kernel.find_chat(chat))
        .flat_map(|chat| chat.state().working_directories.iter().flatten());
    match own.find(|directory| !known.contains(directory)) {
        None => Ok(()),
        Some(_) => Err(bad(
            "the chat works in a directory that is none of that session's; add it there first",
        )), // H-146
    }
}

/// A URI for a new session that nothing has: of the agent's scheme, so that clients find it (G-26).
fn free_name(
    kernel: &Kernel,
    from: &ChannelUri,
    chat: &ChannelUri,
    answers: &HandlerAnswers,
) -> Result<ChannelUri, RequestStop> {
    let provider = &kernel.session(from).state().provider;
    let number = kernel.id_of(chat).0;
    for attempt in 0..NAMES_MAX {
        let name = format!("{provider}:/moved-{number}-{attempt}");
        let session = uri::parse("destination", &name)?;
        if !need_channel(kernel, &session, answers)? {
            return Ok(session);
        }
    }
    Err(bad("no name is free for a new session").into())
}

/// Names that are tried.
const NAMES_MAX: usize = 64;
