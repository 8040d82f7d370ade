//! What the host found for a session, and which MCP servers its agent says it has, as entries of the session's state.

use serde_json::{Value, json};
use wire::state::SessionState;
use wire::{Action, ActionKind, ChannelUri, Object};

use super::decision::{decide, entries};
use crate::client_plugin::decisions_of_client;
use crate::plugin_server;
use crate::refusal::Refusal;
use crate::state::Step;

/// The host looked.
pub(crate) fn publish(step: &mut Step, session: &ChannelUri, mut found: Vec<Value>) {
    if step.find_session(session).is_none() || step.unwritable().is_some() {
        return; // it is looked again when the next turn begins
    }
    let state = step.session(session).state();
    let servers = plugin_server::ids(state);
    plugin_server::keep_states(state, &mut found);
    take_over_decisions(step, session, &found);
    let decided: Vec<Value> = found
        .into_iter()
        .map(|mut entry| {
            let children = entry.get_mut("children").and_then(Value::as_array_mut);
            for child in children.into_iter().flatten() {
                decide(step, session, child);
            }
            decide(step, session, &mut entry);
            entry
        })
        .collect();
    replace(step, session, decided, is_found_by_host);
    plugin_server::follow(step, session, &servers);
}

/// What a client decided of its own plugin counts for all sessions from when the plugin is read (CU-5).
fn take_over_decisions(step: &mut Step, session: &ChannelUri, found: &[Value]) {
    for plugin in found.iter().filter(|entry| entry.get("children").is_some()) {
        let state = step.session(session).state();
        let mut published =
            state.customizations.iter().flatten().filter(|entry| entry["id"] == plugin["id"]);
        if published.any(|entry| entry.get("children").is_some()) {
            continue; // it was read before; what was decided since counts
        }
        for (id, decided) in decisions_of_client(state, plugin) {
            // What is full stays as it is: the client's plugins are on without a decision.
            if step.channels().enablement().has_room_for(&id, Some(decided), None) {
                step.decide_for_all(&id, Some(decided), None);
            }
        }
    }
}

/// The agent says which MCP servers a session has, and how they are (MC-4).
pub(crate) fn publish_servers(step: &mut Step, session: &ChannelUri, mut servers: Vec<Value>) {
    if step.unwritable().is_some() {
        return; // its agent says so again when something changes
    }
    let of_plugins: Vec<Value> =
        servers.extract_if(.., |server| server.get(plugin_server::CONTAINER).is_some()).collect();
    for server in &mut servers {
        decide(step, session, server);
    }
    replace(step, session, servers, is_mcp_server);
    plugin_server::publish(step, session, &of_plugins);
}

/// Makes these the entries of their kind.
fn replace(
    step: &mut Step,
    session: &ChannelUri,
    decided: Vec<Value>,
    is_of_kind: fn(&Value) -> bool,
) {
    let count = decided.len();
    let now = step.session(session).state().customizations.clone();
    let Some(now) = now else {
        if !decided.is_empty() {
            let fields = json!({"customizations": decided});
            step.act_as_host(session, ActionKind::SessionCustomizationsChanged, fields);
        }
        return;
    };
    let found_before = now.iter().filter(|entry| is_of_kind(entry));
    let gone = found_before.filter(|entry| !decided.iter().any(|other| other["id"] == entry["id"]));
    for entry in gone {
        let fields = json!({"id": entry["id"]});
        step.act_as_host(session, ActionKind::SessionCustomizationRemoved, fields);
    }
    for entry in decided {
        match now.iter().find(|before| before["id"] == entry["id"]) {
            Some(before) if *before == entry => {}
            Some(before) if is_same_but_state(before, &entry) => {
                let fields = json!({"id": entry["id"], "state": entry["state"]});
                step.act_as_host(session, ActionKind::SessionMcpServerStateChanged, fields);
            }
            _ => {
                let fields = json!({"customization": entry});
                step.act_as_host(session, ActionKind::SessionCustomizationUpdated, fields);
            }
        }
    }
    let entries = step.session(session).state().customizations.iter();
    let of_kind = entries.flatten().filter(|entry| is_of_kind(entry));
    debug_assert_eq!(of_kind.count(), count, "each entry is published once");
}

fn is_mcp_server(entry: &Value) -> bool {
    entry["type"] == "mcpServer"
}

fn is_same_but_state(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return false; // they have no states
    };
    let without_state = |entry: &Object| {
        let fields = entry.iter().filter(|(name, _)| *name != "state");
        fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Object>()
    };
    is_mcp_server(&Value::Object(after.clone())) && without_state(before) == without_state(after)
}

/// May a client want this of an MCP server?
pub(crate) fn check_mcp_request(session: &SessionState, action: Action) -> Result<Action, Refusal> {
    let id = action.text("id").unwrap_or_default();
    if entries(session).any(|entry| is_mcp_server(entry) && entry["id"] == id) {
        Ok(action)
    } else {
        Err(Refusal::because("no MCP server has this id"))
    }
}

/// Whether an entry is one of those that [`publish`] makes: not an MCP server.
fn is_found_by_host(entry: &Value) -> bool {
    matches!(entry["type"].as_str(), Some("directory" | "plugin"))
}
