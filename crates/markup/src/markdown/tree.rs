//! The tree of what a reader tells.
//!
//! Promises: nothing that was told is lost. Must not know: Markdown.

use super::sink::{MarkdownSink, MarkedSpan};
use super::{Align, Inline, Item, List, MarkdownBlock, MarkdownLink, Table};

/// What was begun and has not ended, with what stood beside it before.
enum OpenNode {
    Heading(u8),
    Paragraph,
    Quote(Vec<MarkdownBlock>),
    List(List),
    Item(Vec<MarkdownBlock>),
    Table(Table),
    Row { is_head: bool, cells: Vec<Vec<Inline>> },
    Cell,
    Span(MarkedSpan, Vec<Inline>),
    Link(String, Vec<Inline>),
}

#[derive(Default)]
pub(crate) struct TreeBuilder {
    /// Of the container that was begun last.
    blocks: Vec<MarkdownBlock>,
    /// Of the block or span that was begun last.
    inlines: Vec<Inline>,
    open: Vec<OpenNode>,
}

impl TreeBuilder {
    pub(crate) fn finish(self) -> Vec<MarkdownBlock> {
        debug_assert!(self.open.is_empty(), "what is begun is ended");
        self.blocks
    }

    fn end_row(&mut self, is_head: bool, cells: Vec<Vec<Inline>>) {
        let Some(OpenNode::Table(table)) = self.open.last_mut() else {
            return debug_assert!(false, "rows are of a table");
        };
        if is_head { table.head = cells } else { table.rows.push(cells) }
    }

    fn end_cell(&mut self) {
        let content = std::mem::take(&mut self.inlines);
        match self.open.last_mut() {
            Some(OpenNode::Row { cells, .. }) => cells.push(content),
            _ => debug_assert!(false, "cells are of a row"),
        }
    }

    fn end_span(&mut self, span: MarkedSpan, before: Vec<Inline>) {
        let content = std::mem::replace(&mut self.inlines, before);
        self.inlines.push(match span {
            MarkedSpan::Emphasis => Inline::Emphasis(content),
            MarkedSpan::Strong => Inline::Strong(content),
            MarkedSpan::Strikethrough => Inline::Strikethrough(content),
        });
    }
}

impl MarkdownSink for TreeBuilder {
    fn begin_heading(&mut self, level: u8) {
        self.open.push(OpenNode::Heading(level));
    }

    fn begin_paragraph(&mut self) {
        self.open.push(OpenNode::Paragraph);
    }

    fn begin_quote(&mut self) {
        let before = std::mem::take(&mut self.blocks);
        self.open.push(OpenNode::Quote(before));
    }

    fn begin_table(&mut self, columns: &[Align]) {
        self.open.push(OpenNode::Table(Table {
            columns: columns.to_vec(),
            head: Vec::new(),
            rows: Vec::new(),
        }));
    }

    fn begin_row(&mut self, is_head: bool) {
        let cells = Vec::new();
        self.open.push(OpenNode::Row { is_head, cells });
    }

    fn begin_cell(&mut self, _is_head: bool) {
        self.open.push(OpenNode::Cell);
    }

    fn begin_span(&mut self, span: MarkedSpan) {
        let before = std::mem::take(&mut self.inlines);
        self.open.push(OpenNode::Span(span, before));
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(OpenNode::Heading(level)) => {
                let content = std::mem::take(&mut self.inlines);
                self.blocks.push(MarkdownBlock::Heading { level, content });
            }
            Some(OpenNode::Paragraph) => {
                let content = std::mem::take(&mut self.inlines);
                self.blocks.push(MarkdownBlock::Paragraph(content));
            }
            Some(OpenNode::Quote(before)) => {
                let content = std::mem::replace(&mut self.blocks, before);
                self.blocks.push(MarkdownBlock::Quote(content));
            }
            Some(OpenNode::Table(table)) => self.blocks.push(MarkdownBlock::Table(table)),
            Some(OpenNode::Row { is_head, cells }) => self.end_row(is_head, cells),
            Some(OpenNode::Cell) => self.end_cell(),
            Some(OpenNode::Span(span, before)) => self.end_span(span, before),
            Some(OpenNode::List(_) | OpenNode::Item(_) | OpenNode::Link(..)) | None => {
                debug_assert!(false, "these have ends of their own");
            }
        }
    }

    fn begin_list(&mut self, start: Option<u64>) {
        self.open.push(OpenNode::List(List { start, is_tight: true, items: Vec::new() }));
    }

    fn end_list(&mut self, is_tight: bool) {
        match self.open.pop() {
            Some(OpenNode::List(list)) => {
                let list = List { is_tight, ..list };
                self.blocks.push(MarkdownBlock::List(list));
            }
            _ => debug_assert!(false, "a list was begun"),
        }
    }

    fn begin_item(&mut self) {
        let before = std::mem::take(&mut self.blocks);
        self.open.push(OpenNode::Item(before));
    }

    fn end_item(&mut self, checked: Option<bool>) {
        let Some(OpenNode::Item(before)) = self.open.pop() else {
            return debug_assert!(false, "an item was begun");
        };
        let blocks = std::mem::replace(&mut self.blocks, before);
        match self.open.last_mut() {
            Some(OpenNode::List(list)) => list.items.push(Item { checked, blocks }),
            _ => debug_assert!(false, "items are of a list"),
        }
    }

    fn begin_link(&mut self, to: &str) {
        let before = std::mem::take(&mut self.inlines);
        self.open.push(OpenNode::Link(to.to_owned(), before));
    }

    fn end_link(&mut self, other_host: Option<&str>) {
        let Some(OpenNode::Link(to, before)) = self.open.pop() else {
            return debug_assert!(false, "a link was begun");
        };
        let content = std::mem::replace(&mut self.inlines, before);
        self.inlines.push(Inline::Link(MarkdownLink {
            to,
            other_host: other_host.map(str::to_owned),
            content,
        }));
    }

    fn add_code(&mut self, language: Option<&str>, text: &str) {
        self.blocks.push(MarkdownBlock::Code {
            language: language.map(str::to_owned),
            text: text.to_owned(),
        });
    }

    fn add_rule(&mut self) {
        self.blocks.push(MarkdownBlock::Rule);
    }

    fn add_text(&mut self, text: &str) {
        self.inlines.push(Inline::Text(text.to_owned()));
    }

    fn add_code_span(&mut self, text: &str) {
        self.inlines.push(Inline::Code(text.to_owned()));
    }

    fn add_image(&mut self, to: &str, alt: &str) {
        self.inlines.push(Inline::Image { to: to.to_owned(), alt: alt.to_owned() });
    }

    fn add_line_break(&mut self) {
        self.inlines.push(Inline::LineBreak);
    }

    fn count_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn truncate(&mut self, blocks: usize) {
        debug_assert!(self.open.is_empty(), "nothing is begun");
        self.blocks.truncate(blocks);
    }
}
