//! `createSession`: under whatever URI the client chose, ready when its agent is (H-110 to H-116).

use serde_json::Value;
use wire::published::commands::CreateSessionParams;
use wire::rpc::code;
use wire::state::ConfigState;
use wire::{Id, Object, RpcError};

use super::uri;
use crate::io::{AgentFacts, PeerId};
use crate::load::need_channels;
use crate::pause::{HandlerAnswers, Stop};
use crate::refusal::{CONTENT_DEPTH_MAX, depth_of};
use crate::sessions::{self, NewSession, default_chat_of};
use crate::state::{Kernel, Step};
use crate::{config, directory};

/// The session that is to be made: everything that can be wrong with the request is checked.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &CreateSessionParams,
    raw: &Value,
    answers: &HandlerAnswers,
) -> Result<NewSession, Stop> {
    let uri = uri::parse("channel", &params.channel)?;
    if uri.is_root() {
        let message = "`channel` is the root; choose a URI for the session";
        return Err(uri::bad(message).into());
    }
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
    let agent = agent_of(kernel, params.provider.as_deref())?;
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
        directories: directories_of(kernel, params)?,
        creator,
        active_client: active_client.filter(|client| client.is_object()).cloned(),
    })
}

fn config_of(agent: &AgentFacts, params: &CreateSessionParams) -> Result<ConfigState, RpcError> {
    let empty = Object::new();
    let wanted = params.config.as_ref().unwrap_or(&empty);
    let wanted = config::rename(&agent.renamed_settings, wanted);
    let values = config::with_defaults(&agent.config_schema, &wanted)
        .map_err(|bad| uri::bad(format!("config: {bad}")))?;
    Ok(ConfigState {
        schema: agent.config_schema.clone(),
        values,
        extra: Object::new(),
    })
}

/// Without the capability only the first directory counts (H-114).
fn directories_of(kernel: &Kernel, params: &CreateSessionParams) -> Result<Vec<String>, RpcError> {
    let facts = kernel.facts();
    let wanted = params.working_directories.as_ref();
    let Some(wanted) = wanted.and_then(|all| all.first()) else {
        return Ok(facts.default_directory.clone().into_iter().collect());
    };
    let path = directory::path_of(wanted)
        .ok_or_else(|| uri::bad("a working directory is an absolute `file:` URI"))?;
    if !directory::is_inside(&path, &facts.roots) {
        let roots = facts.roots.join(", ");
        let message = format!("a working directory must lie inside one of: {roots}");
        return Err(RpcError::new(code::PERMISSION_DENIED, message)); // G-23
    }
    Ok(vec![wanted.clone()])
}

/// The agent a provider id names; the first if none is named (H-111).
pub(super) fn agent_of<'a>(
    kernel: &'a Kernel,
    provider: Option<&str>,
) -> Result<&'a AgentFacts, RpcError> {
    let agents = &kernel.facts().agents;
    let found = match provider {
        None => agents.first(),
        Some(provider) => kernel.find_agent(provider),
    };
    found.ok_or_else(|| {
        let known: Vec<&str> = agents.iter().map(|agent| agent.provider.as_str()).collect();
        let (wanted, known) = (provider.unwrap_or("(default)"), known.join(", "));
        let message = format!("no agent {wanted}; there are: {known}");
        RpcError::new(code::PROVIDER_NOT_FOUND, message)
    })
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, new: NewSession) {
    sessions::create_session(step, new);
    step.respond(peer, id, &Value::Null);
}
