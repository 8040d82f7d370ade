//! What a terminal printed, as lines for a model: the ends of lines are plain, colours and the like are left out, and of a line that
//! was written over (a progress bar) only the last is kept.
//!
//! Promises: what has no carriage return and no escape sequence comes out byte for byte; what waits is bounded.

/// Longest line that waits for its end.
const LINE_BYTES_MAX: usize = 16 * 1_024;

#[derive(Debug, Default)]
pub(super) struct PlainLines {
    line: Vec<u8>,
    /// The line is written over by what comes next, unless that ends it.
    returned: bool,
    escape: Escape,
}

/// Where in an escape sequence the output is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// `ESC [`, up to a letter.
    Control,
    /// `ESC ]` and the like, up to their end.
    Text,
    /// An escape in such a text: perhaps its end.
    TextEnding,
}

impl Escape {
    /// What follows after this byte, and whether the byte belongs to a sequence.
    fn next(self, byte: u8) -> (Self, bool) {
        match (self, byte) {
            (Self::None, 0x1b) => (Self::Begun, true),
            (Self::None, _) => (Self::None, false),
            (Self::Begun, b'[') => (Self::Control, true),
            (Self::Begun, b']' | b'P' | b'X' | b'^' | b'_') => (Self::Text, true),
            (Self::Begun, 0x20..=0x2f) => (Self::Begun, true),
            (Self::Begun, b'\n' | b'\r') => (Self::None, false),
            (Self::Begun, _) => (Self::None, true),
            (Self::Control, 0x40..=0x7e) => (Self::None, true),
            (Self::Control | Self::Text | Self::TextEnding, b'\n') => (Self::None, false),
            (Self::Control, _) => (Self::Control, true),
            (Self::Text, 0x07) | (Self::TextEnding, b'\\') => (Self::None, true),
            (Self::Text, 0x1b) => (Self::TextEnding, true),
            (Self::Text | Self::TextEnding, _) => (Self::Text, true),
        }
    }
}

impl PlainLines {
    /// The lines that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len());
        for byte in bytes {
            let (escape, is_part) = self.escape.next(*byte);
            self.escape = escape;
            if is_part {
                continue;
            }
            match byte {
                b'\r' => self.returned = true,
                b'\n' => {
                    plain.append(&mut self.line);
                    plain.push(b'\n');
                    self.returned = false;
                }
                other => {
                    if std::mem::take(&mut self.returned) {
                        self.line.clear();
                    }
                    self.line.push(*other);
                    if self.line.len() >= LINE_BYTES_MAX {
                        plain.append(&mut self.line);
                    }
                }
            }
        }
        plain
    }

    /// The line that has no end yet. What is written over it later follows it.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pieces: &[&str]) -> String {
        let mut lines = PlainLines::default();
        let mut text: Vec<u8> = Vec::new();
        for piece in pieces {
            text.extend(lines.push(piece.as_bytes()));
        }
        text.extend(lines.take_rest());
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_end_plainly_and_are_kept_as_they_were_last() {
        assert_eq!(plain(&["one\r\ntwo\r", "\nthree"]), "one\ntwo\nthree");
        assert_eq!(plain(&["1%\r2%\r100%\r\ndone\r\n"]), "100%\ndone\n");
        assert_eq!(plain(&["over\rwritten"]), "written");
        assert_eq!(plain(&["kept\r"]), "kept");
        assert_eq!(plain(&["a\nb"]), "a\nb");
        assert_eq!(plain(&["\x1b[1;3", "2mgreen\x1b[0m\r\n"]), "green\n");
        assert_eq!(plain(&["\x1b]0;title\x07one\x1b]8;;x\x1b\\two\x1b(B"]), "onetwo");
        assert_eq!(plain(&["\x1b]without an end\nnext"]), "\nnext");
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        assert_eq!(plain(&[&long]), long);
    }
}
