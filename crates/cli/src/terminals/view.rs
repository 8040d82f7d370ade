//! A terminal drawn on this one: all rows but the last, which says what it is and how to leave.
//!
//! Promises: only what a screen model understood is drawn: a program cannot write to the clipboard, ask this terminal questions, or
//! change its title.

use std::num::NonZeroU16;

use crate::terminal::escape_line;

/// The key that leaves.
pub(super) const LEAVE: u8 = 0x1d;
pub(super) const LEAVE_NAME: &str = "Ctrl-]";

/// What is drawn.
pub(super) struct TerminalView {
    parser: vt100::Parser,
    /// What is on this terminal; none: nothing that is known.
    drawn: Option<vt100::Screen>,
    /// Rows of this terminal.
    rows: u16,
    columns: u16,
}

impl TerminalView {
    pub(super) fn new((columns, rows): (u16, u16)) -> Self {
        let inner = size(columns, rows.saturating_sub(1));
        Self {
            parser: vt100::Parser::new(inner.1, inner.0, 0),
            drawn: None,
            rows,
            columns,
        }
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
    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
        let inner = size(columns, rows.saturating_sub(1));
        self.parser.screen_mut().set_size(inner.1, inner.0);
        self.drawn = None;
    }

    /// What to write to this terminal so that it shows all of it.
    pub(super) fn draw(&mut self, status: &str) -> String {
        let screen = self.parser.screen();
        let mut text = "\x1b[?25l".to_owned();
        match &self.drawn {
            Some(drawn) => text.push_str(&screen.contents_diff(drawn)),
            None => text.push_str(&screen.contents_formatted()),
        }
        text.push_str(&screen.input_mode_formatted());
        let status: String = escape_line(status)
            .chars()
            .take(usize::from(self.columns).saturating_sub(1))
            .collect();
        text.push_str(&format!(
            "\x1b[{};1H\x1b[0;7m{status}\x1b[K\x1b[0m",
            self.rows
        ));
        // Colours and place of the cursor as the program left them.
        text.push_str(&screen.attributes_formatted());
        let (row, column) = screen.cursor_position();
        text.push_str(&format!("\x1b[{};{}H", row + 1, column + 1));
        if !screen.hide_cursor() {
            text.push_str("\x1b[?25h");
        }
        self.drawn = Some(screen.clone());
        text
    }
}

fn size(columns: u16, rows: u16) -> (NonZeroU16, NonZeroU16) {
    let at_least_one = |value| NonZeroU16::new(value).unwrap_or(NonZeroU16::MIN);
    (at_least_one(columns), at_least_one(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What this terminal shows after everything that was written.
    fn shown(pieces: &[String]) -> String {
        let mut outer = vt100::Parser::new(6.try_into().unwrap(), 20.try_into().unwrap(), 0);
        pieces
            .iter()
            .for_each(|piece| outer.process(piece.as_bytes()));
        outer.screen().contents()
    }

    #[test]
    fn what_is_printed_is_drawn_above_the_status() {
        let mut view = TerminalView::new((20, 6));
        view.print("one\r\n\x1b[32mtwo");
        let first = view.draw("status");
        view.print("\r\nthree\x1b]52;c;aGk=\x07\x1b]0;evil\x07\x1b[6n");
        let second = view.draw("status 2");
        assert_eq!(
            shown(&[first.clone(), second.clone()]),
            "one\ntwo\nthree\n\n\nstatus 2"
        );
        assert!(!second.contains("]52;") && !second.contains("evil") && !second.contains("[6n"));
        view.print("\x1b[?1049h\x1b[Hfull");
        let third = view.draw("status 3");
        assert_eq!(shown(&[first, second, third]), "full\n\n\n\n\nstatus 3");
    }
}
