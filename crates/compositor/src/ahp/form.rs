//! The attachment that a part travels as (the table of 3.3). What has no counterpart is a simple attachment whose
//! representation is already its lowering, so that a host without a compositor shows the model the right thing.

use serde_json::{Value, json};
use wire::Object;

use super::skeleton::ReadAs;
use super::uri;
use super::write::text_as_typed;
use crate::lower::texts::{self, Descriptor};
use crate::part::{Attachment, Body, FileRef, Part, Range, Unit, View};

pub(super) struct Form {
    pub attachment: Object,
    pub read_as: ReadAs,
    /// Whether reading it may give the part again; otherwise it carries its part along anyway.
    pub may_read_back: bool,
    /// Whether it came from somewhere and is given back untouched.
    pub is_whole: bool,
    /// What carries the part along if reading does not give it again, if that is not the same.
    pub otherwise: Option<Object>,
}

impl Form {
    fn from_attachment(attachment: Value) -> Self {
        Self { may_read_back: true, ..Self::carrying(attachment) }
    }

    fn carrying(attachment: Value) -> Self {
        Self {
            attachment: object(attachment),
            read_as: ReadAs::Plain,
            may_read_back: false,
            is_whole: false,
            otherwise: None,
        }
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => unreachable!("attachments are made from objects"),
    }
}

/// `None` for what only a skeleton can hold.
pub(super) fn to_attachment(part: &Part, roots: &[String]) -> Option<Form> {
    if part.kind() == "file-attachment"
        && let Some(Value::String(data)) = part.object().get("data")
    {
        return Some(embedded_form(part, data));
    }
    let form = match part.view() {
        View::Text(text) => simple_born(part, text.text)?,
        View::FileRef(file) => match uri::of_reference(&part.object()["ref"], roots) {
            Some(uri) => resource(part, &file, &uri),
            None => simple(&text_as_typed(part), ""),
        },
        View::Attachment(attachment) => stored_or_described(&attachment),
        View::Command(_) | View::Mention(_) => simple(&text_as_typed(part), ""),
        View::EditorContext(context) => {
            let text = texts::editor_context(context.kind, context.source, context.payload);
            let mut form = simple(context.kind, &text);
            form.attachment.insert("displayKind".to_owned(), json!(context.kind));
            form
        }
        View::Unknown { kind, text } => unknown(part, kind, text, roots),
    };
    Some(form)
}

fn simple(label: &str, representation: &str) -> Form {
    Form::carrying(json!({"type": "simple", "label": label,
        "modelRepresentation": representation}))
}

/// A text that came as a simple attachment goes as one.
fn simple_born(part: &Part, text: &str) -> Option<Form> {
    let born = part.object().get("ahp")?;
    let label = born.get("label")?.as_str()?;
    let mut attachment = json!({"type": "simple", "label": label});
    if let Some(kind) = born.get("displayKind").and_then(Value::as_str) {
        attachment["displayKind"] = json!(kind);
    }
    attachment["modelRepresentation"] = json!(text);
    Some(Form::from_attachment(attachment))
}

fn embedded_form(part: &Part, data: &str) -> Form {
    let text = |key: &str| part.object().get(key).and_then(Value::as_str).unwrap_or("");
    let mut attachment = json!({"type": "embeddedResource", "label": text("name"),
        "contentType": text("mime"), "data": data});
    if let Some(selection) = part.object().get("selection") {
        attachment["selection"] = selection.clone();
    }
    Form::from_attachment(attachment)
}

fn resource(part: &Part, file: &FileRef<'_>, uri: &str) -> Form {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let of = &part.object()["ref"];
    let kind = if file.range.is_some() { "selection" } else { "document" };
    let mut attachment = json!({"type": "resource", "label": file.name.unwrap_or(name),
        "uri": uri, "displayKind": kind});
    describe(&mut attachment, of);
    if let Some(selection) = of["range"].get("selection") {
        attachment["selection"] = selection.clone();
    } else if let Some(selection) = file.range.and_then(selection) {
        attachment["selection"] = selection;
    }
    Form::from_attachment(attachment)
}

/// Copies the description of a reference.
fn describe(attachment: &mut Value, reference: &Value) {
    for (from, to) in [("mime", "contentType"), ("nonce", "nonce")] {
        if let Some(value) = reference.get(from).and_then(Value::as_str) {
            attachment[to] = json!(value);
        }
    }
    // The protocol's sizes are signed.
    if let Some(size) = reference.get("size").and_then(Value::as_i64) {
        attachment["sizeHint"] = json!(size);
    }
}

/// Whole lines, up to where the next begins.
fn selection(range: Range) -> Option<Value> {
    let is_lines = range.unit == Unit::Line && range.start >= 1 && range.end >= range.start;
    is_lines.then(|| {
        json!({"range": {"start": {"line": range.start - 1, "character": 0},
            "end": {"line": range.end, "character": 0}}})
    })
}

fn stored_or_described(attachment: &Attachment<'_>) -> Form {
    if let Body::Stored(content_id) = attachment.body
        && let Some(uri) = uri::of_content(content_id)
    {
        let mut resource = json!({"type": "resource", "label": attachment.name, "uri": uri,
            "contentType": attachment.mime});
        if let Some(size) = attachment.size.and_then(|size| i64::try_from(size).ok()) {
            resource["sizeHint"] = json!(size);
        }
        return Form { read_as: ReadAs::Stored, ..Form::from_attachment(resource) };
    }
    let descriptor = Descriptor {
        name: attachment.name,
        mime: attachment.mime,
        size: attachment.size,
        omitted: None,
        path: None,
    };
    simple(attachment.name, &descriptor.text())
}

fn unknown(part: &Part, kind: &str, text: Option<&str>, roots: &[String]) -> Form {
    let representation = text.map_or_else(|| texts::unsupported(kind), str::to_owned);
    let carrying = simple(text.unwrap_or(kind), &representation);
    match (kind, part.object().get("attachment"), part.object().get("ref")) {
        ("ahp-attachment", Some(Value::Object(attachment)), _) => Form {
            attachment: attachment.clone(),
            is_whole: true,
            otherwise: Some(carrying.attachment),
            ..Form::from_attachment(json!({}))
        },
        ("directory-ref", _, Some(of)) => match uri::of_reference(of, roots) {
            Some(uri) => {
                let name = of.get("name").and_then(Value::as_str).unwrap_or("");
                let mut attachment = json!({"type": "resource", "label": name, "uri": uri,
                    "displayKind": "directory"});
                describe(&mut attachment, of);
                Form::from_attachment(attachment)
            }
            None => carrying,
        },
        _ => carrying,
    }
}
