//! One exact replacement, and what to say when it does not fit.
//!
//! Promises: bytes beside the replaced ones stay as they are, whatever their encoding; a file whose lines all end in
//! CRLF keeps it that way though models write LF.
//! Must not know: where the text comes from or goes to.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

use super::super::format::{group_digits, list_numbers};

/// Places of an ambiguous text that are listed.
const PLACES_SHOWN_MAX: usize = 10;

/// Places of an ambiguous text that are format_count.
const PLACES_COUNTED_MAX: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Replacement {
    old_text: String,
    new_text: String,
    #[serde(default)]
    all: bool,
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    AllCrlf,
    Any,
}

impl LineEnds {
    pub(super) fn of(text: &[u8]) -> Self {
        let mut lines = memchr::memchr_iter(b'\n', text).peekable();
        if lines.peek().is_some() && lines.all(|at| at > 0 && text[at - 1] == b'\r') {
            Self::AllCrlf
        } else {
            Self::Any
        }
    }

    fn adapt(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::AllCrlf if !text.contains('\r') => Cow::Owned(text.replace('\n', "\r\n")),
            Self::AllCrlf | Self::Any => Cow::Borrowed(text),
        }
    }
}

impl Replacement {
    /// Replaces it in a text; how often, or why not.
    pub(super) fn apply(&self, text: &mut Vec<u8>, line_ends: LineEnds) -> Result<usize, String> {
        if self.old_text.is_empty() {
            return Err("`old_text` is empty; give the text that is to be replaced.".to_owned());
        }
        if self.old_text == self.new_text {
            return Err("`old_text` and `new_text` are the same.".to_owned());
        }
        let old = line_ends.adapt(&self.old_text);
        let new = line_ends.adapt(&self.new_text);
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let places = if self.all {
            memmem::find_iter(text, old).collect()
        } else {
            let places = all_places(text, old);
            if places.len() > 1 {
                return Err(several(text, &places));
            }
            places
        };
        if places.is_empty() {
            return Err(self.none(text));
        }
        let mut after = Vec::with_capacity(text.len());
        let mut rest = 0;
        for at in &places {
            after.extend_from_slice(&text[rest..*at]);
            after.extend_from_slice(new);
            rest = at + old.len();
        }
        after.extend_from_slice(&text[rest..]);
        *text = after;
        Ok(places.len())
    }

    fn none(&self, text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let lines: Vec<&str> = text.lines().collect();
        let old: Vec<&str> = self.old_text.trim().lines().map(str::trim).collect();
        let mut why = "`old_text` is not in the file.".to_owned();
        if old.iter().all(|line| has_line_number(line)) {
            why.push_str(" It seems to hold the line numbers that `read` shows: leave them out.");
            return why;
        }
        let alike = places_of(&lines, &old);
        if !alike.is_empty() {
            let at = list_numbers(&alike, PLACES_SHOWN_MAX);
            why.push_str(&format!(
                " With other white space it is at line {at}: copy it exactly as it is there."
            ));
            return why;
        }
        let first = places_of(&lines, old.get(..1).unwrap_or_default());
        if first.is_empty() {
            why.push_str(" `read` or `grep` the file for what is there now.");
        } else {
            let at = list_numbers(&first, PLACES_SHOWN_MAX);
            why.push_str(&format!(
                " Its first line is at line {at}, but what follows differs: `read` that part again."
            ));
        }
        why
    }
}

/// Every place of a text, overlapping ones too: they are ambiguous as well.
fn all_places(text: &[u8], wanted: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(wanted);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < PLACES_COUNTED_MAX
        && let Some(at) = finder.find(&text[from..])
    {
        places.push(from + at);
        from += at + 1;
    }
    places
}

fn several(text: &[u8], places: &[usize]) -> String {
    let mut lines: Vec<usize> = places.iter().map(|at| line_of(text, *at)).collect();
    lines.dedup();
    let count = match places.len() {
        PLACES_COUNTED_MAX => format!("at least {}", group_digits(PLACES_COUNTED_MAX as u64)),
        count => count.to_string(),
    };
    let lines = list_numbers(&lines, PLACES_SHOWN_MAX);
    format!(
        "`old_text` is in the file {count} times, at line {lines}. Give more of the lines around it so that it is \
         unique, or set `all` to replace every one."
    )
}

fn line_of(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..at]).count() + 1
}

/// Line numbers where these lines stand one after the other, white space aside.
fn places_of(lines: &[&str], wanted: &[&str]) -> Vec<usize> {
    if wanted.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let same = |window: &[&str]| {
        window
            .iter()
            .zip(wanted)
            .all(|(line, old)| line.trim() == *old)
    };
    let windows = lines.windows(wanted.len()).enumerate();
    windows
        .filter(|(_, window)| same(window))
        .map(|(at, _)| at + 1)
        .collect()
}

fn has_line_number(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    digits.len() < line.len() && (digits.starts_with('\t') || digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        let edit = Replacement {
            old_text: old.to_owned(),
            new_text: new.to_owned(),
            all,
        };
        let mut bytes = text.as_bytes().to_vec();
        let line_ends = LineEnds::of(&bytes);
        edit.apply(&mut bytes, line_ends)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn it_replaces_what_is_there_once() {
        let once = |text, old, new| replaced(text, old, new, false).unwrap();
        assert_eq!(once("a b c", "b", "B"), "a B c");
        assert_eq!(once("a b c", "b ", ""), "a c");
        let all = replaced("a a aa", "a", "aa", true).unwrap();
        assert_eq!(all, "aa aa aaaa");
    }

    #[test]
    fn it_says_what_is_wrong() {
        let why = |text, old, new| replaced(text, old, new, false).unwrap_err();
        let text = "fn a() {\n    one();\n}\nfn b() {\n    two();\n}\n";
        for (old, expected) in [
            ("", "`old_text` is empty"),
            ("same", "are the same"),
            ("()", "in the file 4 times, at line 1, 2, 4, 5."),
            (
                "fn a() {\none();",
                "With other white space it is at line 1:",
            ),
            (
                "}\nfn b() {\n  three();",
                "Its first line is at line 3, 6, but",
            ),
            ("     2\t    one();", "leave them out"),
            ("nowhere", "`read` or `grep` the file"),
        ] {
            let why = why(text, old, "same");
            assert!(why.contains(expected), "{old:?}: {why}");
        }
        let overlapping = why("aaa", "aa", "b");
        assert!(overlapping.contains("2 times, at line 1."), "{overlapping}");
        let nothing = replaced("a", "b", "c", true).unwrap_err();
        assert!(nothing.contains("is not in the file"));
    }

    #[test]
    fn windows_lines_stay_windows_lines() {
        let crlf = "a\r\nb\r\nc\r\n";
        let edited = replaced(crlf, "a\nb\n", "a\nB\nB\n", false).unwrap();
        assert_eq!(edited, "a\r\nB\r\nB\r\nc\r\n");
        let mixed = "a\r\nb\nc\n";
        assert!(replaced(mixed, "a\nb", "x", false).is_err());
        assert_eq!(replaced(mixed, "b\nc", "x", false).unwrap(), "a\r\nx\n");
    }

    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        let mut bytes = b"\xff a \xfe".to_vec();
        let edit = Replacement {
            old_text: "a".to_owned(),
            new_text: "b".to_owned(),
            all: false,
        };
        assert_eq!(edit.apply(&mut bytes, LineEnds::Any), Ok(1));
        assert_eq!(bytes, b"\xff b \xfe");
    }
}
