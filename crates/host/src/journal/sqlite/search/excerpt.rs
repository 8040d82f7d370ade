//! Words in a text, whatever their case, and the piece of the text around the first of them.
//!
//! Promises: an excerpt is short and on one line; every word that is in it is marked.

use std::ops::Range;

/// Characters of an excerpt, and how many of them stand before the first word.
const EXCERPT_CHARS: usize = 160;
const BEFORE_CHARS: usize = 40;

/// A piece of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    pub text: String,
    /// Whether it is what was searched for.
    pub is_match: bool,
}

/// A text without its case, one character for each of the original's.
pub(super) struct CaseFoldedText {
    chars: Vec<char>,
}

impl CaseFoldedText {
    pub(super) fn new(text: &str) -> Self {
        // A character whose small form is several is compared by the first of them.
        let fold = |c: char| c.to_lowercase().next().unwrap_or(c);
        Self { chars: text.chars().map(fold).collect() }
    }

    /// Something to be found: what no text holds as a character of its own is left out.
    pub(super) fn word(word: &str) -> Self {
        let word: String = word.chars().map(blank_control).collect();
        Self::new(word.trim())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chars.is_empty()
    }

    pub(super) fn chars(&self) -> usize {
        self.chars.len()
    }

    /// The word as a string in a query: nothing in it is an operator.
    pub(super) fn quoted(&self) -> String {
        let word: String = self.chars.iter().collect();
        format!("\"{}\"", word.replace('"', "\"\""))
    }

    /// Where a word stands first, from a character on.
    fn find(&self, word: &Self, from: usize) -> Option<usize> {
        let rest = self.chars.get(from..)?;
        let at = rest.windows(word.chars.len().max(1)).position(|window| window == word.chars)?;
        Some(from + at)
    }
}

fn blank_control(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// The text around the first of some words; none if one of them is missing.
pub(super) fn cut_excerpt(text: &str, words: &[CaseFoldedText]) -> Option<Vec<TextPiece>> {
    let folded = CaseFoldedText::new(text);
    let first = words
        .iter()
        .map(|word| folded.find(word, 0))
        .collect::<Option<Vec<usize>>>()?
        .into_iter()
        .min()?;
    let begin = first.saturating_sub(BEFORE_CHARS);
    let end = folded.chars.len().min(begin + EXCERPT_CHARS);
    let marks = find_marks(&folded, words, begin..end);
    let chars: Vec<char> = text.chars().map(blank_control).collect();
    let mut pieces = Vec::new();
    let mut push = |range: Range<usize>, is_match: bool| {
        let text: String = chars.get(range).unwrap_or(&[]).iter().collect();
        if !text.is_empty() {
            pieces.push(TextPiece { text, is_match });
        }
    };
    let mut at = begin;
    for mark in marks {
        push(at..mark.start, false);
        push(mark.clone(), true);
        at = mark.end;
    }
    push(at..end, false);
    if begin > 0 {
        pieces.insert(0, plain("…"));
    }
    if end < chars.len() {
        pieces.push(plain("…"));
    }
    Some(pieces)
}

fn plain(text: &str) -> TextPiece {
    TextPiece { text: text.to_owned(), is_match: false }
}

/// Where the words stand in a part of a text, in order and without overlap.
fn find_marks(
    folded: &CaseFoldedText,
    words: &[CaseFoldedText],
    part: Range<usize>,
) -> Vec<Range<usize>> {
    let mut marks: Vec<Range<usize>> = Vec::new();
    let mut at = part.start;
    while at < part.end {
        let next = words
            .iter()
            .filter_map(|word| {
                let start = folded.find(word, at)?;
                Some(start..start + word.chars.len())
            })
            .filter(|mark| mark.end <= part.end)
            .min_by_key(|mark| (mark.start, std::cmp::Reverse(mark.end)));
        let Some(next) = next else { break };
        at = next.end.max(at + 1);
        marks.push(next);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, words: &[&str]) -> Option<String> {
        let words: Vec<CaseFoldedText> =
            words.iter().map(|word| CaseFoldedText::word(word)).collect();
        let pieces = cut_excerpt(text, &words)?;
        let show = |piece: &TextPiece| {
            if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() }
        };
        Some(pieces.iter().map(show).collect())
    }

    #[test]
    fn all_words_are_marked_whatever_their_case() {
        assert_eq!(
            marked("Die GRÖSSE der Größe\nzählt", &["größe", "DER"]).as_deref(),
            Some("Die GRÖSSE [der] [Größe] zählt")
        );
        assert_eq!(marked("検索する", &["検索"]).as_deref(), Some("[検索]する"));
        assert_eq!(marked("one two", &["one", "three"]), None);
        assert_eq!(marked("abc", &["b", "abc"]).as_deref(), Some("[abc]"));
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_word() {
        let text = format!("{}needle{}", "x ".repeat(500), " y".repeat(500));
        let shown = marked(&text, &["needle"]).unwrap();
        assert!(shown.starts_with("…x ") || shown.starts_with("… x"), "{shown}");
        assert!(shown.contains("[needle]") && shown.ends_with('…'), "{shown}");
        assert!(shown.chars().count() < 200, "{shown}");
    }
}
