//! Where the cursor may stand: between what people see as characters, words and lines.
//!
//! Must not know: keys, what the text is for.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// The end of the grapheme before a position.
pub(super) fn before(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    // The whole text is there, so nothing more can be asked for.
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The end of the grapheme behind a position.
pub(super) fn after(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

pub(super) fn word_before(text: &str, at: usize) -> usize {
    let trimmed = text[..at].trim_end();
    trimmed.rfind(char::is_whitespace).map_or(0, |gap| after(text, gap))
}

pub(super) fn word_after(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let indent = rest.len() - rest.trim_start().len();
    let word = rest[indent..].find(char::is_whitespace);
    word.map_or(text.len(), |end| at + indent + end)
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline)
}

/// The position in another line that is as far from its start as `at` is from the start of its own.
fn same_column(text: &str, at: usize, other: usize) -> usize {
    let column = text[line_start(text, at)..at].graphemes(true).count();
    let end = line_end(text, other);
    let mut graphemes = text[other..end].grapheme_indices(true);
    graphemes.nth(column).map_or(end, |(offset, _)| other + offset)
}

/// A line up; none on the first.
pub(super) fn line_up(text: &str, at: usize) -> Option<usize> {
    let above = line_start(text, at).checked_sub(1)?;
    Some(same_column(text, at, line_start(text, above)))
}

/// A line down; none on the last.
pub(super) fn line_down(text: &str, at: usize) -> Option<usize> {
    let end = line_end(text, at);
    (end < text.len()).then(|| same_column(text, at, end + 1))
}
