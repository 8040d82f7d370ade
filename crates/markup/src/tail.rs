//! The open end of a Markdown text, with what is open closed.
//!
//! Promises: only marks are added or left out, at the end of the last paragraph, heading, item or cell. It follows the
//! rules of CommonMark where they matter for a text that is being written; what it adds is parsed like any other text.
//! Must not know: the tree.

use pulldown_cmark::{Event, Parser, Tag};

use crate::markdown::OPTIONS;

/// Characters that open or underline a block; a line of these alone says nothing until more of it has come.
const BLOCK_MARKS: &str = " \t-=*_`~#+>|:";

/// The beginnings of a box in a task list.
const BOXES: &[&str] = &["[", "[ ", "[ ]", "[x", "[x]", "[X", "[X]"];

/// Spans that are open at a time; people nest two or three. What is opened beyond this is not closed.
const OPENERS_MAX: usize = 64;

/// The longest target that is looked through for its end.
const TARGET_BYTES_MAX: usize = 1_024;

/// Adds the marks that close what is open at the end of a text, and leaves out marks that are not complete.
pub(crate) fn close_open_spans(text: &str) -> String {
    let text = leave_out_begun_line(text);
    match close_leaf(text, find_leaf(text)) {
        Some((start, closed)) => format!("{}{closed}", text.get(..start).unwrap_or("")),
        None => text.to_owned(),
    }
}

/// Where the last run of text begins, and what it reads with its open spans closed; none if it is not open. `leaf` is where it begins by
/// the parser, and the text is without a line that is only begun.
pub(crate) fn close_leaf(text: &str, leaf: Option<usize>) -> Option<(usize, String)> {
    let ended = text.trim_end();
    let blanks = text.get(ended.len()..).unwrap_or("");
    let has_blank_line = blanks.matches('\n').count() > 1;
    let start = leaf.filter(|start| !has_blank_line && *start <= ended.len())?;
    let leaf = ended.get(start..)?;
    Some((start, SpanScan::new(leaf).close()))
}

/// A text without its last line, if that is the beginning of some block, and not yet of which.
pub(crate) fn leave_out_begun_line(text: &str) -> &str {
    let start = text.rfind('\n').map_or(0, |end| end + 1);
    let (before, line) = text.split_at(start);
    if is_begun(line) { before } else { text }
}

/// Whether a line is the beginning of some block, and not yet of which.
fn is_begun(line: &str) -> bool {
    let word = line.trim_start_matches(|c| BLOCK_MARKS.contains(c));
    let number = word.trim_end().trim_end_matches(['.', ')']);
    let has_mark = word.len() < line.len();
    word.is_empty()
        || (has_mark && BOXES.contains(&word.trim_end()))
        || (number.len() <= 9 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Where the last run of text begins that may hold spans; none in code.
fn find_leaf(text: &str) -> Option<usize> {
    let mut leaf = None;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell) => {
                leaf = Some(range.start)
            }
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) | Event::Rule => leaf = None,
            _ => {}
        }
    }
    leaf
}

/// A run of `*`, `_` or `~` that was opened.
struct Opener {
    mark: char,
    length: usize,
}

struct SpanScan<'a> {
    text: &'a str,
    openers: Vec<Opener>,
    /// Where `[` stand that are open.
    brackets: Vec<usize>,
    /// Backticks that are open at the end, and where the code behind them begins.
    code: usize,
    code_start: usize,
    /// Where the text is cut, and a bracket before that is left out.
    end: usize,
    left_out: Option<usize>,
}

impl<'a> SpanScan<'a> {
    fn new(text: &'a str) -> Self {
        let mut scan = Self {
            text,
            openers: Vec::new(),
            brackets: Vec::new(),
            code: 0,
            code_start: 0,
            end: text.len(),
            left_out: None,
        };
        let mut at = 0;
        while at < scan.end {
            at = scan.step(at);
        }
        scan
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or("")
    }

    /// Reads what stands at an offset and returns the offset behind it.
    fn step(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        let Some(c) = rest.chars().next() else { return self.end };
        match c {
            '\\' => at + 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
            '`' => self.read_code(at),
            '*' | '_' | '~' => self.read_run(at, c),
            '<' => at + find_autolink_end(rest).unwrap_or(1),
            '[' => {
                self.brackets.push(at);
                at + 1
            }
            ']' => self.read_bracket_end(at),
            c => at + c.len_utf8(),
        }
    }

    fn read_code(&mut self, at: usize) -> usize {
        let rest = self.rest(at);
        let length = count_leading(rest, '`');
        let mut from = length;
        while let Some(offset) = rest.get(from..).and_then(|text| text.find('`')) {
            let run = from + offset;
            let found = count_leading(rest.get(run..).unwrap_or(""), '`');
            if found == length {
                return at + run + found;
            }
            from = run + found;
        }
        let content = rest.trim_end_matches('`');
        if content.is_empty() {
            self.end = at;
        } else {
            // Backticks at the end are the first of those that will close it.
            self.end = at + content.len();
            self.code = length;
            self.code_start = at + length;
        }
        self.end
    }

    fn read_run(&mut self, at: usize, mark: char) -> usize {
        let rest = self.rest(at);
        let length = count_leading(rest, mark);
        let behind = at + length;
        let before = self.text.get(..at).and_then(|text| text.chars().next_back());
        let after = self.rest(behind).chars().next();
        let Some(after) = after else {
            self.end_with_run(at, mark, length);
            return behind;
        };
        let (opens, closes) = find_flanks(mark, before, after);
        let mut left = length;
        if closes {
            left = self.close_run(mark, left);
        }
        let has_room = self.openers.len() < OPENERS_MAX;
        if opens && has_room && left > 0 && (mark != '~' || left <= 2) {
            self.openers.push(Opener { mark, length: left });
        }
        behind
    }

    /// A run at the very end closes what it can close whole; else more of it may come, and it is not shown.
    fn end_with_run(&mut self, at: usize, mark: char, length: usize) {
        let opener = self.openers.iter().rev().find(|opener| opener.mark == mark);
        match opener {
            Some(opener) if opener.length <= length => {
                self.close_run(mark, length);
            }
            _ => self.end = at,
        }
    }

    /// Closes openers of a mark from the last on; returns how much of the run is left.
    fn close_run(&mut self, mark: char, mut length: usize) -> usize {
        while length > 0 {
            let found = self.openers.iter().rposition(|opener| opener.mark == mark);
            let Some(index) = found else { break };
            // What was opened within and not closed is no span.
            self.openers.truncate(index + 1);
            let Some(opener) = self.openers.last_mut() else { break };
            let closed = opener.length.min(length);
            opener.length -= closed;
            length -= closed;
            if opener.length == 0 {
                self.openers.pop();
            }
        }
        length
    }

    /// `](` begins a target; one that has not ended is not shown, and its text stands without brackets.
    fn read_bracket_end(&mut self, at: usize) -> usize {
        let Some(open) = self.brackets.pop() else { return at + 1 };
        let rest = self.rest(at + 1);
        if !rest.starts_with('(') {
            return at + 1;
        }
        match find_target_end(rest) {
            TargetEnd::At(length) => at + 1 + length,
            TargetEnd::Never => at + 1,
            TargetEnd::NotYet => {
                self.left_out = Some(open);
                self.end = at;
                self.end
            }
        }
    }

    fn close(self) -> String {
        let mut closed = String::with_capacity(self.end + 8);
        let shown = self.text.get(..self.end).unwrap_or(self.text);
        match self.left_out.and_then(|at| shown.split_at_checked(at)) {
            Some((before, rest)) => {
                closed.push_str(before.strip_suffix('!').unwrap_or(before));
                closed.push_str(rest.strip_prefix('[').unwrap_or(rest));
            }
            None => closed.push_str(shown),
        }
        closed.truncate(closed.trim_end().len());
        if self.code > 0 {
            // A blank at both ends of code is no part of it.
            let content = closed.get(self.code_start..).unwrap_or("");
            if content.starts_with(' ') {
                closed.push(' ');
            }
            closed.extend(std::iter::repeat_n('`', self.code));
        }
        for opener in self.openers.iter().rev() {
            closed.extend(std::iter::repeat_n(opener.mark, opener.length));
        }
        closed
    }
}

fn count_leading(text: &str, mark: char) -> usize {
    text.bytes().take_while(|byte| char::from(*byte) == mark).count()
}

/// Whether a run may open and may close a span, by what stands around it.
fn find_flanks(mark: char, before: Option<char>, after: char) -> (bool, bool) {
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let is_punctuation =
        |c: Option<char>| c.is_some_and(|c| !c.is_alphanumeric() && !c.is_whitespace());
    let next = Some(after);
    let left =
        !is_blank(next) && (!is_punctuation(next) || is_blank(before) || is_punctuation(before));
    let right =
        !is_blank(before) && (!is_punctuation(before) || is_blank(next) || is_punctuation(next));
    if mark == '_' {
        return (
            left && (!right || is_punctuation(before)),
            right && (!left || is_punctuation(next)),
        );
    }
    (left, right)
}

/// The length of `<https://example.com>`, in which marks mean nothing.
fn find_autolink_end(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().take(TARGET_BYTES_MAX);
    let end = bytes.position(|byte| matches!(byte, b'>' | b' ' | b'\n'))?;
    text.get(end..)?.starts_with('>').then_some(end + 1)
}

/// Where a `(target)` ends.
enum TargetEnd {
    At(usize),
    NotYet,
    /// It is on several lines or too long: it is none.
    Never,
}

/// The length of `(target)`, with balanced parentheses inside.
fn find_target_end(text: &str) -> TargetEnd {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().take(TARGET_BYTES_MAX) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'\n' => return TargetEnd::Never,
            b'(' => depth += 1,
            b')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return TargetEnd::At(at + 1);
                }
            }
            _ => {}
        }
    }
    if text.len() > TARGET_BYTES_MAX {
        return TargetEnd::Never;
    }
    TargetEnd::NotYet
}
