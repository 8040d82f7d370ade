//! `CompletionItem`s in the shape that clients with composed messages know.

use compositor::Part;
use compositor::ahp::insert_text;
use compositor::command::Entry;
use serde_json::{Value, json};
use workspace::completion::{IndexedPath, PathKind, Span, Suggestion};
use workspace::discovery::Skill;

/// The key of an attachment's part; a client sends it back unchanged (H-241).
const PART: &str = "compositor/part";

/// The key of an item's description. VS Code reads the same from plain keys of the attachment.
pub(super) const ABOUT: &str = "compositor/about";

/// The kind of an item that is an argument of a command and nothing by itself.
pub(super) const ARGUMENT: &str = "argument";

/// Endings of pictures' names; their real type is determined when they are opened.
const PICTURES: [&str; 9] =
    [".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".heic"];

/// The item of a suggestion; `None` for a path that cannot be typed.
pub(super) fn completion_item(suggestion: Suggestion<'_>, span: Span) -> Option<Value> {
    match suggestion {
        Suggestion::Command { id, entry } => Some(command(id, entry, span)),
        Suggestion::Context(name) => Some(context(name, span)),
        Suggestion::Skill(suffix) => Some(skill(suffix, span)),
        Suggestion::Path(path) => file(path, span),
    }
}

fn command(id: &str, entry: &Entry, span: Span) -> Value {
    let part = json!({"type": "command", "id": id});
    let mut about = json!({});
    let command = json!(id.trim_start_matches('/'));
    if let Some(description) = &entry.description {
        about["description"] = json!(description);
    }
    if let Some(hint) = &entry.argument_hint {
        about["argumentHint"] = json!(hint);
    }
    let mut item = simple("command", id, part, span);
    let meta = &mut item["attachment"]["_meta"];
    meta["command"] = command;
    for key in ["description", "argumentHint"] {
        if let Some(text) = about.get(key) {
            meta[key] = text.clone();
        }
    }
    item["_meta"] = json!({ABOUT: about});
    item
}

fn context(name: &str, span: Span) -> Value {
    let part = json!({"type": "mention", "target": {"kind": "context", "name": name}});
    simple("context", &format!("@{name}"), part, span)
}

fn skill(skill: &Skill, span: Span) -> Value {
    let name = &skill.name;
    let part = json!({"type": "mention", "target": {"kind": "skill", "name": name}});
    let mut item = simple("skill", &format!("@skill:{name}"), part, span);
    let meta = &mut item["attachment"]["_meta"];
    meta["uri"] = json!(skill.uri);
    meta["description"] = json!(skill.description);
    item["_meta"] = json!({ABOUT: {"description": skill.description}});
    item
}

/// `None` if the path cannot be typed.
fn file(path: IndexedPath<'_>, span: Span) -> Option<Value> {
    let absolute = format!("{}/{}", path.root.trim_end_matches('/'), path.relative);
    let name = if path.is_in_default { path.relative } else { &absolute };
    let kind = match path.kind {
        PathKind::Directory => "directory-ref",
        PathKind::File => "file-ref",
    };
    let part = json!({"type": kind, "ref": {"kind": "path", "path": name}});
    let mut typed = insert_text(&Part::from_value(part).ok()?)?;
    if span.sigil == '#' {
        // What replaces a token begins as it does, or clients would not find it among what matches.
        typed = typed.replacen('@', "#", 1);
    }
    let label = path.relative.rsplit('/').next().unwrap_or(path.relative);
    let attachment = json!({
        "type": "resource",
        "label": label,
        "uri": wire::file_uri::uri_of(absolute.as_bytes()),
        "displayKind": display_kind(path),
    });
    Some(item(&typed, attachment, span))
}

fn display_kind(path: IndexedPath<'_>) -> &'static str {
    let is_picture = |ending: &&str| {
        let start = path.relative.len().checked_sub(ending.len());
        let suffix = start.and_then(|start| path.relative.get(start..));
        suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(ending))
    };
    match path.kind {
        PathKind::Directory => "directory",
        PathKind::File if PICTURES.iter().any(is_picture) => "image",
        PathKind::File => "document",
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
