//! The difference of two contents as lines: a number, a sign, the text.
//!
//! Promises: every changed line is there to its last character, over as many rows as it takes; hidden characters and changed line ends
//! are seen. What is removed and added is told apart without colours, too.
//! Must not know: files, the protocol.

use markup::diff::{self, DiffBody, DiffLine, DiffRow, LineEnd};

use crate::chat::line::{Line, Style};

/// What stands behind the sign of a row that continues a line.
const CONTINUED: &str = "…";

/// Whether lines have numbers: not where only a part of a file is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineNumbers {
    Shown,
    Unknown,
}

/// A change in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownDiff {
    pub(crate) lines: Vec<Line>,
    /// Whether all that changes is in the lines.
    pub(crate) is_whole: bool,
}

/// Compares two contents and shows what changed, in rows of a width.
pub(crate) fn show_diff(
    before: &[u8],
    after: &[u8],
    numbers: LineNumbers,
    width: usize,
) -> ShownDiff {
    let note =
        |text: &str, is_whole| ShownDiff { lines: vec![Line::new(Style::Dim, text)], is_whole };
    // The path decides the colours of code alone, and a diff has its own.
    match diff::compare(before, after, "", diff::CONTEXT) {
        Err(too_large) => note(&format!("the change is not shown: {too_large}"), false),
        Ok(found) => match &found.body {
            DiffBody::Binary => note("not a text: the change is not shown", false),
            DiffBody::Rows(rows) if rows.is_empty() => note("nothing changes", true),
            DiffBody::Rows(rows) => ShownDiff {
                lines: row_lines(rows, numbers, width),
                is_whole: !matches!(rows.last(), Some(DiffRow::LeftOut { .. })),
            },
        },
    }
}

fn row_lines(rows: &[DiffRow], numbers: LineNumbers, width: usize) -> Vec<Line> {
    let number_of = |row: &DiffRow| match row {
        DiffRow::Context { new, .. } | DiffRow::Added { new, .. } => *new,
        DiffRow::Removed { old, .. } => *old,
        DiffRow::Folded { .. } | DiffRow::LeftOut { .. } => 0,
    };
    let digits = match numbers {
        LineNumbers::Shown => rows.iter().map(number_of).max().unwrap_or(0).to_string().len(),
        LineNumbers::Unknown => 0,
    };
    let gutter = |number: u32| match digits {
        0 => String::new(),
        digits => format!("{number:>digits$} "),
    };
    let mut lines = Vec::new();
    for row in rows {
        let (sign, style, line) = match row {
            DiffRow::Context { line, .. } => (" ", Style::Plain, line),
            DiffRow::Removed { line, .. } => ("-", Style::Bad, line),
            DiffRow::Added { line, .. } => ("+", Style::Good, line),
            DiffRow::Folded { lines: count, .. } => {
                lines.push(fold_line(digits, *count, "unchanged"));
                continue;
            }
            DiffRow::LeftOut { lines: count } => {
                lines.push(fold_line(digits, *count, "more"));
                continue;
            }
        };
        let before = gutter(number_of(row));
        let room = width.saturating_sub(before.len() + 2).max(1);
        let broken = text_of(line, style, sign).break_into(room).into_iter();
        lines.extend(broken.enumerate().map(|(index, text)| {
            // The rest of a line keeps its sign: it must not pass for a line of its own that is there already.
            let (before, mark) = match index {
                0 => (before.clone(), " "),
                _ => (" ".repeat(before.len()), CONTINUED),
            };
            Line::new(Style::Dim, before).then(style, format!("{sign}{mark}")).then_line(text)
        }));
    }
    lines
}

/// The text of a line, and its end where that is not the usual one.
fn text_of(line: &DiffLine, style: Style, sign: &str) -> Line {
    let text = Line::default().then_code(style, &line.text);
    match line.end {
        LineEnd::Newline => text,
        LineEnd::CrLf if sign == " " => text,
        LineEnd::CrLf => text.then(Style::Dim, "\\r"),
        LineEnd::None => text.then(Style::Dim, " (no newline at the end)"),
    }
}

fn fold_line(digits: usize, count: u32, what: &str) -> Line {
    let lines = if count == 1 { "line" } else { "lines" };
    Line::new(Style::Dim, format!("{:digits$} ⋯ {count} {lines} {what}", ""))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::chat::line::Colors;
    use crate::chat::render::assert_looks;

    fn check(before: &str, after: &str, width: usize, expected: Expect) {
        let shown = show_diff(before.as_bytes(), after.as_bytes(), LineNumbers::Shown, width).lines;
        assert_looks(&shown, width, &expected);
    }

    #[test]
    fn a_change_stands_in_its_context_with_its_numbers() {
        let before: String = (1..=20).map(|line| format!("line {line}\n")).collect();
        let after = before.replace("line 10\n", "line ten\nand more\n");
        check(
            &before,
            &after,
            30,
            expect![[r#"
                   ⋯ 6 lines unchanged
                 7   line 7
                 8   line 8
                 9   line 9
                10 - line 10
                10 + line ten
                11 + and more
                12   line 11
                13   line 12
                14   line 13
                   ⋯ 7 lines unchanged
            "#]],
        );
    }

    #[test]
    fn a_long_line_is_shown_to_its_end_and_nothing_in_it_is_obeyed() {
        check(
            "",
            "a very long line\u{1b}[2J with more\u{202e}\r\nend",
            16,
            expect![[r#"
                1 + a very long
                  +…line\x1b[2J
                  +…with more\u{
                  +…202e}\r
                2 + end (no newl
                  +…ine at the e
                  +…nd)
            "#]],
        );
    }

    #[test]
    fn signs_and_colours_tell_what_is_added() {
        let shown = show_diff(b"a\n", b"b\n", LineNumbers::Unknown, 20).lines;
        let encoded: Vec<String> = shown.iter().map(|line| line.encode(Colors::On)).collect();
        assert_eq!(encoded, ["\u{1b}[31m- a\u{1b}[0m", "\u{1b}[32m+ b\u{1b}[0m"]);
        let binary = show_diff(b"\0", b"a", LineNumbers::Shown, 60);
        assert_eq!(binary.lines[0].text(), "not a text: the change is not shown");
        assert!(!binary.is_whole);
    }

    #[test]
    fn it_is_known_whether_all_of_a_change_is_shown() {
        let is_whole =
            |after: &str| show_diff(b"", after.as_bytes(), LineNumbers::Shown, 20).is_whole;
        assert!(is_whole("a\n") && is_whole(""));
        assert!(!is_whole(&"a\n".repeat(diff::ROWS_MAX + 1)), "rows");
        assert!(!is_whole(&"a".repeat(diff::BYTES_MAX + 1)), "bytes");
    }
}
