//! Draws on a terminal: settled lines scroll away above a live area at the bottom that is drawn again and again.
//!
//! Promises: settled lines are written once and stay in the terminal's own history; one that is wider than the screen is broken by the
//! terminal, so that it is one line to whoever copies it. What is drawn again is never taller than the screen, and one drawing is one
//! write. When the screen has another size, all of what was drawn is erased and nothing else, whether the terminal breaks lines that
//! do not fit any more or cuts them.
//! Must not know: what the lines say, where the bytes go.

use client::terminals::ScreenSize;

use super::line::{Colors, Line};
use super::render::{LinkStyle, Page, ProseStyle};
use super::terminal_traits::{Reflow, TerminalTraits};

/// Begins and ends a drawing that shows at once, with the cursor hidden meanwhile.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// The part of the screen that is drawn again and again: its bottom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveArea {
    pub(crate) lines: Vec<Line>,
    /// Row in `lines` and column of the cursor.
    pub(crate) cursor: (usize, usize),
    /// Whether not all of what is decided on is there.
    pub(crate) is_subject_cut: bool,
}

impl LiveArea {
    /// The last `rows` of it, each no wider than `width`.
    fn clip(mut self, width: usize, rows: usize) -> Self {
        let above = self.lines.len().saturating_sub(rows.max(1));
        // The cursor is what people look at.
        let above = above.min(self.cursor.0);
        self.lines.drain(..above);
        self.lines.truncate(rows.max(1));
        self.cursor.0 -= above;
        let lines = self.lines.into_iter();
        self.lines = lines.map(|line| line.clip(width)).collect();
        self
    }
}

#[derive(Debug)]
pub(crate) struct Painter {
    colors: Colors,
    traits: TerminalTraits,
    size: ScreenSize,
    drawn: Option<LiveArea>,
    /// The screen has another size than when that was drawn.
    is_resized: bool,
}

impl Painter {
    /// One for a terminal of which nothing is known.
    pub(crate) fn new(colors: Colors, size: ScreenSize) -> Self {
        Self {
            colors,
            traits: TerminalTraits { reflow: Reflow::Breaks, links: LinkStyle::WrittenOut },
            size,
            drawn: None,
            is_resized: false,
        }
    }

    pub(crate) fn with_traits(self, traits: TerminalTraits) -> Self {
        Self { traits, ..self }
    }

    /// What lines are made for.
    pub(crate) fn page(&self) -> Page {
        Page {
            width: self.width(),
            rows: self.rows(),
            colors: self.colors,
            links: self.traits.links,
            prose: ProseStyle::Rendered,
        }
    }

    /// Columns a line may take. The last one stays free: terminals disagree about what happens there.
    pub(crate) fn width(&self) -> usize {
        usize::from(self.size.columns).saturating_sub(1).max(1)
    }

    pub(crate) fn rows(&self) -> usize {
        usize::from(self.size.rows)
    }

    /// The screen has another size, perhaps.
    pub(crate) fn resize(&mut self, size: ScreenSize) {
        self.is_resized |= self.size != size;
        self.size = size;
    }

    /// What to write to have these lines settle above this bottom.
    pub(crate) fn draw(&mut self, settled: &[Line], area: LiveArea) -> String {
        let width = self.width();
        let area = area.clip(width, self.rows().saturating_sub(1));
        if settled.is_empty() && !self.is_resized && self.drawn.as_ref() == Some(&area) {
            return String::new();
        }
        let mut out = BEGIN.to_owned();
        out.push_str(&self.erase());
        for line in settled {
            out.push_str(&line.encode(self.colors));
            out.push_str("\r\n");
        }
        let lines = area.lines.iter();
        let encoded: Vec<String> = lines.map(|line| line.encode(self.colors)).collect();
        let encoded = encoded.join("\r\n");
        match self.traits.reflow {
            Reflow::Breaks => out.push_str(&encoded),
            // One row each, even if the screen has become narrower on the way.
            Reflow::Cuts => out.push_str(&format!("\x1b[?7l{encoded}\x1b[?7h")),
        }
        let (row, column) = area.cursor;
        up(&mut out, area.lines.len().saturating_sub(row + 1));
        out.push('\r');
        if column > 0 {
            out.push_str(&format!("\x1b[{}C", column.min(width)));
        }
        out.push_str(END);
        self.drawn = Some(area);
        self.is_resized = false;
        out
    }

    /// What to write to fill the screen with these lines, from its top.
    pub(crate) fn full_screen(&self, lines: &[Line]) -> String {
        let lines = lines.iter().take(self.rows());
        let rows: Vec<String> = lines
            .map(|line| format!("{}\x1b[K", line.clone().clip(self.width()).encode(self.colors)))
            .collect();
        format!("\x1b[?2026h\x1b[H{}\x1b[J\x1b[?2026l", rows.join("\r\n"))
    }

    /// What to write to leave nothing of the bottom.
    pub(crate) fn clear(&mut self) -> String {
        let erase = self.erase();
        self.drawn = None;
        erase
    }

    /// Forgets what was drawn: another program has written since.
    pub(crate) fn forget(&mut self) {
        self.drawn = None;
    }

    /// Goes to where the bottom begins and erases from there.
    fn erase(&self) -> String {
        let Some(drawn) = &self.drawn else { return String::new() };
        let columns = usize::from(self.size.columns).max(1);
        let above = match self.traits.reflow {
            // Lines that were wider than the screen is now take several rows of it.
            Reflow::Breaks => {
                let lines = drawn.lines.iter().take(drawn.cursor.0);
                let above: usize = lines.map(|line| line.rows(columns)).sum();
                above + drawn.cursor.1 / columns
            }
            Reflow::Cuts => drawn.cursor.0,
        };
        let mut out = String::new();
        up(&mut out, above);
        out.push_str("\r\x1b[J");
        out
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        out.push_str(&format!("\x1b[{rows}A"));
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::chat::line::Style;

    const SIZE: ScreenSize = ScreenSize { columns: 20, rows: 6 };
    const NARROW: ScreenSize = ScreenSize { columns: 10, rows: 6 };

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| Line::new(Style::Plain, *text)).collect()
    }

    fn bottom(texts: &[&str], row: usize, column: usize) -> LiveArea {
        LiveArea { lines: lines(texts), cursor: (row, column), is_subject_cut: false }
    }

    fn terminal(size: ScreenSize) -> vt100::Parser {
        let cells = |cells: u16| NonZero::new(cells).unwrap();
        vt100::Parser::new(cells(size.rows), cells(size.columns), 100)
    }

    struct Screen {
        painter: Painter,
        terminal: vt100::Parser,
    }

    impl Screen {
        fn new() -> Self {
            Self { painter: Painter::new(Colors::Off, SIZE), terminal: terminal(SIZE) }
        }

        fn draw(&mut self, settled: &[&str], area: LiveArea) -> String {
            let written = self.painter.draw(&lines(settled), area);
            self.terminal.process(written.as_bytes());
            self.screen_text()
        }

        /// Without the spaces at the ends of lines.
        fn screen_text(&self) -> String {
            let contents = self.terminal.screen().contents();
            let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
            lines.join("\n")
        }
    }

    #[test]
    fn the_live_area_is_redrawn_below_finished_lines() {
        let mut screen = Screen::new();
        assert_eq!(screen.draw(&["one"], bottom(&["part", "> "], 1, 2)), "one\npart\n>");
        assert_eq!(screen.terminal.screen().cursor_position(), (2, 2));
        let screen_text = screen.draw(&["two", "three"], bottom(&["> x"], 0, 3));
        assert_eq!(screen_text, "one\ntwo\nthree\n> x");
        assert_eq!(screen.terminal.screen().cursor_position(), (3, 3));
        assert_eq!(screen.painter.draw(&[], bottom(&["> x"], 0, 3)), "", "nothing new");
        let cleared = screen.painter.clear();
        screen.terminal.process(cleared.as_bytes());
        assert_eq!(screen.terminal.screen().contents(), "one\ntwo\nthree");
    }

    #[test]
    fn finished_lines_scroll_into_the_terminals_history() {
        let mut screen = Screen::new();
        for n in 0..20 {
            screen.draw(&[&format!("line {n}")], bottom(&["", "> "], 1, 2));
        }
        let screen_text = screen.screen_text();
        assert_eq!(screen_text, "line 16\nline 17\nline 18\nline 19\n\n>");
        screen.terminal.screen_mut().set_scrollback(16);
        assert!(screen.terminal.screen().contents().starts_with("line 0\nline 1\n"));
    }

    #[test]
    fn a_bottom_taller_than_the_screen_is_cut_around_the_cursor() {
        let mut screen = Screen::new();
        let texts = ["1", "2", "3", "4", "5", "6", "7", "8"];
        let screen_text = screen.draw(&["settled"], bottom(&texts, 7, 1));
        assert_eq!(screen_text, "settled\n4\n5\n6\n7\n8");
        let screen_text = screen.draw(&[], bottom(&["> "], 0, 2));
        assert_eq!(screen_text, "settled\n>");
        let screen_text = screen.draw(&[], bottom(&texts, 1, 0));
        assert_eq!(screen_text, "settled\n2\n3\n4\n5\n6");
    }

    #[test]
    fn a_long_line_at_the_bottom_is_cut() {
        let mut screen = Screen::new();
        let screen_text = screen.draw(&[], bottom(&["a line that does not fit here", "> "], 1, 2));
        assert_eq!(screen_text, "a line that does n…\n>");
        let screen_text =
            screen.draw(&["above"], bottom(&["a line that does not fit here", "> "], 1, 2));
        assert_eq!(screen_text, "above\na line that does n…\n>");
        assert_eq!(screen.draw(&[], bottom(&["> "], 0, 2)), "above\n>");
    }

    #[test]
    fn a_narrower_screen_that_cuts_lines_leaves_nothing_behind_either() {
        let mut screen = Screen::new();
        screen.painter = Painter::new(Colors::Off, SIZE)
            .with_traits(TerminalTraits { reflow: Reflow::Cuts, links: LinkStyle::WrittenOut });
        screen.draw(&["top", "next"], bottom(&["eighteen letters..", "> "], 1, 2));
        screen.painter.resize(NARROW);
        screen.terminal = terminal(NARROW);
        screen.terminal.process(b"top\r\nnext\r\neighteen l\r\n> ");
        assert_eq!(screen.draw(&[], bottom(&["> "], 0, 2)), "top\nnext\n>");
    }

    #[test]
    fn a_settled_line_is_never_broken_by_us() {
        let mut screen = Screen::new();
        let long = "a line of code that is longer than the screen is wide";
        let written = screen.painter.draw(&lines(&[long]), bottom(&["> "], 0, 2));
        assert!(written.contains(&format!("{long}\r\n")), "{written:?}");
    }

    #[test]
    fn a_narrower_screen_leaves_nothing_behind() {
        let mut screen = Screen::new();
        screen.draw(&["top"], bottom(&["eighteen letters..", "> "], 1, 2));
        // A terminal breaks the long line in two; so does this one, by hand.
        screen.painter.resize(NARROW);
        screen.terminal = terminal(NARROW);
        screen.terminal.process(b"top\r\neighteen letters..\r\n> ");
        assert_eq!(screen.draw(&[], bottom(&["> "], 0, 2)), "top\n>");
    }
}
