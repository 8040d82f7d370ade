//! A text that arrives in pieces, given out as soon as its parts cannot change: whole blocks, the items of a list one by one, the lines
//! of a fenced code block as they are completed.
//!
//! Promises: joined together the pieces are what rendering the whole gives, but for links whose definition comes after them, for the
//! room between the items of a list, and for a block larger than [`markdown::BYTES_MAX`], which is cut. All pieces of a text
//! together cost a fixed multiple of it. Must not know: who writes, how often a reader draws.

use crate::fence::Fence;
use crate::markdown::{self, Definitions, List, MarkdownBlock};
use crate::stable::{LastBlock, parse_open};

/// A look at the open part costs as much as the part is long. One is due when the part has grown by this fraction of itself, so
/// that a long block costs a fixed multiple of itself in all.
const GROWTH: usize = 64;

/// What will not change any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StablePiece {
    Block(MarkdownBlock),
    /// Some items of a list that is not complete. They are numbered as in the whole; the list is tight if no blank line stands
    /// between these items or behind them.
    Items {
        list: List,
        position: ItemPosition,
    },
    /// A fenced code block begins; its lines follow.
    CodeStart {
        language: Option<String>,
    },
    CodeLine(String),
    CodeEnd,
}

/// Where items stand in their list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPosition {
    First,
    Continued,
}

/// What comes next continues a list; the number of its next item, if it has numbers.
#[derive(Debug, Clone, Copy)]
struct OpenList {
    next: Option<u64>,
}

#[derive(Debug, Default)]
pub struct MarkdownStream {
    open: String,
    /// How long the open part was when it was last looked at.
    looked_at: usize,
    definitions: Definitions,
    /// The code block whose lines are coming in.
    fence: Option<Fence>,
    list: Option<OpenList>,
}

/// The last line of code, which has no end. By the parser, which has rules of its own for blanks there.
fn read_unended_line(fence: &Fence, line: &str) -> Option<String> {
    let block = format!("{}\n{line}", fence.opening());
    let parsed = markdown::parse(&block).unwrap_or_default();
    match parsed.into_iter().next() {
        Some(MarkdownBlock::Code { text, .. }) if !text.is_empty() => Some(text),
        _ => None, // nothing is on it, or it closes the block
    }
}

impl MarkdownStream {
    /// Takes the next piece and returns what will not change any more.
    pub fn push(&mut self, text: &str) -> Vec<StablePiece> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let room = markdown::BYTES_MAX.saturating_sub(self.open.len());
            let (now, later) = rest.split_at(rest.floor_char_boundary(room));
            self.open.push_str(now);
            rest = later;
            self.advance(!rest.is_empty(), &mut pieces);
        }
        pieces
    }

    /// What is left when nothing more comes.
    pub fn finish(mut self) -> Vec<StablePiece> {
        let mut pieces = Vec::new();
        // What was not looked at for a while may hold code that began and ended.
        while self.look(&mut pieces) {}
        if let Some(fence) = self.fence.take() {
            if let Some(line) = read_unended_line(&fence, &self.open) {
                pieces.push(StablePiece::CodeLine(line));
            }
            pieces.push(StablePiece::CodeEnd);
            return pieces;
        }
        let length = self.open.len();
        self.take(length, &mut pieces);
        pieces
    }

    /// The part that may still change, as it looks now; of a long one no more than its last `bytes_max` bytes, in whole lines.
    pub fn parse_open(&self, bytes_max: usize) -> Vec<MarkdownBlock> {
        let from = self.open.len().saturating_sub(bytes_max);
        let tail = match from {
            0 => self.open.as_str(),
            from => {
                let from = self.open.ceil_char_boundary(from);
                let tail = self.open.get(from..).unwrap_or("");
                tail.split_once('\n').map_or(tail, |(_, lines)| lines)
            }
        };
        // The open part is within the bound, see `push`.
        let mut blocks = parse_open(tail, &self.definitions).unwrap_or_default();
        if let (Some(open), Some(MarkdownBlock::List(list))) = (self.list, blocks.first_mut())
            && tail.len() == self.open.len()
        {
            list.start = open.next;
        }
        blocks
    }

    /// The source of the part that may still change; in a code block, the line that is being written.
    pub fn open_text(&self) -> &str {
        &self.open
    }

    /// Whether the open part goes on with a list.
    pub fn is_in_list(&self) -> bool {
        self.list.is_some()
    }

    fn advance(&mut self, is_full: bool, pieces: &mut Vec<StablePiece>) {
        if self.fence.is_none() && !is_full && !self.is_look_due() {
            return; // too little has come to be worth a look
        }
        let before = self.open.len();
        // A block that ends may be followed by whole ones, which are found at the next look.
        while self.look(pieces) {}
        if is_full && self.open.len() == before {
            self.cut(pieces);
        }
        self.looked_at = self.open.len();
    }

    fn is_look_due(&self) -> bool {
        let new = self.open.get(self.looked_at..).unwrap_or("");
        new.contains('\n') && new.len() >= self.looked_at / GROWTH
    }

    /// Takes out what has become stable; whether another look may find more.
    fn look(&mut self, pieces: &mut Vec<StablePiece>) -> bool {
        if self.fence.is_some() {
            return self.take_code(pieces);
        }
        let last = LastBlock::find(&self.open);
        self.take(last.start, pieces);
        if let Some(item) = last.last_item {
            self.take_items(item - last.start, pieces);
        }
        self.open_fence(pieces)
    }

    /// If the open part begins with a fence, goes on line by line.
    fn open_fence(&mut self, pieces: &mut Vec<StablePiece>) -> bool {
        let Some((line, rest)) = self.open.split_once('\n') else {
            return false; // the line may still become another
        };
        let Some(fence) = Fence::open(line.strip_suffix('\r').unwrap_or(line)) else {
            return false; // some other block
        };
        let opening = format!("{line}\n");
        self.open = rest.to_owned();
        // By the parser: names of languages may be written with escapes.
        let parsed = markdown::parse_part(&opening, &mut self.definitions).unwrap_or_default();
        let language = match parsed.into_iter().next() {
            Some(MarkdownBlock::Code { language, .. }) => language,
            _ => None,
        };
        self.fence = Some(fence);
        self.list = None;
        pieces.push(StablePiece::CodeStart { language });
        true
    }

    /// Takes the whole lines of the code; `true` when the block has ended.
    fn take_code(&mut self, pieces: &mut Vec<StablePiece>) -> bool {
        let Some(fence) = self.fence.clone() else {
            return false; // not called without one
        };
        let mut taken = 0;
        let mut is_closed = false;
        for line in self.open.split_inclusive('\n') {
            let Some(text) = line.strip_suffix('\n') else { break };
            taken += line.len();
            is_closed = fence.is_closed_by(text);
            if is_closed {
                break;
            }
            pieces.push(StablePiece::CodeLine(fence.read_line(text)));
        }
        self.open.drain(..taken);
        if is_closed {
            self.fence = None;
            pieces.push(StablePiece::CodeEnd);
        }
        is_closed
    }

    /// Gives out what is there although it is not complete: there is no room for more.
    fn cut(&mut self, pieces: &mut Vec<StablePiece>) {
        let length = self.open.len();
        match self.fence.clone() {
            Some(fence) => {
                let line = std::mem::take(&mut self.open);
                pieces.push(StablePiece::CodeLine(fence.read_line(&line)));
            }
            None => self.take(length, pieces),
        }
    }

    fn take(&mut self, length: usize, pieces: &mut Vec<StablePiece>) {
        if length == 0 {
            return; // nothing is taken, and a list goes on
        }
        let blocks = self.parse_front(length);
        let list = self.list.take();
        for (index, block) in blocks.into_iter().enumerate() {
            pieces.push(match (index, list, block) {
                (0, Some(open), MarkdownBlock::List(list)) => StablePiece::Items {
                    list: List { start: open.next, ..list },
                    position: ItemPosition::Continued,
                },
                (_, _, block) => StablePiece::Block(block),
            });
        }
    }

    /// Takes the items before the last one of the list that the open part begins with.
    fn take_items(&mut self, length: usize, pieces: &mut Vec<StablePiece>) {
        let part = self.open.get(..length).unwrap_or("");
        let has_blank_end = part.lines().next_back().is_some_and(|line| line.trim().is_empty());
        let mut blocks = self.parse_front(length).into_iter();
        let Some(MarkdownBlock::List(mut list)) = blocks.next() else {
            debug_assert!(false, "items are of a list");
            return;
        };
        let position = match self.list.take() {
            Some(open) => {
                list.start = open.next;
                ItemPosition::Continued
            }
            None => ItemPosition::First,
        };
        list.is_tight &= !has_blank_end;
        let count = u64::try_from(list.items.len()).unwrap_or(u64::MAX);
        self.list = Some(OpenList { next: list.start.map(|start| start.saturating_add(count)) });
        pieces.push(StablePiece::Items { list, position });
    }

    fn parse_front(&mut self, length: usize) -> Vec<MarkdownBlock> {
        let rest = self.open.split_off(length);
        let part = std::mem::replace(&mut self.open, rest);
        // The open part is within the bound, see `push`.
        markdown::parse_part(&part, &mut self.definitions).unwrap_or_default()
    }
}
