//! The change of a file that the input of a call says: what it looks like, and whether an edit is that change.
//!
//! Promises: an input with anything in it that is not understood is no change. An edit passes for one only if doing what the input
//! says makes exactly what is there afterwards.
//! Must not know: where contents come from.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::Value;
use wire::Object;

use super::{INDENT, hanging, indent_lines, text_width};
use crate::chat::line::{Line, Style};
use crate::chat::render::diff::{LineNumbers, ShownDiff, show_diff};
use crate::terminal::escape_line;

/// The names that the fields of a replacement go by.
const OLD_NAMES: [&str; 3] = ["old_text", "old", "old_string"];
const NEW_NAMES: [&str; 3] = ["new_text", "new", "new_string"];
const ALL_NAMES: [&str; 2] = ["all", "replace_all"];

/// Replacements that are tried: each of them looks through the whole content.
const TRIED_MAX: usize = 200;

/// A change of one file.
pub(super) struct InputChange<'a> {
    path: &'a str,
    kind: ChangeKind<'a>,
}

enum ChangeKind<'a> {
    /// The file is written as a whole.
    Write(&'a str),
    /// Each is made in what the ones before it made.
    Replace(Vec<InputReplacement<'a>>),
}

struct InputReplacement<'a> {
    old: &'a str,
    new: &'a str,
    /// Wherever it occurs; otherwise there is one place.
    all: bool,
}

impl<'a> InputChange<'a> {
    /// What the input of a call changes; `None` if it does anything else or more.
    pub(super) fn parse(call: &Object, fields: &'a Object) -> Option<Self> {
        let tool = call.get("toolName").and_then(Value::as_str)?;
        let path = fields.get("path")?.as_str()?;
        let is_known = |known: &[&str]| fields.keys().all(|key| known.contains(&key.as_str()));
        let kind = match tool {
            "write" if is_known(&["path", "content"]) => {
                ChangeKind::Write(fields.get("content")?.as_str()?)
            }
            "edit" if is_known(&["path", "edits"]) => {
                let edits = fields.get("edits")?.as_array()?.iter().map(|edit| {
                    let edit = edit.as_object()?;
                    InputReplacement::parse(edit, edit.len())
                });
                ChangeKind::Replace(edits.collect::<Option<_>>()?)
            }
            // A single replacement may stand beside the path.
            "edit" => {
                let others = fields.len().saturating_sub(1);
                ChangeKind::Replace(vec![InputReplacement::parse(fields, others)?])
            }
            _ => return None,
        };
        Some(Self { path, kind })
    }

    /// The diff that it would make; `None` if that would not show all of it.
    pub(super) fn diff(&self, width: usize) -> Option<Vec<Line>> {
        let diffs = match &self.kind {
            // Nothing is added by an empty content, but a file may lose all it has.
            ChangeKind::Write("") => return None,
            ChangeKind::Write(content) => vec![show(b"", content.as_bytes(), width)?],
            ChangeKind::Replace(replacements) => {
                let diffs = replacements.iter().map(|it| it.diff(width));
                diffs.collect::<Option<Vec<_>>>()?
            }
        };
        let path = format!("path: {}", escape_line(self.path));
        let mut lines = hanging(&path, Style::Dim, width);
        for (index, diff) in diffs.into_iter().enumerate() {
            if index > 0 {
                lines.push(Line::new(Style::Dim, format!("{:INDENT$}⋯", "")));
            }
            lines.extend(indent_lines(diff));
        }
        Some(lines)
    }

    /// Whether it makes one content of the other. How lines end does not count: tools adapt that to the file.
    pub(super) fn makes(&self, before: &[u8], after: &[u8]) -> bool {
        let after = without_returns(after);
        let replacements = match &self.kind {
            ChangeKind::Write(content) => return without_returns(content.as_bytes()) == after,
            ChangeKind::Replace(replacements) if replacements.len() > TRIED_MAX => return false,
            ChangeKind::Replace(replacements) => replacements,
        };
        let mut content = without_returns(before).into_owned();
        for replacement in replacements {
            match replacement.apply(&content) {
                Some(replaced) => content = replaced,
                None => return false,
            }
        }
        content == *after
    }
}

impl<'a> InputReplacement<'a> {
    /// A replacement that has `count` fields of an object.
    fn parse(edit: &'a Object, count: usize) -> Option<Self> {
        // A field under two names is not understood: all of it is shown then.
        let field = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| edit.get(*name));
            found.next().filter(|_| found.next().is_none())
        };
        let (old, new) = (field(&OLD_NAMES)?.as_str()?, field(&NEW_NAMES)?.as_str()?);
        let all = field(&ALL_NAMES);
        let is_known = count == 2 + usize::from(all.is_some());
        let all = all.map_or(Some(false), Value::as_bool)?;
        is_known.then_some(Self { old, new, all })
    }

    fn diff(&self, width: usize) -> Option<Vec<Line>> {
        let (old, new) = (self.old, self.new);
        let is_part = |text: &str| text.is_empty() || !text.ends_with('\n');
        let end = |text: &str| {
            if is_part(old) && is_part(new) && !text.is_empty() {
                // A part of a line has no end of its own.
                format!("{text}\n")
            } else {
                // Where one side ends a line and the other does not, that is a change.
                text.to_owned()
            }
        };
        let mut diff = show(end(old).as_bytes(), end(new).as_bytes(), width)?;
        if self.all {
            diff.insert(0, Line::new(Style::Warn, "wherever it occurs:"));
        }
        Some(diff)
    }

    /// The content with it made; `None` if that cannot be done, or it is not plain where, or too much would come of it.
    fn apply(&self, content: &[u8]) -> Option<Vec<u8>> {
        let (old, new) =
            (without_returns(self.old.as_bytes()), without_returns(self.new.as_bytes()));
        if old.is_empty() {
            return None;
        }
        let places: Vec<usize> = memmem::find_iter(content, &*old).collect();
        let first = *places.first()?;
        let again = content.get(first + 1..)?;
        if !self.all && memmem::find(again, &old).is_some() {
            return None;
        }
        let kept = content.len() - places.len() * old.len();
        let size = kept.saturating_add(places.len().saturating_mul(new.len()));
        if size > 2 * markup::diff::BYTES_MAX {
            return None;
        }
        let mut made = Vec::with_capacity(size);
        let mut rest = 0;
        for place in places {
            made.extend_from_slice(content.get(rest..place)?);
            made.extend_from_slice(&new);
            rest = place + old.len();
        }
        made.extend_from_slice(content.get(rest..)?);
        Some(made)
    }
}

/// A text with lines that end in LF.
fn without_returns(text: &[u8]) -> Cow<'_, [u8]> {
    if memmem::find(text, b"\r\n").is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte != b'\r' || bytes.peek() != Some(&&b'\n') {
            plain.push(*byte);
        }
    }
    Cow::Owned(plain)
}

/// A diff without line numbers, if it shows all that changes.
fn show(before: &[u8], after: &[u8], width: usize) -> Option<Vec<Line>> {
    let ShownDiff { lines, is_whole } =
        show_diff(before, after, LineNumbers::Unknown, text_width(width));
    is_whole.then_some(lines)
}
