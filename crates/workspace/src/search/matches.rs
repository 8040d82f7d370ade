//! The matches of a search, within its limits.

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::{SearchOptions, SearchOutput};

/// Characters reported of one line.
const LINE_CHARS_MAX: usize = 300;

/// The matches so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchMatches {
    /// Each file's path on a line of its own; below it, if lines are requested, its lines as `number:text`, those of the
    /// context as `number-text`; behind it, if counts are requested, how many of its lines match.
    pub text: String,
    pub lines: usize,
    pub files: usize,
    /// Files that are too large to be searched.
    pub skipped_files: usize,
    /// Files and directories that the caller wanted to be left out.
    pub left_out: usize,
    /// The limits were reached: there may be more.
    pub is_cut: bool,
}

impl SearchMatches {
    pub(super) fn add(&mut self, path: &str, in_file: FileMatches, options: &SearchOptions) {
        if in_file.is_binary || in_file.lines == 0 {
            return;
        }
        // One path must not be able to look like two.
        let path = path.replace(char::is_control, "\u{fffd}");
        self.text.push_str(&match options.output {
            SearchOutput::Files => format!("{path}\n"),
            SearchOutput::Counts => format!("{path}: {}\n", in_file.lines),
            SearchOutput::Lines => {
                let gap = if self.files == 0 { "" } else { "\n" };
                format!("{gap}{path}\n{}", in_file.text)
            }
        });
        self.files += 1;
        self.lines += in_file.lines;
        self.is_cut |= in_file.is_cut
            || self.text.len() > options.text_bytes_max
            || options.output != SearchOutput::Lines && self.files == options.files_max;
    }
}

/// The matches in one file.
#[derive(Debug)]
pub(super) struct FileMatches {
    output: SearchOutput,
    text: String,
    lines: usize,
    lines_max: usize,
    bytes_max: usize,
    is_binary: bool,
    is_cut: bool,
}

impl FileMatches {
    /// With the space that the files before it left.
    pub(super) fn new(before: &SearchMatches, options: &SearchOptions) -> Self {
        Self {
            output: options.output,
            text: String::new(),
            lines: 0,
            lines_max: options.lines_max.saturating_sub(before.lines),
            bytes_max: options.text_bytes_max.saturating_sub(before.text.len()),
            is_binary: false,
            is_cut: false,
        }
    }

    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or(0);
        self.text.push_str(&format!("{number}{mark}"));
        match line.char_indices().nth(LINE_CHARS_MAX) {
            None => self.text.push_str(line),
            Some((at, _)) => {
                self.text.push_str(&line[..at]);
                self.text.push('…');
            }
        }
        self.text.push('\n');
    }
}

impl Sink for &mut FileMatches {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, line_match: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        match self.output {
            SearchOutput::Files => {
                self.lines = 1;
                return Ok(false);
            }
            SearchOutput::Counts => {
                self.lines += 1;
                return Ok(true);
            }
            SearchOutput::Lines => {}
        }
        if self.lines == self.lines_max || self.text.len() > self.bytes_max {
            self.is_cut = true;
            return Ok(false);
        }
        self.lines += 1;
        self.push(line_match.line_number(), ':', line_match.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Self::Error> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, Self::Error> {
        self.is_binary = true;
        Ok(false)
    }
}
