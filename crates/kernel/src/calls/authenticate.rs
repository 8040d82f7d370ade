//! `authenticate`: a client brings a token for a resource that an agent advertises (H-316), and is told if one is missing (H-315). The token is handed on, and is in no
//! state, record or log (H-318).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::published::commands::AuthenticateParams;
use wire::rpc::code;
use wire::{Id, RpcError};

use super::uri;
use crate::agent_word::{ClientToken, TokenText};
use crate::customization::entries;
use crate::io::{AgentFacts, Effect, PeerId};
use crate::state::{Kernel, Step};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The token, for each agent that it is meant for.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &AuthenticateParams,
) -> Result<Vec<ClientToken>, RpcError> {
    let expires_in_s = match params.expires_in.map(u64::try_from) {
        None => None,
        Some(Ok(seconds)) if seconds > 0 => Some(seconds),
        Some(_) => {
            return Err(uri::bad("`expiresIn` must be a whole number of seconds, at least 1"));
        }
    };
    if params.token.len() > TOKEN_BYTES_MAX {
        return Err(uri::bad(format!("`token` has at most {TOKEN_BYTES_MAX} bytes")));
    }
    // It ends up in headers and environments.
    if params.token.contains(char::is_control) {
        return Err(uri::bad("`token` holds control characters"));
    }
    let agents = kernel.facts().offered_agents();
    let mut wanting: BTreeSet<String> = agents
        .filter(|agent| advertises(agent, &params.resource))
        .map(|agent| agent.provider.clone())
        .collect();
    wanting.extend(servers_that_want(kernel, &params.resource));
    let principal = kernel.peers().principal(peer);
    let tokens: Vec<ClientToken> = wanting
        .into_iter()
        .map(|provider| ClientToken {
            provider,
            principal: principal.clone(),
            resource: params.resource.clone(),
            token: TokenText(params.token.clone()),
            expires_in_s,
        })
        .collect();
    if tokens.is_empty() {
        Err(uri::bad(
            "`resource`: no agent and no MCP server of this host wants a token for it; see `protectedResources` of the agents, and \
             the states of MCP servers",
        ))
    } else {
        Ok(tokens)
    }
}

/// The error for whoever wants something of an agent that lacks a token of theirs it cannot work without (H-315).
pub(super) fn check_has_tokens(
    agent: &AgentFacts,
    principal: Option<&str>,
) -> Result<(), RpcError> {
    let missing = agent.missing_resources(principal);
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().filter_map(|known| known["resource"].as_str()).collect();
    let message = format!(
        "the agent {} needs a token for {}: sign in, or bring one by `greenroom agents token RESOURCE`",
        agent.provider,
        names.join(", ")
    );
    let data = json!({"resources": missing});
    Err(RpcError::new(code::AUTH_REQUIRED, message).with_data(data))
}

fn advertises(agent: &AgentFacts, resource: &str) -> bool {
    let mut resources = agent.info["protectedResources"].as_array().into_iter().flatten();
    resources.any(|known| known["resource"] == resource)
}

/// The agents of sessions in memory with an MCP server that wants a token for a resource, or that got one (H-316, MC-14).
fn servers_that_want(kernel: &Kernel, resource: &str) -> BTreeSet<String> {
    let sessions = kernel.channels().sessions_in_memory().into_iter();
    let wanting = sessions.filter_map(|uri| {
        let state = kernel.session(&uri).state();
        let is_wanted = entries(state).any(|entry| {
            entry["state"]["resource"]["resource"] == resource
                || entry["_meta"]["tokenFor"] == resource
        });
        is_wanted.then(|| state.provider.clone())
    });
    wanting.collect()
}

/// Whether an agent itself takes it: tokens of servers say nothing of the agent.
fn is_advertised(kernel: &Kernel, token: &ClientToken) -> bool {
    let mut agents = kernel.facts().offered_agents();
    agents.any(|agent| agent.provider == token.provider && advertises(agent, &token.resource))
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, tokens: Vec<ClientToken>) {
    for token in tokens {
        if is_advertised(step, &token) {
            let (principal, is_there) = (token.principal.as_deref(), !token.token.0.is_empty());
            step.note_token(&token.provider, principal, &token.resource, is_there);
        }
        step.effect(Effect::Authenticate(token));
    }
    step.respond(peer, id, &Value::Object(wire::Object::new()));
}
