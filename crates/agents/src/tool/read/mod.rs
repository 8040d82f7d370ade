//! `read`: a text file as lines with their numbers, a notebook as cells, a picture as a picture; anything else is
//! described.

mod media;
mod notebook;
mod page;

use compositor::media_type::detect;
use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Cancellation, Workspace, WorkspacePath, is_binary};

use super::file_tool::{FileInput, FileTool, PATH_DESCRIPTION};
use super::input::ToolInput;
use super::{ToolError, ToolOutcome};

pub(super) use media::view_image;

/// How much of a file is looked at to tell what it is.
const SNIFFED_BYTES: u64 = 64 * 1_024;

pub(super) struct ReadTool;

#[derive(Debug, Deserialize)]
pub(super) struct ReadInput {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// Which lines of a text, or cells of a notebook.
#[derive(Debug, Clone, Copy, Default)]
struct ReadRange {
    offset: Option<usize>,
    limit: Option<usize>,
}

impl ReadRange {
    /// Counted from 1.
    fn first(self) -> usize {
        self.offset.unwrap_or(1).max(1)
    }
}

impl ToolInput for ReadInput {
    const EXAMPLE: &'static str = r#"{"path": "src/main.rs", "offset": 1, "limit": 200}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": PATH_DESCRIPTION},
                "offset": {"type": "integer", "minimum": 1, "description": "The first line, or cell, to read; 1 by default."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines, or cells, to read; as many as fit by default."},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
}

impl FileInput for ReadInput {
    fn path(&self) -> &str {
        &self.path
    }
}

impl FileTool for ReadTool {
    type Input = ReadInput;

    const NAME: &'static str = "read";
    const DISPLAY_NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "Reads a file. Text: its lines with their numbers, at most 2,000 lines or 48 KiB at a time; \
         if there is more, the result ends with the offset to go on with. A notebook (`.ipynb`): its cells with their outputs; \
         offset and limit count cells. An image or a PDF is shown if you can see such things. Other files are described.";
    const KIND: &'static str = "read";

    fn summarise(input: &ReadInput, display_path: &str) -> Result<String, ToolError> {
        let range = match (input.offset, input.limit) {
            (None | Some(0 | 1), None) => String::new(),
            (offset, None) => format!(" from line {}", offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1).max(1);
                let last = first.saturating_add(limit.max(1) - 1);
                format!(", lines {first} to {last}")
            }
        };
        Ok(format!("Read {display_path}{range}"))
    }

    fn look(
        input: &ReadInput,
        path: &WorkspacePath,
        workspace: &Workspace,
        cancellation: &Cancellation,
    ) -> Result<ToolOutcome, ToolError> {
        let range = ReadRange { offset: input.offset, limit: input.limit };
        let beginning = workspace.read_bytes(path, SNIFFED_BYTES)?;
        if let Some(mime) = detect(&beginning.bytes) {
            return media::read(path, mime, beginning, workspace);
        }
        if is_binary(&beginning.bytes) {
            return Ok(media::describe_binary(&workspace.display_path(path), &beginning));
        }
        if notebook::is_notebook(&input.path)
            && let Some(outcome) = notebook::read(path, range, workspace)?
        {
            return Ok(outcome);
        }
        page::read(path, range, workspace, cancellation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::TEXT_BYTES_MAX;
    use super::page::LINES_MAX;
    use super::*;
    use expect_test::{Expect, expect};

    fn page(bytes: &[u8], offset: Option<usize>, limit: Option<usize>) -> String {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), bytes).unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let input = ReadInput { path: "a".to_owned(), offset, limit };
        let path = workspace.resolve("a").unwrap();
        match ReadTool::look(&input, &path, &workspace, &Cancellation::default()) {
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
                |[a is a binary file, or text in UTF-16, of 3 bytes; its content cannot be shown]
            "#]],
        );
        check(
            b"PK\x03\x04\0\0",
            None,
            None,
            expect![[r#"
                |[a is a ZIP archive (or a document made of one) of 6 bytes; its content cannot be shown]
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
