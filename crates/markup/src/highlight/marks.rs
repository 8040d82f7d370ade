//! From a code's syntax tree to marks, and from marks, which may lie within each other, to runs.
//!
//! Promises: whoever asks to cancel is heard while parsing and while matching. Must not know: names of languages.

use std::cmp::Reverse;
use std::ops::{ControlFlow, Range};

use tree_sitter::{
    ParseOptions, Parser, QueryCursor, QueryCursorOptions, StreamingIterator as _, Tree,
};

use super::language::Meaning;
use super::{CodeClass, CodeRun, Language, NoColours};

/// Patterns that may be half matched at a time. A tree with tens of thousands of errors side by side needs more and takes
/// minutes; code does not.
const MATCHES_MAX: u32 = 256;

/// A node that a pattern matched.
pub(super) struct CodeMark {
    range: Range<usize>,
    class: Option<CodeClass>,
    node: usize,
    pattern: usize,
}

/// The marks of a code and of the codes of other languages in it.
pub(super) fn find_marks(
    code: &str,
    language: Language,
    is_cancelled: &mut dyn FnMut() -> bool,
) -> Result<Vec<CodeMark>, NoColours> {
    let mut marks = Vec::new();
    let inner = add_marks(code, 0, language, is_cancelled, &mut marks)?;
    for (range, language) in inner {
        let code = code.get(range.clone()).unwrap_or("");
        // What is inside of the inner one is not looked at; no language here has such.
        add_marks(code, range.start, language, is_cancelled, &mut marks)?;
    }
    Ok(marks)
}

/// Adds the marks of one code that begins at an offset, and returns the codes within it.
fn add_marks(
    code: &str,
    offset: usize,
    language: Language,
    is_cancelled: &mut dyn FnMut() -> bool,
    marks: &mut Vec<CodeMark>,
) -> Result<Vec<(Range<usize>, Language)>, NoColours> {
    let broken = |reason: String| NoColours::Grammar(language.name(), reason);
    let grammar = language.load().map_err(|why| broken(why.to_owned()))?;
    let mut parser = Parser::new();
    parser.set_language(&grammar.language).map_err(|error| broken(error.to_string()))?;
    let tree = parse(&mut parser, code, is_cancelled).ok_or(NoColours::Cancelled)?;
    let mut was_cancelled = false;
    let mut check = |_: &_| {
        was_cancelled |= is_cancelled();
        go_on_unless(was_cancelled)
    };
    let mut inner = Vec::new();
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MATCHES_MAX);
    let options = QueryCursorOptions::new().progress_callback(&mut check);
    let mut captures =
        cursor.captures_with_options(&grammar.query, tree.root_node(), code.as_bytes(), options);
    while let Some((found, index)) = captures.next() {
        let Some(capture) = found.captures().get(*index) else {
            // The index is one of this match's own captures.
            continue;
        };
        let within = capture.node.byte_range();
        let range = offset + within.start..offset + within.end;
        match grammar.meaning(capture.index) {
            Meaning::Class(class) => marks.push(CodeMark {
                range,
                class,
                node: capture.node.id(),
                pattern: found.pattern_index,
            }),
            Meaning::Inner(language) => inner.push((range, language)),
            Meaning::Nothing => {}
        }
    }
    drop(captures);
    if was_cancelled {
        return Err(NoColours::Cancelled);
    }
    Ok(inner)
}

/// Nothing comes back from a parser that was cancelled.
fn parse(parser: &mut Parser, code: &str, is_cancelled: &mut dyn FnMut() -> bool) -> Option<Tree> {
    let mut check = |_: &_| go_on_unless(is_cancelled());
    let options = ParseOptions::new().progress_callback(&mut check);
    let mut read = |at: usize, _| code.as_bytes().get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

fn go_on_unless(is_cancelled: bool) -> ControlFlow<()> {
    if is_cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The innermost mark counts; of those on the same node, that of the last pattern.
pub(super) fn make_runs(mut marks: Vec<CodeMark>) -> Vec<CodeRun> {
    marks.sort_by_key(|mark| (mark.range.start, Reverse(mark.range.end)));
    let mut runs = CodeRuns::default();
    let mut last: Option<CodeMark> = None;
    for mark in marks {
        let is_earlier =
            last.as_ref().is_some_and(|last| last.node == mark.node && last.pattern > mark.pattern);
        if is_earlier {
            continue;
        }
        if let Some(before) = last.replace(mark)
            && last.as_ref().is_some_and(|mark| mark.node != before.node)
        {
            runs.open(before);
        }
    }
    if let Some(mark) = last {
        runs.open(mark);
    }
    runs.close_until(usize::MAX);
    runs.runs
}

#[derive(Default)]
struct CodeRuns {
    runs: Vec<CodeRun>,
    /// The marks that are open, each within the one before.
    open: Vec<(usize, Option<CodeClass>)>,
    at: usize,
}

impl CodeRuns {
    fn open(&mut self, mark: CodeMark) {
        self.close_until(mark.range.start);
        let class = self.open.last().and_then(|(_, class)| *class);
        self.add(mark.range.start, class);
        self.open.push((mark.range.end, mark.class));
    }

    /// Ends the marks that end before an offset.
    fn close_until(&mut self, offset: usize) {
        while let Some((end, class)) = self.open.pop_if(|(end, _)| *end <= offset) {
            self.add(end, class);
        }
    }

    fn add(&mut self, end: usize, class: Option<CodeClass>) {
        let start = self.at;
        self.at = end.max(start);
        let length = self.at - start;
        let Some(class) = class.filter(|_| length > 0) else {
            // Text without a class needs no run.
            return;
        };
        match self.runs.last_mut() {
            Some(last) if last.class == class && last.start + last.length == start => {
                last.length += length;
            }
            _ => self.runs.push(CodeRun { class, start, length }),
        }
    }
}
