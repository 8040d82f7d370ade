//! A client switches a customization on or off: what it may decide, and which sessions are notified.

use std::collections::BTreeSet;

use agent_api::McpRequest;
use serde_json::{Value, json};
use wire::state::SessionState;
use wire::{Action, ActionKind, ChannelUri};

use super::decision::{decisions_of, entries, primary_directory};
use crate::channels::Enablement;
use crate::io::{Effect, McpServerRequest};
use crate::refusal::Refusal;
use crate::state::{Kernel, Sender, Step};

/// Decisions of a session, from which on those about what it does not have any more are forgotten. It has fewer things.
const SESSION_DECISIONS_MAX: usize = 4_096;

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
            return Err(Refusal::because("`enabled` of a decision must be true or false"));
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
        let mut decisions =
            action.get("enablement").and_then(Value::as_array).into_iter().flatten();
        decisions.find(|decision| decision["kind"] == kind)?["enabled"].as_bool()
    };
    let (own, workspace, global) = (decision("session"), decision("workspace"), decision("global"));
    let directory = primary_directory(step.session(session).state()).map(str::to_owned);
    let others = other_decisions(step, session, &id);
    let sessions = others.iter().map(|(other, _)| other).chain([session]);
    let servers: Vec<(ChannelUri, BTreeSet<String>)> =
        sessions.map(|uri| (uri.clone(), enabled_servers(step.session(uri).state()))).collect();
    if step.session(session).decisions().count() >= SESSION_DECISIONS_MAX {
        let known: BTreeSet<String> = entries(step.session(session).state())
            .filter_map(|entry| entry["id"].as_str())
            .map(str::to_owned)
            .collect();
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
        let request = if after.contains(id) { McpRequest::SwitchOn } else { McpRequest::SwitchOff };
        step.effect(Effect::RequestMcp(McpServerRequest {
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
        let children = entry.get("children").and_then(Value::as_array).into_iter().flatten();
        std::iter::once(entry).chain(children.filter(|child| is_enabled(child)))
    });
    let servers = on.filter(|entry| entry["type"] == "mcpServer");
    servers.filter_map(|server| Some(server["id"].as_str()?.to_owned())).collect()
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
    let others = kernel
        .channels()
        .sessions_in_memory()
        .into_iter()
        .filter(|other| {
            other != session
                && entries(kernel.session(other).state()).any(|entry| entry["id"] == id)
        })
        .map(|other| {
            let decisions = decisions_of(kernel, &other, id);
            (other, decisions)
        });
    others.collect()
}
