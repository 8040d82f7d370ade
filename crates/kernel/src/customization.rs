//! The customizations of a session (H-300 to H-304, CU-1 to CU-6): what the host finds is published with what users decided
//! of it, and what they decide is remembered where they want it: for the session, for its directory, for all.
//!
//! The entries are made by the host; of their fields this file knows `id`, `type`, `children`, `enabled` and `enablement`.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::McpRequest;
use serde_json::{Value, json};
use wire::state::SessionState;
use wire::{Action, ActionKind, ChannelUri, Object, compat};

use crate::channels::Enablement;
use crate::client_plugin::{self, decisions_of_client, offers_of};
use crate::io::{Effect, McpWish, SurveyedPlace};
use crate::plugin_server;
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};

/// Decisions of a session, from which on those about what it does not have any more are forgotten. It has fewer things.
const SESSION_DECISIONS_MAX: usize = 4_096;

/// Where clients may put skills, in a working directory (CU-3).
const WRITABLE: &str = ".agents/skills";

/// Lets the host look what there is for a session now; [`publish`] follows.
pub(crate) fn survey(step: &mut Step, session: &ChannelUri) {
    survey_for(step, session, None);
}

/// The same because of what a client says of itself, or because it came or went, if any plugins of clients are concerned.
pub(crate) fn survey_plugins(step: &mut Step, session: &ChannelUri, said_by: Option<&str>) {
    let in_memory = step.find_session(session);
    // One that is not in memory is looked at when its next turn begins.
    if in_memory.is_some_and(|session| client_plugin::concern(session.state())) {
        survey_for(step, session, said_by);
    }
}

/// A client is there again: what could not be read of it while it was away is read now.
pub(crate) fn survey_plugins_of(step: &mut Step, client_id: &str) {
    let sessions = step.active_clients().sessions_of(client_id);
    let sessions: Vec<ChannelUri> = sessions.cloned().collect();
    for session in sessions {
        survey_plugins(step, &session, None);
    }
}

/// An agent says something else of itself: which custom agents its sessions have may depend on it (CU-9). Sessions that nobody
/// looks at are looked at when their next turn begins.
pub(crate) fn survey_sessions_of(step: &mut Step, provider: &str) {
    let sessions = step.channels().sessions_in_memory().into_iter();
    let concerned = sessions.filter(|uri| {
        let is_its = step.session(uri).state().provider == provider;
        is_its && !step.peers().watchers(uri).is_empty()
    });
    let concerned: Vec<ChannelUri> = concerned.collect();
    for session in concerned {
        survey(step, &session);
    }
}

/// A client changed a file: sessions in memory that have something there are looked at again (H-309). Others are when their next turn
/// begins.
pub(crate) fn survey_changed(step: &mut Step, changed: &str) {
    let sessions = step.channels().sessions_in_memory().into_iter();
    let concerned = sessions.filter(|uri| holds(step.session(uri).state(), changed));
    let concerned: Vec<ChannelUri> = concerned.collect();
    for session in concerned {
        survey(step, &session);
    }
}

/// Whether a file is, holds or lies in something that a session lists, or in the directory that clients may fill.
fn holds(session: &SessionState, changed: &str) -> bool {
    let directories = session.working_directories.iter().flatten();
    let writable = directories.map(|uri| format!("{}/{WRITABLE}", uri.trim_end_matches('/')));
    let listed = session.customizations.iter().flatten();
    let listed = listed.filter_map(|entry| entry["uri"].as_str().map(str::to_owned));
    let is_below = |below: &[u8], above: &[u8]| {
        let rest = below.strip_prefix(above);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    let Some(changed) = wire::file_uri::path_of(changed) else {
        return false; // the host lists files alone
    };
    writable.chain(listed).any(|uri| {
        let path = wire::file_uri::path_of(&uri);
        path.is_some_and(|path| is_below(&changed, &path) || is_below(&path, &changed))
    })
}

fn survey_for(step: &mut Step, session: &ChannelUri, said_by: Option<&str>) {
    let state = step.session(session).state();
    let survey = SurveyedPlace {
        session: session.clone(),
        session_id: step.id_of(session),
        provider: state.provider.clone(),
        working_directories: state.working_directories.clone().unwrap_or_default(),
        plugins: offers_of(state),
        said_by: said_by.map(str::to_owned),
    };
    step.effect(Effect::Survey(Box::new(survey)));
}

/// The host looked.
pub(crate) fn publish(step: &mut Step, session: &ChannelUri, mut found: Vec<Value>) {
    if step.find_session(session).is_none() || step.unwritable().is_some() {
        return; // it is looked again when the next turn begins
    }
    let state = step.session(session).state();
    let servers = plugin_server::ids(state);
    plugin_server::keep_states(state, &mut found);
    take_over_decisions(step, session, &found);
    let decided = found.into_iter().map(|mut entry| {
        let children = entry.get_mut("children").and_then(Value::as_array_mut);
        for child in children.into_iter().flatten() {
            decide(step, session, child);
        }
        decide(step, session, &mut entry);
        entry
    });
    let decided: Vec<Value> = decided.collect();
    replace(step, session, decided, is_found_by_host);
    plugin_server::follow(step, session, &servers);
}

/// What a client decided of its own plugin counts for all sessions from when the plugin is read (CU-5).
fn take_over_decisions(step: &mut Step, session: &ChannelUri, found: &[Value]) {
    for plugin in found.iter().filter(|entry| entry.get("children").is_some()) {
        let state = step.session(session).state();
        let published = state.customizations.iter().flatten();
        let mut published = published.filter(|entry| entry["id"] == plugin["id"]);
        if published.any(|entry| entry.get("children").is_some()) {
            continue; // it was read before; what was decided since counts
        }
        for (id, decided) in decisions_of_client(state, plugin) {
            // What is full stays as it is: the client's plugins are on without a decision.
            if step
                .channels()
                .enablement()
                .has_room_for(&id, Some(decided), None)
            {
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
    let of_plugins =
        servers.extract_if(.., |server| server.get(plugin_server::CONTAINER).is_some());
    let of_plugins: Vec<Value> = of_plugins.collect();
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
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Object>()
    };
    is_mcp_server(&Value::Object(after.clone())) && without_state(before) == without_state(after)
}

/// May a client want this of an MCP server?
pub(crate) fn check_mcp_request(session: &SessionState, action: Action) -> Result<Action, Refusal> {
    let id = action.text("id").unwrap_or_default();
    match entries(session).any(|entry| is_mcp_server(entry) && entry["id"] == id) {
        true => Ok(action),
        false => Err(Refusal::because("no MCP server has this id")),
    }
}

/// Whether an entry is one of those that [`publish`] makes: not an MCP server.
fn is_found_by_host(entry: &Value) -> bool {
    matches!(entry["type"].as_str(), Some("directory" | "plugin"))
}

/// Writes into an entry what was decided of it.
fn decide(kernel: &Kernel, session: &ChannelUri, entry: &mut Value) {
    let id = entry["id"].as_str().map(str::to_owned);
    let (Some(id), Some(entry)) = (id, entry.as_object_mut()) else {
        debug_assert!(false, "the host gives every entry an id");
        return;
    };
    let decisions = decisions_of(kernel, session, &id);
    let Some(first) = decisions.first() else {
        return; // nobody decided anything: it is as the host found it
    };
    match entry.get("type").and_then(Value::as_str) {
        Some("plugin" | "mcpServer") => {
            entry.insert("enablement".to_owned(), Value::Array(decisions));
        }
        Some("directory" | "agent" | "skill" | "prompt" | "rule") => {
            let is_enabled = first["enabled"].clone();
            entry.insert("enabled".to_owned(), is_enabled);
        }
        Some("hook") => {} // it is off, whatever somebody once decided: nothing runs it (CU-10)
        Some(_) | None => debug_assert!(false, "the host publishes nothing else"),
    }
}

/// Every decision about a customization that counts in a session, that which counts most first (H-301).
pub(crate) fn decisions_of(kernel: &Kernel, session: &ChannelUri, id: &str) -> Vec<Value> {
    let Some(in_memory) = kernel.find_session(session) else {
        return Vec::new(); // whoever asks has it in memory
    };
    let enablement = kernel.channels().enablement();
    let own = in_memory.decision(id);
    let own = own.map(|enabled| json!({"kind": "session", "enabled": enabled}));
    let directory = primary_directory(in_memory.state());
    let workspace = directory.and_then(|directory| {
        let enabled = enablement.workspace(directory, id)?;
        Some(json!({"kind": "workspace", "uri": directory, "enabled": enabled}))
    });
    let global = enablement.global(id);
    let global = global.map(|enabled| json!({"kind": "global", "enabled": enabled}));
    own.into_iter().chain(workspace).chain(global).collect()
}

fn primary_directory(session: &SessionState) -> Option<&str> {
    let directories = session.working_directories.as_ref()?;
    directories.first().map(String::as_str)
}

/// A client whose version knows one flag decides for its session alone: what was decided for more than that stays.
pub(crate) fn keep_wider_decisions(
    kernel: &Kernel,
    session: &ChannelUri,
    mut action: Action,
) -> Action {
    if action.body.shift_remove(compat::SESSION_ONLY).is_none() {
        return action;
    }
    let id = action.text("id").unwrap_or_default();
    let decided = decisions_of(kernel, session, id).into_iter();
    let wider: Vec<Value> = decided.filter(|each| each["kind"] != "session").collect();
    if let Some(Value::Array(decisions)) = action.body.get_mut("enablement") {
        decisions.extend(wider);
    }
    action
}

/// May a client decide this? Its decisions are put in order (H-301).
pub(crate) fn check_toggled(
    session: &SessionState,
    enablement: &Enablement,
    mut action: Action,
) -> Result<Action, Refusal> {
    let id = action.text("id").unwrap_or_default();
    let Some(entry) = entries(session).find(|entry| entry["id"] == id) else {
        return Err(Refusal::because("no customization has this id"));
    };
    if entry["type"] == "hook" {
        return Err(Refusal::because(
            "hooks are listed and never run: they cannot be switched on", // CU-10
        ));
    }
    let Some(Value::Array(decisions)) = action.get("enablement") else {
        return Err(Refusal::because("`enablement` must be a list"));
    };
    let mut ordered: Vec<(usize, Value)> = Vec::new();
    for decision in decisions {
        let rank = match decision["kind"].as_str() {
            Some("session") => 0,
            Some("workspace") if decision["uri"].as_str() != primary_directory(session) => {
                return Err(Refusal::because(
                    "a decision for a workspace must name the session's first working directory",
                ));
            }
            Some("workspace") => 1,
            Some("global") => 2,
            _ => {
                return Err(Refusal::because(
                    "the `kind` of a decision is `session`, `workspace` or `global`",
                ));
            }
        };
        if !decision["enabled"].is_boolean() {
            return Err(Refusal::because(
                "`enabled` of a decision must be true or false",
            ));
        }
        if ordered.iter().any(|(other, _)| *other == rank) {
            return Err(Refusal::because("there can be one decision of a kind"));
        }
        ordered.push((rank, decision.clone()));
    }
    let decided = |wanted: usize| {
        let mut decisions = ordered.iter();
        let (_, decision) = decisions.find(|(rank, _)| *rank == wanted)?;
        decision["enabled"].as_bool()
    };
    let workspace = primary_directory(session).map(|directory| (directory, decided(1)));
    if !enablement.has_room_for(id, decided(2), workspace) {
        return Err(Refusal(format!(
            "at most {} decisions about customizations are remembered: remove some first",
            crate::channels::DECISIONS_MAX
        )));
    }
    ordered.sort_by_key(|(rank, _)| *rank);
    let ordered = ordered.into_iter().map(|(_, decision)| decision);
    let ordered = Value::Array(ordered.collect());
    action.body.insert("enablement".to_owned(), ordered);
    Ok(action)
}

/// A client decided: it is remembered, and every session in memory that has the same thing hears of it.
pub(crate) fn toggle(step: &mut Step, session: &ChannelUri, action: Action, sender: &Sender) {
    let Some(id) = action.text("id").map(str::to_owned) else {
        unreachable!("it was checked");
    };
    let decision = |kind: &str| {
        let decisions = action.get("enablement").and_then(Value::as_array);
        let mut decisions = decisions.into_iter().flatten();
        decisions.find(|decision| decision["kind"] == kind)?["enabled"].as_bool()
    };
    let (own, workspace, global) = (
        decision("session"),
        decision("workspace"),
        decision("global"),
    );
    let directory = primary_directory(step.session(session).state()).map(str::to_owned);
    let others = other_decisions(step, session, &id);
    let sessions = others.iter().map(|(other, _)| other).chain([session]);
    let servers: Vec<(ChannelUri, BTreeSet<String>)> = sessions
        .map(|uri| (uri.clone(), enabled_servers(step.session(uri).state())))
        .collect();
    if step.session(session).decisions().count() >= SESSION_DECISIONS_MAX {
        let known = entries(step.session(session).state()).filter_map(|entry| entry["id"].as_str());
        let known: BTreeSet<String> = known.map(str::to_owned).collect();
        step.session_mut(session).keep_decisions(&known);
    }
    step.session_mut(session).set_decision(&id, own);
    let workspace = directory.as_deref().map(|directory| (directory, workspace));
    step.decide_for_all(&id, global, workspace);
    step.act(session, action, Some(sender));
    for (other, before) in others {
        let decisions = decisions_of(step, &other, &id);
        if decisions != before {
            let fields = json!({"id": id, "enablement": decisions});
            step.act_as_host(&other, ActionKind::SessionCustomizationToggled, fields);
        }
    }
    for (session, before) in servers {
        switch_servers(step, &session, &before);
    }
}

/// Lets the agent end MCP servers that are switched off now, and start those that are on again (CU-6).
fn switch_servers(step: &mut Step, session: &ChannelUri, before: &BTreeSet<String>) {
    let state = step.session(session).state();
    let (after, provider) = (enabled_servers(state), state.provider.clone());
    for id in before.symmetric_difference(&after) {
        let request = match after.contains(id) {
            true => McpRequest::SwitchOn,
            false => McpRequest::SwitchOff,
        };
        step.effect(Effect::RequestMcp(McpWish {
            session: session.clone(),
            provider: provider.clone(),
            id: id.clone(),
            request,
        }));
    }
}

/// The ids of the MCP servers that are switched on, with what they are in.
fn enabled_servers(session: &SessionState) -> BTreeSet<String> {
    let top = session.customizations.iter().flatten();
    let on = top.filter(|entry| is_enabled(entry)).flat_map(|entry| {
        let children = entry.get("children").and_then(Value::as_array);
        let children = children.into_iter().flatten();
        std::iter::once(entry).chain(children.filter(|child| is_enabled(child)))
    });
    let servers = on.filter(|entry| entry["type"] == "mcpServer");
    servers
        .filter_map(|server| Some(server["id"].as_str()?.to_owned()))
        .collect()
}

fn is_enabled(entry: &Value) -> bool {
    let decisions = entry.get("enablement").and_then(Value::as_array);
    match decisions.and_then(|decisions| decisions.first()) {
        Some(first) => first["enabled"] == true,
        None => entry.get("enabled") != Some(&Value::Bool(false)),
    }
}

/// The other sessions in memory that have a customization, and what counts of it there.
fn other_decisions(
    kernel: &Kernel,
    session: &ChannelUri,
    id: &str,
) -> Vec<(ChannelUri, Vec<Value>)> {
    let others = kernel.channels().sessions_in_memory().into_iter();
    let others = others.filter(|other| {
        other != session && entries(kernel.session(other).state()).any(|entry| entry["id"] == id)
    });
    let others = others.map(|other| {
        let decisions = decisions_of(kernel, &other, id);
        (other, decisions)
    });
    others.collect()
}

/// Every entry and every child of one.
pub(crate) fn entries(session: &SessionState) -> impl Iterator<Item = &Value> {
    let top = session.customizations.iter().flatten();
    top.flat_map(|entry| {
        let children = entry.get("children").and_then(Value::as_array);
        std::iter::once(entry).chain(children.into_iter().flatten())
    })
}

/// The ids of what is switched off in a session, by itself: what is in a container that is off is not among them.
///
/// What was decided counts, not what is published: the first turn begins before anything is, and a session that was not in
/// memory did not hear of a decision.
pub(crate) fn switched_off(kernel: &Kernel, session: &ChannelUri) -> BTreeSet<String> {
    let Some(in_memory) = kernel.find_session(session) else {
        return BTreeSet::new(); // a session that is still to be made: nothing is looked for in its name
    };
    let enablement = kernel.channels().enablement();
    let mut decided: BTreeMap<&str, bool> = enablement.global_decisions().collect();
    if let Some(directory) = primary_directory(in_memory.state()) {
        decided.extend(enablement.workspace_decisions(directory));
    }
    decided.extend(in_memory.decisions());
    let off = decided.into_iter().filter(|(_, is_enabled)| !is_enabled);
    off.map(|(id, _)| id.to_owned()).collect()
}

/// The custom agent that a message names: it must exist and be switched on, with what it is in (CU-9).
pub(crate) fn named_agent<'k>(
    kernel: &'k Kernel,
    session: &ChannelUri,
    message: &Object,
) -> Result<Option<&'k Value>, Refusal> {
    let Some(agent) = message.get("agent").filter(|agent| !agent.is_null()) else {
        return Ok(None); // most messages name none
    };
    let uri = agent["uri"].as_str().unwrap_or_default();
    let off = switched_off(kernel, session);
    let is_on = |entry: &&Value| entry["id"].as_str().is_some_and(|id| !off.contains(id));
    let state = kernel.session(session).state();
    let containers = state.customizations.iter().flatten().filter(is_on);
    let children = containers.filter_map(|container| container["children"].as_array());
    let mut agents = children.flatten().filter(|child| child["type"] == "agent");
    match agents.find(|child| child["uri"] == uri && is_on(child)) {
        Some(agent) => Ok(Some(agent)),
        None => Err(Refusal::because(
            "the session has no custom agent with this `uri`, or it is switched off",
        )),
    }
}
