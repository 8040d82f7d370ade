//! `createSession`: under whatever URI the client chose, ready when its agent is (H-110 to H-116).

use serde_json::Value;
use wire::published::commands::CreateSessionParams;
use wire::rpc::code;
use wire::state::ConfigState;
use wire::{ChannelUri, Id, Object, RpcError};

use super::authenticate::check_has_tokens;
use super::create_chat::find_fork;
use super::uri;
use crate::config;
use crate::io::{AgentFacts, PeerId};
use crate::load::{need_channel, need_channels};
use crate::pause::{HandlerAnswers, RequestStop};
use crate::refusal::{CONTENT_DEPTH_MAX, depth_of};
use crate::selection;
use crate::sessions::{self, NewSession, SessionSource, default_chat_of};
use crate::state::{Kernel, Step};
use crate::working_directories::{DirectoryRule, check_wanted};

/// The session that is to be made: everything that can be wrong with the request is checked.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CreateSessionParams,
    raw: &Value,
    answers: &HandlerAnswers,
) -> Result<NewSession, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    uri::check_names_session(&uri)?;
    let chat = uri::parse("channel", &default_chat_of(&uri))?;
    let wanted = [(uri.clone(), 1), (chat.clone(), 1)];
    let exist = need_channels(kernel, &wanted, answers)?;
    uri::check_writable(kernel)?;
    let active_client = raw.get("activeClient");
    if active_client.is_some_and(|client| depth_of(client) > CONTENT_DEPTH_MAX) {
        let message = format!("`activeClient` nests at most {CONTENT_DEPTH_MAX} levels deep");
        return Err(uri::bad(message).into());
    }
    if exist.contains(&true) {
        let message = format!("{uri} exists already");
        return Err(RpcError::new(code::SESSION_ALREADY_EXISTS, message).into()); // H-110
    }
    let fork = fork_of(kernel, raw, answers)?;
    let forked = fork.as_ref().and_then(|fork| kernel.find_session(&fork.session));
    let provider = forked.map(|session| session.state().provider.clone());
    let provider = params.provider.clone().or(provider);
    let agent = agent_of(kernel, peer, provider.as_deref())?;
    let creator = kernel.ready(peer).map(|ready| ready.client_id.clone());
    let entry = params.active_client.as_ref();
    if entry.is_some_and(|client| Some(&client.client_id) != creator.as_ref()) {
        let message = "`activeClient.clientId` must be the creator's own"; // H-115
        return Err(uri::bad(message).into());
    }
    Ok(NewSession {
        uri,
        chat,
        provider: agent.provider.clone(),
        config: config_of(agent, params)?,
        directories: directories_of(kernel, agent, params)?,
        creator,
        active_client: active_client.filter(|client| client.is_object()).cloned(),
        meta: selection::meta_of(raw)?,
        source: fork.map(|fork| fork.source),
        progress_token: params.progress_token.clone(),
    })
}

/// A session that a new one begins as a copy of, up to a turn of its default chat.
struct SessionFork {
    session: ChannelUri,
    source: SessionSource,
}

/// `x-fork`: what `createSession` had as `fork` before 0.9.
fn fork_of(
    kernel: &Kernel,
    raw: &Value,
    answers: &HandlerAnswers,
) -> Result<Option<SessionFork>, RequestStop> {
    let Some(fork) = raw.get("x-fork").filter(|fork| !fork.is_null()) else { return Ok(None) };
    let (Some(session), Some(turn_id)) = (fork["session"].as_str(), fork["turnId"].as_str()) else {
        return Err(uri::bad("a fork has a `session` and a `turnId`").into());
    };
    let session = uri::parse("fork.session", session)?;
    need_channel(kernel, &session, answers)?;
    let Some(state) = kernel.find_session(&session).map(|session| session.state()) else {
        return Err(uri::not_found(kernel, &session).into());
    };
    let Some(chat) = state.default_chat.clone() else {
        return Err(uri::bad("the session to fork has no default chat").into());
    };
    let chat = uri::parse("fork.session", &chat)?;
    need_channels(kernel, &[(chat.clone(), kernel.limits().open_turns)], answers)?;
    let source = find_fork(kernel, &chat, turn_id, answers)?;
    let title = state.title.clone();
    Ok(Some(SessionFork {
        session,
        source: SessionSource { chat, turn_id: turn_id.to_owned(), title, turns: source },
    }))
}

fn config_of(agent: &AgentFacts, params: &CreateSessionParams) -> Result<ConfigState, RpcError> {
    let empty = Object::new();
    let wanted = params.config.as_ref().unwrap_or(&empty);
    let wanted = config::rename(&agent.renamed_settings, wanted);
    let values = config::with_defaults(&agent.config_schema, &wanted)
        .map_err(|bad| uri::bad(format!("config: {bad}")))?;
    Ok(ConfigState { schema: agent.config_schema.clone(), values, extra: Object::new() })
}

/// The first root, if the client names no directory (G-23a). Whether a session may work in one is found out whenever it is opened:
/// what a name leads to changes (G-23).
fn directories_of(
    kernel: &Kernel,
    agent: &AgentFacts,
    params: &CreateSessionParams,
) -> Result<Vec<String>, RpcError> {
    let wanted = params.working_directories.as_deref().unwrap_or(&[]);
    if wanted.is_empty() {
        let default = kernel.facts().default_directory.clone();
        return Ok(default.into_iter().collect());
    }
    check_wanted(DirectoryRule::of(Some(agent)), wanted).map_err(|refusal| uri::bad(refusal.0))
}

/// The agent a provider id names; the first if none is named (H-111). It must have the tokens of who asks.
pub(super) fn agent_of<'a>(
    kernel: &'a Kernel,
    peer: PeerId,
    provider: Option<&str>,
) -> Result<&'a AgentFacts, RpcError> {
    let mut agents = kernel.facts().offered_agents();
    let found = match provider {
        None => agents.next(),
        Some(provider) => agents.find(|agent| agent.provider == provider),
    };
    let found = found.ok_or_else(|| {
        let known: Vec<&str> =
            kernel.facts().offered_agents().map(|agent| agent.provider.as_str()).collect();
        let (wanted, known) = (provider.unwrap_or("(default)"), known.join(", "));
        let message = format!("no agent {wanted}; there are: {known}");
        RpcError::new(code::PROVIDER_NOT_FOUND, message)
    })?;
    check_has_tokens(found, kernel.peers().principal(peer).as_deref())?;
    Ok(found)
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, new: NewSession) {
    sessions::create_session(step, new);
    step.respond(peer, id, &Value::Null);
}
