//! Tables: aligned where they fit, with broken cells where they do not, and row by row where even that would be unreadable.
//!
//! Promises: no text of a cell is left out at any width.

use markup::markdown::{Align, Table};

use super::Page;
use super::inline::style_inlines;
use super::styled::StyledText;
use crate::chat::line::{Line, Style, TextStyle};

/// What stands between two columns.
const BETWEEN: &str = " │ ";
/// Columns of a table that are narrower than this are not worth reading.
const COLUMN_WIDTH_MIN: usize = 10;

pub(super) fn table_lines(table: &Table, page: Page) -> Vec<Line> {
    let bold = TextStyle { is_bold: true, ..TextStyle::default() };
    let cells = |row: &Vec<_>, style| -> Vec<StyledText> {
        row.iter().map(|cell: &Vec<_>| style_inlines(cell, style, page)).collect()
    };
    let head = cells(&table.head, bold);
    let rows: Vec<_> = table.rows.iter().map(|row| cells(row, TextStyle::default())).collect();
    let wide: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let of = |row: &Vec<StyledText>| row.get(column).map_or(0, StyledText::width);
            rows.iter().map(of).max().unwrap_or(0).max(of(&head)).max(1)
        })
        .collect();
    match fit(&wide, page.width) {
        Some(widths) => grid(&head, &rows, &widths, &table.columns),
        None => records(&head, &rows, page),
    }
}

/// The widths of the columns: as wide as they are, or the widest ones narrower; none if that would not be readable.
fn fit(wide: &[usize], width: usize) -> Option<Vec<usize>> {
    let between = BETWEEN.chars().count() * wide.len().saturating_sub(1);
    let room = width.checked_sub(between)?;
    let mut left = room;
    let mut widths = vec![0; wide.len()];
    let mut open: Vec<usize> = (0..wide.len()).collect();
    open.sort_by_key(|column| wide.get(*column).copied());
    // The narrow ones first: what they do not need is for the others.
    let mut others = open.len();
    for column in open {
        let needs = wide.get(column).copied().unwrap_or(0);
        let share = left / others.max(1);
        let gets = needs.min(share);
        if gets < needs && gets < COLUMN_WIDTH_MIN {
            return None;
        }
        if let Some(width) = widths.get_mut(column) {
            *width = gets;
        }
        left -= gets;
        others -= 1;
    }
    Some(widths)
}

fn grid(
    head: &[StyledText],
    rows: &[Vec<StyledText>],
    widths: &[usize],
    aligns: &[Align],
) -> Vec<Line> {
    let mut lines = row_lines(head, widths, aligns);
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    lines.push(Line::new(Style::Dim, rule.join("─┼─")));
    let is_broken = |row: &&Vec<StyledText>| {
        row.iter().zip(widths).into_iter().any(|(cell, width)| cell.width() > *width)
    };
    // Where cells take several lines it must be seen where the next row begins.
    let has_broken = rows.iter().any(|row| is_broken(&row));
    for (index, row) in rows.iter().enumerate() {
        if has_broken && index > 0 {
            lines.push(Line::new(Style::Dim, rule.join("─┼─")));
        }
        lines.extend(row_lines(row, widths, aligns));
    }
    lines
}

fn row_lines(row: &[StyledText], widths: &[usize], aligns: &[Align]) -> Vec<Line> {
    let cells: Vec<Vec<Line>> =
        row.iter().zip(widths).map(|(cell, width)| cell.wrap(*width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let mut line = Line::default();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                line = line.then(Style::Dim, BETWEEN);
            }
            let cell =
                cells.get(column).and_then(|lines| lines.get(at)).cloned().unwrap_or_default();
            let free = width.saturating_sub(cell.width());
            let before = match aligns.get(column) {
                Some(Align::Right) => free,
                Some(Align::Center) => free / 2,
                Some(Align::Left | Align::None) | None => 0,
            };
            let is_last = column + 1 == widths.len();
            let after = if is_last { 0 } else { free - before };
            line = line
                .then(Style::Plain, " ".repeat(before))
                .then_line(cell)
                .then(Style::Plain, " ".repeat(after));
        }
        line
    };
    (0..height).map(line).collect()
}

/// Each row as lines of its own: `column: cell`.
fn records(head: &[StyledText], rows: &[Vec<StyledText>], page: Page) -> Vec<Line> {
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            lines.push(Line::default());
        }
        for (column, cell) in row.iter().enumerate() {
            let name = head.get(column).filter(|name| !name.is_empty());
            let mut cell_lines = Vec::new();
            if let Some(name) = name {
                let mut names = name.wrap(page.width.saturating_sub(1).max(1)).into_iter();
                let last = names.next_back().unwrap_or_default();
                cell_lines.extend(names);
                cell_lines.push(last.then(Style::Bold, ":"));
            }
            let indent = " ".repeat(2.min(page.width / 2));
            let room = page.width.saturating_sub(indent.len()).max(1);
            let values = cell.wrap(room).into_iter();
            cell_lines.extend(values.map(|line| Line::new(Style::Plain, &indent).then_line(line)));
            // Short ones stand on one line.
            if let [name, value] = &cell_lines[..] {
                let value = value.text().trim_start().to_owned();
                if name.width() + 1 + crate::chat::line::columns(&value) <= page.width {
                    let both = name.clone().then(Style::Plain, " ");
                    let cell = cell.wrap(page.width).into_iter().next().unwrap_or_default();
                    cell_lines = vec![both.then_line(cell)];
                }
            }
            lines.extend(cell_lines);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use markup::markdown::{MarkdownBlock, parse};

    use super::*;
    use crate::chat::render::assert_looks;

    const TABLE: &str = "\
| Name | Size | What it is for |\n\
|:-----|-----:|:--------------:|\n\
| a.rs | 12 | the beginning |\n\
| longer.rs | 3,456 | `all` of the rest |\n";

    fn check(width: usize, expected: Expect) {
        let blocks = parse(TABLE).unwrap();
        let [MarkdownBlock::Table(table)] = &blocks[..] else { panic!("a table") };
        let lines = table_lines(table, Page::of_width(width));
        assert_looks(&lines, width, &expected);
    }

    #[test]
    fn a_table_that_fits_is_aligned() {
        check(
            60,
            expect![[r#"
                Name      │  Size │ What it is for
                ──────────┼───────┼────────────────
                a.rs      │    12 │  the beginning
                longer.rs │ 3,456 │ all of the rest
            "#]],
        );
    }

    #[test]
    fn a_table_that_is_a_little_too_wide_has_broken_cells() {
        check(
            32,
            expect![[r#"
                Name      │  Size │  What it is
                          │       │     for
                ──────────┼───────┼─────────────
                a.rs      │    12 │     the
                          │       │  beginning
                ──────────┼───────┼─────────────
                longer.rs │ 3,456 │  all of the
                          │       │     rest
            "#]],
        );
    }

    #[test]
    fn a_table_that_is_much_too_wide_is_shown_row_by_row() {
        check(
            18,
            expect![[r#"
                Name: a.rs
                Size: 12
                What it is for:
                  the beginning

                Name: longer.rs
                Size: 3,456
                What it is for:
                  all of the rest
            "#]],
        );
    }
}
