//! Edits of files as diffs: from both contents where the host has them, else from what a call says that it replaces.
//!
//! Promises: an edit is never shown as JSON; if nothing better is known, what it does to which file is said in words.

use serde_json::Value;
use wire::Object;

use super::references::{Lookup, References};
use super::{Detail, INDENT, body, fold_end, indent_lines, text_width};
use crate::chat::line::{Line, Style};
use crate::chat::render::diff::{LineNumbers, show_diff};
use crate::terminal::escape_line;

/// Lines of one diff that are shown where it may be folded.
pub(super) const DIFF_LINES_MAX: usize = 40;

/// One edit: what it does to which file, and how.
pub(super) fn edit_lines(
    edit: &Value,
    width: usize,
    detail: Detail,
    references: &References,
) -> Vec<Line> {
    let mut lines = body(&edit_text(edit), Style::Bold, width);
    let side = |side: &str| match &edit[side] {
        // A file that is not there is an empty one.
        Value::Null => Some(Lookup::Here(&[])),
        file => Some(references.find(file["content"]["uri"].as_str()?)),
    };
    match (side("before"), side("after")) {
        (Some(Lookup::Here(before)), Some(Lookup::Here(after))) => {
            let diff = show_diff(before, after, LineNumbers::Shown, text_width(width));
            lines.extend(fold_end(
                indent_lines(diff),
                detail.lines_max(DIFF_LINES_MAX),
            ));
        }
        (Some(Lookup::Coming), _) | (_, Some(Lookup::Coming)) => {
            lines.extend(body("(reading the files)", Style::Dim, width));
        }
        // Without the contents there is only what it is called.
        _ => {}
    }
    lines
}

/// What an edit does, in words.
pub(super) fn edit_text(edit: &Value) -> String {
    let side = |side: &str| edit[side]["uri"].as_str().map(file_name);
    let what = match (side("before"), side("after")) {
        (Some(before), Some(after)) if before == after => format!("edits {after}"),
        (Some(before), Some(after)) => format!("moves {before} to {after}"),
        (None, Some(after)) => format!("writes {after}"),
        (Some(before), None) => format!("deletes {before}"),
        (None, None) => "edits a file".to_owned(),
    };
    let count = |field: &str| edit["diff"][field].as_u64();
    match (count("added"), count("removed")) {
        (None, None) => what,
        (added, removed) => format!("{what} (+{} -{})", added.unwrap_or(0), removed.unwrap_or(0)),
    }
}

/// Whether the contents of all edits of a call are there, so that their diffs say what its input says.
pub(super) fn are_edits_shown(call: &Object, references: &References) -> bool {
    let mut edits = super::references::edits_of(call).peekable();
    let is_here = |edit: &Value, side: &str| match edit[side]["content"]["uri"].as_str() {
        Some(uri) => matches!(references.find(uri), Lookup::Here(_)),
        None => edit[side].is_null(),
    };
    edits.peek().is_some() && edits.all(|edit| is_here(edit, "before") && is_here(edit, "after"))
}

/// The input of a call that replaces parts of a file or writes one, as the diff it would make; `None` if it is anything else.
pub(super) fn input_diff(call: &Object, fields: &Object, width: usize) -> Option<Vec<Line>> {
    let tool = call.get("toolName").and_then(Value::as_str)?;
    let path = fields.get("path")?.as_str()?;
    let is_known = |known: &[&str]| fields.keys().all(|key| known.contains(&key.as_str()));
    let diffs = match tool {
        "write" if is_known(&["path", "content"]) => {
            let content = fields.get("content")?.as_str()?;
            vec![show(b"", content.as_bytes(), width)]
        }
        "edit" if is_known(&["path", "edits"]) => {
            let edits = fields.get("edits")?.as_array()?;
            let diffs = edits.iter().map(|edit| replacement_diff(edit, width));
            diffs.collect::<Option<Vec<_>>>()?
        }
        _ => return None,
    };
    let mut lines = body(&format!("path: {}", escape_line(path)), Style::Dim, width);
    for (index, diff) in diffs.into_iter().enumerate() {
        if index > 0 {
            lines.push(Line::new(Style::Dim, format!("{:INDENT$}⋯", "")));
        }
        lines.extend(indent_lines(diff));
    }
    Some(lines)
}

fn replacement_diff(edit: &Value, width: usize) -> Option<Vec<Line>> {
    let edit = edit.as_object()?;
    let known = ["old_text", "new_text", "all"];
    let is_known = edit.keys().all(|key| known.contains(&key.as_str()));
    let (old, new) = (
        edit.get("old_text")?.as_str()?,
        edit.get("new_text")?.as_str()?,
    );
    let all = edit.get("all").unwrap_or(&Value::Bool(false)).as_bool()?;
    let end = |text: &str| match text.ends_with('\n') || text.is_empty() {
        true => text.to_owned(),
        // A part of a line has no end of its own.
        false => format!("{text}\n"),
    };
    let mut diff = show(end(old).as_bytes(), end(new).as_bytes(), width);
    if all {
        diff.insert(0, Line::new(Style::Warn, "wherever it occurs:"));
    }
    is_known.then_some(diff)
}

fn show(before: &[u8], after: &[u8], width: usize) -> Vec<Line> {
    show_diff(before, after, LineNumbers::Unknown, text_width(width))
}

fn file_name(uri: &str) -> String {
    escape_line(uri.strip_prefix("file://").unwrap_or(uri))
}
