//! `CompletionItem`s as compositor.md 3.4 wants them.

use compositor::Part;
use compositor::ahp::insert_text;
use compositor::command::Entry;
use serde_json::{Value, json};

use super::path::{Kind, Path};
use crate::catalogue::Skill;

/// Contexts every host knows (C-065).
pub(super) const CONTEXTS: [&str; 4] = ["selection", "open", "cursor", "last"];

/// Under this name an attachment says which part it is; a client sends it back as it was (H-241).
const PART: &str = "compositor/part";

/// Under this name an item says what it is about. Not in the attachment: it need not come back.
const ABOUT: &str = "compositor/about";

/// Names by which pictures are known; what they really are is found out when they are opened.
const PICTURES: [&str; 9] = [
    ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".heic",
];

/// What an item replaces, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

pub(super) fn command(id: &str, entry: &Entry, span: Span) -> Value {
    let part = json!({"type": "command", "id": id});
    let mut about = json!({});
    if let Some(description) = &entry.description {
        about["description"] = json!(description);
    }
    if let Some(hint) = &entry.argument_hint {
        about["argumentHint"] = json!(hint);
    }
    let mut item = simple("command", id, part, span);
    item["_meta"] = json!({ABOUT: about});
    item
}

pub(super) fn context(name: &str, span: Span) -> Value {
    let part = json!({"type": "mention", "target": {"kind": "context", "name": name}});
    simple("context", &format!("@{name}"), part, span)
}

pub(super) fn skill(skill: &Skill, span: Span) -> Value {
    let name = &skill.name;
    let part = json!({"type": "mention", "target": {"kind": "skill", "name": name}});
    let mut item = simple("skill", &format!("@skill:{name}"), part, span);
    item["_meta"] = json!({ABOUT: {"description": skill.description}});
    item
}

/// `None` if the path cannot be typed.
pub(super) fn file(path: Path<'_>, span: Span) -> Option<Value> {
    let absolute = format!("{}/{}", path.root.trim_end_matches('/'), path.inside);
    let named = match path.is_in_first {
        true => path.inside,
        false => &absolute,
    };
    let kind = match path.kind {
        Kind::Directory => "directory-ref",
        Kind::File => "file-ref",
    };
    let part = json!({"type": kind, "ref": {"kind": "path", "path": named}});
    let typed = insert_text(&Part::from_value(part).ok()?)?;
    let label = path.inside.rsplit('/').next().unwrap_or(path.inside);
    let attachment = json!({
        "type": "resource",
        "label": label,
        "uri": wire::file_uri::uri_of(absolute.as_bytes()),
        "displayKind": display_kind(path),
    });
    Some(item(&typed, attachment, span))
}

fn display_kind(path: Path<'_>) -> &'static str {
    let is_picture = |ending: &&str| {
        let start = path.inside.len().checked_sub(ending.len());
        let found = start.and_then(|start| path.inside.get(start..));
        found.is_some_and(|found| found.eq_ignore_ascii_case(ending))
    };
    match path.kind {
        Kind::Directory => "directory",
        Kind::File if PICTURES.iter().any(is_picture) => "image",
        Kind::File => "document",
    }
}

fn simple(display_kind: &str, label: &str, part: Value, span: Span) -> Value {
    let attachment = json!({
        "type": "simple",
        "label": label,
        "displayKind": display_kind,
        "_meta": {PART: part},
    });
    item(label, attachment, span)
}

fn item(typed: &str, attachment: Value, span: Span) -> Value {
    json!({
        "insertText": format!("{typed} "),
        "rangeStart": span.start,
        "rangeEnd": span.end,
        "attachment": attachment,
    })
}
