//! Edits of files as diffs, from both contents.
//!
//! Promises: an edit is never shown as JSON; if nothing better is known, what it does to which file is said in words. What cannot be
//! shown, and what is folded, is said.

use serde_json::Value;
use wire::Object;

use super::input_change::InputChange;
use super::references::{Lookup, References, edits_of, is_asked};
use super::{
    Detail, WHOLE_LINES_MAX, body, fold_end, fold_line, hanging, indent_lines, text_width,
};
use crate::chat::line::{Line, Style};
use crate::chat::render::diff::{LineNumbers, show_diff};
use crate::terminal::escape_line;

/// Lines of one diff that are shown where it may be folded.
pub(super) const DIFF_LINES_MAX: usize = 40;
/// Edits of one call that are shown where they may be folded.
const EDITS_MAX: usize = 8;

/// One edit in lines.
pub(super) struct ShownEdit {
    /// What it does to which file.
    pub(super) head: Vec<Line>,
    /// How.
    pub(super) change: Vec<Line>,
    /// Whether all that changes is in the lines.
    is_whole: bool,
}

/// What is known of a side of an edit.
enum EditSide<'a> {
    Here(&'a [u8]),
    Coming,
    /// It cannot be shown, and why.
    Missing(&'a str),
    /// Nobody has looked.
    Unknown,
    /// There is nothing to look for.
    NotSent,
}

impl<'a> EditSide<'a> {
    fn of(edit: &'a Value, name: &str, references: &'a References) -> Self {
        let file = &edit[name];
        if file.is_null() {
            return Self::Here(&[]); // a file that is not there is an empty one
        }
        let Some(uri) = file["content"]["uri"].as_str() else { return Self::NotSent };
        match references.find(uri) {
            Lookup::Here(bytes) => Self::Here(bytes),
            Lookup::Coming => Self::Coming,
            Lookup::Missing(why) => Self::Missing(why),
            Lookup::Unknown => Self::Unknown,
        }
    }

    /// Why it is not here.
    fn why_not(&self) -> &'a str {
        match self {
            Self::Missing(why) => why,
            Self::NotSent => "the agent sent none",
            Self::Here(_) | Self::Coming | Self::Unknown => "it was not read",
        }
    }
}

/// All edits of a call; `shown` makes each of them. How many there are is said before many of them.
pub(super) fn edit_lines(
    call: &Object,
    width: usize,
    detail: Detail,
    shown: impl Fn(&Value) -> ShownEdit,
) -> Vec<Line> {
    let (edits_max, mut lines_left) = match detail {
        Detail::Brief => (EDITS_MAX, usize::MAX),
        Detail::Whole => (usize::MAX, WHOLE_LINES_MAX),
        Detail::Unfolded => (usize::MAX, usize::MAX),
    };
    let mut lines = match edits_of(call).count() {
        count if count > EDITS_MAX => body(&format!("{count} changes:"), Style::Bold, width),
        _ => Vec::new(),
    };
    let mut folded = 0;
    for (index, edit) in edits_of(call).enumerate() {
        if index >= edits_max || lines_left == 0 {
            folded += 1;
            continue;
        }
        let ShownEdit { head, change, .. } = shown(edit);
        let change = fold_end(change, detail.lines_max(DIFF_LINES_MAX));
        lines_left = lines_left.saturating_sub(head.len() + change.len());
        lines.extend(head);
        lines.extend(change);
    }
    match folded {
        0 => {}
        1 => lines.push(fold_line("1 more change")),
        more => lines.push(fold_line(&format!("{more} more changes"))),
    }
    lines
}

/// One edit: what it does to which file, and how.
pub(super) fn show_edit(
    call: &Object,
    edit: &Value,
    width: usize,
    references: &References,
) -> ShownEdit {
    let note = |text: &str| body(text, Style::Dim, width);
    let cannot = |why: &str| {
        let text = format!("its content cannot be shown: {}", escape_line(why));
        (hanging(&text, Style::Warn, width), false)
    };
    let (change, is_whole) =
        match (EditSide::of(edit, "before", references), EditSide::of(edit, "after", references)) {
            // Not even a name: what it does is not known.
            _ if edit["before"].is_null() && edit["after"].is_null() => {
                cannot(EditSide::NotSent.why_not())
            }
            (EditSide::Here(before), EditSide::Here(after)) => {
                let diff = show_diff(before, after, LineNumbers::Shown, text_width(width));
                (indent_lines(diff.lines), diff.is_whole)
            }
            (EditSide::Coming, _) | (_, EditSide::Coming) => (note("(reading the files)"), false),
            // A call that is over says what it did; its contents are read when somebody wants to see them.
            (EditSide::Unknown | EditSide::NotSent, _)
            | (_, EditSide::Unknown | EditSide::NotSent)
                if !is_asked(call) =>
            {
                (Vec::new(), false)
            }
            (before, EditSide::Here(_)) if edit["after"].is_null() => cannot(before.why_not()),
            (before, EditSide::Here(after)) => {
                let why = escape_line(before.why_not());
                let text = format!("what it replaces cannot be shown: {why}; afterwards there is:");
                let mut lines = hanging(&text, Style::Warn, width);
                let diff = show_diff(b"", after, LineNumbers::Shown, text_width(width));
                lines.extend(indent_lines(diff.lines));
                (lines, diff.is_whole)
            }
            (_, after) => cannot(after.why_not()),
        };
    ShownEdit { head: hanging(&edit_text(edit), Style::Bold, width), change, is_whole }
}

/// A description of what an edit does.
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

/// Whether a call's edit is the change that its input says, of the same file, and its diff shows that to the last line: then the
/// input need not be shown beside it.
pub(super) fn is_input_in_edit(
    call: &Object,
    fields: &Object,
    width: usize,
    references: &References,
) -> bool {
    let mut edits = edits_of(call);
    let (Some(edit), None) = (edits.next(), edits.next()) else { return false };
    let path = fields.get("path").and_then(Value::as_str).unwrap_or("");
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_named = |side: &str| {
        let uri = edit[side]["uri"].as_str().unwrap_or("");
        let before = uri.strip_suffix(path).filter(|_| !path.is_empty());
        before.is_some_and(|before| before.ends_with('/') || path.starts_with('/'))
    };
    let is_said = match (
        InputChange::parse(call, fields),
        EditSide::of(edit, "before", references),
        EditSide::of(edit, "after", references),
    ) {
        (Some(change), EditSide::Here(before), EditSide::Here(after)) => {
            change.makes(before, after)
        }
        (Some(_) | None, _, _) => false,
    };
    is_said
        && is_named("after")
        && (edit["before"].is_null() || is_named("before"))
        && show_edit(call, edit, width, references).is_whole
}

fn file_name(uri: &str) -> String {
    escape_line(uri.strip_prefix("file://").unwrap_or(uri))
}
