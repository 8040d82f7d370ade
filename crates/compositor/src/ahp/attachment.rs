//! One attachment of a message, and the part it becomes.

use serde_json::{Value, json};
use wire::Object;

use super::{PART_KEY, uri};
use crate::diagnostics::{Diagnostics, quoted};
use crate::parse::quote_value;
use crate::part::{Location, MentionTarget, Part, View};
use crate::position;

/// The part that an attachment is. Its body, if it has one, is not in it.
#[derive(Debug, Default)]
pub(super) struct AttachmentPart {
    pub part: Object,
    /// Whether the attachment carried it along: then it says everything that there is to say.
    pub is_carried: bool,
}

pub(super) fn to_part(
    attachment: &Value,
    roots: &[String],
    diagnostics: &mut Diagnostics,
) -> AttachmentPart {
    let (part, is_carried) = match carried_part(attachment) {
        Carried::Part(part) => (part, true),
        Carried::Nothing => (by_type(attachment, roots), false),
        Carried::Unreadable => {
            let label = quoted(label(attachment));
            diagnostics
                .report(|| format!("attachment: the part that {label} carries cannot be read"));
            (by_type(attachment, roots), false)
        }
    };
    AttachmentPart { part, is_carried }
}

pub(super) fn label(attachment: &Value) -> &str {
    text(attachment, "label").unwrap_or("")
}

pub(super) fn text<'a>(attachment: &'a Value, key: &str) -> Option<&'a str> {
    attachment.get(key).and_then(Value::as_str)
}

enum Carried {
    Nothing,
    Part(Object),
    Unreadable,
}

/// The part that an attachment carries along: written here, or forged.
fn carried_part(attachment: &Value) -> Carried {
    let carried = attachment.get("_meta").and_then(|meta| meta.get(PART_KEY));
    let Some(carried) = carried else { return Carried::Nothing };
    let Ok(part) = Part::from_value(carried.clone()) else { return Carried::Unreadable };
    let is_attachment = part.kind() == "file-attachment";
    if has_body(attachment) {
        // A body belongs to an attachment and to nothing else.
        return if is_attachment {
            Carried::Part(with_empty_body(part.into_object()))
        } else {
            Carried::Unreadable
        };
    }
    // A body that hides in metadata would be recorded whatever its size.
    let hides_body = is_attachment && part.object().contains_key("data");
    if hides_body || !part.is_readable() {
        return Carried::Unreadable;
    }
    Carried::Part(part.into_object())
}

fn with_empty_body(mut part: Object) -> Object {
    part.insert("data".to_owned(), json!(""));
    part
}

pub(super) fn has_body(attachment: &Value) -> bool {
    text(attachment, "type") == Some("embeddedResource")
        && attachment.get("data").is_some_and(Value::is_string)
}

fn by_type(attachment: &Value, roots: &[String]) -> Object {
    let part = match text(attachment, "type") {
        Some("simple") => simple(attachment),
        Some("embeddedResource") => embedded_data(attachment),
        Some("resource") => resource(attachment, roots),
        Some("annotations") => annotations(attachment),
        _ => None,
    };
    let part = part.unwrap_or_else(|| unknown(attachment));
    match part {
        Value::Object(part) => part,
        _ => unreachable!("parts are made from objects"),
    }
}

/// The protocol says that its representation is what the model is shown: it is a text, without any wrapper.
fn simple(attachment: &Value) -> Option<Value> {
    let label = text(attachment, "label")?;
    let display_kind = text(attachment, "displayKind");
    if let Some(representation) = text(attachment, "modelRepresentation") {
        let mut born = json!({"type": "simple", "label": label});
        if let Some(kind) = display_kind {
            born["displayKind"] = json!(kind);
        }
        return Some(json!({"type": "text", "text": representation, "ahp": born}));
    }
    // Our own kinds have more to say than a label.
    let kind = display_kind.filter(|kind| !["skill", "file", "context"].contains(kind));
    let target = json!({"kind": kind.unwrap_or("unknown"), "label": label});
    Some(json!({"type": "mention", "target": target}))
}

fn embedded_data(attachment: &Value) -> Option<Value> {
    attachment.get("data")?.as_str()?;
    let mime = text(attachment, "contentType").unwrap_or("application/octet-stream");
    // Without a label too: its body must go somewhere.
    let mut part = json!({"type": "file-attachment", "name": label(attachment),
        "mime": mime, "data": ""});
    if let Some(selection) = attachment.get("selection") {
        part["selection"] = selection.clone();
    }
    Some(part)
}

fn resource(attachment: &Value, roots: &[String]) -> Option<Value> {
    let mut reference = uri::reference(text(attachment, "uri")?, roots);
    reference["name"] = json!(text(attachment, "label")?);
    for (from, to) in [("contentType", "mime"), ("nonce", "nonce")] {
        if let Some(value) = text(attachment, from) {
            reference[to] = json!(value);
        }
    }
    if let Some(size) = attachment.get("sizeHint").and_then(Value::as_u64) {
        reference["size"] = json!(size);
    }
    let is_directory = text(attachment, "displayKind") == Some("directory");
    if is_directory && reference["kind"] == "path" {
        return Some(json!({"type": "directory-ref", "ref": reference}));
    }
    if let Some(selection) = attachment.get("selection")
        && let Some((start, end)) = position::lines_of_selection(selection)
    {
        reference["range"] =
            json!({"unit": "line", "start": start, "end": end, "selection": selection});
    }
    Some(json!({"type": "file-ref", "ref": reference}))
}

/// Only the ids of annotations are known here; their text is read elsewhere.
fn annotations(attachment: &Value) -> Option<Value> {
    let mut payload = Object::new();
    if let Some(ids) = attachment.get("annotationIds") {
        payload.insert("annotationIds".to_owned(), ids.clone());
    }
    payload.insert("annotations".to_owned(), json!([]));
    Some(json!({"type": "editor-context", "kind": "annotations",
        "source": text(attachment, "resource")?, "payload": payload}))
}

/// Stored unchanged; a reader that does not know it shows its label (C-086).
fn unknown(attachment: &Value) -> Value {
    let mut part = json!({"type": "ahp-attachment", "attachment": attachment});
    if let Some(label) = text(attachment, "label") {
        part["text"] = json!(label);
    }
    part
}

/// A file attachment whose body is in the blob store, from the resource it was sent as.
pub(super) fn stored(attachment: &Value) -> Option<Object> {
    let digest = wire::Digest::from_uri(text(attachment, "uri")?)?;
    let mime = text(attachment, "contentType").unwrap_or("application/octet-stream");
    let mut part = Object::new();
    part.insert("type".to_owned(), json!("file-attachment"));
    part.insert("name".to_owned(), json!(text(attachment, "label")?));
    part.insert("mime".to_owned(), json!(mime));
    if let Some(size) = attachment.get("sizeHint").and_then(Value::as_u64) {
        part.insert("size".to_owned(), json!(size));
    }
    part.insert("content_id".to_owned(), json!(format!("sha256:{digest}")));
    Some(part)
}

/// What a client types into the text for a part that was completed, blanks at its end aside (3.4).
pub fn insert_text(part: &Part) -> Option<String> {
    match part.view() {
        View::FileRef(file) => match file.location {
            Location::Path(path) => Some(format!("@file:{}", quote_value(path))),
            Location::Url(_) | Location::ContentId(_) => None,
        },
        View::Mention(mention) => match mention.target {
            MentionTarget::Skill { name, .. } => Some(format!("@skill:{}", quote_value(name))),
            MentionTarget::File { path, .. } => Some(format!("@file:{}", quote_value(path))),
            MentionTarget::Context { name } => Some(format!("@{name}")),
            MentionTarget::Entity { kind: "mcp", target } => {
                let text = |key: &str| target.get(key).and_then(Value::as_str);
                let value = format!("{}:{}", text("server")?, text("uri")?);
                Some(format!("@mcp:{}", quote_value(&value)))
            }
            MentionTarget::Entity { .. } => None,
        },
        View::Command(command) => Some(command.id.to_owned()),
        View::Unknown { kind, .. } => {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
            let object = part.object();
            match kind {
                "command" => text(object.get("id")),
                "directory-ref" => {
                    let path = text(object.get("ref").and_then(|of| of.get("path")))?;
                    Some(format!("@file:{}", quote_value(&path)))
                }
                _ => None,
            }
        }
        View::Text(_) | View::Attachment(_) | View::EditorContext(_) => None,
    }
}
