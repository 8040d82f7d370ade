//! Characters that cannot be seen where they stand, written out: `\x1b`, `\u{202e}`. For commands, paths and diffs.
//!
//! Promises: nothing is left out, and writing out again changes nothing. What is consented to is seen to the last character.
//! Must not know: where the text comes from or is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character controls a terminal, reorders text, breaks a line by itself, or is not seen at all. Joiners and variation
/// selectors are none of these: scripts and emoji need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
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
    if !text.contains(is_written_out) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing into a string does not fail.
        let _ = match c {
            c if !is_written_out(c) => seen.write_char(c),
            '\n' => seen.write_str("\\n"),
            '\t' => seen.write_str("\\t"),
            '\r' => seen.write_str("\\r"),
            c if c.is_ascii() => write!(seen, "\\x{:02x}", u32::from(c)),
            c => write!(seen, "\\u{{{:x}}}", u32::from(c)),
        };
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
            ("Grüße 👩‍🚀 漢字", "Grüße 👩‍🚀 漢字"),
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
            for c in text.chars().filter(|c| !is_hidden(*c)) {
                prop_assert!(rest.any(|other| other == c));
            }
        }
    }
}
