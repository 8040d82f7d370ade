//! Makes text from elsewhere safe to print: what would control a terminal, hide, or reorder text is written out as an escape
//! such as `\x1b` or `\u{202e}`.
//!
//! Promises: nothing is ever left out. Whoever consents to a text has seen every character of it; no escape sequence
//! from outside reaches a terminal. What is printed as JSON is still the same JSON.
//! Must not know: where the text comes from.

use std::fmt::Write as _;

use serde_json::Value;

/// Whether a character is not simply seen where it stands.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Characters that show text in another order than it has, break lines by themselves, or cannot be seen at all. Joiners and
/// variation selectors are not among them: scripts and emoji need those.
fn is_invisible(c: char) -> bool {
    matches!(
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

/// A text with its newlines and tabs as they are and everything else that is unsafe written out.
pub(crate) fn escape(text: &str) -> String {
    escape_all_but(text, &['\n', '\t'])
}

/// A text on one line: newlines and tabs are written out, too.
pub(crate) fn escape_line(text: &str) -> String {
    escape_all_but(text, &[])
}

fn escape_all_but(text: &str, kept: &[char]) -> String {
    let is_escaped = |c: char| is_unsafe(c) && !kept.contains(&c);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing into a string does not fail.
        let _ = match c {
            c if !is_escaped(c) => escaped.write_char(c),
            '\n' => escaped.write_str("\\n"),
            '\t' => escaped.write_str("\\t"),
            '\r' => escaped.write_str("\\r"),
            c if c.is_ascii() => write!(escaped, "\\x{:02x}", u32::from(c)),
            c => write!(escaped, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    escaped
}

/// A value as one line of JSON without an unsafe character: inside its strings, the only place for one, they are `\uXXXX`.
pub(crate) fn json_line(value: &Value) -> String {
    let json = value.to_string();
    if !json.contains(is_unsafe) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a string does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (text, expected) in [
            ("plain\n\ttext", "plain\n\ttext"),
            (
                "echo hi \u{1b}] x; touch PWNED",
                "echo hi \\x1b] x; touch PWNED",
            ),
            ("\u{1b}[31mred\u{1b}[0m", "\\x1b[31mred\\x1b[0m"),
            ("\u{1b}]0;title\u{7}x", "\\x1b]0;title\\x07x"),
            ("\u{9b}31mred", "\\u{9b}31mred"),
            (
                "a\rb\u{8}c\u{0}d\u{7f}e\u{85}f",
                "a\\rb\\x08c\\x00d\\x7fe\\u{85}f",
            ),
            ("rm \u{202e}txt.exe\u{2066}", "rm \\u{202e}txt.exe\\u{2066}"),
            (
                "a\u{200b}b\u{2028}c\u{e0041}",
                "a\\u{200b}b\\u{2028}c\\u{e0041}",
            ),
            ("Grüße 👩‍🚀 漢字 \\x1b", "Grüße 👩‍🚀 漢字 \\x1b"),
        ] {
            assert_eq!(escape(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(escape_line("a\nb\tc\u{1b}"), "a\\nb\\tc\\x1b");
    }

    proptest! {
        #[test]
        fn nothing_is_left_out_and_nothing_unsafe_is_left(text in "(\\PC|[\u{0}-\u{9f}\u{2020}-\u{2070}]){0,40}") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(|c| is_unsafe(c) && !matches!(c, '\n' | '\t')));
            prop_assert!(!escape_line(&text).contains(is_unsafe));
            // The visible characters are all there, in their order.
            let mut rest = escaped.chars();
            for visible in text.chars().filter(|c| !is_unsafe(*c)) {
                prop_assert!(rest.any(|c| c == visible), "{visible:?} of {text:?}");
            }
            prop_assert_eq!(escape(&escaped), escaped.as_str(), "escaping again changes nothing");
        }

        #[test]
        fn json_stays_the_same_json(text in any::<String>(), key in "(\\PC|[\u{7f}-\u{9f}\u{2020}-\u{2070}\u{e0041}]){0,20}") {
            let value = json!({"text": text, key: ["\u{9b}\u{202e}\u{e0041}\u{1b}"]});
            let line = json_line(&value);
            prop_assert!(!line.contains(is_unsafe), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
