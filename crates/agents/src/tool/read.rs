//! `read`: lines of a text file with their numbers, as many as fit.

use std::ops::ControlFlow;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{Cancellation, TextLine, Workspace};

use super::format::{count, group_digits};
use super::input::{ToolInput, parse_and_run};
use super::{Nature, Plan, TEXT_BYTES_MAX, Tool, ToolError, ToolOutcome, input};

/// Lines of one call.
const LINES_MAX: usize = 2_000;

pub(super) struct ReadTool;

#[derive(Debug, Deserialize)]
struct ReadInput {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl ToolInput for ReadInput {
    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
}

#[async_trait]
impl Tool for ReadTool {
    fn name(&self) -> &'static str {
        "read"
    }

    fn display_name(&self) -> &'static str {
        "Read"
    }

    fn description(&self) -> &'static str {
        "Reads a text file: its lines with their numbers, at most 2,000 lines or 48 KiB at a time. If there is more, the \
         result ends with the offset to go on with."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Relative to the first working directory, or absolute inside any of them.",
                },
                "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 by default."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read; 2,000 by default."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn nature(&self) -> Nature {
        Nature::Reads
    }

    fn kind(&self) -> Option<&'static str> {
        Some("read")
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: ReadInput = input::parse(input)?;
        let path = workspace.display_path(&workspace.resolve(&input.path)?);
        let range = match (input.offset, input.limit) {
            (None | Some(0 | 1), None) => String::new(),
            (offset, None) => format!(" from line {}", offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1).max(1);
                let last = first.saturating_add(limit.max(1) - 1);
                format!(", lines {first} to {last}")
            }
        };
        Ok(Plan {
            summary: format!("Read {path}{range}"),
            consent_key: self.name().to_owned(),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        parse_and_run(input, workspace, read).await
    }
}

fn read(
    input: &ReadInput,
    workspace: &Workspace,
    cancellation: &Cancellation,
) -> Result<ToolOutcome, ToolError> {
    let path = workspace.resolve(&input.path)?;
    let display_path = workspace.display_path(&path);
    let mut page = FilePage::new(input);
    let first = page.first;
    let read = workspace.read_lines(&path, first, cancellation, &mut |line| page.add(line))?;
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
    fn new(input: &ReadInput) -> Self {
        Self {
            first: input.offset.unwrap_or(1).max(1),
            lines_max: input.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX),
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn page(bytes: &[u8], offset: Option<usize>, limit: Option<usize>) -> String {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), bytes).unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let input = ReadInput {
            path: "a".to_owned(),
            offset,
            limit,
        };
        match read(&input, &workspace, &Cancellation::default()) {
            Ok(outcome) => outcome.text,
            Err(error) => error.0,
        }
    }

    fn check(bytes: &[u8], offset: Option<usize>, limit: Option<usize>, expected: Expect) {
        let page = page(bytes, offset, limit);
        let lines = page.lines().map(|line| format!("|{line}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn lines_have_numbers_and_the_rest_is_announced() {
        let text = b"one\ntwo\n\nfour and more\nfive";
        check(
            text,
            None,
            None,
            expect![[r#"
                |     1	one
                |     2	two
                |     3	
                |     4	four and more
                |     5	five
            "#]],
        );
        check(
            text,
            Some(2),
            Some(2),
            expect![[r#"
                |     2	two
                |     3	
                |[more lines follow; go on with offset 4]
            "#]],
        );
        check(
            text,
            Some(5),
            Some(9),
            expect![[r#"
                |     5	five
            "#]],
        );
        check(
            text,
            Some(6),
            None,
            expect![[r#"
                |[a ends before line 6]
            "#]],
        );
        check(
            b"",
            None,
            None,
            expect![[r#"
                |[a is empty]
            "#]],
        );
    }

    #[test]
    fn files_that_are_not_plain_text_are_described() {
        check(
            b"a\xff\r\nb\r\n",
            None,
            None,
            expect![[r#"
                |     1	a�
                |     2	b
                |[some bytes are not UTF-8 and are shown as �]
                |[lines end in CRLF]
            "#]],
        );
        check(
            b"ab\0",
            None,
            None,
            expect![[r#"
                |a is a binary file, or text in UTF-16; its content cannot be shown or edited
            "#]],
        );
    }

    #[test]
    fn long_lines_and_long_files_are_cut() {
        let long = page(&[b'x'; 3_234], None, None);
        assert!(long.ends_with("x [1,234 more bytes in this line]\n"));
        assert!(long.len() < 2_100);
        let many = page(&b"x\n".repeat(LINES_MAX + 1), None, None);
        assert!(many.ends_with("[more lines follow; go on with offset 2001]\n"));
        let wide = page(&[&[b'x'; 999][..], b"\n"].concat().repeat(100), None, None);
        assert!(wide.len() < TEXT_BYTES_MAX + 100);
        assert!(
            wide.ends_with("[more lines follow; go on with offset 49]\n"),
            "{}",
            &wide[wide.len() - 99..]
        );
    }
}
