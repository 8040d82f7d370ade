//! A terminal whose window gets another size, as terminals do it that break lines anew and as those do it that cut them.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::termios::tcsetwinsize;

use super::{ScreenSize, Terminal};

/// A program that draws at all draws within this time.
const FRAME_TIMEOUT: Duration = Duration::from_millis(300);

/// What becomes of lines that do not fit any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    Break,
    Cut,
}

/// A row of a screen or of the history above it.
struct Row {
    text: String,
    /// It goes on in the next row.
    is_wrapped: bool,
}

/// Everything that was written, and where the cursor is in it.
struct WrittenRows {
    rows: Vec<Row>,
    cursor_row: usize,
    cursor_column: usize,
}

impl Terminal {
    /// Gives the window another size right after a drawing: a program cannot know of a change while it writes.
    pub fn resize(&mut self, size: ScreenSize, lines: Lines) {
        self.wait_for_drawing();
        let mut seen = self.screen.lock();
        let before = &mut seen.parser;
        let (cursor_row, cursor_column) = before.screen().cursor_position();
        let (all, history) = read_rows(before);
        let written = WrittenRows {
            rows: all,
            cursor_row: history + usize::from(cursor_row),
            cursor_column: usize::from(cursor_column),
        };
        let mut after = size.empty_screen();
        let columns = usize::from(size.columns);
        let text = match lines {
            Lines::Break => written.write_broken(columns),
            Lines::Cut => written.write_cut(columns),
        };
        after.process(text.as_bytes());
        seen.parser = after;
        tcsetwinsize(&self.keyboard, size.window()).unwrap();
        let written = seen.bytes.len();
        drop(seen);
        self.signal(Signal::WINCH);
        // The program draws for the new size, however busy the machine is.
        self.wait(|seen| seen.bytes.len() > written);
    }

    /// Everything that was printed and is still there, line by line: rows that a terminal broke are one line.
    pub fn lines(&self) -> Vec<String> {
        let mut seen = self.screen.lock();
        let (rows, _) = read_rows(&mut seen.parser);
        join(&rows).into_iter().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until a drawing has ended that had not when this was called; if none comes, nothing is being drawn.
    fn wait_for_drawing(&self) {
        let deadline = Instant::now() + FRAME_TIMEOUT;
        let mut seen = self.screen.lock();
        let before = seen.bytes.len();
        while seen.is_half_drawn() || seen.bytes.len() == before {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() && !seen.is_half_drawn() {
                return;
            }
            let left = left.max(Duration::from_millis(1));
            seen = self.screen.changed.wait_timeout(seen, left).unwrap().0;
        }
    }
}

/// All rows down to the cursor or the last that holds something, and how many of them are above the screen.
fn read_rows(parser: &mut vt100::Parser) -> (Vec<Row>, usize) {
    let columns = parser.screen().size().1.get();
    parser.screen_mut().set_scrollback(usize::MAX);
    let history = parser.screen().scrollback();
    let mut rows = Vec::new();
    for above in (1..=history).rev() {
        parser.screen_mut().set_scrollback(above);
        let text = parser.screen().rows(0, columns).next().unwrap();
        let is_wrapped = parser.screen().row_wrapped(0);
        rows.push(Row { text, is_wrapped });
    }
    parser.screen_mut().set_scrollback(0);
    let screen = parser.screen();
    for (index, text) in screen.rows(0, columns).enumerate() {
        let is_wrapped = screen.row_wrapped(u16::try_from(index).unwrap());
        rows.push(Row { text, is_wrapped });
    }
    let cursor = history + usize::from(screen.cursor_position().0);
    while rows.len() > cursor + 1 && rows.last().is_some_and(|row| row.text.trim().is_empty()) {
        rows.pop();
    }
    (rows, history)
}

fn join(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for row in rows {
        line.push_str(&row.text);
        if !row.is_wrapped {
            lines.push(std::mem::take(&mut line));
        }
    }
    lines.extend(Some(line).filter(|line| !line.is_empty()));
    lines
}

impl WrittenRows {
    /// Writes lines anew at another width, and puts the cursor where its character is.
    fn write_broken(&self, columns: usize) -> String {
        let (rows, row) = (&self.rows, self.cursor_row);
        let width = |text: &str| text.chars().count();
        let lines: Vec<String> = join(rows).iter().map(|line| line.trim_end().to_owned()).collect();
        // The line that the cursor is in, and how far in.
        let line = rows[..row].iter().filter(|row| !row.is_wrapped).count();
        let first = rows[..row].iter().rposition(|row| !row.is_wrapped).map_or(0, |at| at + 1);
        let before: usize = rows[first..row].iter().map(|row| width(&row.text)).sum();
        let offset = before + self.cursor_column;
        let rows_of = |line: &String| width(line).div_ceil(columns).max(1);
        let below: usize = lines[line + 1..].iter().map(rows_of).sum();
        let up = below + rows_of(&lines[line]).saturating_sub(1 + offset / columns);
        place(&lines.join("\r\n"), up, offset % columns)
    }

    /// Writes rows anew, each as much as fits.
    fn write_cut(&self, columns: usize) -> String {
        let cut: Vec<String> = self
            .rows
            .iter()
            .map(|row| row.text.chars().take(columns).collect::<String>())
            .map(|row| row.trim_end().to_owned())
            .collect();
        let up = self.rows.len() - 1 - self.cursor_row;
        place(&cut.join("\r\n"), up, self.cursor_column.min(columns - 1))
    }
}

fn place(text: &str, up: usize, column: usize) -> String {
    let mut written = text.to_owned();
    if up > 0 {
        written.push_str(&format!("\x1b[{up}A"));
    }
    written.push('\r');
    if column > 0 {
        written.push_str(&format!("\x1b[{column}C"));
    }
    written
}
