//! Colours of code: runs of a few classes over a text.
//!
//! Promises: runs are in order, do not overlap and lie on characters; a text without colours is as good as one with them, so every
//! failure is a reason to show it plain. A grammar is loaded when its language is first seen. The work asks all the time
//! whether it shall go on. Must not know: what a class looks like, how late it is.

mod language;
mod marks;

use serde::ser::{Serialize, Serializer};

use crate::MarkupTooLarge;
use crate::json_text::write_number;
pub use language::Language;

/// The largest code that is coloured.
pub const BYTES_MAX: usize = 128 << 10;

/// How deep brackets may be nested and how far a line may be indented. Nobody writes such code; grammars get slow on it, and some
/// of their scanners, which are C, count on it that nobody does.
pub const NESTING_MAX: usize = 250;

/// What a piece of code is, as far as colours go. What has no class (names, operators, brackets) has the colour of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeClass {
    Attribute,
    Comment,
    Constant,
    Function,
    Keyword,
    Number,
    Property,
    String,
    Tag,
    Type,
}

impl CodeClass {
    pub fn name(self) -> &'static str {
        match self {
            Self::Attribute => "attribute",
            Self::Comment => "comment",
            Self::Constant => "constant",
            Self::Function => "function",
            Self::Keyword => "keyword",
            Self::Number => "number",
            Self::Property => "property",
            Self::String => "string",
            Self::Tag => "tag",
            Self::Type => "type",
        }
    }
}

/// A piece of a text with one class. Its JSON is `["keyword", 0, 2]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRun {
    pub class: CodeClass,
    pub start: usize,
    pub length: usize,
}

impl CodeRun {
    /// Writes runs as a JSON array.
    pub fn write_all(runs: &[Self], out: &mut Vec<u8>) {
        out.push(b'[');
        for (number, run) in runs.iter().enumerate() {
            out.extend_from_slice(if number > 0 { b",[\"" } else { b"[\"" });
            out.extend_from_slice(run.class.name().as_bytes());
            out.extend_from_slice(b"\",");
            write_number(out, run.start as u64);
            out.push(b',');
            write_number(out, run.length as u64);
            out.push(b']');
        }
        out.push(b']');
    }
}

impl Serialize for CodeRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.class.name(), self.start, self.length).serialize(serializer)
    }
}

/// Why a code has no colours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoColours {
    #[error(transparent)]
    TooLarge(#[from] MarkupTooLarge),
    #[error("it holds zero bytes")]
    NotText,
    #[error("it is nested or indented deeper than {NESTING_MAX}")]
    TooDeep,
    #[error("the work was cancelled")]
    Cancelled,
    #[error("the grammar of {0} does not work: {1}")]
    Grammar(&'static str, String),
}

/// The runs of a code, counted in bytes. `is_cancelled` is asked every hundred steps or so, many times in a
/// millisecond; in hostile code up to some tenths of a second may pass between. The caller has the clock.
pub fn highlight(
    code: &str,
    language: Language,
    is_cancelled: &mut dyn FnMut() -> bool,
) -> Result<Vec<CodeRun>, NoColours> {
    MarkupTooLarge::check(code.len(), BYTES_MAX)?;
    // The scanner of one grammar takes a zero byte for the end and stays there for minutes.
    if code.contains('\0') {
        return Err(NoColours::NotText);
    }
    if is_too_deep(code) {
        return Err(NoColours::TooDeep);
    }
    let marks = marks::find_marks(code, language, is_cancelled)?;
    Ok(marks::make_runs(marks))
}

/// Counts brackets without regard to what they mean: one in a string or a comment counts, too.
fn is_too_deep(code: &str) -> bool {
    let mut depth = 0_usize;
    // How far the line is indented, while nothing else has come in it.
    let mut indented = Some(0_usize);
    code.bytes().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        indented = match byte {
            b'\n' | b'\r' => Some(0),
            b' ' | b'\t' | 0x0c => indented.map(|columns| columns + 1),
            _ => None,
        };
        depth > NESTING_MAX || indented.is_some_and(|columns| columns > NESTING_MAX)
    })
}

/// The same runs counted in UTF-16 code units, as scripts in a page count.
pub fn count_in_utf16(code: &str, runs: &[CodeRun]) -> Vec<CodeRun> {
    let mut at = 0;
    let mut units = 0;
    let mut advance = |to: usize| {
        units += code.get(at..to).unwrap_or("").encode_utf16().count();
        at = to;
        units
    };
    let converted = runs.iter().map(|run| {
        let start = advance(run.start);
        let end = advance(run.start + run.length);
        CodeRun { class: run.class, start, length: end - start }
    });
    converted.collect()
}
