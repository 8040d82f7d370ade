//! Editor context that a message brings along: what `@selection` and its like are at the moment it is sent (C-065).
//!
//! A client gives it in `_meta["compositor/contexts"]`, an object from names to one `editor-context` part or several. Only
//! what the text mentions becomes a part. What is attached to the message (a part of that kind, an open file, selected
//! lines) is in it anyway.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wire::Object;

use super::attachment::text;
use super::{CONTEXTS_KEY, PART_KEY};
use crate::Part;
use crate::part::View;

/// Contexts of one message.
const CONTEXTS_MAX: usize = 32;

/// Parts of one context.
const PARTS_MAX: usize = 16;

/// The longest name of a context.
const NAME_BYTES_MAX: usize = 64;

/// The contexts that a message brings along, by name. What cannot be read is left out: a mention of it does not resolve.
pub fn contexts_in(message: &Object) -> BTreeMap<String, Vec<Part>> {
    let sent = message
        .get("_meta")
        .and_then(|meta| meta.get(CONTEXTS_KEY))
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let read = sent.filter(|(name, _)| is_name(name));
    read.take(CONTEXTS_MAX)
        .map(|(name, parts)| (name.clone(), parts_of(parts)))
        .filter(|(_, parts)| !parts.is_empty())
        .collect()
}

/// The names of the contexts that a message brings along or has attached to it.
pub fn context_names(message: &Object) -> BTreeSet<String> {
    let attachments = message.get("attachments").and_then(Value::as_array);
    let attached = attachments.into_iter().flatten().filter_map(attached_name);
    let mut names: BTreeSet<String> = contexts_in(message).into_keys().collect();
    names.extend(attached.take(CONTEXTS_MAX).map(str::to_owned));
    names
}

/// The names in a list of names, or in an object that has them as keys.
pub fn names_in(value: &Value) -> BTreeSet<String> {
    let names: Vec<&str> = match value {
        Value::Object(by_name) => by_name.keys().take(CONTEXTS_MAX).map(String::as_str).collect(),
        Value::Array(names) => names.iter().take(CONTEXTS_MAX).filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let names = names.into_iter().filter(|name| is_name(name));
    names.map(str::to_owned).collect()
}

fn parts_of(value: &Value) -> Vec<Part> {
    let values = match value {
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    };
    let parts =
        values.iter().take(PARTS_MAX).filter_map(|value| Part::from_value(value.clone()).ok());
    parts.filter(|part| matches!(part.view(), View::EditorContext(_))).collect()
}

/// The context that an attachment is.
fn attached_name(attachment: &Value) -> Option<&str> {
    let carried = attachment.get("_meta").and_then(|meta| meta.get(PART_KEY));
    if let Some(part) = carried {
        let is_context = part.get("type")?.as_str()? == "editor-context";
        return part.get("kind")?.as_str().filter(|name| is_context && is_name(name));
    }
    if attachment.get("range").is_some_and(|range| !range.is_null()) {
        return None; // it stands in the text, for itself
    }
    match (text(attachment, "type")?, text(attachment, "displayKind")?) {
        ("resource" | "embeddedResource", "document") => Some("open"),
        ("resource" | "embeddedResource", "selection") => Some("selection"),
        _ => None,
    }
}

/// Whether a mention can name it (C-066).
fn is_name(name: &str) -> bool {
    let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(belongs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(message: Value) -> Vec<String> {
        context_names(message.as_object().unwrap()).into_iter().collect()
    }

    #[test]
    fn contexts_are_editor_context_parts_by_name() {
        let part = json!({"type": "editor-context", "kind": "cursor", "payload": {"line": 3}});
        let message = json!({"text": "t", "_meta": {"compositor/contexts": {
            "cursor": part,
            "open": [part, {"type": "text", "text": "no context"}, 5],
            "broken": {"type": "editor-context", "kind": "x"},
            "not a name": part,
        }}});
        let contexts = contexts_in(message.as_object().unwrap());
        let counts: Vec<(&str, usize)> =
            contexts.iter().map(|(name, parts)| (name.as_str(), parts.len())).collect();
        assert_eq!(counts, [("cursor", 1), ("open", 1)]);
        assert_eq!(names(message), ["cursor", "open"]);
        assert!(contexts_in(json!({"_meta": 5}).as_object().unwrap()).is_empty());
    }

    #[test]
    fn what_is_attached_counts_as_sent() {
        let carried =
            json!({"compositor/part": {"type": "editor-context", "kind": "last", "payload": {}}});
        let range =
            json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
        let attachments = json!([
            {"type": "simple", "label": "l", "_meta": carried},
            {"type": "resource", "uri": "file:///a", "displayKind": "selection"},
            {"type": "resource", "uri": "file:///b", "displayKind": "document", "range": range},
            {"type": "simple", "label": "d", "displayKind": "document"},
            "strange",
        ]);
        assert_eq!(names(json!({"attachments": attachments})), ["last", "selection"]);
    }

    #[test]
    fn names_are_read_from_lists_and_objects_within_bounds() {
        let read = |value: Value| names_in(&value).into_iter().collect::<Vec<_>>();
        assert_eq!(read(json!(["open", 5, "a b", "selection"])), ["open", "selection"]);
        assert_eq!(read(json!({"cursor": null})), ["cursor"]);
        assert_eq!(read(json!("open")), Vec::<String>::new());
        let many: Vec<String> = (0..1_000).map(|n| format!("n{n}")).collect();
        assert_eq!(read(json!(many)).len(), CONTEXTS_MAX);
        let many: Object = many.into_iter().map(|name| (name, json!({}))).collect();
        assert_eq!(read(Value::Object(many)).len(), CONTEXTS_MAX);
    }
}
