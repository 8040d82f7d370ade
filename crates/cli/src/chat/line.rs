//! A line of styled text, and how it is cut to the width of a terminal.
//!
//! Promises: what a line says is plain text, whatever it is made from; how it looks is added only when it is written.
//! Must not know: terminals, chats.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::escape_line;

/// How a stretch of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Warn,
    Bad,
}

/// Whether styles are written at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colors {
    On,
    Off,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\u{1b}[2m",
            Self::Bold => "\u{1b}[1m",
            Self::Good => "\u{1b}[32m",
            Self::Warn => "\u{1b}[33m",
            Self::Bad => "\u{1b}[31m",
        }
    }
}

/// One line, made of stretches of one style each. Holds no newline and no control character.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line(Vec<(Style, String)>);

impl Line {
    pub(crate) fn new(style: Style, text: impl AsRef<str>) -> Self {
        Self::default().then(style, text)
    }

    pub(crate) fn then(mut self, style: Style, text: impl AsRef<str>) -> Self {
        let text = escape_line(text.as_ref());
        if !text.is_empty() {
            self.0.push((style, text));
        }
        self
    }

    /// The style of its beginning.
    pub(crate) fn style(&self) -> Style {
        self.0.first().map_or(Style::Plain, |(style, _)| *style)
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The line as it is written.
    pub(crate) fn encode(&self, colors: Colors) -> String {
        let mut encoded = String::new();
        for (style, text) in &self.0 {
            if colors == Colors::Off || *style == Style::Plain {
                encoded.push_str(text);
            } else {
                encoded.push_str(style.code());
                encoded.push_str(text);
                encoded.push_str("\u{1b}[0m");
            }
        }
        encoded
    }

    /// The line cut to a width, with a sign that it was.
    pub(crate) fn clip(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut clipped = Self::default();
        for (style, text) in self.0 {
            let mut end = 0;
            for (start, c) in text.char_indices() {
                let wide = c.width().unwrap_or(0);
                if wide > left {
                    return clipped.then(style, format!("{}…", &text[..end]));
                }
                left -= wide;
                end = start + c.len_utf8();
            }
            clipped = clipped.then(style, text);
        }
        clipped
    }
}

/// How many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_with_or_without_its_styles() {
        let line = Line::new(Style::Bold, "a").then(Style::Plain, "b");
        assert_eq!(line.encode(Colors::On), "\u{1b}[1ma\u{1b}[0mb");
        assert_eq!(line.encode(Colors::Off), "ab");
        let line = Line::new(Style::Plain, "a\u{1b}[2J\n");
        assert_eq!(line.encode(Colors::On), "a\\x1b[2J\\n");
    }

    #[test]
    fn a_long_line_is_cut_where_it_fits() {
        let clipped = |text: &str, width| Line::new(Style::Plain, text).clip(width).text();
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("漢字漢字", 4), "漢…");
        assert_eq!(clipped("ab", 0), "…");
        let two = Line::new(Style::Dim, "abc").then(Style::Plain, "def");
        assert_eq!(two.clip(5).text(), "abcd…");
    }
}
