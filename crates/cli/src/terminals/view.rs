//! A terminal drawn on this one: all rows but the last, which says what it is and how to leave.
//!
//! Promises: what is shown is the terminal in the size that it has; of one that is larger than this one, what is left and around its cursor. Only what a screen model understood is drawn: a program cannot write to the clipboard, ask this terminal questions, or
//! change its title.

use std::num::NonZeroU16;

use client::terminals::ScreenSize;

use crate::terminal::escape_line;

/// The key that leaves.
pub(super) const LEAVE: u8 = 0x1d;
pub(super) const LEAVE_NAME: &str = "Ctrl-]";

/// What is drawn.
pub(super) struct TerminalView {
    parser: vt100::Parser,
    /// What is on this terminal; none: nothing that is known.
    drawn: Option<vt100::Screen>,
    /// Of this terminal.
    size: ScreenSize,
}

impl TerminalView {
    /// This terminal has the one size, what is shown the other.
    pub(super) fn new(size: ScreenSize, shown: ScreenSize) -> Self {
        let (rows, columns) = rows_and_columns(shown);
        Self { parser: vt100::Parser::new(rows, columns, 0), drawn: None, size }
    }

    pub(super) fn print(&mut self, text: &str) {
        self.parser.process(text.as_bytes());
    }

    /// Everything is printed again.
    pub(super) fn restart(&mut self) {
        let (rows, columns) = self.parser.screen().size();
        self.parser = vt100::Parser::new(rows, columns, 0);
        self.drawn = None;
    }

    /// This terminal has another size.
    pub(super) fn resize(&mut self, size: ScreenSize) {
        self.size = size;
        self.drawn = None;
    }

    /// What is shown has this size.
    pub(super) fn set_shown_size(&mut self, shown: ScreenSize) {
        let (rows, columns) = rows_and_columns(shown);
        if self.parser.screen().size() != (rows, columns) {
            self.parser.screen_mut().set_size(rows, columns);
            self.drawn = None;
        }
    }

    /// Rows of this terminal for what is shown.
    fn inner_rows(&self) -> u16 {
        self.size.rows.saturating_sub(1).max(1)
    }

    /// Whether it fills this terminal.
    fn fits(&self) -> bool {
        let (rows, columns) = self.parser.screen().size();
        (columns.get(), rows.get()) == (self.size.columns.max(1), self.inner_rows())
    }

    /// The first row that is shown: the cursor is seen.
    fn first_row(&self) -> u16 {
        let (row, _) = self.parser.screen().cursor_position();
        (row + 1).saturating_sub(self.inner_rows())
    }

    /// Row by row, as much as there is room for.
    fn draw_part(&self) -> String {
        let rows = self
            .parser
            .screen()
            .rows_formatted(0, self.size.columns)
            .skip(usize::from(self.first_row()))
            .map(Some)
            .chain(std::iter::repeat(None));
        let mut text = String::new();
        for (number, row) in (1..=self.inner_rows()).zip(rows) {
            text.push_str(&format!("\x1b[{number};1H\x1b[0m\x1b[2K"));
            text.extend(row);
        }
        text
    }

    /// What to write to this terminal so that it shows all of it.
    pub(super) fn draw(&mut self, status: &str) -> String {
        let screen = self.parser.screen();
        let mut text = "\x1b[?25l".to_owned();
        match &self.drawn {
            _ if !self.fits() => text.push_str(&self.draw_part()),
            Some(drawn) => text.push_str(&screen.contents_diff(drawn)),
            None => text.push_str(&screen.contents_formatted()),
        }
        text.push_str(&screen.input_mode_formatted());
        let status: String = escape_line(status)
            .chars()
            .take(usize::from(self.size.columns).saturating_sub(1))
            .collect();
        text.push_str(&format!("\x1b[{};1H\x1b[0;7m{status}\x1b[K\x1b[0m", self.size.rows));
        // Colours and place of the cursor as the program left them.
        text.push_str(&screen.attributes_formatted());
        let (row, column) = screen.cursor_position();
        let row = row - self.first_row().min(row);
        let column = column.min(self.size.columns.saturating_sub(1));
        text.push_str(&format!("\x1b[{};{}H", row + 1, column + 1));
        if !screen.hide_cursor() {
            text.push_str("\x1b[?25h");
        }
        self.drawn = Some(screen.clone());
        text
    }
}

/// Returns a size as screen models take it, one row and one column at least.
fn rows_and_columns(size: ScreenSize) -> (NonZeroU16, NonZeroU16) {
    let at_least_one = |value| NonZeroU16::new(value).unwrap_or(NonZeroU16::MIN);
    (at_least_one(size.rows), at_least_one(size.columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size(columns: u16, rows: u16) -> ScreenSize {
        ScreenSize { columns, rows }
    }

    /// What this terminal shows after everything that was written.
    fn shown(pieces: &[String]) -> String {
        let mut outer = vt100::Parser::new(6.try_into().unwrap(), 20.try_into().unwrap(), 0);
        pieces.iter().for_each(|piece| outer.process(piece.as_bytes()));
        outer.screen().contents()
    }

    #[test]
    fn what_is_printed_is_drawn_above_the_status() {
        let mut view = TerminalView::new(size(20, 6), size(20, 5));
        view.print("one\r\n\x1b[32mtwo");
        let first = view.draw("status");
        view.print("\r\nthree\x1b]52;c;aGk=\x07\x1b]0;evil\x07\x1b[6n");
        let second = view.draw("status 2");
        assert_eq!(shown(&[first.clone(), second.clone()]), "one\ntwo\nthree\n\n\nstatus 2");
        assert!(!second.contains("]52;") && !second.contains("evil") && !second.contains("[6n"));
        view.print("\x1b[?1049h\x1b[Hfull");
        let third = view.draw("status 3");
        assert_eq!(shown(&[first, second, third]), "full\n\n\n\n\nstatus 3");
    }

    #[test]
    fn a_terminal_of_another_size_is_shown_as_it_is() {
        // Narrower and lower: its lines end where they end there.
        let mut view = TerminalView::new(size(20, 6), size(8, 3));
        view.print("\x1b[31m0123456789\r\nlast");
        let first = view.draw("status");
        assert_eq!(shown(std::slice::from_ref(&first)), "01234567\n89\nlast\n\n\nstatus");
        // Wider and higher: what is left, and where the cursor is.
        view.set_shown_size(size(30, 12));
        view.restart();
        let rows: Vec<String> =
            (1..=11).map(|row| format!("row {row} {}", "x".repeat(20))).collect();
        view.print(&rows.join("\r\n"));
        let second = view.draw("status");
        let screen = shown(&[first.clone(), second.clone()]);
        assert!(screen.starts_with("row 7 xxxxxxxxxxxxxx\nrow 8"), "{screen}");
        assert!(screen.contains("\nrow 11 xxxxxxxxxxxxx\nstatus"), "{screen}");
        // It has the size of this one from now on.
        view.set_shown_size(size(20, 5));
        view.print("\x1b[2J\x1b[Hwhole");
        let third = view.draw("status");
        assert_eq!(shown(&[first, second, third]), "whole\n\n\n\n\nstatus");
    }
}
