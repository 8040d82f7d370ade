//! Text that is still being written: how much of it can never change, and what its open end looks like.
//!
//! Promises: rendering the stable parts one after the other, and what is left at the end, gives what rendering the whole gives.
//! Excepted are links whose definition comes after them, and a block larger than [`markdown::BYTES_MAX`], which is cut.
//! Must not know: who writes, how often a reader draws.

use pulldown_cmark::{Event, Parser};

use crate::MarkupTooLarge;
use crate::markdown::{self, Definitions, MarkdownBlock, OPTIONS};
use crate::tail::close_open_spans;

/// A look at the open part costs as much as the part is long. One is due when the part has grown by this fraction of itself, so
/// that a long block costs a fixed multiple of itself in all.
const GROWTH: usize = 64;

/// How many bytes of a text can never change, whatever is appended: where the last top-level block begins, counted over whole lines
/// only. Link definitions right above a block are counted to it, because a block can turn out to be their title.
pub fn find_stable(text: &str) -> Result<usize, MarkupTooLarge> {
    MarkupTooLarge::check(text.len(), markdown::BYTES_MAX)?;
    Ok(find_last_block(text))
}

fn find_last_block(text: &str) -> usize {
    let Some((lines, _)) = text.rsplit_once('\n') else {
        return 0;
    };
    // With its newline.
    let lines = text.get(..=lines.len()).unwrap_or(text);
    let mut depth = 0_usize;
    let mut block_before_ends = 0;
    let mut last = 0..0;
    for (event, range) in Parser::new_ext(lines, OPTIONS).into_offset_iter() {
        let is_top = depth == 0;
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
        }
    }
    let between = lines.get(block_before_ends..last.start).unwrap_or("");
    let definitions = between.find(|c: char| !c.is_whitespace());
    let start = definitions.map_or(last.start, |offset| block_before_ends + offset);
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

/// A text that arrives in pieces, given out block by block as soon as blocks are stable.
#[derive(Debug, Default)]
pub struct MarkdownStream {
    open: String,
    /// How long the open part was when it was last looked at.
    looked_at: usize,
    definitions: Definitions,
}

impl MarkdownStream {
    /// Takes the next piece and returns the blocks that will not change any more.
    pub fn push(&mut self, piece: &str) -> Vec<MarkdownBlock> {
        let mut blocks = Vec::new();
        let mut rest = piece;
        while !rest.is_empty() {
            let room = markdown::BYTES_MAX.saturating_sub(self.open.len());
            let (now, later) = rest.split_at(rest.floor_char_boundary(room));
            self.open.push_str(now);
            rest = later;
            let is_full = !rest.is_empty();
            if is_full || self.is_look_due() {
                blocks.extend(self.look(is_full));
            }
        }
        blocks
    }

    /// What is left when nothing more comes.
    pub fn finish(mut self) -> Vec<MarkdownBlock> {
        let length = self.open.len();
        self.take(length)
    }

    /// The part that may still change, as it looks now.
    pub fn parse_open(&self) -> Vec<MarkdownBlock> {
        // The open part is within the bound, see `push`.
        parse_open(&self.open, &self.definitions).unwrap_or_default()
    }

    /// The source of the part that may still change.
    pub fn open_text(&self) -> &str {
        &self.open
    }

    fn is_look_due(&self) -> bool {
        let new = self.open.get(self.looked_at..).unwrap_or("");
        new.contains('\n') && new.len() >= self.looked_at / GROWTH
    }

    fn look(&mut self, is_full: bool) -> Vec<MarkdownBlock> {
        let mut stable = find_last_block(&self.open);
        if stable == 0 && is_full {
            stable = self.open.len();
        }
        let blocks = self.take(stable);
        self.looked_at = self.open.len();
        blocks
    }

    fn take(&mut self, length: usize) -> Vec<MarkdownBlock> {
        let rest = self.open.split_off(length);
        let part = std::mem::replace(&mut self.open, rest);
        // The open part is within the bound, see `push`.
        markdown::parse_part(&part, &mut self.definitions).unwrap_or_default()
    }
}
