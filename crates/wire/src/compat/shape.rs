//! Where things are inside states and actions: what several steps have to find.

use serde_json::{Map, Value};

use crate::{ActionKind, Object};

/// The kind of an action by its name.
pub(super) fn kind_of(action: &Object) -> ActionKind {
    action.get("type").and_then(Value::as_str).map_or(ActionKind::Unknown, ActionKind::from_name)
}

pub(super) fn text<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

/// The objects of a list; what is none is left alone.
pub(super) fn objects_mut<'a>(
    object: &'a mut Object,
    field: &str,
) -> impl Iterator<Item = &'a mut Object> + use<'a> {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

pub(super) fn object_mut<'a>(object: &'a mut Object, field: &str) -> Option<&'a mut Object> {
    object.get_mut(field).and_then(Value::as_object_mut)
}

/// Renames a field where it stands, and changes its value on the way; nothing if the new value is none.
pub(super) fn replace_field(
    object: &mut Object,
    field: &str,
    new_name: &str,
    new_value: impl FnOnce(Value) -> Option<Value>,
) {
    if let Some(value) = object.shift_remove(field)
        && let Some(value) = new_value(value)
    {
        object.insert(new_name.to_owned(), value);
    }
}

/// The turns of a chat's state, or of a page of turns; the running one too.
pub(super) fn for_each_turn(chat: &mut Object, mut change: impl FnMut(&mut Object)) {
    for turn in objects_mut(chat, "turns") {
        change(turn);
    }
    if let Some(turn) = object_mut(chat, "activeTurn") {
        change(turn);
    }
}

/// The response parts of the turns of a chat, and the part that an action brings.
pub(super) fn for_each_part(holder: &mut Object, mut change: impl FnMut(&mut Object)) {
    for_each_turn(holder, |turn| {
        for part in objects_mut(turn, "responseParts") {
            change(part);
        }
    });
    if let Some(part) = object_mut(holder, "part") {
        change(part);
    }
}

/// Every tool call in a state or action: in response parts, and in what a session waits for.
pub(super) fn for_each_tool_call(holder: &mut Object, mut change: impl FnMut(&mut Object)) {
    for_each_part(holder, |part| {
        if let Some(call) = object_mut(part, "toolCall") {
            change(call);
        }
    });
    for needed in objects_mut(holder, "inputNeeded") {
        if let Some(call) = object_mut(needed, "toolCall") {
            change(call);
        }
    }
    if let Some(call) =
        object_mut(holder, "request").and_then(|needed| object_mut(needed, "toolCall"))
    {
        change(call);
    }
}

/// Every message of a user in a state or action.
pub(super) fn for_each_message(holder: &mut Object, mut change: impl FnMut(&mut Object)) {
    for_each_turn(holder, |turn| {
        if let Some(message) = object_mut(turn, "message") {
            change(message);
        }
    });
    for field in ["message", "draft", "userSuggestion"] {
        if let Some(message) = object_mut(holder, field) {
            change(message);
        }
    }
    for pending in objects_mut(holder, "queuedMessages") {
        if let Some(message) = object_mut(pending, "message") {
            change(message);
        }
    }
    if let Some(message) =
        object_mut(holder, "steeringMessage").and_then(|pending| object_mut(pending, "message"))
    {
        change(message);
    }
}

/// Every customization in a state or action, children and those of active clients included.
pub(super) fn for_each_customization(holder: &mut Object, mut change: impl FnMut(&mut Object)) {
    fn with_children(entry: &mut Object, change: &mut dyn FnMut(&mut Object)) {
        change(entry);
        for child in objects_mut(entry, "children") {
            change(child);
        }
    }
    for entry in objects_mut(holder, "customizations") {
        with_children(entry, &mut change);
    }
    if let Some(entry) = object_mut(holder, "customization") {
        with_children(entry, &mut change);
    }
    for client in objects_mut(holder, "activeClients") {
        for entry in objects_mut(client, "customizations") {
            with_children(entry, &mut change);
        }
    }
    if let Some(client) = object_mut(holder, "activeClient") {
        for entry in objects_mut(client, "customizations") {
            with_children(entry, &mut change);
        }
    }
    for agent in objects_mut(holder, "agents") {
        for entry in objects_mut(agent, "customizations") {
            with_children(entry, &mut change);
        }
    }
}

/// A new action.
pub(super) fn action(name: &str, fields: &[(&str, Value)]) -> Object {
    let mut action = Map::new();
    action.insert("type".to_owned(), Value::String(name.to_owned()));
    for (field, value) in fields {
        action.insert((*field).to_owned(), value.clone());
    }
    action
}
