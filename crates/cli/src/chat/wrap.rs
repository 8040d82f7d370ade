//! Text broken into lines of a width, also while it is still coming in.
//!
//! Promises: text that comes in pieces is broken where it would be if it had come at once; a line that was given out never
//! changes. Words longer than a line are broken, nothing is left out but the spaces at a break.
//! Must not know: terminals, styles.

use super::line::{TAB, columns_max};

/// Where the first line of a text ends and the next one begins; none if all of it fits on one line.
fn next_line(text: &str, width: usize) -> Option<(usize, usize)> {
    let mut used = 0;
    // The last gap to break at: where the line would end, and where the next would begin.
    let mut gap: Option<(usize, usize)> = None;
    let mut in_gap = true; // spaces that begin a line indent it
    for (at, c) in text.char_indices() {
        if c == ' ' {
            match &mut gap {
                Some((_, next)) if in_gap => *next = at + 1,
                _ if in_gap => {}
                _ => gap = Some((at, at + 1)),
            }
            in_gap = true;
            used += 1;
            continue;
        }
        in_gap = false;
        let wide = columns_max(c);
        if used + wide > width {
            let end = at.max(if at == 0 { c.len_utf8() } else { 0 });
            return Some(gap.unwrap_or((end, end)));
        }
        used += wide;
    }
    None
}

/// Breaks a whole text into lines.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut tail = UnfinishedText::default();
    tail.push(text);
    let mut lines = tail.take_settled(width);
    lines.extend(tail.take_rest());
    lines
}

/// Text whose end is still to come.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedText {
    text: String,
}

impl UnfinishedText {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(&text.replace('\t', TAB));
    }

    /// Takes out the lines that cannot change any more.
    pub(crate) fn take_settled(&mut self, width: usize) -> Vec<String> {
        let width = width.max(1);
        let mut lines = Vec::new();
        let mut from = 0;
        loop {
            let paragraph_end = self.text[from..].find('\n').map(|end| from + end);
            let end = paragraph_end.unwrap_or(self.text.len());
            while let Some((line_end, next)) = next_line(&self.text[from..end], width) {
                lines.push(self.text[from..from + line_end].to_owned());
                from += next;
            }
            let Some(end) = paragraph_end else { break };
            lines.push(self.text[from..end].trim_end_matches(' ').to_owned());
            from = end + 1;
        }
        self.text.drain(..from);
        lines
    }

    /// The line that may still grow.
    pub(crate) fn rest(&self) -> Option<&str> {
        Some(self.text.trim_end_matches(' ')).filter(|rest| !rest.is_empty())
    }

    /// Takes that line as it is: no more will come.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = self.rest().map(str::to_owned);
        self.text.clear();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_long_words_inside() {
        for (text, width, expected) in [
            ("", 5, &[][..]),
            ("one two", 7, &["one two"]),
            ("one two", 6, &["one", "two"]),
            ("one   two", 4, &["one", "two"]),
            ("one  two three", 8, &["one  two", "three"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("ab cdefgh", 4, &["ab", "cdef", "gh"]),
            ("  indent it", 8, &["  indent", "it"]),
            ("a\n\nb\n", 5, &["a", "", "b"]),
            ("漢字漢字", 4, &["漢字", "漢字"]),
            ("漢字", 1, &["漢", "字"]),
            ("a\tb", 9, &["a    b"]),
            ("exact fits ", 10, &["exact fits"]),
        ] {
            assert_eq!(wrap(text, width), expected, "{text:?} at {width}");
        }
    }

    #[test]
    fn text_in_pieces_is_broken_like_text_at_once() {
        let text =
            "The quick  brown fox\njumps overthelazydogandfurther on\n\n  and on 漢字漢字 it goes ";
        for width in 1..30 {
            for size in 1..9 {
                let mut tail = UnfinishedText::default();
                let mut lines = Vec::new();
                let chars: Vec<char> = text.chars().collect();
                for piece in chars.chunks(size) {
                    tail.push(&piece.iter().collect::<String>());
                    lines.extend(tail.take_settled(width));
                }
                lines.extend(tail.take_rest());
                assert_eq!(lines, wrap(text, width), "width {width}, pieces of {size}");
            }
        }
    }
}
