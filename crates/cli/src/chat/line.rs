//! A line of styled text, and how it is cut to the width of a terminal.
//!
//! Promises: what a line says is plain text, whatever it is made from; how it looks, and where its links lead, is added only
//! when it is written. Colours are the 16 that every terminal has, so that the user's theme decides what they look like.
//! Must not know: terminals, chats.

use std::sync::Arc;

use markup::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::escape_line;

/// What a tab becomes where a line must fit: where it leads to depends on the terminal.
pub(crate) const TAB: &str = "    ";

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
    Text(TextStyle),
}

/// A look of several properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextStyle {
    pub(crate) color: Option<Color>,
    pub(crate) is_bold: bool,
    pub(crate) is_dim: bool,
    pub(crate) is_italic: bool,
    pub(crate) is_underlined: bool,
    pub(crate) is_struck: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// Whether styles are written at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colors {
    On,
    Off,
}

impl TextStyle {
    pub(crate) fn of(color: Color) -> Self {
        Self { color: Some(color), ..Self::default() }
    }

    fn codes(self) -> Vec<&'static str> {
        let color = self.color.map(|color| match color {
            Color::Red => "31",
            Color::Green => "32",
            Color::Yellow => "33",
            Color::Blue => "34",
            Color::Magenta => "35",
            Color::Cyan => "36",
        });
        let marks = [
            (self.is_bold, "1"),
            (self.is_dim, "2"),
            (self.is_italic, "3"),
            (self.is_underlined, "4"),
            (self.is_struck, "9"),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set);
        marks.map(|(_, code)| code).chain(color).collect()
    }
}

impl Style {
    fn code(self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Dim => "\u{1b}[2m".to_owned(),
            Self::Bold => "\u{1b}[1m".to_owned(),
            Self::Good => "\u{1b}[32m".to_owned(),
            Self::Warn => "\u{1b}[33m".to_owned(),
            Self::Bad => "\u{1b}[31m".to_owned(),
            Self::Text(style) => match style.codes().join(";").as_str() {
                "" => String::new(),
                codes => format!("\u{1b}[{codes}m"),
            },
        }
    }
}

/// A part of a line with one look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct StyledStretch {
    style: Style,
    text: String,
    /// Where it leads: printable ASCII only.
    link: Option<Arc<str>>,
}

/// One line, made of stretches of one look each. Holds no newline and no control character; lines of code may hold tabs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line(Vec<StyledStretch>);

impl Line {
    pub(crate) fn new(style: Style, text: impl AsRef<str>) -> Self {
        Self::default().then(style, text)
    }

    pub(crate) fn then(self, style: Style, text: impl AsRef<str>) -> Self {
        self.with(style, escape_line(text.as_ref()), None)
    }

    /// Text that leads somewhere; without a link where the target could not be written safely.
    pub(crate) fn then_link(
        self,
        style: Style,
        text: impl AsRef<str>,
        to: Option<&Arc<str>>,
    ) -> Self {
        let is_safe = |to: &&Arc<str>| to.bytes().all(|byte| byte.is_ascii_graphic());
        self.with(style, escape_line(text.as_ref()), to.filter(is_safe).cloned())
    }

    /// A piece of code: its tabs stay, so that what is copied is what was written.
    pub(crate) fn then_code(self, style: Style, text: &str) -> Self {
        self.with(style, visible::write_out_line(text).into_owned(), None)
    }

    /// Another line behind this one.
    pub(crate) fn then_line(self, line: Self) -> Self {
        let add =
            |before: Self, StyledStretch { style, text, link }| before.with(style, text, link);
        line.0.into_iter().fold(self, add)
    }

    fn with(mut self, style: Style, text: String, link: Option<Arc<str>>) -> Self {
        if text.is_empty() {
            return self;
        }
        match self.0.last_mut() {
            Some(last) if last.style == style && last.link == link => last.text.push_str(&text),
            _ => self.0.push(StyledStretch { style, text, link }),
        }
        self
    }

    /// The style of its beginning.
    pub(crate) fn style(&self) -> Style {
        self.0.first().map_or(Style::Plain, |first| first.style)
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|stretch| columns(&stretch.text)).sum()
    }

    /// How many rows it takes on a screen that breaks it where it ends.
    pub(crate) fn rows(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        let (mut rows, mut used) = (1, 0);
        let chars = self.0.iter().flat_map(|stretch| stretch.text.chars());
        for c in chars {
            let wide = columns_max(c);
            if used + wide > columns && used > 0 {
                rows += 1;
                used = 0;
            }
            used += wide;
        }
        rows
    }

    pub(crate) fn text(&self) -> String {
        self.0.iter().map(|stretch| stretch.text.as_str()).collect()
    }

    /// The line as it is written.
    pub(crate) fn encode(&self, colors: Colors) -> String {
        let mut encoded = String::new();
        for stretch in &self.0 {
            let code = match colors {
                Colors::On => stretch.style.code(),
                Colors::Off => String::new(),
            };
            let link = stretch.link.as_ref().filter(|_| colors == Colors::On);
            if let Some(to) = link {
                encoded.push_str(&format!("\u{1b}]8;;{to}\u{1b}\\"));
            }
            encoded.push_str(&code);
            encoded.push_str(&stretch.text);
            if !code.is_empty() {
                encoded.push_str("\u{1b}[0m");
            }
            if link.is_some() {
                encoded.push_str("\u{1b}]8;;\u{1b}\\");
            }
        }
        encoded
    }

    /// The line cut to a width, with a sign that it was. Its tabs become spaces.
    pub(crate) fn clip(mut self, width: usize) -> Self {
        for stretch in &mut self.0 {
            if stretch.text.contains('\t') {
                stretch.text = stretch.text.replace('\t', TAB);
            }
        }
        let chars = self.0.iter().flat_map(|stretch| stretch.text.chars());
        if chars.map(columns_max).sum::<usize>() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut clipped = Self::default();
        for stretch in self.0 {
            let StyledStretch { style, text, link } = stretch;
            let mut end = 0;
            for (start, c) in text.char_indices() {
                let wide = columns_max(c);
                if wide > left {
                    let shown = text.get(..end).unwrap_or("");
                    return clipped.with(style, format!("{shown}…"), link);
                }
                left -= wide;
                end = start + c.len_utf8();
            }
            clipped = clipped.with(style, text, link);
        }
        clipped
    }

    /// The line in rows of a width, broken wherever a row ends. Its tabs become spaces.
    pub(crate) fn break_into(self, width: usize) -> Vec<Self> {
        let width = width.max(1);
        let mut rows = Vec::new();
        let mut row = Self::default();
        let mut used = 0;
        for stretch in self.0 {
            let StyledStretch { style, text, link } = stretch;
            let mut piece = String::new();
            for c in text.replace('\t', TAB).chars() {
                let wide = columns_max(c);
                if used + wide > width && used > 0 {
                    row = row.with(style, std::mem::take(&mut piece), link.clone());
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                piece.push(c);
                used += wide;
            }
            row = row.with(style, piece, link);
        }
        rows.push(row);
        rows
    }
}

/// The most columns that a character may take. Terminals differ in what they join to one character, so that a row that must fit is
/// measured as if nothing were joined: else a text could take more rows than were counted, and push away what stands above it.
pub(crate) fn columns_max(c: char) -> usize {
    match c {
        // It makes a narrow character a wide one.
        '\u{fe0f}' => 1,
        c => c.width().unwrap_or(0),
    }
}

/// How many columns a text takes; a tab as many as the spaces it becomes.
pub(crate) fn columns(text: &str) -> usize {
    let tabs = text.bytes().filter(|byte| *byte == b'\t').count();
    match tabs {
        0 => text.width(),
        tabs => text.replace('\t', "").width() + tabs * TAB.len(),
    }
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
        let look = TextStyle { is_bold: true, ..TextStyle::of(Color::Cyan) };
        let line = Line::new(Style::Text(look), "a");
        assert_eq!(line.encode(Colors::On), "\u{1b}[1;36ma\u{1b}[0m");
    }

    #[test]
    fn a_link_is_written_where_its_target_is_safe() {
        let to = |target: &str| Arc::<str>::from(target);
        let link = |target| Line::default().then_link(Style::Plain, "a", Some(&to(target)));
        assert_eq!(
            link("https://e.x/").encode(Colors::On),
            "\u{1b}]8;;https://e.x/\u{1b}\\a\u{1b}]8;;\u{1b}\\"
        );
        assert_eq!(link("https://e.x/").encode(Colors::Off), "a");
        assert_eq!(link("https://e.x/\u{7}").encode(Colors::On), "a");
    }

    #[test]
    fn code_keeps_its_tabs_where_it_is_printed() {
        let line = Line::default().then_code(Style::Plain, "\tx\u{1b}\n");
        assert_eq!(line.encode(Colors::On), "\tx\\x1b\\n");
        assert_eq!(line.clip(40).text(), "    x\\x1b\\n");
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

    #[test]
    fn a_long_line_is_broken_as_a_terminal_breaks_it() {
        let line = Line::new(Style::Dim, "ab漢").then(Style::Plain, "字cd");
        let rows = |width: usize| -> Vec<String> {
            let rows = line.clone().break_into(width);
            assert_eq!(rows.len(), line.rows(width));
            rows.iter().map(Line::text).collect()
        };
        assert_eq!(rows(3), ["ab", "漢", "字c", "d"]);
        assert_eq!(rows(4), ["ab漢", "字cd"]);
        assert_eq!(rows(9), ["ab漢字cd"]);
        assert_eq!(Line::default().rows(5), 1);
    }

    #[test]
    fn characters_that_may_be_joined_are_measured_as_if_they_were_not() {
        let family = Line::new(Style::Plain, "👩\u{200d}👩\u{200d}👧\u{200d}👧");
        assert!(family.width() < 8, "joined");
        assert_eq!(family.clone().clip(5).text(), "👩\u{200d}👩\u{200d}…");
        assert_eq!(family.rows(4), 2);
        assert_eq!(Line::new(Style::Plain, "❤\u{fe0f}".repeat(4)).rows(4), 2);
    }
}
