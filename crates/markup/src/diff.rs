//! What changed between two contents of a file, as rows that are drawn one below the other.
//!
//! Promises: counts are exact; lines keep their numbers; a changed line end is seen; hidden characters are written out, so that a row
//! shows all there is. What is not text is "binary". Rows and input are bounded.
//! Must not know: files, how a row is coloured.

use std::ops::Range;

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff as LineDiff, InternedInput};
use serde::ser::{Serialize, SerializeSeq, SerializeStruct, Serializer};

use crate::MarkupTooLarge;
use crate::highlight::Language;
use crate::visible::{write_out_bytes, write_out_name};

/// The largest content that is compared, each side for itself.
pub const BYTES_MAX: usize = 2 << 20;

/// The most rows of one diff; what is behind them is one row that counts it.
pub const ROWS_MAX: usize = 20_000;

/// How many pairs of lines are compared at most, which takes some tenths of a second.
const COMPARISONS_MAX: usize = 20_000 * 20_000;

/// Unchanged lines that are shown around a change if nothing else is asked for.
pub const CONTEXT: u32 = 3;

/// A zero byte within these means that a content is not text.
const PROBE_BYTES: usize = 8_192;

/// The difference of two contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// With hidden characters written out.
    pub path: String,
    pub language: Option<Language>,
    pub added: u32,
    pub removed: u32,
    pub body: DiffBody,
}

/// What is shown of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffBody {
    Rows(Vec<DiffRow>),
    Binary,
}

/// A row. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffRow {
    /// Unchanged, and shown because of a change nearby.
    Context {
        old: u32,
        new: u32,
        line: DiffLine,
    },
    Removed {
        old: u32,
        line: DiffLine,
    },
    Added {
        new: u32,
        line: DiffLine,
    },
    /// Unchanged lines that are not shown, and the numbers of the first.
    Folded {
        old: u32,
        new: u32,
        lines: u32,
    },
    /// Rows beyond [`ROWS_MAX`]: how many lines of the changes are not shown.
    LeftOut {
        lines: u32,
    },
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub text: String,
    pub end: LineEnd,
}

/// How a line ends. Two lines that look the same may differ in this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    Newline,
    CrLf,
    /// The last line of a file without a newline.
    None,
}

/// Compares two contents; a file that is not there is empty. `context` unchanged lines stay around each change.
pub fn compare(
    before: &[u8],
    after: &[u8],
    path: &str,
    context: u32,
) -> Result<Diff, MarkupTooLarge> {
    MarkupTooLarge::check(before.len(), BYTES_MAX)?;
    MarkupTooLarge::check(after.len(), BYTES_MAX)?;
    let mut diff = Diff {
        path: write_out_name(path).into_owned(),
        language: Language::of_path(path),
        added: 0,
        removed: 0,
        body: DiffBody::Binary,
    };
    if is_binary(before) || is_binary(after) {
        return Ok(diff);
    }
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let hunks = find_hunks(&input);
    for (before, after) in &hunks {
        diff.removed += before.end - before.start;
        diff.added += after.end - after.start;
    }
    let mut rows = DiffRows { input: &input, context, rows: Vec::new(), old: 0, new: 0 };
    for (before, after) in hunks {
        rows.add_unchanged(before.start);
        rows.add_change(before, after);
    }
    rows.add_unchanged_end();
    diff.body = DiffBody::Rows(rows.bound());
    Ok(diff)
}

/// Which lines of both sides differ. If the part that differs is so large that comparing it would take long, all of it does.
fn find_hunks(input: &InternedInput<&[u8]>) -> Vec<(Range<u32>, Range<u32>)> {
    let (before, after) = (&input.before, &input.after);
    let same = |(old, new): &(_, _)| old == new;
    let head = before.iter().zip(after).take_while(same).count();
    let shorter = before.len().min(after.len());
    let ends = before.iter().rev().zip(after.iter().rev());
    let tail = ends.take(shorter - head).take_while(same).count();
    let (old_end, new_end) = (before.len() - tail, after.len() - tail);
    if (old_end - head).saturating_mul(new_end - head) > COMPARISONS_MAX {
        let head = count(head);
        return vec![(head..count(old_end), head..count(new_end))];
    }
    let mut lines = LineDiff::compute(Algorithm::Histogram, input);
    lines.postprocess_lines(input);
    let hunks = lines.hunks().map(|hunk| (hunk.before, hunk.after));
    hunks.collect()
}

fn is_binary(content: &[u8]) -> bool {
    content.iter().take(PROBE_BYTES).any(|byte| *byte == 0)
}

struct DiffRows<'a> {
    input: &'a InternedInput<&'a [u8]>,
    context: u32,
    rows: Vec<DiffRow>,
    /// The lines up to here have their rows, counted from 0.
    old: u32,
    new: u32,
}

impl DiffRows<'_> {
    /// The unchanged lines up to the next change.
    fn add_unchanged(&mut self, end: u32) {
        let head = if self.rows.is_empty() { 0 } else { self.context };
        self.add_unchanged_with(end - self.old, head, self.context);
    }

    /// The unchanged lines behind the last change. If there was no change there are no rows.
    fn add_unchanged_end(&mut self) {
        let rest = count(self.input.before.len()) - self.old;
        if !self.rows.is_empty() {
            self.add_unchanged_with(rest, self.context, 0);
        }
    }

    /// Shows `head` lines, folds, and shows `tail` lines. A single line is shown: a fold would take as much room.
    fn add_unchanged_with(&mut self, lines: u32, head: u32, tail: u32) {
        let shown = head.saturating_add(tail);
        if lines <= shown.saturating_add(1) {
            return self.add_context(lines);
        }
        let folded = lines - shown;
        self.add_context(head);
        self.rows.push(DiffRow::Folded { old: self.old + 1, new: self.new + 1, lines: folded });
        self.old += folded;
        self.new += folded;
        self.add_context(tail);
    }

    fn add_context(&mut self, lines: u32) {
        for _ in 0..lines {
            let line = read_line(self.input, &self.input.after, self.new);
            self.old += 1;
            self.new += 1;
            self.rows.push(DiffRow::Context { old: self.old, new: self.new, line });
        }
    }

    fn add_change(&mut self, before: Range<u32>, after: Range<u32>) {
        for index in before {
            self.old = index + 1;
            self.rows.push(DiffRow::Removed {
                old: self.old,
                line: read_line(self.input, &self.input.before, index),
            });
        }
        for index in after {
            self.new = index + 1;
            self.rows.push(DiffRow::Added {
                new: self.new,
                line: read_line(self.input, &self.input.after, index),
            });
        }
    }

    fn bound(mut self) -> Vec<DiffRow> {
        let left_out = self.rows.len().saturating_sub(ROWS_MAX);
        if left_out > 0 {
            self.rows.truncate(ROWS_MAX);
            let lines = count(left_out);
            self.rows.push(DiffRow::LeftOut { lines });
        }
        self.rows
    }
}

/// The input is bounded far below this.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn read_line(input: &InternedInput<&[u8]>, side: &[imara_diff::Token], index: u32) -> DiffLine {
    let token = usize::try_from(index).ok().and_then(|index| side.get(index));
    // Indices come from the comparison of these very lines.
    let bytes = token.map_or(&b""[..], |token| input.interner[*token]);
    let (text, end) = match bytes.strip_suffix(b"\n") {
        None => (bytes, LineEnd::None),
        Some(line) => match line.strip_suffix(b"\r") {
            None => (line, LineEnd::Newline),
            Some(line) => (line, LineEnd::CrLf),
        },
    };
    DiffLine { text: write_out_bytes(text), end }
}

/// `{"path", "language", "added", "removed", "rows"}`, or `"binary": true` in the place of rows.
impl Serialize for Diff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Diff", 5)?;
        map.serialize_field("path", &self.path)?;
        map.serialize_field("language", &self.language.map(Language::name))?;
        map.serialize_field("added", &self.added)?;
        map.serialize_field("removed", &self.removed)?;
        match &self.body {
            DiffBody::Rows(rows) => map.serialize_field("rows", rows)?,
            DiffBody::Binary => map.serialize_field("binary", &true)?,
        }
        map.end()
    }
}

/// `[" ", 1, 1, "text"]`, `["-", 1, null, "text"]`, `["+", null, 1, "text"]`, `["fold", 4, 4, 20]`, `["left out", 20]`. A line that ends
/// in CR LF, or not at all, has `"crlf"` or `"none"` behind it.
impl Serialize for DiffRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mark, old, new, line) = match self {
            Self::Context { old, new, line } => (" ", Some(old), Some(new), line),
            Self::Removed { old, line } => ("-", Some(old), None, line),
            Self::Added { new, line } => ("+", None, Some(new), line),
            Self::Folded { old, new, lines } => {
                return ("fold", old, new, lines).serialize(serializer);
            }
            Self::LeftOut { lines } => return ("left out", lines).serialize(serializer),
        };
        let mut row = serializer.serialize_seq(None)?;
        row.serialize_element(mark)?;
        row.serialize_element(&old)?;
        row.serialize_element(&new)?;
        row.serialize_element(&line.text)?;
        match line.end {
            LineEnd::Newline => {}
            LineEnd::CrLf => row.serialize_element("crlf")?,
            LineEnd::None => row.serialize_element("none")?,
        }
        row.end()
    }
}
