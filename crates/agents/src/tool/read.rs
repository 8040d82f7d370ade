//! `read`: lines of a text file with their numbers, as many as fit.

use std::io::{BufRead, BufReader};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::format::{format_count, group_digits};
use super::stop::{Stop, off_thread};
use super::workspace::{Contents, Workspace, is_binary};
use super::{Nature, Outcome, Plan, TEXT_BYTES_MAX, Tool, ToolError, input};

/// Lines shown by one call.
const LINES_MAX: usize = 2_000;

/// What is shown of one line.
const LINE_BYTES_MAX: usize = 2_000;

pub(super) struct Read;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn display_name(&self) -> &'static str {
        "Read"
    }

    fn description(&self) -> &'static str {
        "Reads a text file: its lines with their numbers, at most 2,000 lines or 48 KiB at a time. What is left is told \
         with the offset to go on with."
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

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: Input = input::parse(input)?;
        let shown = workspace.shown(&workspace.place(&input.path)?);
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
            summary: format!("Read {shown}{range}"),
            consent_key: self.name().to_owned(),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<Outcome, ToolError> {
        let (input, workspace) = (input::parse::<Input>(input)?, workspace.clone());
        off_thread(move |stop| read(&input, &workspace, stop)).await
    }
}

fn read(input: &Input, workspace: &Workspace, stop: &Stop) -> Result<Outcome, ToolError> {
    let place = workspace.place(&input.path)?;
    let shown = workspace.shown(&place);
    let (page, sight) = match workspace.read(&place)? {
        Contents::Whole(bytes, sight) => {
            (Page::read(&bytes[..], input, &shown, stop)?, Some(sight))
        }
        Contents::Stream(file) => (Page::read(BufReader::new(file), input, &shown, stop)?, None),
    };
    if page.shown == 0 && page.first > 1 && page.passed + 1 < page.first {
        let lines = format_count(page.passed, "line", "lines");
        return Err(ToolError(format!("{shown} has only {lines}")));
    }
    if let Some(sight) = sight {
        workspace.remember(&sight);
    }
    let lines = format_count(page.shown, "line", "lines");
    Ok(Outcome {
        summary: format!("Read {lines} of {shown}"),
        text: page.into_text(&shown),
        success: true,
        ..Outcome::default()
    })
}

/// What is shown of a file.
#[derive(Debug, Default)]
struct Page {
    text: String,
    first: usize,
    shown: usize,
    /// Lines before the first that is shown.
    passed: usize,
    has_more: bool,
    is_lossy: bool,
    has_crlf: bool,
}

impl Page {
    fn read(
        mut source: impl BufRead,
        input: &Input,
        shown: &str,
        stop: &Stop,
    ) -> Result<Self, ToolError> {
        let unreadable = |error| ToolError(format!("{shown} cannot be read: {error}"));
        if is_binary(source.fill_buf().map_err(unreadable)?) {
            return Err(ToolError(format!(
                "{shown} is a binary file, or text in UTF-16; its content cannot be shown"
            )));
        }
        let limit = input.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
        let mut page = Self {
            first: input.offset.unwrap_or(1).max(1),
            ..Self::default()
        };
        let mut line = Line::default();
        while line.next(&mut source).map_err(unreadable)? {
            stop.check()?;
            if page.passed + 1 < page.first {
                page.passed += 1;
                continue;
            }
            if page.shown == limit || !page.push(&line) {
                page.has_more = true;
                break;
            }
        }
        Ok(page)
    }

    /// Takes a line, if there is room for it.
    fn push(&mut self, line: &Line) -> bool {
        let mut bytes = &line.bytes[..];
        if let Some(without) = bytes.strip_suffix(b"\r") {
            self.has_crlf = true;
            bytes = without;
        }
        let number = self.first + self.shown;
        if number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut numbered = format!("{number:>6}\t{text}");
        if line.cut_bytes > 0 {
            let bytes = group_digits(line.cut_bytes);
            numbered.push_str(&format!(" [{bytes} more bytes in this line]"));
        }
        if self.shown > 0 && self.text.len() + numbered.len() >= TEXT_BYTES_MAX {
            return false;
        }
        self.is_lossy |= matches!(text, std::borrow::Cow::Owned(_)) && line.cut_bytes == 0;
        self.text.push_str(&numbered);
        self.text.push('\n');
        self.shown += 1;
        true
    }

    fn into_text(self, shown: &str) -> String {
        let mut text = self.text;
        if self.shown == 0 {
            text.push_str(&match self.first {
                1 => format!("[{shown} is empty]\n"),
                first => format!("[{shown} ends before line {first}]\n"),
            });
        }
        if self.has_more {
            let last = self.first + self.shown - 1;
            let next = last + 1;
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

/// One line of a stream, at most as much of it as is shown.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    cut_bytes: u64,
}

impl Line {
    /// Reads the next line; whether there was one.
    fn next(&mut self, source: &mut impl BufRead) -> std::io::Result<bool> {
        self.bytes.clear();
        self.cut_bytes = 0;
        let mut any = false;
        loop {
            let available = match source.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let room = LINE_BYTES_MAX - self.bytes.len();
            let (kept, cut) = part.split_at(part.len().min(room));
            self.bytes.extend_from_slice(kept);
            self.cut_bytes += cut.len() as u64;
            let used = part.len() + usize::from(end.is_some());
            source.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn page(bytes: &[u8], offset: Option<usize>, limit: Option<usize>) -> String {
        let input = Input {
            path: String::new(),
            offset,
            limit,
        };
        // A small buffer, so that lines lie across its edges.
        let source = BufReader::with_capacity(7, bytes);
        match Page::read(source, &input, "a", &Stop::default()) {
            Ok(page) => page.into_text("a"),
            Err(error) => error.0,
        }
    }

    fn check(bytes: &[u8], offset: Option<usize>, limit: Option<usize>, expected: Expect) {
        let page = page(bytes, offset, limit);
        let lines = page.lines().map(|line| format!("|{line}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn lines_have_numbers_and_the_rest_is_told() {
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
    fn what_is_not_plain_text_is_told() {
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
                |a is a binary file, or text in UTF-16; its content cannot be shown
            "#]],
        );
    }

    #[test]
    fn long_lines_and_long_files_are_cut() {
        let long = page(&[b'x'; LINE_BYTES_MAX + 1_234], None, None);
        assert!(long.ends_with("x [1,234 more bytes in this line]\n"));
        assert!(long.len() < LINE_BYTES_MAX + 100);
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
