//! What a reader finds in a text, told in order: a tree, or its JSON, is made of it.
//!
//! Promises of whoever tells: what is begun is ended, inner before outer; a list holds items, a table rows, a row cells; text and spans
//! stand in a heading, a paragraph or a cell, and two texts never follow each other; a text may be empty. Must not know: what is made of it.

use super::Align;

/// A span with nothing but its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkedSpan {
    Emphasis,
    Strong,
    Strikethrough,
}

pub(crate) trait MarkdownSink {
    fn begin_heading(&mut self, level: u8);
    fn begin_paragraph(&mut self);
    fn begin_quote(&mut self);
    fn begin_table(&mut self, columns: &[Align]);
    fn begin_row(&mut self, is_head: bool);
    fn begin_cell(&mut self, is_head: bool);
    fn begin_span(&mut self, span: MarkedSpan);
    /// Ends what was begun last, if it is one of the above.
    fn end(&mut self);

    fn begin_list(&mut self, start: Option<u64>);
    fn end_list(&mut self, is_tight: bool);
    fn begin_item(&mut self);
    fn end_item(&mut self, checked: Option<bool>);
    fn begin_link(&mut self, to: &str);
    /// `other_host` is where it leads, if its text looks like an address of another host.
    fn end_link(&mut self, other_host: Option<&str>);

    fn add_code(&mut self, language: Option<&str>, text: &str);
    fn add_rule(&mut self);
    fn add_text(&mut self, text: &str);
    fn add_code_span(&mut self, text: &str);
    fn add_image(&mut self, to: &str, alt: &str);
    fn add_line_break(&mut self);

    /// How many blocks there are that stand in no other.
    fn count_blocks(&self) -> usize;
    /// Takes the blocks behind the first so many back. Nothing is begun.
    fn truncate(&mut self, blocks: usize);
}
