//! MCP servers that plugins declare: children of the plugin's entry, whose states the agent says (MC-4).
//!
//! The host finds them with their plugin, and does not know how they are; the agent knows, and not where they belong. What is
//! published is both together.

use std::collections::BTreeSet;

use agent_api::McpRequest;
use serde_json::{Value, json};
use wire::state::SessionState;
use wire::{ActionKind, ChannelUri};

use crate::io::{Effect, McpServerRequest};
use crate::state::Step;

/// The field of an agent's entry that names the plugin which declares the server. Not a field of the protocol.
pub(crate) const CONTAINER: &str = "container";

/// Fields of a server that its agent says.
const AGENT_FIELDS: [&str; 2] = ["state", "_meta"];

/// Takes over what is known of servers into plugins that are published anew.
pub(crate) fn keep_states(session: &SessionState, found: &mut [Value]) {
    let known: Vec<&Value> = session.customizations.iter().flatten().flat_map(servers_in).collect();
    for container in found {
        for server in servers_in_mut(container) {
            if let Some(known) = known.iter().find(|known| known["id"] == server["id"]) {
                copy_agent_fields(server, known);
            }
        }
    }
}

/// The ids of all servers of plugins.
pub(crate) fn ids(session: &SessionState) -> BTreeSet<String> {
    let servers = session.customizations.iter().flatten().flat_map(servers_in);
    let ids = servers.filter_map(|server| server["id"].as_str());
    ids.map(str::to_owned).collect()
}

/// Ends the servers that went with their plugins, and lets the agent say how those are that came.
pub(crate) fn follow(step: &mut Step, session: &ChannelUri, before: &BTreeSet<String>) {
    let state = step.session(session).state();
    let (after, provider) = (ids(state), state.provider.clone());
    let ask = |id: &str, request| {
        Effect::RequestMcp(McpServerRequest {
            session: session.clone(),
            provider: provider.clone(),
            id: id.to_owned(),
            request,
        })
    };
    let gone = before.difference(&after);
    let mut requests: Vec<Effect> = gone.map(|id| ask(id, McpRequest::SwitchOff)).collect();
    if let Some(new) = after.difference(before).next() {
        requests.push(ask(new, McpRequest::Report));
    }
    for request in requests {
        step.effect(request);
    }
}

/// The agent says how servers of plugins are. Those whose plugin is not published yet are said again when it is ([`follow`]).
pub(crate) fn publish(step: &mut Step, session: &ChannelUri, said: &[Value]) {
    let now = step.session(session).state().customizations.clone();
    for before in now.into_iter().flatten() {
        let mut after = before.clone();
        for server in servers_in_mut(&mut after) {
            if let Some(said) = said.iter().find(|said| said["id"] == server["id"]) {
                copy_agent_fields(server, said);
            }
        }
        if after == before {
            continue;
        }
        let mut only_states = before.clone();
        for (server, new) in servers_in_mut(&mut only_states).zip(servers_in(&after)) {
            server["state"] = new["state"].clone();
        }
        if only_states != after {
            let fields = json!({"customization": after});
            step.act_as_host(session, ActionKind::SessionCustomizationUpdated, fields);
            continue;
        }
        for (old, new) in servers_in(&before).zip(servers_in(&after)) {
            if old != new {
                let fields = json!({"id": new["id"], "state": new["state"]});
                step.act_as_host(session, ActionKind::SessionMcpServerStateChanged, fields);
            }
        }
    }
}

/// Copies what the agent says of a server into its entry.
fn copy_agent_fields(server: &mut Value, said: &Value) {
    let Some(server) = server.as_object_mut() else {
        debug_assert!(false, "an entry that was found is an object");
        return;
    };
    for field in AGENT_FIELDS {
        match said.get(field) {
            Some(value) => server.insert(field.to_owned(), value.clone()),
            None => server.shift_remove(field),
        };
    }
}

fn servers_in(container: &Value) -> impl Iterator<Item = &Value> {
    let children = container.get("children").and_then(Value::as_array).into_iter().flatten();
    children.filter(|child| child["type"] == "mcpServer")
}

fn servers_in_mut(container: &mut Value) -> impl Iterator<Item = &mut Value> {
    let children =
        container.get_mut("children").and_then(Value::as_array_mut).into_iter().flatten();
    children.filter(|child| child["type"] == "mcpServer")
}
