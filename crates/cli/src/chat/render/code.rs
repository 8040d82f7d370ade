//! Lines of code in colours.
//!
//! Promises: a line is the code's line, character by character, whatever its length; hidden characters are written out. A line of a
//! block that is still coming in is coloured by what stands right before it, so that its cost does not grow with the block.
//! Must not know: where code comes from.

use std::ops::Range;
use std::time::Duration;

use markup::highlight::{self, CodeClass, CodeRun, Language, NoColours};
use rustix::time::{ClockId, clock_gettime};

use super::COLOR_TIME;
use crate::chat::line::{Color, Line, Style, TextStyle};

/// How much code is coloured at once.
const PIECE_BYTES_MAX: usize = 32 << 10;
/// How much of the code before a line is looked at to know what the line means.
const CONTEXT_BYTES: usize = 4 << 10;

/// A whole block.
pub(super) fn code_lines(language: &Option<String>, text: &str) -> Vec<Line> {
    let lines: Vec<&str> = text.split('\n').collect();
    CodeLines::new(language.as_deref().and_then(Language::find)).push(&lines)
}

/// The code of a block, as far as it has come in.
#[derive(Debug)]
pub(super) struct CodeLines {
    /// None if it has no grammar, or if that took too long.
    language: Option<Language>,
    /// The lines before the next one, each with its newline.
    context: String,
}

impl CodeLines {
    pub(super) fn new(language: Option<Language>) -> Self {
        Self { language, context: String::new() }
    }

    /// The next lines, in colours.
    pub(super) fn push(&mut self, lines: &[&str]) -> Vec<Line> {
        let mut colored = Vec::with_capacity(lines.len());
        let mut rest = lines;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|line| {
                bytes += line.len() + 1;
                bytes <= PIECE_BYTES_MAX
            });
            let (piece, later) = rest.split_at(fitting.count().max(1));
            rest = later;
            match self.color(piece) {
                Ok(lines) => colored.extend(lines),
                Err(_) => {
                    // It would be no faster the next time.
                    self.language = None;
                    colored.extend(piece.iter().map(|line| plain(line)));
                }
            }
            self.remember(piece);
        }
        colored
    }

    /// A line that is not complete.
    pub(super) fn open_line(&self, line: &str) -> Line {
        let colored = self.color(&[line]).ok().and_then(|lines| lines.into_iter().next());
        colored.unwrap_or_else(|| plain(line))
    }

    fn color(&self, lines: &[&str]) -> Result<Vec<Line>, NoColours> {
        let Some(language) = self.language else {
            return Ok(lines.iter().map(|line| plain(line)).collect());
        };
        let code = format!("{}{}", self.context, lines.join("\n"));
        let runs = color_runs(&code, language)?;
        let mut colored = Vec::with_capacity(lines.len());
        let mut start = self.context.len();
        for line in lines {
            let end = start + line.len();
            colored.push(color_line(&code, &runs, start..end));
            start = end + 1;
        }
        Ok(colored)
    }

    fn remember(&mut self, lines: &[&str]) {
        for line in lines {
            self.context.push_str(line);
            self.context.push('\n');
        }
        if self.language.is_none() {
            self.context.clear();
        } else if self.context.len() > 2 * CONTEXT_BYTES {
            let from = find_context(&self.context);
            self.context.drain(..from);
        }
    }
}

/// Where the code that is kept begins: at the left edge below a blank line, where in most languages something new begins; else at
/// any line.
fn find_context(code: &str) -> usize {
    let from = code.ceil_char_boundary(code.len().saturating_sub(CONTEXT_BYTES));
    let tail = code.get(from..).unwrap_or("");
    let starts = tail.match_indices("\n\n").map(|(at, _)| at + 2);
    let is_new = |at: &usize| {
        let first = tail.get(*at..).and_then(|rest| rest.chars().next());
        first.is_some_and(|c| c.is_alphanumeric() || matches!(c, '#' | '@' | '/' | '_'))
    };
    let line = tail.find('\n').map_or(tail.len(), |at| at + 1);
    from + starts.into_iter().find(is_new).unwrap_or(line)
}

/// The runs of a code, unless that takes too long.
pub(super) fn color_runs(code: &str, language: Language) -> Result<Vec<CodeRun>, NoColours> {
    // Counted from the first question on: loading a grammar happens once and is no fault of the code.
    let mut until = None;
    let mut is_cancelled = || {
        let now = cpu_time();
        now > *until.get_or_insert(now + COLOR_TIME)
    };
    highlight::highlight(code, language, &mut is_cancelled)
}

/// What this thread has worked so far; on a busy machine that is less than the time that passed.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(used.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), nanos)
}

/// A range of a code in the colours of its runs.
pub(super) fn color_line(code: &str, runs: &[CodeRun], range: Range<usize>) -> Line {
    let mut line = Line::default();
    let mut at = range.start;
    let first = runs.partition_point(|run| run.start + run.length <= range.start);
    for run in runs.iter().skip(first) {
        if run.start >= range.end {
            break;
        }
        let start = run.start.max(at);
        let end = (run.start + run.length).min(range.end);
        line = line.then_code(Style::Plain, code.get(at..start).unwrap_or(""));
        line = line.then_code(style_of(run.class), code.get(start..end).unwrap_or(""));
        at = end;
    }
    line.then_code(Style::Plain, code.get(at..range.end).unwrap_or(""))
}

fn plain(line: &str) -> Line {
    Line::default().then_code(Style::Plain, line)
}

fn style_of(class: CodeClass) -> Style {
    let color = match class {
        CodeClass::Comment => return Style::Dim,
        CodeClass::Property => return Style::Plain,
        CodeClass::Keyword => Color::Magenta,
        CodeClass::String => Color::Green,
        CodeClass::Number | CodeClass::Constant | CodeClass::Attribute => Color::Cyan,
        CodeClass::Function => Color::Blue,
        CodeClass::Type => Color::Yellow,
        CodeClass::Tag => Color::Red,
    };
    Style::Text(TextStyle::of(color))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::line::Colors;

    fn encoded(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.encode(Colors::On)).collect()
    }

    #[test]
    fn code_has_colours_and_stays_what_it_is() {
        let code = "fn main() {\n\tlet a = \"\u{1b}[2J\"; // x\n}";
        let lines = code_lines(&Some("rust".to_owned()), code);
        let colored = encoded(&lines);
        assert!(colored[0].starts_with("\u{1b}[35mfn\u{1b}[0m "), "{colored:?}");
        assert!(colored[1].starts_with('\t'), "{colored:?}");
        assert!(colored[1].contains("\u{1b}[2m// x\u{1b}[0m"), "{colored:?}");
        let text: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(text.join("\n"), code.replace('\u{1b}', "\\x1b"));
        let unknown = code_lines(&Some("klingon".to_owned()), "a\n\nb");
        assert_eq!(encoded(&unknown), ["a", "", "b"]);
    }

    #[test]
    fn a_line_is_coloured_by_what_stands_before_it() {
        let mut stream = CodeLines::new(Language::find("c"));
        stream.push(&["/* a comment"]);
        let end = "int a; */ int b;";
        let colored = "\u{1b}[2mint a; */\u{1b}[0m \u{1b}[33mint\u{1b}[0m b;";
        assert_eq!(stream.open_line(end).encode(Colors::On), colored);
        assert_eq!(encoded(&stream.push(&[end])), [colored]);
    }

    #[test]
    fn what_is_kept_of_a_long_block_is_bounded() {
        let mut stream = CodeLines::new(Language::find("rust"));
        for number in 0..40 {
            let body = "    g();\n".repeat(40);
            let function = format!("fn f{number}() {{\n{body}}}\n");
            let lines: Vec<&str> = function.split('\n').collect();
            stream.push(&lines);
            assert!(stream.context.len() <= 2 * CONTEXT_BYTES);
        }
        assert!(stream.context.starts_with("fn f"), "{}", stream.context);
        let line = stream.push(&["fn last() {}"]);
        assert!(encoded(&line)[0].starts_with("\u{1b}[35mfn"), "{line:?}");
    }
}
