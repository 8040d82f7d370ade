//! Blocks of Markdown as lines.
//!
//! Promises: nested blocks are indented, except code. Blocks are set apart by a blank line.

use markup::markdown::{Item, List, MarkdownBlock};

use super::Page;
use super::code::code_lines;
use super::inline::style_inlines;
use super::table::table_lines;
use crate::chat::line::{Colors, Line, Style, TextStyle, columns};

/// How long a line across the page is.
const RULE_WIDTH: usize = 40;

/// What stands before the lines of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Indent {
    first: Line,
    rest: Line,
    /// Lists around it.
    lists: usize,
}

impl Indent {
    fn width(&self) -> usize {
        self.rest.width()
    }

    /// Further in: before the first line this, before the others as many blanks.
    fn with_marker(&self, marker: Line) -> Self {
        let blanks = " ".repeat(marker.width());
        Self {
            first: self.first.clone().then_line(marker),
            rest: self.rest.clone().then(Style::Plain, blanks),
            lists: self.lists + 1,
        }
    }

    fn with_bar(&self) -> Self {
        let bar = |line: &Line| line.clone().then(Style::Dim, "│ ");
        Self { first: bar(&self.first), rest: bar(&self.rest), lists: self.lists }
    }

    fn after_first(&self) -> Self {
        Self { first: self.rest.clone(), ..self.clone() }
    }

    /// Puts it before lines.
    fn before(&self, lines: Vec<Line>) -> Vec<Line> {
        let lines = lines.into_iter().enumerate();
        let indented = lines.map(|(index, line)| match index {
            0 => self.first.clone().then_line(line),
            _ => self.rest.clone().then_line(line),
        });
        indented.collect()
    }
}

/// Blocks one below the other.
pub(super) fn block_lines(blocks: &[MarkdownBlock], indent: &Indent, page: Page) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut indent = indent.clone();
    for (index, block) in blocks.iter().enumerate() {
        let is_list = matches!(block, MarkdownBlock::List(_));
        // A list within an item stands right below its text.
        if index > 0 && !(is_list && indent.lists > 0) {
            lines.push(blank(&indent));
        }
        lines.extend(lines_of(block, &indent, page));
        indent = indent.after_first();
    }
    lines
}

/// A blank line that shows what it is within.
fn blank(indent: &Indent) -> Line {
    if indent.rest.text().trim().is_empty() { Line::default() } else { indent.rest.clone() }
}

fn lines_of(block: &MarkdownBlock, indent: &Indent, page: Page) -> Vec<Line> {
    let width = page.prose_width().saturating_sub(indent.width()).max(1);
    match block {
        MarkdownBlock::Heading { level, content } => {
            let style =
                TextStyle { is_bold: true, is_underlined: *level == 1, ..TextStyle::default() };
            let mark = match page.colors {
                Colors::On => String::new(),
                Colors::Off => format!("{} ", "#".repeat(usize::from(*level))),
            };
            let lines =
                style_inlines(content, style, page).wrap(width.saturating_sub(mark.len()).max(1));
            let mark = Line::new(Style::Plain, mark);
            let marked = lines.into_iter().map(|line| mark.clone().then_line(line));
            indent.before(marked.collect())
        }
        MarkdownBlock::Paragraph(content) => {
            indent.before(style_inlines(content, TextStyle::default(), page).wrap(width))
        }
        MarkdownBlock::Quote(blocks) => block_lines(blocks, &indent.with_bar(), page),
        MarkdownBlock::List(list) => list_lines(list, indent, page),
        MarkdownBlock::Code { language, text } => code_block(indent, code_lines(language, text)),
        MarkdownBlock::Table(table) => {
            let room = page.width.saturating_sub(indent.width()).max(1);
            indent.before(table_lines(table, Page { width: room, ..page }))
        }
        MarkdownBlock::Rule => {
            let rule = "─".repeat(RULE_WIDTH.min(width));
            indent.before(vec![Line::new(Style::Dim, rule)])
        }
    }
}

/// Code begins at the left edge wherever it stands. If an item begins with it, the item's mark has a line of its own.
fn code_block(indent: &Indent, code: Vec<Line>) -> Vec<Line> {
    let mut lines = Vec::new();
    if indent.first != indent.rest {
        lines.push(indent.first.clone());
    }
    lines.extend(code);
    lines
}

fn list_lines(list: &List, indent: &Indent, page: Page) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut indent = indent.clone();
    for (index, item) in list.items.iter().enumerate() {
        if index > 0 && !list.is_tight {
            lines.push(blank(&indent));
        }
        let number = u64::try_from(index).unwrap_or(u64::MAX);
        let number = list.start.map(|start| start.saturating_add(number));
        let marker = Line::new(Style::Plain, marker(item, number, indent.lists));
        let inner = indent.with_marker(marker);
        if item.blocks.is_empty() {
            lines.push(inner.first)
        } else {
            lines.extend(block_lines(&item.blocks, &inner, page))
        }
        indent = indent.after_first();
    }
    lines
}

fn marker(item: &Item, number: Option<u64>, lists: usize) -> String {
    let bullet = match (number, lists % 3) {
        (Some(number), _) => format!("{number}. "),
        (None, 0) => "• ".to_owned(),
        (None, 1) => "◦ ".to_owned(),
        (None, _) => "▪ ".to_owned(),
    };
    debug_assert!(columns(&bullet) > 1, "a mark and a blank");
    match (item.checked, number) {
        (None, _) => bullet,
        (Some(true), None) => "☑ ".to_owned(),
        (Some(false), None) => "☐ ".to_owned(),
        (Some(true), Some(_)) => format!("{bullet}☑ "),
        (Some(false), Some(_)) => format!("{bullet}☐ "),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use markup::markdown::parse;

    use super::*;

    fn check(markdown: &str, width: usize, expected: Expect) {
        let blocks = parse(markdown).unwrap();
        let lines = block_lines(&blocks, &Indent::default(), Page::of_width(width));
        let text: String =
            lines.iter().map(|line| line.text().trim_end().to_owned() + "\n").collect();
        expected.assert_eq(&text);
    }

    #[test]
    fn nested_lists_are_indented_and_counted() {
        check(
            "3. one and some more words\n4. two\n   - a\n     - b\n       1. c\n- [x] done\n- [ ] not done\n",
            18,
            expect![[r#"
                3. one and some
                   more words
                4. two
                   ◦ a
                     ▪ b
                       1. c

                ☑ done
                ☐ not done
            "#]],
        );
    }

    #[test]
    fn a_loose_list_has_room_between_its_items() {
        check(
            "- a\n\n  more\n- b\n",
            30,
            expect![[r#"
                • a

                  more

                • b
            "#]],
        );
    }

    #[test]
    fn headings_quotes_and_rules() {
        check(
            "# One\n\ntext\n## Two\n> quoted words that go on\n>\n> - a\n\n---\n",
            20,
            expect![[r#"
                One

                text

                Two

                │ quoted words that
                │ go on
                │
                │ • a

                ────────────────────
            "#]],
        );
    }

    #[test]
    fn code_stands_at_the_left_edge_wherever_it_is() {
        check(
            "- see\n  ```\n  a = 1\n\n      b\n  ```\n- ```\n  c\n  ```\n> ```\n> a long line of code that is not broken\n> ```\n",
            12,
            expect![[r#"
                • see

                a = 1

                    b
                •
                c

                a long line of code that is not broken
            "#]],
        );
    }
}
