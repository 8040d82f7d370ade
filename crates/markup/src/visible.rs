//! Characters that cannot be seen where they stand, written out: `\x1b`, `\u{202e}`. For commands, paths and diffs.
//!
//! Promises: nothing is left out, and writing out again changes nothing. What is consented to is seen to the last character.
//! Must not know: where the text comes from or is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// Marks that one character may have. Scripts need a few; a tower of them covers the lines around it.
const MARKS_MAX: usize = 8;

/// Whether a character controls a terminal, reorders text, breaks a line by itself, or is not seen at all. Joiners and variation
/// selectors are none of these: scripts and emoji need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e00ff}'
                | '\u{e01f0}'..='\u{e0fff}'
        )
}

/// Joiners and variation selectors: they change the character before them, and are not seen by themselves.
fn is_modifier(c: char) -> bool {
    matches!(
        c,
        '\u{200c}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Whether an ASCII character has a form as an emoji, which a selector chooses.
fn has_emoji(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '#' | '*')
}

/// What was written last, as far as it decides whether a mark on it can be seen.
#[derive(Default)]
struct LastWritten {
    last: Option<char>,
    /// Marks on the same character.
    marks: usize,
}

impl LastWritten {
    /// Whether a character that takes no room of its own is lost here: a modifier of what it does not modify, or one mark of too many.
    fn hides(&self, c: char) -> bool {
        let is_modified = match self.last {
            None => false,
            Some(last) if last.is_ascii() => c == '\u{fe0f}' && has_emoji(last),
            Some(_) => true,
        };
        (is_modifier(c) && !is_modified) || (is_mark(c) && self.marks >= MARKS_MAX)
    }

    fn add(&mut self, c: char) {
        self.marks = if is_mark(c) { self.marks + 1 } else { 0 };
        self.last = Some(c);
    }
}

fn is_mark(c: char) -> bool {
    c.width() == Some(0)
}

/// A text with its newlines and tabs as they are and every other hidden character written out.
pub fn write_out(text: &str) -> Cow<'_, str> {
    write_out_all_but(text, &['\n', '\t'])
}

/// A line of a file: its tabs stay, a newline within it is written out.
pub fn write_out_line(line: &str) -> Cow<'_, str> {
    write_out_all_but(line, &['\t'])
}

/// A name or a path: every hidden character is written out.
pub fn write_out_name(name: &str) -> Cow<'_, str> {
    write_out_all_but(name, &[])
}

/// A line of bytes: what is not UTF-8 is written out as `\xff`.
pub fn write_out_bytes(line: &[u8]) -> String {
    let mut seen = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        seen.push_str(&write_out_line(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing into a string does not fail.
            let _ = write!(seen, "\\x{byte:02x}");
        }
    }
    seen
}

fn write_out_all_but<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_written_out = |c: char| is_hidden(c) && !kept.contains(&c);
    if !text.contains(|c| is_written_out(c) || is_mark(c)) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 16);
    let mut last = LastWritten::default();
    for c in text.chars() {
        if !is_written_out(c) && !last.hides(c) {
            seen.push(c);
            last.add(c);
            continue;
        }
        // Writing into a string does not fail.
        let _ = match c {
            '\n' => seen.write_str("\\n"),
            '\t' => seen.write_str("\\t"),
            '\r' => seen.write_str("\\r"),
            c if c.is_ascii() => write!(seen, "\\x{:02x}", u32::from(c)),
            c => write!(seen, "\\u{{{:x}}}", u32::from(c)),
        };
        last.add('}');
    }
    Cow::Owned(seen)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("hi \u{1b}]0;t\u{7}", "hi \\x1b]0;t\\x07"),
            ("rm \u{202e}txt.exe\u{2066}", "rm \\u{202e}txt.exe\\u{2066}"),
            ("a\rb\u{7f}\u{9b}c", "a\\rb\\x7f\\u{9b}c"),
            (
                "Grüße 👩‍🚀 漢字 ❤\u{fe0f} 1\u{fe0f}\u{20e3} می\u{200c}خواهم",
                "Grüße 👩‍🚀 漢字 ❤\u{fe0f} 1\u{fe0f}\u{20e3} می\u{200c}خواهم",
            ),
            ("ma\u{200d}\u{200c}in a\u{fe0f}", "ma\\u{200d}\\u{200c}in a\\u{fe0f}"),
            ("x\u{3164}y\u{ffa0}\u{34f}", "x\\u{3164}y\\u{ffa0}\\u{34f}"),
            (
                "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}",
                "e\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\\u{309}",
            ),
        ] {
            assert_eq!(write_out(text), expected);
        }
        assert_eq!(write_out_line("a\tb\n"), "a\tb\\n");
        assert_eq!(write_out_name("a\tb\n"), "a\\tb\\n");
        assert_eq!(write_out_bytes(b"a\xff\x1bb"), "a\\xff\\x1bb");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_nothing_seen_is_lost(text in "(\\PC|[\u{0}-\u{9f}\u{2020}-\u{2070}]){0,40}") {
            let seen = write_out_name(&text).into_owned();
            prop_assert!(!seen.contains(is_hidden));
            prop_assert_eq!(&write_out_name(&seen), &seen);
            let mut rest = seen.chars();
            for c in text.chars().filter(|c| !is_hidden(*c) && !is_mark(*c)) {
                prop_assert!(rest.any(|other| other == c));
            }
        }
    }
}
