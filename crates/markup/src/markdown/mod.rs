//! Markdown as a tree of blocks and inlines.
//!
//! Promises: raw HTML is text; a link leads to http, https or mailto, and any other is text that names its target; a picture is a
//! reference, never content. The tree is at most [`DEPTH_MAX`] deep; what is nested deeper is one paragraph of text.
//! Must not know: how a tree is drawn.
//!
//! CommonMark with tables, task lists, strikethrough and addresses that stand in the text as they are. Footnotes are not read: a definition at the end of a text would change
//! blocks that were rendered long before.

mod address;
mod json;
mod link;
mod reader;
mod sink;
mod tree;

use pulldown_cmark::Options;

use crate::MarkupTooLarge;
pub use json::CodeColourer;
pub(crate) use json::JsonWriter;
pub use link::Definitions;
pub(crate) use reader::{read, read_without_definitions};
pub(crate) use sink::MarkdownSink;
pub(crate) use tree::TreeBuilder;

/// The largest text that is rendered at once.
pub const BYTES_MAX: usize = 1 << 20;

/// How deep blocks and inlines may be nested, counted together.
pub const DEPTH_MAX: usize = 32;

pub(crate) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_TASKLISTS).union(Options::ENABLE_STRIKETHROUGH);

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkdownBlock {
    /// Level 1 to 6.
    Heading {
        level: u8,
        content: Vec<Inline>,
    },
    Paragraph(Vec<Inline>),
    Quote(Vec<MarkdownBlock>),
    List(List),
    /// `language` is the first word behind the fence; `text` is without its last line end.
    Code {
        language: Option<String>,
        text: String,
    },
    Table(Table),
    Rule,
}

/// A list; with a number it counts from there. In a tight one no blank line stands between items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    pub start: Option<u64>,
    pub is_tight: bool,
    pub items: Vec<Item>,
}

/// An item of a list; `checked` is set in a task list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub checked: Option<bool>,
    pub blocks: Vec<MarkdownBlock>,
}

/// A table; its rows have as many cells as it has columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub columns: Vec<Align>,
    pub head: Vec<Vec<Inline>>,
    pub rows: Vec<Vec<Vec<Inline>>>,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    None,
    Left,
    Center,
    Right,
}

/// A piece of a block's text. A newline in `Text` is a soft one: a place to wrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inline {
    Text(String),
    Code(String),
    Emphasis(Vec<Inline>),
    Strong(Vec<Inline>),
    Strikethrough(Vec<Inline>),
    Link(MarkdownLink),
    /// A picture elsewhere, by its address; nothing fetches it by itself.
    Image {
        to: String,
        alt: String,
    },
    LineBreak,
}

/// A link to http, https or mailto, without hidden characters in its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownLink {
    pub to: String,
    /// The host it really leads to, where its text looks like an address of another.
    pub other_host: Option<String>,
    pub content: Vec<Inline>,
}

/// The blocks of a whole text.
pub fn parse(text: &str) -> Result<Vec<MarkdownBlock>, MarkupTooLarge> {
    parse_part(text, &mut Definitions::default())
}

/// The blocks of a part of a text. `definitions` has the link definitions of the parts before, and gets those of this one.
pub fn parse_part(
    text: &str,
    definitions: &mut Definitions,
) -> Result<Vec<MarkdownBlock>, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), BYTES_MAX)?;
    let mut tree = TreeBuilder::default();
    read(text, definitions, &mut tree);
    Ok(tree.finish())
}

/// Writes the JSON of a text's blocks, an array, behind what a buffer holds. A block is an array with its tag first:
/// `["p", "see ", ["code", "x"]]`. This is what a page gets; there is no tree in between.
pub fn write_json(
    text: &str,
    out: &mut Vec<u8>,
    colour: &mut CodeColourer<'_>,
) -> Result<(), MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), BYTES_MAX)?;
    out.push(b'[');
    read(text, &mut Definitions::default(), &mut JsonWriter::new(out, colour));
    out.push(b']');
    Ok(())
}

/// The text of inlines without their marks.
pub fn plain_text(inlines: &[Inline]) -> String {
    let mut text = String::new();
    add_plain_text(inlines, &mut text);
    text
}

fn add_plain_text(inlines: &[Inline], text: &mut String) {
    for inline in inlines {
        match inline {
            Inline::Text(piece) | Inline::Code(piece) => text.push_str(piece),
            Inline::Image { alt, .. } => text.push_str(alt),
            Inline::LineBreak => text.push('\n'),
            Inline::Emphasis(content)
            | Inline::Strong(content)
            | Inline::Strikethrough(content) => {
                add_plain_text(content, text);
            }
            Inline::Link(link) => add_plain_text(&link.content, text),
        }
    }
}
