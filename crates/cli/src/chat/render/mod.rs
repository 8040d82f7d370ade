//! Markdown, code, diffs and tables as lines of a terminal.
//!
//! Promises: code stands in lines of its own, without anything before or behind them and without a break: a terminal breaks long ones
//! itself, and what is copied is what was written. Everything else is broken between words and fits the page.
//! Must not know: the protocol, where lines are drawn.

mod block;
mod code;
pub(crate) mod diff;
mod inline;
mod markdown_text;
mod styled;
mod table;

use std::time::Duration;

use super::line::Colors;

pub(crate) use self::markdown_text::{MarkdownText, markdown_lines};

/// CPU time that colours may take, each time lines are made; after that code is plain.
const COLOR_TIME: Duration = Duration::from_millis(100);

/// Lines of prose are not wider than this, however wide the page is: longer ones are hard to read.
const PROSE_WIDTH_MAX: usize = 100;

/// The width of lines that are not broken: whoever reads them may do that.
pub(crate) const UNBROKEN: usize = usize::MAX / 4;

/// What lines are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page {
    /// Columns a line may take.
    pub(crate) width: usize,
    /// Rows of the screen.
    pub(crate) rows: usize,
    /// Without colours the marks of Markdown stay, where nothing else would show them.
    pub(crate) colors: Colors,
    pub(crate) links: LinkStyle,
    pub(crate) prose: ProseStyle,
}

/// What is made of Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProseStyle {
    Rendered,
    /// It stays as it was written, for whoever reads lines.
    Written,
}

/// What a terminal does with links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkStyle {
    /// They can be followed, and the terminal shows where they lead.
    Followed,
    /// It may know nothing of links: where they lead is written behind them.
    WrittenOut,
}

impl Page {
    /// For whoever reads lines one by one.
    pub(crate) fn unbroken() -> Self {
        Self {
            width: UNBROKEN,
            rows: usize::MAX,
            colors: Colors::Off,
            links: LinkStyle::WrittenOut,
            prose: ProseStyle::Written,
        }
    }

    fn prose_width(self) -> usize {
        self.width.min(PROSE_WIDTH_MAX)
    }
}

#[cfg(test)]
impl Page {
    pub(crate) fn of_width(width: usize) -> Self {
        Self {
            width,
            rows: 24,
            colors: Colors::On,
            links: LinkStyle::WrittenOut,
            prose: ProseStyle::Rendered,
        }
    }
}

/// Lines as they look, without the blanks behind them; each fits the page.
#[cfg(test)]
fn assert_looks(lines: &[super::line::Line], width: usize, expected: &expect_test::Expect) {
    assert!(lines.iter().all(|line| line.width() <= width), "{lines:?}");
    let lines = lines.iter();
    let text: String = lines.map(|line| line.text().trim_end().to_owned() + "\n").collect();
    expected.assert_eq(&text);
}
