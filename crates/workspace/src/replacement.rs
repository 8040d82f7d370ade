//! One exact replacement in a text, and why it cannot be made.
//!
//! Promises: bytes beside the replaced ones stay as they are, whatever their encoding; a file whose lines all end in
//! CRLF keeps it that way though callers write LF.
//! Must not know: where the text comes from or goes to, and how callers describe an error.

use std::borrow::Cow;

use memchr::memmem;

use crate::read::FILE_BYTES_MAX;

/// Occurrences of an ambiguous text that are counted.
const OCCURRENCES_MAX: usize = 1_000;

/// The largest text that a replacement may make; larger files are not written.
const TEXT_BYTES_MAX: usize = FILE_BYTES_MAX as usize;

/// An exact replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// Every occurrence; otherwise there must be exactly one.
    pub all: bool,
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEndings {
    AllCrlf,
    Other,
}

/// Why a replacement cannot be made. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplacementError {
    EmptyOld,
    SameText,
    /// It is there more than once.
    Ambiguous {
        occurrences: usize,
        /// Not all of them were counted.
        is_cut: bool,
        lines: Vec<usize>,
    },
    NotFound(NearMiss),
    /// The text would become larger than a file may be.
    TooLarge,
}

/// What resembles a text that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NearMiss {
    None,
    /// Every line of it begins with a number.
    LineNumbers,
    /// It is there with other white space, at these lines.
    WhiteSpace(Vec<usize>),
    /// Its first line is there, at these lines.
    FirstLine(Vec<usize>),
}

impl LineEndings {
    pub fn of(text: &[u8]) -> Self {
        let mut lines = memchr::memchr_iter(b'\n', text).peekable();
        if lines.peek().is_some() && lines.all(|at| at > 0 && text[at - 1] == b'\r') {
            Self::AllCrlf
        } else {
            Self::Other
        }
    }

    fn adapt(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::AllCrlf if !text.contains('\r') => Cow::Owned(text.replace('\n', "\r\n")),
            Self::AllCrlf | Self::Other => Cow::Borrowed(text),
        }
    }
}

impl Replacement<'_> {
    /// Replaces it in a text; returns how often.
    pub fn apply(
        &self,
        text: &mut Vec<u8>,
        line_endings: LineEndings,
    ) -> Result<usize, ReplacementError> {
        if self.old.is_empty() {
            return Err(ReplacementError::EmptyOld);
        }
        if self.old == self.new {
            return Err(ReplacementError::SameText);
        }
        let old = line_endings.adapt(self.old);
        let new = line_endings.adapt(self.new);
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let offsets = if self.all {
            memmem::find_iter(text, old).collect()
        } else {
            let offsets = overlapping_offsets(text, old);
            if offsets.len() > 1 {
                return Err(ambiguous(text, &offsets));
            }
            offsets
        };
        if offsets.is_empty() {
            return Err(ReplacementError::NotFound(self.near_miss(text)));
        }
        let kept = text.len() - offsets.len() * old.len();
        let size = kept.saturating_add(offsets.len().saturating_mul(new.len()));
        if size > TEXT_BYTES_MAX {
            return Err(ReplacementError::TooLarge);
        }
        let mut after = Vec::with_capacity(size);
        let mut rest = 0;
        for at in &offsets {
            after.extend_from_slice(&text[rest..*at]);
            after.extend_from_slice(new);
            rest = at + old.len();
        }
        after.extend_from_slice(&text[rest..]);
        *text = after;
        Ok(offsets.len())
    }

    fn near_miss(&self, text: &[u8]) -> NearMiss {
        let text = String::from_utf8_lossy(text);
        let lines: Vec<&str> = text.lines().collect();
        let old: Vec<&str> = self.old.trim().lines().map(str::trim).collect();
        if old.iter().all(|line| has_line_number(line)) {
            return NearMiss::LineNumbers;
        }
        let similar = find_lines(&lines, &old);
        if !similar.is_empty() {
            return NearMiss::WhiteSpace(similar);
        }
        let first = find_lines(&lines, old.get(..1).unwrap_or_default());
        if first.is_empty() { NearMiss::None } else { NearMiss::FirstLine(first) }
    }
}

/// Where a text is, overlapping occurrences included: they are ambiguous as well.
fn overlapping_offsets(text: &[u8], needle: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(needle);
    let mut offsets = Vec::new();
    let mut from = 0;
    while offsets.len() < OCCURRENCES_MAX
        && let Some(at) = finder.find(&text[from..])
    {
        offsets.push(from + at);
        from += at + 1;
    }
    offsets
}

fn ambiguous(text: &[u8], offsets: &[usize]) -> ReplacementError {
    let mut lines: Vec<usize> = offsets.iter().map(|at| line_number(text, *at)).collect();
    lines.dedup();
    ReplacementError::Ambiguous {
        occurrences: offsets.len(),
        is_cut: offsets.len() == OCCURRENCES_MAX,
        lines,
    }
}

fn line_number(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..at]).count() + 1
}

/// The numbers of the lines where these lines follow each other, white space aside.
fn find_lines(lines: &[&str], needle: &[&str]) -> Vec<usize> {
    if needle.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let same = |window: &[&str]| window.iter().zip(needle).all(|(line, old)| line.trim() == *old);
    let windows = lines.windows(needle.len()).enumerate();
    windows.filter(|(_, window)| same(window)).map(|(at, _)| at + 1).collect()
}

fn has_line_number(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    digits.len() < line.len() && (digits.starts_with('\t') || digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<String, ReplacementError> {
        let mut bytes = text.as_bytes().to_vec();
        let line_endings = LineEndings::of(&bytes);
        Replacement { old, new, all }.apply(&mut bytes, line_endings)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn one_or_all_occurrences_are_replaced() {
        let once = |text, old, new| replace(text, old, new, false).unwrap();
        assert_eq!(once("a b c", "b", "B"), "a B c");
        assert_eq!(once("a b c", "b ", ""), "a c");
        let all = replace("a a aa", "a", "aa", true).unwrap();
        assert_eq!(all, "aa aa aaaa");
    }

    #[test]
    fn an_error_names_the_cause_and_the_lines() {
        let text = "fn a() {\n    one();\n}\nfn b() {\n    two();\n}\n";
        let not_found = ReplacementError::NotFound;
        let ambiguous = |occurrences, lines: &[usize]| ReplacementError::Ambiguous {
            occurrences,
            is_cut: false,
            lines: lines.to_vec(),
        };
        for (old, expected) in [
            ("", ReplacementError::EmptyOld),
            ("same", ReplacementError::SameText),
            ("()", ambiguous(4, &[1, 2, 4, 5])),
            ("fn a() {\none();", not_found(NearMiss::WhiteSpace(vec![1]))),
            ("}\nfn b() {\n  three();", not_found(NearMiss::FirstLine(vec![3, 6]))),
            ("     2\t    one();", not_found(NearMiss::LineNumbers)),
            ("nowhere", not_found(NearMiss::None)),
        ] {
            assert_eq!(replace(text, old, "same", false), Err(expected), "{old:?}");
        }
        let overlapping = replace("aaa", "aa", "b", false);
        assert_eq!(overlapping, Err(ambiguous(2, &[1])));
        let nothing = replace("a", "b", "c", true);
        assert_eq!(nothing, Err(not_found(NearMiss::None)));
        let many = replace(&"a".repeat(OCCURRENCES_MAX + 1), "a", "b", false);
        assert!(matches!(many, Err(ReplacementError::Ambiguous { is_cut: true, .. })), "{many:?}");
    }

    #[test]
    fn windows_lines_stay_windows_lines() {
        let crlf = "a\r\nb\r\nc\r\n";
        let edited = replace(crlf, "a\nb\n", "a\nB\nB\n", false).unwrap();
        assert_eq!(edited, "a\r\nB\r\nB\r\nc\r\n");
        let mixed = "a\r\nb\nc\n";
        assert!(replace(mixed, "a\nb", "x", false).is_err());
        assert_eq!(replace(mixed, "b\nc", "x", false).unwrap(), "a\r\nx\n");
    }

    #[test]
    fn bytes_that_are_not_text_stay_as_they_are() {
        let mut bytes = b"\xff a \xfe".to_vec();
        let replacement = Replacement { old: "a", new: "b", all: false };
        assert_eq!(replacement.apply(&mut bytes, LineEndings::Other), Ok(1));
        assert_eq!(bytes, b"\xff b \xfe");
    }
}
