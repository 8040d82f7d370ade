//! What was decided of each customization, and what follows: which are switched off, and whether a custom agent may be used.
//!
//! A decision for the session counts more than one for its directory, and that more than one for all sessions (H-301).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wire::state::SessionState;
use wire::{Action, ChannelUri, Object, compat};

use crate::refusal::Refusal;
use crate::state::Kernel;

/// Every entry and every child of one.
pub(crate) fn entries(session: &SessionState) -> impl Iterator<Item = &Value> {
    let top = session.customizations.iter().flatten();
    top.flat_map(|entry| {
        let children = entry.get("children").and_then(Value::as_array);
        std::iter::once(entry).chain(children.into_iter().flatten())
    })
}

/// Writes into an entry what was decided of it.
pub(super) fn decide(kernel: &Kernel, session: &ChannelUri, entry: &mut Value) {
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
pub(super) fn decisions_of(kernel: &Kernel, session: &ChannelUri, id: &str) -> Vec<Value> {
    let Some(in_memory) = kernel.find_session(session) else {
        return Vec::new(); // whoever asks has it in memory
    };
    let enablement = kernel.channels().enablement();
    let own = in_memory.decision(id).map(|enabled| json!({"kind": "session", "enabled": enabled}));
    let directory = primary_directory(in_memory.state());
    let workspace = directory.and_then(|directory| {
        let enabled = enablement.workspace(directory, id)?;
        Some(json!({"kind": "workspace", "uri": directory, "enabled": enabled}))
    });
    let global = enablement.global(id);
    let global = global.map(|enabled| json!({"kind": "global", "enabled": enabled}));
    own.into_iter().chain(workspace).chain(global).collect()
}

pub(super) fn primary_directory(session: &SessionState) -> Option<&str> {
    session.working_directories.as_ref()?.first().map(String::as_str)
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
