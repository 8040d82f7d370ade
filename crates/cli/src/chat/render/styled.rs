//! Text of several looks, broken into lines as one text.
//!
//! Promises: lines are broken between words; a word that is longer than a line is broken, unless it is a link, which the terminal
//! breaks itself, so that it can be copied. Nothing is left out but the blanks at a break.
//! Must not know: Markdown.

use std::ops::Range;
use std::sync::Arc;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::chat::line::{Line, Style, TAB};
use crate::terminal::escape;

/// Text whose stretches have looks. A newline in it ends a line.
#[derive(Debug, Clone, Default)]
pub(super) struct StyledText {
    text: String,
    /// In order, without gaps.
    runs: Vec<StyleRun>,
}

#[derive(Debug, Clone)]
struct StyleRun {
    end: usize,
    style: Style,
    link: Option<Arc<str>>,
}

impl StyledText {
    /// Adds text; a newline in it is a blank.
    pub(super) fn push(&mut self, style: Style, text: &str, link: Option<&Arc<str>>) {
        let text = escape(text).replace('\t', TAB).replace('\n', " ");
        self.push_as_it_is(style, &text, link);
    }

    pub(super) fn push_line_break(&mut self) {
        self.push_as_it_is(Style::Plain, "\n", None);
    }

    fn push_as_it_is(&mut self, style: Style, text: &str, link: Option<&Arc<str>>) {
        if text.is_empty() {
            return; // a run is not empty
        }
        self.text.push_str(text);
        self.runs.push(StyleRun { end: self.text.len(), style, link: link.cloned() });
    }

    /// Columns of its widest line, if nothing is broken.
    pub(super) fn width(&self) -> usize {
        self.text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Breaks it into lines of a width.
    pub(super) fn wrap(&self, width: usize) -> Vec<Line> {
        let width = width.max(1);
        let mut lines = Vec::new();
        let mut from = 0;
        for paragraph in self.text.split('\n') {
            let end = from + paragraph.len();
            let mut start = from;
            while let Some((line_end, next)) = self.next_line(start..end, width) {
                lines.push(self.line(start..line_end));
                start = next;
            }
            let rest = self.text.get(start..end).unwrap_or("").trim_end_matches(' ');
            lines.push(self.line(start..start + rest.len()));
            from = end + 1;
        }
        lines
    }

    /// Where the first line of a range ends and the next one begins; none if it fits.
    fn next_line(&self, range: Range<usize>, width: usize) -> Option<(usize, usize)> {
        let text = self.text.get(range.clone()).unwrap_or("");
        let mut used = 0;
        // The last gap to break at: where the line would end, and where the next would begin.
        let mut gap: Option<(usize, usize)> = None;
        let mut is_in_gap = true; // blanks that begin a line indent it
        for (offset, c) in text.char_indices() {
            let at = range.start + offset;
            if c == ' ' {
                match &mut gap {
                    Some((_, next)) if is_in_gap => *next = at + 1,
                    _ if is_in_gap => {}
                    _ => gap = Some((at, at + 1)),
                }
                is_in_gap = true;
                used += 1;
                continue;
            }
            is_in_gap = false;
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                if let Some(gap) = gap {
                    return Some(gap);
                }
                let is_link = self.run_at(at).is_some_and(|run| run.link.is_some());
                if !is_link && offset > 0 {
                    return Some((at, at));
                }
            }
            used += wide;
        }
        None
    }

    fn run_at(&self, at: usize) -> Option<&StyleRun> {
        let index = self.runs.partition_point(|run| run.end <= at);
        self.runs.get(index)
    }

    fn line(&self, range: Range<usize>) -> Line {
        let mut line = Line::default();
        let mut at = range.start;
        let first = self.runs.partition_point(|run| run.end <= at);
        for run in self.runs.iter().skip(first) {
            let end = run.end.min(range.end);
            if at >= end {
                break;
            }
            let text = self.text.get(at..end).unwrap_or("");
            line = line.then_link(run.style, text, run.link.as_ref());
            at = end;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(pieces: &[(&str, Option<&str>)], width: usize) -> Vec<String> {
        let mut text = StyledText::default();
        for (piece, link) in pieces {
            let link = link.map(Arc::from);
            text.push(Style::Plain, piece, link.as_ref());
        }
        text.wrap(width).iter().map(Line::text).collect()
    }

    #[test]
    fn text_is_broken_between_words_whatever_they_look_like() {
        assert_eq!(
            wrap(&[("one t", None), ("wo thr", None), ("ee", None)], 7),
            ["one two", "three"]
        );
        assert_eq!(wrap(&[("abcdefgh", None)], 3), ["abc", "def", "gh"]);
        assert_eq!(wrap(&[("漢字漢字", None)], 4), ["漢字", "漢字"]);
        assert_eq!(wrap(&[("", None)], 4), [""]);
        assert_eq!(wrap(&[("a\u{1b}b\nc", None)], 40), ["a\\x1bb c"]);
    }

    #[test]
    fn a_link_is_not_broken() {
        let long = "https://example.com/a/long/path";
        assert_eq!(
            wrap(&[("see ", None), (long, Some(long)), (" there", None)], 10),
            ["see", long, "there"]
        );
    }
}
