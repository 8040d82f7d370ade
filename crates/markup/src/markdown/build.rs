//! From the parser's events to the tree.
//!
//! Promises: recursion ends at [`DEPTH_MAX`]; what is deeper is read in a loop and becomes text. Every character of the source's
//! text is in the tree. Must not know: what is stable, how anything is drawn.

use std::cell::Cell;
use std::ops::Range;

use pulldown_cmark::{Alignment, BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Parser, Tag};

use super::address::link_addresses;
use super::link::{Definitions, is_by_label, make_image, make_link};
use super::{Align, DEPTH_MAX, Inline, Item, List, MarkdownBlock, OPTIONS, Table};

/// How many bytes the targets of earlier definitions may take in a short text.
const EXPANSION_BYTES_MIN: usize = 200_000;

/// Longer names of languages are no names.
const LANGUAGE_BYTES_MAX: usize = 64;

pub(super) fn build(text: &str, definitions: &mut Definitions) -> Vec<MarkdownBlock> {
    let earlier = Earlier {
        definitions: definitions.clone(),
        room: Cell::new(text.len().max(EXPANSION_BYTES_MIN)),
    };
    let find = |link: BrokenLink<'_>| {
        let target = earlier.find(&link.reference)?;
        Some((CowStr::from(target), CowStr::Borrowed("")))
    };
    let parser = Parser::new_with_broken_link_callback(text, OPTIONS, Some(find));
    let mut own: Vec<_> = parser.reference_definitions().iter().collect();
    own.sort_by_key(|(_, definition)| definition.span.start);
    for (label, definition) in own {
        definitions.add(label, &definition.dest);
    }
    let mut reader = Reader {
        events: parser,
        earlier: &earlier,
        checked: None,
    };
    reader.read_blocks(0).blocks
}

/// The same of a text without link definitions, and what lies between its last two blocks; none if it has any.
pub(super) fn build_with_gap(text: &str) -> Option<(Vec<MarkdownBlock>, Range<usize>)> {
    let parser = Parser::new_ext(text, OPTIONS);
    if parser.reference_definitions().iter().next().is_some() {
        return None;
    }
    let (mut depth, mut last_end) = (0_usize, 0);
    let gap = Cell::new((0, 0));
    let events = parser.into_offset_iter().map(|(event, range)| {
        let is_top = depth == 0;
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if is_top && matches!(event, Event::Start(_) | Event::Rule) {
            gap.set((last_end, range.start));
            last_end = range.end;
        }
        event
    });
    let earlier = Earlier {
        definitions: Definitions::default(),
        room: Cell::new(0),
    };
    let mut reader = Reader {
        events,
        earlier: &earlier,
        checked: None,
    };
    let blocks = reader.read_blocks(0).blocks;
    let (from, to) = gap.get();
    Some((blocks, from..to))
}

/// Definitions of earlier parts; they go before those of this one. A long target that is referred to often must not make the
/// tree much larger than the text, so there is room for a certain number of bytes, as the parser has for its own.
struct Earlier {
    definitions: Definitions,
    room: Cell<usize>,
}

impl Earlier {
    fn find(&self, label: &str) -> Option<String> {
        let target = self.definitions.find(label)?;
        self.room.set(self.room.get().checked_sub(target.len())?);
        Some(target.to_owned())
    }
}

struct Reader<'e, I> {
    events: I,
    earlier: &'e Earlier,
    /// The box of the item that is being read.
    checked: Option<bool>,
}

/// The blocks of a container, and whether a paragraph of it was one in the source: then its list is not tight.
struct Blocks {
    blocks: Vec<MarkdownBlock>,
    has_paragraph: bool,
}

impl<'a, I: Iterator<Item = Event<'a>>> Reader<'_, I> {
    /// Reads to the end of the container that was opened last. Text that stands in it without a paragraph becomes one.
    fn read_blocks(&mut self, depth: usize) -> Blocks {
        let mut blocks = Vec::new();
        let mut has_paragraph = false;
        let mut loose = Vec::new();
        while let Some(event) = self.events.next() {
            match event {
                Event::End(_) => break,
                Event::Start(tag) if is_block(&tag) => {
                    end_paragraph(&mut blocks, &mut loose);
                    has_paragraph |= matches!(tag, Tag::Paragraph);
                    blocks.push(self.read_block(tag, depth + 1));
                }
                Event::Rule => {
                    end_paragraph(&mut blocks, &mut loose);
                    blocks.push(MarkdownBlock::Rule);
                }
                event => self.read_inline(event, depth + 1, &mut loose),
            }
        }
        end_paragraph(&mut blocks, &mut loose);
        Blocks {
            blocks,
            has_paragraph,
        }
    }

    fn read_block(&mut self, tag: Tag<'a>, depth: usize) -> MarkdownBlock {
        if let Tag::CodeBlock(kind) = tag {
            return self.read_code(&kind);
        }
        if depth >= DEPTH_MAX {
            return MarkdownBlock::Paragraph(vec![Inline::Text(self.read_text())]);
        }
        match tag {
            Tag::Heading { level, .. } => MarkdownBlock::Heading {
                level: level as u8,
                content: link_addresses(self.read_inlines(depth)),
            },
            Tag::BlockQuote(_) => MarkdownBlock::Quote(self.read_blocks(depth).blocks),
            Tag::List(start) => MarkdownBlock::List(self.read_list(start, depth)),
            Tag::Table(columns) => MarkdownBlock::Table(self.read_table(&columns, depth)),
            Tag::HtmlBlock => MarkdownBlock::Paragraph(self.read_raw_lines()),
            // A paragraph; a container that the options leave out would be read as one.
            _ => MarkdownBlock::Paragraph(link_addresses(self.read_inlines(depth))),
        }
    }

    fn read_list(&mut self, start: Option<u64>, depth: usize) -> List {
        let mut items = Vec::new();
        let mut is_tight = true;
        while let Some(Event::Start(_)) = self.events.next() {
            let outer = self.checked.take();
            let content = self.read_blocks(depth + 1);
            is_tight &= !content.has_paragraph;
            items.push(Item {
                checked: self.checked.take(),
                blocks: content.blocks,
            });
            self.checked = outer;
        }
        List {
            start,
            is_tight,
            items,
        }
    }

    fn read_table(&mut self, columns: &[Alignment], depth: usize) -> Table {
        let mut table = Table {
            columns: columns.iter().map(read_align).collect(),
            head: Vec::new(),
            rows: Vec::new(),
        };
        while let Some(Event::Start(tag)) = self.events.next() {
            let cells = self.read_cells(depth);
            match tag {
                Tag::TableHead => table.head = cells,
                _ => table.rows.push(cells),
            }
        }
        table
    }

    fn read_cells(&mut self, depth: usize) -> Vec<Vec<Inline>> {
        let mut cells = Vec::new();
        while let Some(Event::Start(_)) = self.events.next() {
            cells.push(link_addresses(self.read_inlines(depth)));
        }
        cells
    }

    fn read_code(&mut self, kind: &CodeBlockKind<'_>) -> MarkdownBlock {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info
                .split([' ', '\t', ',', '{'])
                .next()
                .filter(|name| !name.is_empty() && name.len() <= LANGUAGE_BYTES_MAX)
                .map(str::to_owned),
            CodeBlockKind::Indented => None,
        };
        let mut text = self.read_text();
        if text.ends_with('\n') {
            text.pop();
        }
        MarkdownBlock::Code { language, text }
    }

    /// Raw HTML as text, line by line.
    fn read_raw_lines(&mut self) -> Vec<Inline> {
        let text = self.read_text();
        let mut inlines = Vec::new();
        for line in text.trim_end().lines() {
            if !inlines.is_empty() {
                inlines.push(Inline::LineBreak);
            }
            inlines.push(Inline::Text(line.to_owned()));
        }
        inlines
    }

    fn read_inlines(&mut self, depth: usize) -> Vec<Inline> {
        let mut inlines = Vec::new();
        while let Some(event) = self.events.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            self.read_inline(event, depth + 1, &mut inlines);
        }
        inlines
    }

    fn read_inline(&mut self, event: Event<'a>, depth: usize, inlines: &mut Vec<Inline>) {
        match event {
            Event::Code(text) => inlines.push(Inline::Code(text.into_string())),
            Event::HardBreak => inlines.push(Inline::LineBreak),
            Event::SoftBreak => add_text(inlines, "\n"),
            Event::TaskListMarker(checked) => self.checked = Some(checked),
            Event::Start(tag) => self.read_span(tag, depth, inlines),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => add_text(inlines, &text),
            // Callers take the ends; a rule stands between blocks.
            Event::End(_) | Event::Rule => {}
        }
    }

    fn read_span(&mut self, tag: Tag<'a>, depth: usize, inlines: &mut Vec<Inline>) {
        if depth >= DEPTH_MAX {
            let text = self.read_text();
            return add_text(inlines, &text);
        }
        match tag {
            Tag::Emphasis => inlines.push(Inline::Emphasis(self.read_inlines(depth))),
            Tag::Strong => inlines.push(Inline::Strong(self.read_inlines(depth))),
            Tag::Strikethrough => inlines.push(Inline::Strikethrough(self.read_inlines(depth))),
            Tag::Link {
                link_type,
                dest_url,
                id,
                ..
            } => {
                let to = self.find_target(link_type, &dest_url, &id);
                let content = self.read_inlines(depth);
                add_all(inlines, make_link(to, content));
            }
            Tag::Image {
                link_type,
                dest_url,
                id,
                ..
            } => {
                let to = self.find_target(link_type, &dest_url, &id);
                let alt = self.read_text();
                add_all(inlines, make_image(to, alt));
            }
            // Nothing else stands inside of a paragraph; if it did, its content would stand there.
            _ => {
                let content = self.read_inlines(depth);
                add_all(inlines, content);
            }
        }
    }

    fn find_target(&self, kind: LinkType, target: &str, label: &str) -> String {
        if kind == LinkType::Email {
            return format!("mailto:{target}");
        }
        let earlier = is_by_label(kind).then(|| self.earlier.find(label));
        earlier.flatten().unwrap_or_else(|| target.to_owned())
    }

    /// Reads to the end of what was opened last and keeps its text only. Does not recurse.
    fn read_text(&mut self) -> String {
        let mut text = String::new();
        let mut depth = 1_usize;
        for event in self.events.by_ref() {
            match event {
                Event::Start(_) => depth += 1,
                Event::End(_) => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                Event::SoftBreak | Event::HardBreak | Event::Rule => text.push('\n'),
                Event::TaskListMarker(checked) => {
                    text.push_str(if checked { "[x] " } else { "[ ] " })
                }
                Event::Text(piece)
                | Event::Code(piece)
                | Event::Html(piece)
                | Event::InlineHtml(piece)
                | Event::InlineMath(piece)
                | Event::DisplayMath(piece)
                | Event::FootnoteReference(piece) => text.push_str(&piece),
            }
        }
        text
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. }
    )
}

fn read_align(align: &Alignment) -> Align {
    match align {
        Alignment::None => Align::None,
        Alignment::Left => Align::Left,
        Alignment::Center => Align::Center,
        Alignment::Right => Align::Right,
    }
}

fn end_paragraph(blocks: &mut Vec<MarkdownBlock>, inlines: &mut Vec<Inline>) {
    if !inlines.is_empty() {
        let content = link_addresses(std::mem::take(inlines));
        blocks.push(MarkdownBlock::Paragraph(content));
    }
}

/// Neighbouring texts are one.
fn add_text(inlines: &mut Vec<Inline>, text: &str) {
    match inlines.last_mut() {
        Some(Inline::Text(last)) => last.push_str(text),
        _ => inlines.push(Inline::Text(text.to_owned())),
    }
}

fn add_all(inlines: &mut Vec<Inline>, more: Vec<Inline>) {
    for inline in more {
        match inline {
            Inline::Text(text) => add_text(inlines, &text),
            inline => inlines.push(inline),
        }
    }
}
