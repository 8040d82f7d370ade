//! Text that is still being written: how much of it can never change, and what its open end looks like.
//!
//! Promises: rendering the stable parts one after the other, and what is left at the end, gives what rendering the whole gives.
//! Excepted are links whose definition comes after them.
//! Must not know: who writes, how often a reader draws.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use crate::MarkupTooLarge;
use crate::markdown::{self, Definitions, MarkdownBlock, OPTIONS};
use crate::tail::close_open_spans;

/// How many bytes of a text can never change, whatever is appended: where the last top-level block begins, counted over whole lines
/// only. Link definitions right above a block are counted to it, because a block can turn out to be their title.
pub fn find_stable(text: &str) -> Result<usize, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), markdown::BYTES_MAX)?;
    Ok(LastBlock::find(text).start)
}

/// The last top-level block of a text, counted over whole lines.
#[derive(Debug, Default)]
pub(crate) struct LastBlock {
    /// Where it begins; link definitions right above it belong to it.
    pub(crate) start: usize,
    /// Where its last item begins, if it is a list that has items before that one. Those will not change any more, but for the room
    /// between them.
    pub(crate) last_item: Option<usize>,
}

impl LastBlock {
    pub(crate) fn find(text: &str) -> Self {
        match whole_lines(text) {
            "" => Self::default(), // no line is whole
            lines => find_last_block(lines),
        }
    }
}

/// The lines of a text that have an end, with the newline of the last.
fn whole_lines(text: &str) -> &str {
    let end = text.rfind('\n').map_or(0, |last| last + 1);
    text.get(..end).unwrap_or(text)
}

fn find_last_block(lines: &str) -> LastBlock {
    let mut depth = 0_usize;
    let mut block_before_ends = 0;
    let mut last = 0..0;
    let mut items = 0_usize;
    let mut last_item = 0;
    for (event, range) in Parser::new_ext(lines, OPTIONS).into_offset_iter() {
        let is_top = depth == 0;
        if let (1, Event::Start(Tag::Item)) = (depth, &event) {
            items += 1;
            last_item = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => {
                depth -= 1;
                continue;
            }
            Event::Rule => {}
            _ => continue,
        }
        if is_top {
            block_before_ends = last.end;
            last = range;
            items = 0;
        }
    }
    LastBlock {
        start: find_block_start(lines, block_before_ends..last.start),
        last_item: (items > 1).then(|| find_line_start(lines, last_item)),
    }
}

/// Where the last block begins, by what lies between it and the one before: definitions are counted to it.
fn find_block_start(lines: &str, between: Range<usize>) -> usize {
    let text = lines.get(between.clone()).unwrap_or("");
    let definitions = text.find(|c: char| !c.is_whitespace());
    let start = definitions.map_or(between.end, |offset| between.start + offset);
    find_line_start(lines, start)
}

/// A block begins with its line: the blanks before it have a meaning.
fn find_line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.rfind(['\n', '\r']).map_or(0, |end| end + 1)
}

/// The open end of a text as it would look if it ended well: open emphasis and code are closed, marks that are not complete are
/// not shown yet, so that nothing changes its look with every character.
pub fn parse_open(
    text: &str,
    definitions: &Definitions,
) -> Result<Vec<MarkdownBlock>, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), markdown::BYTES_MAX)?;
    let closed = close_open_spans(text);
    // The marks that were added may lead over the bound by some bytes; then it is shown as it is.
    let text = if closed.len() > markdown::BYTES_MAX {
        text
    } else {
        &closed
    };
    markdown::parse_part(text, &mut definitions.clone())
}

/// A text that is being written, as it looks now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenText {
    pub blocks: Vec<MarkdownBlock>,
    /// So many bytes of the text, and so many of the blocks, will not change any more.
    pub stable: usize,
    pub stable_blocks: usize,
}

/// What [`find_stable`], [`markdown::parse_part`] of what is stable and [`parse_open`] of the rest give together, with what is stable read
/// only once.
pub fn parse_open_text(text: &str) -> Result<OpenText, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), markdown::BYTES_MAX)?;
    let lines = whole_lines(text);
    let mut definitions = Definitions::default();
    let (stable, mut blocks) = match markdown::parse_with_gap(lines) {
        Some((mut blocks, gap)) => {
            // The last one may change: it is read again with what follows.
            blocks.pop();
            (find_block_start(lines, gap), blocks)
        }
        // What stands before a definition must not know of it yet, so it is read alone.
        None => {
            let stable = find_last_block(lines).start;
            let done = text.get(..stable).unwrap_or("");
            (stable, markdown::parse_part(done, &mut definitions)?)
        }
    };
    let stable_blocks = blocks.len();
    let end = text.get(stable..).unwrap_or(text);
    blocks.extend(parse_open(end, &definitions)?);
    Ok(OpenText {
        blocks,
        stable,
        stable_blocks,
    })
}
