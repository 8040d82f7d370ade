//! The matches of a search, in bounds.

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::super::format::format_count;

/// Matching lines shown by one call.
const LINES_MAX: usize = 200;

/// Files shown by one call when only files are asked for.
const FILES_MAX: usize = 500;

/// Text after which nothing more is taken: the last match and what is around it still fit.
const TEXT_BYTES_MAX: usize = super::super::TEXT_BYTES_MAX - 16 * 1_024;

/// Characters shown of one line.
const LINE_CHARS_MAX: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Lines,
    Files,
}

/// The matches so far.
#[derive(Debug)]
pub(super) struct SearchMatches {
    style: Style,
    text: String,
    lines: usize,
    files: usize,
    skipped: usize,
    is_cut: bool,
}

impl SearchMatches {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            text: String::new(),
            lines: 0,
            files: 0,
            skipped: 0,
            is_cut: false,
        }
    }

    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    pub(super) fn files(&self) -> usize {
        self.files
    }

    /// Nothing more will be taken.
    pub(super) fn is_full(&self) -> bool {
        self.is_cut
    }

    /// A file that cannot be searched.
    pub(super) fn skip_file(&mut self) {
        self.skipped += 1;
    }

    pub(super) fn add(&mut self, path: &str, file: FileMatches) {
        if file.is_binary || file.lines == 0 {
            return; // nothing to show
        }
        let path = path.replace(char::is_control, "\u{fffd}");
        match self.style {
            Style::Files => self.text.push_str(&format!("{path}\n")),
            Style::Lines => {
                let gap = if self.files == 0 { "" } else { "\n" };
                self.text.push_str(&format!("{gap}{path}\n{}", file.text));
            }
        }
        self.files += 1;
        self.lines += file.lines;
        self.is_cut |= file.is_cut
            || self.text.len() > TEXT_BYTES_MAX
            || self.style == Style::Files && self.files == FILES_MAX;
    }

    pub(super) fn into_text(self) -> String {
        let mut text = self.text;
        if self.files == 0 {
            text.push_str("[no match]\n");
        }
        if self.is_cut {
            text.push_str("[there may be more; narrow the search by pattern, path or globs]\n");
        }
        if self.skipped > 0 {
            let files = format_count(self.skipped, "file was", "files were");
            text.push_str(&format!("[{files} too large to be searched]\n"));
        }
        text
    }
}

/// The matches in one file.
#[derive(Debug)]
pub(super) struct FileMatches {
    style: Style,
    text: String,
    lines: usize,
    lines_max: usize,
    bytes_max: usize,
    is_binary: bool,
    is_cut: bool,
}

impl FileMatches {
    /// There is room for what the others left.
    pub(super) fn new(all: &SearchMatches) -> Self {
        Self {
            style: all.style,
            text: String::new(),
            lines: 0,
            lines_max: LINES_MAX - all.lines.min(LINES_MAX),
            bytes_max: TEXT_BYTES_MAX - all.text.len().min(TEXT_BYTES_MAX),
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

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        if self.style == Style::Files {
            self.lines = 1;
            return Ok(false);
        }
        if self.lines == self.lines_max || self.text.len() > self.bytes_max {
            self.is_cut = true;
            return Ok(false);
        }
        self.lines += 1;
        self.push(found.line_number(), ':', found.bytes());
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
