//! A Markdown text that is coming in, as lines: those that are finished once, and what its open end looks like.
//!
//! Promises: every line is given out once, in order. Code is given out line by line, lists item by item, other blocks whole. What is
//! drawn of the open end is bounded, however long the text is.
//! Must not know: terminals, turns.

use markup::highlight::Language;
use markup::markdown::MarkdownBlock;
use markup::stream::{ItemPosition, MarkdownStream, StablePiece};

use super::Page;
use super::block::{Indent, block_lines};
use super::code::CodeLines;
use crate::chat::line::Line;

/// How much of an open end is parsed each time it is drawn.
const OPEN_BYTES_MAX: usize = 8 << 10;

#[derive(Debug, Default)]
pub(crate) struct MarkdownText {
    stream: MarkdownStream,
    code: Option<CodeLines>,
    /// Lines of code that are complete and not coloured yet.
    waiting: Vec<String>,
    above: LineAbove,
}

/// What stands above what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LineAbove {
    #[default]
    Nothing,
    Block,
    /// An item of a list, with no blank line behind it.
    TightItem,
    /// Code, or the blank line before it.
    Code,
}

impl MarkdownText {
    /// Takes more of the text; the lines that are finished.
    pub(crate) fn push(&mut self, text: &str, page: Page) -> Vec<Line> {
        let pieces = self.stream.push(text);
        self.lines(pieces, page)
    }

    /// The last lines: nothing more comes.
    pub(crate) fn finish(mut self, page: Page) -> Vec<Line> {
        let pieces = std::mem::take(&mut self.stream).finish();
        self.lines(pieces, page)
    }

    /// The last `rows_max` rows of what may still change.
    pub(crate) fn open_lines(&self, page: Page, rows_max: usize) -> Vec<Line> {
        let mut lines = match &self.code {
            Some(_) if self.stream.open_text().is_empty() => Vec::new(),
            Some(code) => {
                // What does not fit is not worth colouring.
                let open =
                    last_bytes(self.stream.open_text(), page.width.saturating_mul(4 * rows_max));
                code.open_line(open).break_into(page.width)
            }
            None => {
                let blocks = self.stream.parse_open(OPEN_BYTES_MAX);
                let mut lines = block_lines(&blocks, &Indent::default(), page);
                let is_continued = self.stream.is_in_list() && self.above == LineAbove::TightItem;
                if self.above != LineAbove::Nothing && !is_continued && !lines.is_empty() {
                    lines.insert(0, Line::default());
                }
                lines.into_iter().flat_map(|line| line.break_into(page.width)).collect()
            }
        };
        lines.drain(..lines.len().saturating_sub(rows_max));
        lines
    }

    fn lines(&mut self, pieces: Vec<StablePiece>, page: Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in pieces {
            match piece {
                StablePiece::CodeLine(line) => {
                    self.waiting.push(line);
                    continue;
                }
                StablePiece::CodeStart { language } => {
                    self.leave_room(&mut lines);
                    let language = language.as_deref().and_then(Language::find);
                    self.code = Some(CodeLines::new(language));
                    self.above = LineAbove::Code;
                }
                StablePiece::CodeEnd => {
                    self.color_waiting(&mut lines);
                    self.code = None;
                    self.above = LineAbove::Block;
                }
                StablePiece::Block(block) => {
                    self.leave_room(&mut lines);
                    lines.extend(block_lines(&[block], &Indent::default(), page));
                    self.above = LineAbove::Block;
                }
                StablePiece::Items { list, position } => {
                    if position == ItemPosition::First || self.above != LineAbove::TightItem {
                        self.leave_room(&mut lines);
                    }
                    self.above =
                        if list.is_tight { LineAbove::TightItem } else { LineAbove::Block };
                    let list = MarkdownBlock::List(list);
                    lines.extend(block_lines(&[list], &Indent::default(), page));
                }
            }
        }
        self.color_waiting(&mut lines);
        lines
    }

    fn color_waiting(&mut self, lines: &mut Vec<Line>) {
        let waiting = std::mem::take(&mut self.waiting);
        let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
        if let Some(code) = &mut self.code {
            lines.extend(code.push(&waiting));
        }
    }

    fn leave_room(&self, lines: &mut Vec<Line>) {
        if self.above != LineAbove::Nothing {
            lines.push(Line::default());
        }
    }
}

/// The end of a text, of at most so many bytes.
/// A whole text in rows that fit the page.
pub(crate) fn markdown_lines(text: &str, page: Page) -> Vec<Line> {
    let mut markdown = MarkdownText::default();
    let mut lines = markdown.push(text, page);
    lines.extend(markdown.finish(page));
    lines.into_iter().flat_map(|line| line.break_into(page.width)).collect()
}

fn last_bytes(text: &str, bytes: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(from..).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const ANSWER: &str = "# Title\n\nSome *text* that is long enough to be broken.\n\n1. one\n2. two\n   ```rust\n   let x = 1;\n   ```\n\
3. three\n\n- a\n\n- b\n\n```sh\nls -l\n\n  cd\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\nend\n";

    fn render(pieces: &[&str], page: Page) -> Vec<String> {
        let mut text = MarkdownText::default();
        let mut lines = Vec::new();
        for piece in pieces {
            lines.extend(text.push(piece, page));
            // Drawing the open end changes nothing.
            let open = text.open_lines(page, 6);
            assert!(open.len() <= 6);
            assert!(open.iter().all(|line| line.width() <= page.width));
        }
        lines.extend(text.finish(page));
        lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_do_not_depend_on_how_the_text_comes_in() {
        for width in [10, 24, 79] {
            let page = Page::of_width(width);
            let whole = render(&[ANSWER], page);
            for size in [1, 2, 7, 30] {
                let chars: Vec<char> = ANSWER.chars().collect();
                let pieces: Vec<String> =
                    chars.chunks(size).map(|piece| piece.iter().collect()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                assert_eq!(render(&pieces, page), whole, "width {width}, pieces of {size}");
            }
        }
    }

    fn check(text: &MarkdownText, page: Page, expected: Expect) {
        let lines: String =
            text.open_lines(page, 5).iter().map(|line| line.text() + "\n").collect();
        expected.assert_eq(&lines);
    }

    #[test]
    fn the_open_end_is_drawn_as_it_would_look() {
        let page = Page::of_width(20);
        let mut text = MarkdownText::default();
        text.push("Some **bold", page);
        check(
            &text,
            page,
            expect![[r#"
            Some bold
        "#]],
        );
        text.push("** words\n\n1. one\n2. tw", page);
        check(
            &text,
            page,
            expect![[r#"

            1. one
            2. tw
        "#]],
        );
        text.push("o\n3. three", page);
        check(
            &text,
            page,
            expect![[r#"
            2. two
            3. three
        "#]],
        );
        let lines = text.push("\n\n```\nwhole line\na line of code that is long", page);
        assert_eq!(lines.last().unwrap().text(), "whole line");
        check(
            &text,
            page,
            expect![[r#"
            a line of code that 
            is long
        "#]],
        );
    }

    #[test]
    fn a_block_that_does_not_end_is_drawn_at_a_fixed_cost() {
        let page = Page::of_width(40);
        let mut text = MarkdownText::default();
        text.push("| a | b |\n|---|---|\n", page);
        for number in 0..5_000 {
            text.push(&format!("| {number} | some text |\n"), page);
        }
        let open = text.open_lines(page, 5);
        assert_eq!(open.len(), 5);
        assert!(open.last().unwrap().text().contains("4999"), "{open:?}");
    }
}
