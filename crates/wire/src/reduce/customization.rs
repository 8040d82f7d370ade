//! Customizations of a session: plugins, directories and MCP servers, and what they contain.
//!
//! An entry of a type nobody here knows is kept, and no action addresses it.

use serde_json::{Value, json};

use super::{Reduced, put_field};
use crate::{Action, Object};

type Customizations = Option<Vec<Value>>;

/// Where an entry stands: at the top, or among the children of a container.
enum Place {
    Top(usize),
    Child { container: usize, index: usize },
}

fn id_of<'a>(entry: &'a Value, types: &[&str]) -> Option<&'a str> {
    let kind = entry.get("type")?.as_str()?;
    if types.contains(&kind) {
        entry.get("id")?.as_str()
    } else {
        None
    }
}

/// The id of an entry that may stand at the top (H-300).
fn top_id(entry: &Value) -> Option<&str> {
    id_of(entry, &["plugin", "directory", "mcpServer"])
}

fn child_id(entry: &Value) -> Option<&str> {
    id_of(
        entry,
        &["agent", "skill", "prompt", "rule", "hook", "mcpServer"],
    )
}

fn children(container: &Value) -> &[Value] {
    match container["type"].as_str() {
        Some("plugin" | "directory") => container["children"]
            .as_array()
            .map_or(&[], |children| children.as_slice()),
        _ => &[],
    }
}

/// Finds an id: first among the containers, then among their children.
fn place_of(list: &[Value], id: &str) -> Option<Place> {
    if let Some(index) = list.iter().position(|entry| top_id(entry) == Some(id)) {
        return Some(Place::Top(index));
    }
    list.iter().enumerate().find_map(|(container, entry)| {
        let index = children(entry)
            .iter()
            .position(|child| child_id(child) == Some(id))?;
        Some(Place::Child { container, index })
    })
}

fn entry_mut<'a>(list: &'a mut [Value], place: &Place) -> Option<&'a mut Object> {
    let entry = match *place {
        Place::Top(index) => list.get_mut(index)?,
        Place::Child { container, index } => list
            .get_mut(container)?
            .get_mut("children")?
            .get_mut(index)?,
    };
    entry.as_object_mut()
}

/// The explicit decisions are replaced whole (H-302).
pub(super) fn toggled(customizations: &mut Customizations, action: &Action) -> Reduced {
    let (Some(list), Some(id), Some(Value::Array(decisions))) = (
        customizations.as_mut(),
        action.text("id"),
        action.get("enablement"),
    ) else {
        return Reduced::Unchanged;
    };
    let Some(place) = place_of(list, id) else {
        return Reduced::Unchanged;
    };
    let Some(entry) = entry_mut(list, &place) else {
        return Reduced::Unchanged;
    };
    match entry.get("type").and_then(Value::as_str) {
        Some("plugin" | "mcpServer") => {
            let decisions = action.get("enablement").filter(|_| !decisions.is_empty());
            put_field(entry, "enablement", decisions)
        }
        _ => put_field(entry, "enabled", Some(&Value::Bool(is_enabled(decisions)))),
    }
}

/// The first decision counts; without one it is on; one that cannot be read is off (H-301).
fn is_enabled(decisions: &[Value]) -> bool {
    let Some(first) = decisions.first() else {
        return true;
    };
    let readable = match first["kind"].as_str() {
        Some("global" | "session") => true,
        Some("workspace") => first["uri"].is_string(),
        _ => false,
    };
    readable && first["enabled"] == true
}

pub(super) fn updated(customizations: &mut Customizations, action: &Action) -> Reduced {
    let Some(customization) = action.present("customization") else {
        return Reduced::Unchanged;
    };
    // Published clients begin a list here even for a type they do not know; ours must not differ from theirs (H-074).
    let began = if customizations.is_none() {
        Reduced::Changed
    } else {
        Reduced::Unchanged
    };
    let list = customizations.get_or_insert_default();
    let Some(id) = top_id(customization) else {
        return began;
    };
    match list.iter_mut().find(|entry| top_id(entry) == Some(id)) {
        Some(entry) => super::put(entry, customization.clone()), // H-304
        None => {
            list.push(customization.clone());
            Reduced::Changed
        }
    }
}

pub(super) fn removed(customizations: &mut Customizations, action: &Action) -> Reduced {
    let (Some(list), Some(id)) = (customizations.as_mut(), action.text("id")) else {
        return Reduced::Unchanged;
    };
    match place_of(list, id) {
        Some(Place::Top(index)) => {
            list.remove(index);
        }
        Some(Place::Child { container, index }) => {
            if let Some(Value::Array(children)) = list[container].get_mut("children") {
                children.remove(index);
            }
        }
        None => return Reduced::Unchanged,
    }
    Reduced::Changed
}

/// The MCP server with the action's id; an id that names something else first names no server.
fn mcp_server<'a>(
    customizations: &'a mut Customizations,
    action: &Action,
) -> Option<&'a mut Object> {
    let list = customizations.as_mut()?;
    let place = place_of(list, action.text("id")?)?;
    entry_mut(list, &place).filter(|entry| entry.get("type") == Some(&json!("mcpServer")))
}

fn set_mcp_state(
    customizations: &mut Customizations,
    action: &Action,
    state: &Value,
    channel: Option<&Value>,
) -> Reduced {
    match mcp_server(customizations, action) {
        Some(server) => {
            put_field(server, "state", Some(state)) | put_field(server, "channel", channel)
        }
        None => Reduced::Unchanged,
    }
}

/// A change without a channel clears it (H-305).
pub(super) fn mcp_state_changed(customizations: &mut Customizations, action: &Action) -> Reduced {
    match action.present("state") {
        Some(state) => set_mcp_state(customizations, action, state, action.present("channel")),
        None => Reduced::Unchanged,
    }
}

pub(super) fn mcp_start_requested(customizations: &mut Customizations, action: &Action) -> Reduced {
    set_mcp_state(customizations, action, &json!({"kind": "starting"}), None)
}

pub(super) fn mcp_stop_requested(customizations: &mut Customizations, action: &Action) -> Reduced {
    set_mcp_state(customizations, action, &json!({"kind": "stopped"}), None)
}

/// Only a server whose start holds messages back can be sent to the background.
pub(super) fn mcp_background_requested(
    customizations: &mut Customizations,
    action: &Action,
) -> Reduced {
    let server = mcp_server(customizations, action);
    let Some(Value::Object(state)) = server.and_then(|server| server.get_mut("state")) else {
        return Reduced::Unchanged;
    };
    let starting = state.get("kind") == Some(&json!("starting"));
    if !starting || state.get("blocking") != Some(&Value::Bool(true)) {
        return Reduced::Unchanged;
    }
    put_field(state, "blocking", Some(&Value::Bool(false)))
}
