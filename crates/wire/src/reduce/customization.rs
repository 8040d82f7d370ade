//! Customizations of a session: plugins, directories and MCP servers, and what they contain.
//!
//! An entry of an unknown type stays in the list, and no action addresses it.

use serde_json::{Value, json};

use super::{Reduced, set_field};
use crate::state::SessionState;
use crate::{Action, Object};

/// Where an entry is: at the top level, or among the children of a container.
enum EntryPosition {
    Top(usize),
    Child { container: usize, index: usize },
}

fn id_of<'a>(entry: &'a Value, types: &[&str]) -> Option<&'a str> {
    let kind = entry.get("type")?.as_str()?;
    if types.contains(&kind) { entry.get("id")?.as_str() } else { None }
}

/// The id of an entry that may be at the top level (H-300).
fn top_id(entry: &Value) -> Option<&str> {
    id_of(entry, &["plugin", "directory", "mcpServer"])
}

fn child_id(entry: &Value) -> Option<&str> {
    id_of(entry, &["agent", "skill", "prompt", "rule", "hook", "mcpServer"])
}

fn children(container: &Value) -> &[Value] {
    match container["type"].as_str() {
        Some("plugin" | "directory") => {
            container["children"].as_array().map_or(&[], |children| children.as_slice())
        }
        _ => &[],
    }
}

/// Finds an id: first at the top level, then among the children.
fn find(list: &[Value], id: &str) -> Option<EntryPosition> {
    if let Some(index) = list.iter().position(|entry| top_id(entry) == Some(id)) {
        return Some(EntryPosition::Top(index));
    }
    list.iter().enumerate().find_map(|(container, entry)| {
        let index = children(entry).iter().position(|child| child_id(child) == Some(id))?;
        Some(EntryPosition::Child { container, index })
    })
}

fn entry_mut<'a>(list: &'a mut [Value], position: &EntryPosition) -> Option<&'a mut Object> {
    let entry = match *position {
        EntryPosition::Top(index) => list.get_mut(index)?,
        EntryPosition::Child { container, index } => {
            list.get_mut(container)?.get_mut("children")?.get_mut(index)?
        }
    };
    entry.as_object_mut()
}

pub(super) fn replace_all(state: &mut SessionState, action: &Action) -> Reduced {
    match action.get("customizations") {
        Some(Value::Array(list)) => super::set(&mut state.customizations, Some(list.clone())),
        _ => Reduced::Unchanged,
    }
}

/// The explicit decisions are replaced whole (H-302).
pub(super) fn toggle(state: &mut SessionState, action: &Action) -> Reduced {
    let customizations = &mut state.customizations;
    let (Some(list), Some(id), Some(Value::Array(decisions))) =
        (customizations.as_mut(), action.text("id"), action.get("enablement"))
    else {
        return Reduced::Unchanged;
    };
    let Some(position) = find(list, id) else { return Reduced::Unchanged };
    let Some(entry) = entry_mut(list, &position) else { return Reduced::Unchanged };
    match entry.get("type").and_then(Value::as_str) {
        Some("plugin" | "mcpServer") => {
            let decisions = action.get("enablement").filter(|_| !decisions.is_empty());
            set_field(entry, "enablement", decisions)
        }
        _ => set_field(entry, "enabled", Some(&Value::Bool(is_enabled(decisions)))),
    }
}

/// The first decision counts; without one it is on; one that cannot be read is off (H-301).
fn is_enabled(decisions: &[Value]) -> bool {
    let Some(first) = decisions.first() else { return true };
    let readable = match first["kind"].as_str() {
        Some("global" | "session") => true,
        Some("workspace") => first["uri"].is_string(),
        _ => false,
    };
    readable && first["enabled"] == true
}

pub(super) fn update(state: &mut SessionState, action: &Action) -> Reduced {
    let customizations = &mut state.customizations;
    let Some(customization) = action.present("customization") else { return Reduced::Unchanged };
    // Published clients begin a list here even for a type they do not know; ours must not differ from theirs (H-074).
    let began = if customizations.is_none() { Reduced::Changed } else { Reduced::Unchanged };
    let list = customizations.get_or_insert_default();
    let Some(id) = top_id(customization) else { return began };
    match list.iter_mut().find(|entry| top_id(entry) == Some(id)) {
        Some(entry) => super::set(entry, customization.clone()), // H-304
        None => {
            list.push(customization.clone());
            Reduced::Changed
        }
    }
}

pub(super) fn remove(state: &mut SessionState, action: &Action) -> Reduced {
    let customizations = &mut state.customizations;
    let (Some(list), Some(id)) = (customizations.as_mut(), action.text("id")) else {
        return Reduced::Unchanged;
    };
    match find(list, id) {
        Some(EntryPosition::Top(index)) => {
            list.remove(index);
        }
        Some(EntryPosition::Child { container, index }) => {
            if let Some(Value::Array(children)) = list[container].get_mut("children") {
                debug_assert!(index < children.len());
                children.remove(index);
            }
        }
        None => return Reduced::Unchanged,
    }
    Reduced::Changed
}

/// The MCP server with the action's id; an id that names something else first names no server.
fn mcp_server<'a>(session: &'a mut SessionState, action: &Action) -> Option<&'a mut Object> {
    let list = session.customizations.as_mut()?;
    let position = find(list, action.text("id")?)?;
    entry_mut(list, &position).filter(|entry| entry.get("type") == Some(&json!("mcpServer")))
}

fn set_mcp_state(
    session: &mut SessionState,
    action: &Action,
    state: &Value,
    channel: Option<&Value>,
) -> Reduced {
    match mcp_server(session, action) {
        Some(server) => {
            set_field(server, "state", Some(state)) | set_field(server, "channel", channel)
        }
        None => Reduced::Unchanged,
    }
}

/// A change without a channel clears it (H-305).
pub(super) fn change_mcp_state(state: &mut SessionState, action: &Action) -> Reduced {
    match action.present("state") {
        Some(next) => set_mcp_state(state, action, next, action.present("channel")),
        None => Reduced::Unchanged,
    }
}

pub(super) fn start_mcp_server(state: &mut SessionState, action: &Action) -> Reduced {
    set_mcp_state(state, action, &json!({"kind": "starting"}), None)
}

pub(super) fn stop_mcp_server(state: &mut SessionState, action: &Action) -> Reduced {
    set_mcp_state(state, action, &json!({"kind": "stopped"}), None)
}

/// Only a server whose start holds messages back can be sent to the background.
pub(super) fn background_mcp_server(session: &mut SessionState, action: &Action) -> Reduced {
    let server = mcp_server(session, action);
    let Some(Value::Object(state)) = server.and_then(|server| server.get_mut("state")) else {
        return Reduced::Unchanged;
    };
    let starting = state.get("kind") == Some(&json!("starting"));
    if !starting || state.get("blocking") != Some(&Value::Bool(true)) {
        return Reduced::Unchanged;
    }
    set_field(state, "blocking", Some(&Value::Bool(false)))
}
