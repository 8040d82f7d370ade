//! Escape sequences of a terminal's output, whole and bounded.
//!
//! Promises: what comes out ends between sequences or inside a string (OSC, DCS and the like), never inside another sequence, so
//! that a drawing can come next. A sequence that is too long is left out; a string that is too long, or has no end, loses its rest.
//! Control characters of eight bits (U+0080 to U+009F) come out as the sequences of seven bits that mean the same, and DEL, which means
//! nothing, is left out: terminals differ in what they make of both. What is given in pieces comes out as if it had come at once.
//! Must not know: what sequences mean.

/// Longest sequence that is handed on; programs use a few dozen characters.
const SEQUENCE_CHARS_MAX: usize = 1_024;

/// Longest string that is handed on: screens hold it until it ends.
const STRING_BYTES_MAX: usize = 64 * 1_024;

#[derive(Debug, Default)]
pub(crate) struct SequenceGuard {
    state: ParserState,
    /// A sequence that has begun.
    waiting: String,
}

/// Where the next character is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ParserState {
    #[default]
    Text,
    /// After `ESC`, and what may come before the character that says what it is.
    Escape,
    /// After `ESC [`.
    Control { chars: usize },
    /// In a string, that may end by BEL as well (OSC) or not.
    Inside { ends_by_bell: bool, bytes: usize },
}

impl SequenceGuard {
    pub(crate) fn pass(&mut self, text: &str) -> String {
        if self.state == ParserState::Text && is_plain(text) {
            return text.to_owned();
        }
        let mut passed = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '\x7f' => {}
                '\u{80}'..='\u{9f}' => {
                    self.take('\x1b', &mut passed);
                    self.take(seven_bit(character), &mut passed);
                }
                _ => self.take(character, &mut passed),
            }
        }
        passed
    }

    /// What a drawing ends with, so that the rest of a string that has begun is not shown as text.
    pub(crate) fn reopen(&self) -> &'static str {
        match self.state {
            ParserState::Inside { ends_by_bell: true, .. } => "\x1b]",
            // Everybody passes over the content of this one.
            ParserState::Inside { .. } => "\x1b_",
            ParserState::Text | ParserState::Escape | ParserState::Control { .. } => "",
        }
    }

    /// What waits when nothing more comes.
    pub(crate) fn finish(&mut self) -> String {
        self.state = ParserState::Text;
        std::mem::take(&mut self.waiting)
    }

    fn take(&mut self, character: char, passed: &mut String) {
        match character {
            '\x1b' => {
                // Whatever had begun is over; the rest of a sequence without its end means nothing.
                self.waiting.clear();
                self.waiting.push(character);
                self.state = ParserState::Escape;
                return;
            }
            // Cancels everything.
            '\x18' | '\x1a' => {
                self.waiting.clear();
                self.state = ParserState::Text;
                passed.push(character);
                return;
            }
            _ => {}
        }
        match self.state {
            ParserState::Text => passed.push(character),
            ParserState::Escape => self.take_kind(character, passed),
            ParserState::Control { chars } => self.take_parameter(character, chars + 1, passed),
            ParserState::Inside { ends_by_bell, bytes } => {
                if ends_by_bell && character == '\x07' {
                    self.state = ParserState::Text;
                    passed.push(character);
                    return;
                }
                let bytes = bytes.saturating_add(character.len_utf8());
                if bytes <= STRING_BYTES_MAX {
                    passed.push(character);
                }
                self.state = ParserState::Inside { ends_by_bell, bytes };
            }
        }
    }

    /// The character that says what a sequence is, or one before it.
    fn take_kind(&mut self, character: char, passed: &mut String) {
        self.waiting.push(character);
        let is_first = self.waiting.len() == 2;
        self.state = match character {
            '[' if is_first => ParserState::Control { chars: 0 },
            ']' if is_first => self.enter_string(true, passed),
            'P' | 'X' | '^' | '_' if is_first => self.enter_string(false, passed),
            ' '..='/' if self.waiting.len() < SEQUENCE_CHARS_MAX => ParserState::Escape,
            ' '..='/' => {
                self.waiting.truncate(1);
                ParserState::Escape
            }
            // A control character inside counts at once, and the sequence goes on.
            '\0'..='\x1f' => {
                self.waiting.pop();
                passed.push(character);
                ParserState::Escape
            }
            _ => {
                passed.push_str(&std::mem::take(&mut self.waiting));
                ParserState::Text
            }
        };
    }

    fn enter_string(&mut self, ends_by_bell: bool, passed: &mut String) -> ParserState {
        passed.push_str(&std::mem::take(&mut self.waiting));
        ParserState::Inside { ends_by_bell, bytes: 0 }
    }

    fn take_parameter(&mut self, character: char, chars: usize, passed: &mut String) {
        self.state = ParserState::Control { chars };
        match character {
            '\0'..='\x1f' => passed.push(character),
            '@'..='~' => {
                self.state = ParserState::Text;
                let sequence = std::mem::take(&mut self.waiting);
                if chars <= SEQUENCE_CHARS_MAX {
                    passed.push_str(&sequence);
                    passed.push(character);
                }
            }
            _ if chars < SEQUENCE_CHARS_MAX => self.waiting.push(character),
            _ => {} // too long: it is left out, up to its end
        }
    }
}

/// Whether nothing in a text begins a sequence or is left out. Quick: most output is such.
fn is_plain(text: &str) -> bool {
    // A control character of eight bits begins with this byte in UTF-8, and so do a few letters.
    const FIRST_OF_EIGHT_BITS: u8 = 0xc2;
    memchr::memchr3(0x1b, 0x7f, FIRST_OF_EIGHT_BITS, text.as_bytes()).is_none()
}

/// The character that means the same after `ESC` as a control character of eight bits.
fn seven_bit(control: char) -> char {
    let number = u32::from(control).wrapping_sub(0x40);
    char::from_u32(number).unwrap_or('\\')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pass_all(pieces: &[&str]) -> String {
        let mut guard = SequenceGuard::default();
        pieces.iter().map(|piece| guard.pass(piece)).collect()
    }

    #[test]
    fn what_programs_print_comes_out_as_it_is() {
        let printed = "plain\x1b[1;31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://a\x1b\\link\x1b(B\x1b=\x1bPq#0\x1b\\\
                       \x1b[?1049h\x1b[2J\x1b[Hé漢\r\n\x1b7\x1b8\x1bM\x18";
        assert_eq!(pass_all(&[printed]), printed);
        for (cut, _) in printed.char_indices() {
            let (before, after) = printed.split_at(cut);
            assert_eq!(pass_all(&[before, after]), printed);
        }
    }

    #[test]
    fn a_sequence_is_handed_on_when_it_is_whole() {
        let mut guard = SequenceGuard::default();
        assert_eq!(guard.pass("a\x1b[3"), "a");
        assert_eq!(guard.reopen(), "");
        assert_eq!(guard.pass("1mb"), "\x1b[31mb");
        assert_eq!(guard.pass("\x1b]0;ti"), "\x1b]0;ti");
        assert_eq!(guard.reopen(), "\x1b]");
        assert_eq!(guard.pass("tle\x07c"), "tle\x07c");
        assert_eq!(guard.pass("\x1bPq"), "\x1bPq");
        assert_eq!(guard.reopen(), "\x1b_");
        assert_eq!(guard.pass("\x1b"), "");
        assert_eq!(guard.finish(), "\x1b");
    }

    #[test]
    fn control_characters_of_eight_bits_are_those_of_seven() {
        for (printed, expected) in [
            ("a\u{9b}31mb", "a\x1b[31mb"),
            ("\u{9d}0;title\u{9c}c", "\x1b]0;title\x1b\\c"),
            ("\u{90}q#0\u{9c}c", "\x1bPq#0\x1b\\c"),
            ("\u{9f}hidden\u{9c}c", "\x1b_hidden\x1b\\c"),
            ("a\u{85}b\u{8d}c", "a\x1bEb\x1bMc"),
            // One inside a sequence ends that, as ESC does.
            ("\x1b[3\u{9b}1mb", "\x1b[1mb"),
            ("\x1b]0;ti\u{9b}1mb", "\x1b]0;ti\x1b[1mb"),
            // Letters that begin with the same byte are letters.
            ("\u{a0}«é»", "\u{a0}«é»"),
        ] {
            assert_eq!(pass_all(&[printed]), expected, "{printed:?}");
            for (cut, _) in printed.char_indices() {
                let (before, after) = printed.split_at(cut);
                assert_eq!(pass_all(&[before, after]), expected, "{printed:?} at {cut}");
            }
        }
        let mut guard = SequenceGuard::default();
        assert_eq!(guard.pass("a\u{9b}3"), "a", "it has no end yet");
        assert_eq!(guard.pass("1mb"), "\x1b[31mb");
        let mut passed = guard.pass("\u{9d}0;").len();
        for _ in 0..100 {
            passed += guard.pass(&"x".repeat(10_000)).len();
        }
        assert!(passed <= STRING_BYTES_MAX + 8, "{passed}");
        assert_eq!(guard.reopen(), "\x1b]");
        assert_eq!(guard.pass("\u{9c}after"), "\x1b\\after");
        assert_eq!(guard.reopen(), "");
    }

    /// It does not end a sequence, and nothing is shown for it.
    #[test]
    fn del_means_nothing_anywhere() {
        let printed = "a\x7fb\x1b\x7f[\x7f3\x7f1\x7fmc\x1b]0;ti\x7ftle\x07\x1b(\x7fBd";
        assert_eq!(pass_all(&[printed]), "ab\x1b[31mc\x1b]0;title\x07\x1b(Bd");
    }

    #[test]
    fn what_has_no_end_is_bounded() {
        let mut guard = SequenceGuard::default();
        let mut passed = guard.pass("\x1b]0;").len();
        for _ in 0..100 {
            passed += guard.pass(&"x".repeat(10_000)).len();
        }
        assert!(passed <= STRING_BYTES_MAX + 8, "{passed}");
        assert_eq!(guard.pass("\x07after"), "\x07after");
        let mut passed = guard.pass("\x1b[").len();
        for _ in 0..100 {
            passed += guard.pass(&"1;".repeat(10_000)).len();
            assert!(guard.waiting.len() <= SEQUENCE_CHARS_MAX + 2);
        }
        assert_eq!(passed, 0);
        assert_eq!(guard.pass("mafter"), "after");
        for _ in 0..10_000 {
            guard.pass("\x1b((((((((((((((");
            guard.pass("((((((((((((((((((((");
            assert!(guard.waiting.len() <= SEQUENCE_CHARS_MAX + 64);
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "(\\PC|\x1b|\x07|\x18|\x7f|\u{80}|\u{90}|\u{9b}|\u{9c}|\u{9d}|\\[|\\]|[0-9;m]|P|\\\\){0,60}", cut in 0usize..60) {
            let cut = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
            let (before, after) = text.split_at(cut);
            prop_assert_eq!(pass_all(&[before, after]), pass_all(&[&text]));
        }
    }
}
