//! Makes text from elsewhere safe to print: no escape sequences, no control characters but newline and tab, nothing that
//! turns the direction of the text around.
//!
//! Promises: what one delta begins and another ends is still taken out. Text is never held back, and a sequence that
//! is not ended swallows at most the rest of its line.

/// Takes control sequences out of a stream of text.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: EscapeState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Inside `ESC [ ...`: parameters up to a final letter.
    Control,
    /// Inside `ESC ] ...` and its like: anything up to BEL or ST.
    Payload,
    /// After ESC inside a payload.
    PayloadEscape,
}

impl Cleaner {
    pub(crate) fn clean(&mut self, text: &str) -> String {
        text.chars().filter(|c| self.accepts(*c)).collect()
    }

    fn accepts(&mut self, c: char) -> bool {
        if c == '\n' {
            self.state = EscapeState::Text;
            return true;
        }
        let (next, keep) = match (self.state, c) {
            (EscapeState::PayloadEscape, '\\') => (EscapeState::Text, false),
            (EscapeState::Payload, '\u{1b}') => (EscapeState::PayloadEscape, false),
            (_, '\u{1b}') => (EscapeState::Escape, false),
            (EscapeState::Payload | EscapeState::PayloadEscape, '\u{7}' | '\u{9c}') => {
                (EscapeState::Text, false)
            }
            (EscapeState::Payload | EscapeState::PayloadEscape, _) => (EscapeState::Payload, false),
            (EscapeState::Text, '\u{9b}') | (EscapeState::Escape, '[') => {
                (EscapeState::Control, false)
            }
            (EscapeState::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}')
            | (EscapeState::Escape, ']' | 'P' | 'X' | '^' | '_') => (EscapeState::Payload, false),
            // Intermediates of a longer escape.
            (EscapeState::Escape, ' '..='/') => (EscapeState::Escape, false),
            (EscapeState::Escape, '0'..='~') => (EscapeState::Text, false),
            (EscapeState::Control, ' '..='?') => (EscapeState::Control, false),
            (EscapeState::Control, '@'..='~') => (EscapeState::Text, false),
            // Whatever else follows was no sequence: it is text.
            (EscapeState::Text | EscapeState::Escape | EscapeState::Control, c) => (
                EscapeState::Text,
                c == '\t' || !(c.is_control() || misleads(c)),
            ),
        };
        self.state = next;
        keep
    }
}

/// Characters that show text in another order than it has: what is confirmed must be what is read.
fn misleads(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// A whole text, cleaned.
pub(crate) fn clean(text: &str) -> String {
    Cleaner::default().clean(text)
}

/// A whole text, cleaned and on one line.
pub(crate) fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_taken_out() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{1b}[2J\u{1b}[1;1Hb", "ab"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pdcs\u{1b}\\x", "x"),
            ("\u{1b}(Bx\u{1b}cy", "xy"),
            ("\u{9b}31mred", "red"),
            ("\u{9d}0;t\u{9c}x", "x"),
            ("a\rb\u{8}c\u{0}d\u{7f}e\u{85}f", "abcdef"),
            ("line\r\nnext", "line\nnext"),
            ("rm \u{202e}txt.exe\u{2066}", "rm txt.exe"),
            ("Grüße 👩‍🚀 漢字", "Grüße 👩‍🚀 漢字"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_in_two_deltas_is_still_one() {
        let mut cleaner = Cleaner::default();
        let parts = ["a\u{1b}", "[3", "1mb\u{1b}]0;t", "itle\u{1b}", "\\c"];
        let cleaned: String = parts.iter().map(|part| cleaner.clean(part)).collect();
        assert_eq!(cleaned, "abc");
    }

    #[test]
    fn a_sequence_without_end_swallows_at_most_its_line() {
        assert_eq!(clean("a\u{1b}]0;never ended\nb"), "a\nb");
        assert_eq!(clean("a\u{1b}[31\nb"), "a\nb");
        assert_eq!(clean("a\u{1b}äb"), "aäb");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(clean_line("a\nb\tc"), "a b c");
    }
}
