//! Makes text from elsewhere safe to print: what would control a terminal, hide, or reorder text is written out as an escape
//! such as `\x1b` or `\u{202e}`.
//!
//! Promises: nothing is ever left out. Whoever consents to a text has seen every character of it; no escape sequence
//! from outside reaches a terminal. What is printed as JSON is still the same JSON.
//! Must not know: where the text comes from.

use std::fmt::Write as _;

use markup::visible;
use serde_json::Value;

/// A text with its newlines and tabs as they are and everything else that is unsafe written out.
pub(crate) fn escape(text: &str) -> String {
    visible::write_out(text).into_owned()
}

/// A text on one line: newlines and tabs are written out, too.
pub(crate) fn escape_line(text: &str) -> String {
    visible::write_out_name(text).into_owned()
}

/// A value as one line of JSON without an unsafe character: inside its strings, the only place for one, they are `\uXXXX`.
pub(crate) fn json_line(value: &Value) -> String {
    let json = value.to_string();
    if !json.contains(visible::is_hidden) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if visible::is_hidden(c) {
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
            ("echo hi \u{1b}] x; touch PWNED", "echo hi \\x1b] x; touch PWNED"),
            ("\u{1b}[31mred\u{1b}[0m", "\\x1b[31mred\\x1b[0m"),
            ("\u{1b}]0;title\u{7}x", "\\x1b]0;title\\x07x"),
            ("\u{9b}31mred", "\\u{9b}31mred"),
            ("a\rb\u{8}c\u{0}d\u{7f}e\u{85}f", "a\\rb\\x08c\\x00d\\x7fe\\u{85}f"),
            ("rm \u{202e}txt.exe\u{2066}", "rm \\u{202e}txt.exe\\u{2066}"),
            ("a\u{200b}b\u{2028}c\u{e0041}", "a\\u{200b}b\\u{2028}c\\u{e0041}"),
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
            prop_assert!(!escaped.contains(|c| visible::is_hidden(c) && !matches!(c, '\n' | '\t')));
            prop_assert!(!escape_line(&text).contains(visible::is_hidden));
            // The visible characters are all there, in their order.
            let mut rest = escaped.chars();
            let is_mark = |c: char| unicode_width::UnicodeWidthChar::width(c) == Some(0);
            for visible in text.chars().filter(|c| !visible::is_hidden(*c) && !is_mark(*c)) {
                prop_assert!(rest.any(|c| c == visible), "{visible:?} of {text:?}");
            }
            prop_assert_eq!(escape(&escaped), escaped.as_str(), "escaping again changes nothing");
        }

        #[test]
        fn json_stays_the_same_json(text in any::<String>(), key in "(\\PC|[\u{7f}-\u{9f}\u{2020}-\u{2070}\u{e0041}]){0,20}") {
            let value = json!({"text": text, key: ["\u{9b}\u{202e}\u{e0041}\u{1b}"]});
            let line = json_line(&value);
            prop_assert!(!line.contains(visible::is_hidden), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
