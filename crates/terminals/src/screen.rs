//! What a terminal shows: its screen and the rows above it, and a text that draws both on another terminal.
//!
//! Promises: memory is bounded by the size and [`SCROLLBACK_ROWS`]; whatever is drawn by [`ScreenModel::repaint`] on any
//! terminal of the same size is the same screen, the other screen of a full-screen program included.
//! Known not to be kept: the scroll region and tab stops of a program that is running; programs set them again when they draw.

use crate::size::TerminalSize;

/// Rows above the screen that are kept (G-56 asks for 200 lines).
pub const SCROLLBACK_ROWS: usize = 300;

/// Longest title.
const TITLE_CHARS_MAX: usize = 200;

/// A screen and what was above it.
pub struct ScreenModel {
    parser: vt100::Parser<TitleWatch>,
}

#[derive(Default)]
struct TitleWatch(Option<String>);

impl vt100::Callbacks for TitleWatch {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        let title = String::from_utf8_lossy(title);
        let readable = title.chars().filter(|character| !character.is_control());
        self.0 = Some(readable.take(TITLE_CHARS_MAX).collect());
    }
}

impl ScreenModel {
    pub fn new(size: TerminalSize) -> Self {
        let (rows, columns) = size.of_screen();
        let titles = TitleWatch::default();
        let parser = vt100::Parser::new_with_callbacks(rows, columns, SCROLLBACK_ROWS, titles);
        Self { parser }
    }

    pub fn process(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    pub fn resize(&mut self, size: TerminalSize) {
        let (rows, columns) = size.of_screen();
        self.parser.set_size(rows, columns);
    }

    /// The title that a program set since this was last asked.
    pub(crate) fn take_title(&mut self) -> Option<String> {
        self.parser.callbacks_mut().0.take()
    }

    /// Forgets what is above the screen, and the screen.
    pub fn clear(&mut self) {
        let is_alternate = self.parser.screen().alternate_screen();
        let (row, column) = self.parser.screen().cursor_position();
        if !is_alternate && row > 0 {
            // The line with the prompt stays, as terminals do it.
            let column = u32::from(column) + 1;
            let to_top = format!("\x1b[H\x1b[{row}M\x1b[1;{column}H");
            self.parser.process(to_top.as_bytes());
        }
        self.parser.screen_mut().clear_scrollback();
    }

    /// The text of the screen.
    pub fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// A text that draws this on another terminal, whatever is on that.
    pub fn repaint(&mut self) -> String {
        // Whatever sequence was begun ends here.
        let mut text = "\x18\x1b[0m\x1b[r\x1b[?1049l".to_owned();
        if self.parser.screen().alternate_screen() {
            let mut below = self.screen_below();
            draw_scrollback(&mut below, &mut text);
            text.push_str(&below.contents_formatted());
            text.push_str("\x1b[?1049h");
            text.push_str(&self.parser.screen().state_formatted());
        } else {
            draw_scrollback(self.parser.screen_mut(), &mut text);
            text.push_str(&self.parser.screen().state_formatted());
        }
        text
    }

    /// The screen that a full-screen program covers.
    fn screen_below(&self) -> vt100::Screen {
        let (rows, columns) = self.parser.screen().size();
        let mut parser = vt100::Parser::new(rows, columns, SCROLLBACK_ROWS);
        *parser.screen_mut() = self.parser.screen().clone();
        parser.process(b"\x1b[?1049l");
        parser.screen().clone()
    }
}

/// Writes the rows above the screen, and scrolls them out of it.
///
/// That something may be missing before them is said: whoever draws again has left something out.
fn draw_scrollback(screen: &mut vt100::Screen, text: &mut String) {
    let (rows, columns) = screen.size();
    let (rows, columns) = (usize::from(rows.get()), columns.get());
    let mut left = screen.scrollback_len();
    text.push_str("\x1b[2J\x1b[H");
    let is_any = left > 0;
    if left >= SCROLLBACK_ROWS {
        text.push_str("\x1b[2m[what was above is left out]\x1b[0m\r\n");
    }
    while left > 0 {
        screen.set_scrollback(left);
        let shown = left.min(rows);
        let drawn: Vec<String> = screen.rows_formatted(0, columns).take(shown).collect();
        for row in drawn {
            text.push_str("\x1b[0m");
            text.push_str(&row);
            text.push_str("\x1b[0m\r\n");
        }
        left -= shown;
    }
    screen.set_scrollback(0);
    if is_any {
        text.extend(std::iter::repeat_n("\r\n", rows.saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: fn() -> TerminalSize = || TerminalSize::clamped(20, 5);

    fn model(written: &str) -> ScreenModel {
        let mut model = ScreenModel::new(SIZE());
        model.process(written.as_bytes());
        model
    }

    /// What a terminal shows that had something on it before.
    fn replayed(repaint: &str) -> ScreenModel {
        let mut other = model("rubbish\r\n\x1b[31mmore \x1b[?1049h\x1b[2;3Hof it\x1b]0;half");
        other.process(repaint.as_bytes());
        other
    }

    fn assert_same(model: &mut ScreenModel) {
        let repaint = model.repaint();
        let mut other = replayed(&repaint);
        let (seen, drawn) = (model.parser.screen(), other.parser.screen());
        assert_eq!(seen.contents_formatted(), drawn.contents_formatted());
        assert_eq!(seen.input_mode_formatted(), drawn.input_mode_formatted());
        assert_eq!(seen.alternate_screen(), drawn.alternate_screen());
        assert_eq!(seen.cursor_position(), drawn.cursor_position());
        // What a full-screen program covers is the same too.
        model.process(b"\x1b[?1049l");
        other.process(b"\x1b[?1049l");
        let (seen, drawn) = (model.parser.screen(), other.parser.screen());
        assert_eq!(seen.contents(), drawn.contents());
    }

    #[test]
    fn a_screen_is_drawn_again_as_it_was() {
        assert_same(&mut model("hello \x1b[1;32mgreen\x1b[0m"));
        assert_same(&mut model("\x1b[3;4Hthere\x1b[?25l\x1b[?2004h"));
        let many: String = (0..50).map(|line| format!("line {line}\r\n")).collect();
        assert_same(&mut model(&many));
        assert_same(&mut model(&format!("{many}$ vi\x1b[?1049h\x1b[H~\r\n~ file")));
        assert_same(&mut model("exactly twenty wide!"));
        assert_same(&mut model("日本語日本語日本語日本語"));
    }

    #[test]
    fn rows_above_the_screen_are_drawn_too() {
        let many: String = (0..50).map(|line| format!("line {line}\r\n")).collect();
        let repaint = model(&many).repaint();
        let mut other = replayed(&repaint);
        other.parser.screen_mut().set_scrollback(10);
        assert!(other.contents().starts_with("line 36\n"), "{}", other.contents());
        assert!(repaint.contains("line 0\x1b") || repaint.contains("line 0\r"));
        let endless: String = (0..5_000).map(|line| format!("line {line}\r\n")).collect();
        let mut endless = model(&endless);
        assert!(endless.repaint().len() < 20_000);
        assert!(endless.repaint().contains("line 4800"));
    }

    #[test]
    fn clearing_leaves_the_line_that_is_written_on() {
        let mut cleared = model("one\r\ntwo\r\n$ ls");
        cleared.clear();
        assert_eq!(cleared.contents(), "$ ls");
        assert_eq!(cleared.parser.screen().cursor_position(), (0, 4));
        let many: String = (0..50).map(|line| format!("line {line}\r\n")).collect();
        let mut cleared = model(&many);
        cleared.clear();
        assert_eq!(cleared.contents(), "");
        assert_eq!(cleared.parser.screen().scrollback_len(), 0);
        let mut first = model("$ ls");
        first.clear();
        assert_eq!(first.contents(), "$ ls");
    }

    #[test]
    fn a_title_is_taken_once_and_is_plain() {
        let mut titled = model("\x1b]2;my\x01 title\x07");
        assert_eq!(titled.take_title(), Some("my title".to_owned()));
        assert_eq!(titled.take_title(), None);
    }

    proptest! {
        #[test]
        fn anything_is_drawn_again(pieces in prop::collection::vec(prop_oneof![
            "[ -~]{0,12}", Just("\r\n".to_owned()), Just("\x1b[2J".to_owned()), Just("\x1b[?1049h".to_owned()),
            Just("\x1b[?1049l".to_owned()), Just("\x1b[31m".to_owned()), Just("\x1b[0m".to_owned()),
            Just("\x1b[2;2H".to_owned()), Just("\x1b[K".to_owned()), Just("\x1b[A".to_owned()), Just("é漢".to_owned()),
            Just("\x1b[?25l".to_owned()), Just("\t".to_owned()), Just("\x1b[L".to_owned()),
        ], 0..30)) {
            assert_same(&mut model(&pieces.concat()));
        }
    }
}
