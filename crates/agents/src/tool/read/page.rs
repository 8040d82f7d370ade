//! The lines of a text file that one call returns: as many as fit, and a note where there are more.

use std::ops::ControlFlow;

use workspace::{Cancellation, TextLine, Workspace, WorkspacePath};

use super::super::format::{count, group_digits};
use super::super::{TEXT_BYTES_MAX, ToolError, ToolOutcome};
use super::ReadRange;

/// Lines of one call.
pub(super) const LINES_MAX: usize = 2_000;

/// Reads a page of a text file.
pub(super) fn read(
    path: &WorkspacePath,
    range: ReadRange,
    workspace: &Workspace,
    cancellation: &Cancellation,
) -> Result<ToolOutcome, ToolError> {
    let display_path = workspace.display_path(path);
    let mut page = FilePage::new(range);
    let first = page.first;
    let read = workspace.read_lines(path, first, cancellation, &mut |line| page.add(line))?;
    if page.lines == 0 && first > 1 && read.skipped + 1 < first {
        let lines = count(read.skipped, "line", "lines");
        return Err(ToolError(format!("{display_path} has only {lines}")));
    }
    if let Some(receipt) = read.receipt {
        workspace.mark_as_read(&receipt);
    }
    let lines = count(page.lines, "line", "lines");
    Ok(ToolOutcome {
        summary: format!("Read {lines} of {display_path}"),
        text: page.into_text(&display_path),
        success: true,
        ..ToolOutcome::default()
    })
}

/// The part of a file that one call returns.
#[derive(Debug, Default)]
struct FilePage {
    text: String,
    first: usize,
    lines: usize,
    lines_max: usize,
    has_more: bool,
    is_lossy: bool,
    has_crlf: bool,
}

impl FilePage {
    fn new(range: ReadRange) -> Self {
        Self {
            first: range.first(),
            lines_max: range.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX),
            ..Self::default()
        }
    }

    /// Adds a line, or breaks if it does not fit.
    fn add(&mut self, line: &TextLine) -> ControlFlow<()> {
        if self.lines == self.lines_max || !self.push(line) {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Whether it fitted.
    fn push(&mut self, line: &TextLine) -> bool {
        let mut bytes = &line.bytes[..];
        if let Some(without) = bytes.strip_suffix(b"\r") {
            self.has_crlf = true;
            bytes = without;
        }
        let number = self.first + self.lines;
        if number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut numbered = format!("{number:>6}\t{text}");
        if line.cut_bytes > 0 {
            let bytes = group_digits(line.cut_bytes);
            numbered.push_str(&format!(" [{bytes} more bytes in this line]"));
        }
        if self.lines > 0 && self.text.len() + numbered.len() >= TEXT_BYTES_MAX {
            return false;
        }
        self.is_lossy |= matches!(text, std::borrow::Cow::Owned(_)) && line.cut_bytes == 0;
        self.text.push_str(&numbered);
        self.text.push('\n');
        self.lines += 1;
        true
    }

    fn into_text(self, display_path: &str) -> String {
        let mut text = self.text;
        if self.lines == 0 {
            text.push_str(&match self.first {
                1 => format!("[{display_path} is empty]\n"),
                first => format!("[{display_path} ends before line {first}]\n"),
            });
        }
        if self.has_more {
            let next = self.first + self.lines;
            text.push_str(&format!("[more lines follow; go on with offset {next}]\n"));
        }
        if self.is_lossy {
            text.push_str("[some bytes are not UTF-8 and are shown as \u{fffd}]\n");
        }
        if self.has_crlf {
            text.push_str("[lines end in CRLF]\n");
        }
        text
    }
}
