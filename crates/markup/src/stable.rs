//! Text that is still being written: how much of it can never change, and what its open end looks like.
//!
//! Promises: rendering the stable parts one after the other, and what is left at the end, gives what rendering the whole gives.
//! Excepted are links whose definition comes after them.
//! Must not know: who writes, how often a reader draws.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use crate::MarkupTooLarge;
use crate::markdown::{
    self, CodeColourer, Definitions, JsonWriter, MarkdownBlock, MarkdownSink, OPTIONS, TreeBuilder,
};
use crate::tail::{close_leaf, close_open_spans, leave_out_begun_line};

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
    let mut tree = TreeBuilder::default();
    read_open(text, definitions, &mut tree);
    Ok(tree.finish())
}

/// The same, told to a sink. The text is within the bound.
fn read_open(text: &str, definitions: &Definitions, sink: &mut impl MarkdownSink) {
    let closed = close_open_spans(text);
    // The marks that were added may lead over the bound by some bytes; then it is shown as it is.
    let text = if closed.len() > markdown::BYTES_MAX { text } else { &closed };
    markdown::read(text, &mut definitions.clone(), sink);
}

/// So many bytes of a text that is being written, and so many of its blocks, will not change any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StablePart {
    pub bytes: usize,
    pub blocks: usize,
}

/// A text that is being written, as it looks now, as [`markdown::write_json`] writes it: what [`find_stable`], [`markdown::parse_part`] of
/// what is stable and [`parse_open`] of the rest give together, from one reading.
pub fn write_open_json(
    text: &str,
    out: &mut Vec<u8>,
    colour: &mut CodeColourer<'_>,
) -> Result<StablePart, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), markdown::BYTES_MAX)?;
    out.push(b'[');
    let stable = read_open_text(text, &mut JsonWriter::new(out, colour));
    out.push(b']');
    Ok(stable)
}

fn read_open_text(text: &str, sink: &mut impl MarkdownSink) -> StablePart {
    if let Some(stable) = read_open_text_once(text, sink) {
        return stable;
    }
    sink.truncate(0);
    let stable = LastBlock::find(text).start;
    let (done, end) = text.split_at(stable);
    let mut definitions = Definitions::default();
    markdown::read(done, &mut definitions, sink);
    let blocks = sink.count_blocks();
    read_open(end, &definitions, sink);
    StablePart { bytes: stable, blocks }
}

/// Reads a text from beginning to end, and its last block a second time if spans are open in it. None: this text has to be read in parts.
/// That is so if it has link definitions, since what stands before one must not know of it yet.
fn read_open_text_once(text: &str, sink: &mut impl MarkdownSink) -> Option<StablePart> {
    let lines = whole_lines(text);
    let begun = text.get(lines.len()..).unwrap_or("");
    let shown = leave_out_begun_line(text);
    // A carriage return ends a line, too: what is begun may be more than a line then.
    if begun.contains('\r') {
        return None;
    }
    let places = markdown::read_without_definitions(shown, sink)?;
    debug_assert_eq!(places.blocks.len(), sink.count_blocks());
    if let Some((start, closed)) = close_leaf(shown, places.leaf)
        && shown.get(start..).map(trim_after_word) != Some(&closed)
    {
        // A container without text may follow the leaf: what is added would stand in that.
        places.blocks.last().filter(|last| start >= last.start)?;
        let (again, first) = find_reread(shown, lines, &places.blocks)?;
        let closed = format!("{}{closed}", shown.get(first..start)?);
        if closed.len() > markdown::BYTES_MAX {
            return None;
        }
        sink.truncate(again);
        markdown::read_without_definitions(&closed, sink)?;
    }
    // The line that is begun belongs to the last block of the whole lines, or begins another.
    let is_whole = |block: &Range<usize>| block.start < lines.len();
    let whole = places.blocks.partition_point(is_whole);
    let bytes = match places.blocks.get(..whole) {
        Some([.., before, last]) => find_block_start(lines, before.end..last.start),
        Some([last]) => find_block_start(lines, 0..last.start),
        _ => 0,
    };
    Some(StablePart { bytes, blocks: whole.saturating_sub(1) })
}

/// From which block on, and from which offset, a text is read again when its end is closed. The last block, if that begins with a whole line or
/// behind a blank one: what is closed may turn out to belong to the block before it otherwise.
fn find_reread(shown: &str, lines: &str, blocks: &[Range<usize>]) -> Option<(usize, usize)> {
    let begin = |index: usize| {
        let block = blocks.get(index)?;
        Some((index, find_line_start(shown, block.start)))
    };
    let (last, start) = begin(blocks.len().checked_sub(1)?)?;
    let is_apart =
        start < lines.len() || shown.get(..start).is_some_and(|before| before.ends_with("\n\n"));
    match last {
        0 => Some((0, 0)),
        last if is_apart => Some((last, start)),
        last => begin(last - 1),
    }
}

/// A text without the blanks at its end, if they stand behind a word or the end of a sentence: there they mean nothing. Behind marks they may.
fn trim_after_word(text: &str) -> &str {
    let trimmed = text.trim_end_matches([' ', '\n']);
    let words = trimmed.strip_suffix(['.', ',', ';', ':', '!', '?']);
    if words.unwrap_or(trimmed).ends_with(char::is_alphabetic) { trimmed } else { text }
}
