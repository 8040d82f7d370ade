//! Reads the parser's events and tells a sink what stands in the text.
//!
//! Promises: recursion ends at [`DEPTH_MAX`]; what is deeper is read in a loop and becomes text. Every character of the source's
//! text is told. Must not know: what is stable, what is made of it.

mod inline;

use std::cell::Cell;
use std::ops::Range;

use pulldown_cmark::{Alignment, BrokenLink, CodeBlockKind, CowStr, Event, Parser, Tag};

use super::link::Definitions;
use super::sink::MarkdownSink;
use super::{Align, DEPTH_MAX, OPTIONS};

/// How many bytes the targets of earlier definitions may take in a short text.
const EXPANSION_BYTES_MIN: usize = 200_000;

/// Longer names of languages are no names.
const LANGUAGE_BYTES_MAX: usize = 64;

/// Where things stand in a text that was read.
#[derive(Debug)]
pub(crate) struct TextLayout {
    /// The blocks that stand in no other.
    pub(crate) blocks: Vec<Range<usize>>,
    /// Where the last run of text begins that may hold spans; none if code, HTML or a rule follows it.
    pub(crate) leaf: Option<usize>,
}

/// Reads a text. `definitions` has the link definitions of the texts before it, and gets those of this one.
pub(crate) fn read(
    text: &str,
    definitions: &mut Definitions,
    sink: &mut impl MarkdownSink,
) -> TextLayout {
    let earlier = EarlierDefinitions {
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
    Reader::new(parser.into_offset_iter(), &earlier, sink).read_all()
}

/// The same of a text without link definitions; none, and nothing is told, if it has any.
pub(crate) fn read_without_definitions(
    text: &str,
    sink: &mut impl MarkdownSink,
) -> Option<TextLayout> {
    let parser = Parser::new_ext(text, OPTIONS);
    if parser.reference_definitions().iter().next().is_some() {
        return None;
    }
    let earlier = EarlierDefinitions::default();
    Some(Reader::new(parser.into_offset_iter(), &earlier, sink).read_all())
}

/// Definitions of earlier parts; they go before those of this one. A long target that is referred to often must not make the
/// tree much larger than the text, so there is room for a certain number of bytes, as the parser has for its own.
#[derive(Default)]
struct EarlierDefinitions {
    definitions: Definitions,
    room: Cell<usize>,
}

impl EarlierDefinitions {
    fn find(&self, label: &str) -> Option<String> {
        let target = self.definitions.find(label)?;
        self.room.set(self.room.get().checked_sub(target.len())?);
        Some(target.to_owned())
    }
}

/// Text that stands in a container without a paragraph becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LooseText {
    /// It stands in a block of its own already.
    Inside,
    /// It begins a paragraph when it comes.
    Awaited,
    /// It has begun one.
    Begun,
}

struct Reader<'r, I, S> {
    events: I,
    earlier: &'r EarlierDefinitions,
    sink: &'r mut S,
    places: TextLayout,
    /// Where the event stands that was read last.
    range: Range<usize>,
    /// The box of the item that is being read.
    checked: Option<bool>,
    loose: LooseText,
    /// Text that was read and not told yet: neighbouring texts are one.
    text: String,
    /// Links that are open: addresses in them are no links.
    links: usize,
    /// The text without marks since the outermost of the links that are open, or would be open if they led anywhere.
    plain: String,
    targets: usize,
}

impl<'a, 'r, I, S> Reader<'r, I, S>
where
    I: Iterator<Item = (Event<'a>, Range<usize>)>,
    S: MarkdownSink,
{
    fn new(events: I, earlier: &'r EarlierDefinitions, sink: &'r mut S) -> Self {
        Self {
            events,
            earlier,
            sink,
            places: TextLayout { blocks: Vec::new(), leaf: None },
            range: 0..0,
            checked: None,
            loose: LooseText::Awaited,
            text: String::new(),
            links: 0,
            plain: String::new(),
            targets: 0,
        }
    }

    fn read_all(mut self) -> TextLayout {
        self.read_blocks(0);
        self.places
    }

    fn next(&mut self) -> Option<Event<'a>> {
        let (event, range) = self.events.next()?;
        match event {
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell) => {
                self.places.leaf = Some(range.start);
            }
            Event::Start(Tag::CodeBlock(_) | Tag::HtmlBlock) | Event::Rule => {
                self.places.leaf = None;
            }
            _ => {}
        }
        self.range = range;
        Some(event)
    }

    /// Reads to the end of the container that was opened last. Returns whether a paragraph of it was one in the source: then its list is not tight.
    fn read_blocks(&mut self, depth: usize) -> bool {
        let mut has_paragraph = false;
        self.loose = LooseText::Awaited;
        while let Some(event) = self.next() {
            match event {
                Event::End(_) => break,
                Event::Start(tag) if is_block(&tag) => {
                    self.begin_block(depth);
                    has_paragraph |= matches!(tag, Tag::Paragraph);
                    self.read_block(tag, depth + 1);
                    self.loose = LooseText::Awaited;
                }
                Event::Rule => {
                    self.begin_block(depth);
                    self.sink.add_rule();
                }
                event => self.read_inline(event, depth + 1),
            }
        }
        self.end_loose_text();
        has_paragraph
    }

    fn begin_block(&mut self, depth: usize) {
        self.end_loose_text();
        if depth == 0 {
            self.places.blocks.push(self.range.clone());
        }
    }

    fn end_loose_text(&mut self) {
        self.tell_text();
        if self.loose == LooseText::Begun {
            self.sink.end();
        }
        self.loose = LooseText::Awaited;
    }

    fn read_block(&mut self, tag: Tag<'a>, depth: usize) {
        if let Tag::CodeBlock(kind) = tag {
            return self.read_code(&kind);
        }
        if depth >= DEPTH_MAX {
            let text = self.read_text();
            self.sink.begin_paragraph();
            self.sink.add_text(&text);
            return self.sink.end();
        }
        match tag {
            Tag::Heading { level, .. } => {
                self.sink.begin_heading(level as u8);
                self.read_leaf(depth);
            }
            Tag::BlockQuote(_) => {
                self.sink.begin_quote();
                self.read_blocks(depth);
                self.sink.end();
            }
            Tag::List(start) => self.read_list(start, depth),
            Tag::Table(columns) => self.read_table(&columns, depth),
            Tag::HtmlBlock => self.read_raw_lines(),
            // A paragraph; a container that the options leave out would be read as one.
            _ => {
                self.sink.begin_paragraph();
                self.read_leaf(depth);
            }
        }
    }

    /// Reads the text of a block that was begun, and ends it.
    fn read_leaf(&mut self, depth: usize) {
        self.loose = LooseText::Inside;
        self.read_inlines(depth);
        self.tell_text();
        self.sink.end();
    }

    fn read_list(&mut self, start: Option<u64>, depth: usize) {
        self.sink.begin_list(start);
        let mut is_tight = true;
        while let Some(Event::Start(_)) = self.next() {
            let outer = self.checked.take();
            self.sink.begin_item();
            is_tight &= !self.read_blocks(depth + 1);
            self.sink.end_item(self.checked.take());
            self.checked = outer;
        }
        self.sink.end_list(is_tight);
    }

    fn read_table(&mut self, columns: &[Alignment], depth: usize) {
        let columns: Vec<Align> = columns.iter().map(read_align).collect();
        self.sink.begin_table(&columns);
        while let Some(Event::Start(tag)) = self.next() {
            let is_head = matches!(tag, Tag::TableHead);
            self.sink.begin_row(is_head);
            while let Some(Event::Start(_)) = self.next() {
                self.sink.begin_cell(is_head);
                self.read_leaf(depth);
            }
            self.sink.end();
        }
        self.sink.end();
    }

    fn read_code(&mut self, kind: &CodeBlockKind<'_>) {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info
                .split([' ', '\t', ',', '{'])
                .next()
                .filter(|name| !name.is_empty() && name.len() <= LANGUAGE_BYTES_MAX),
            CodeBlockKind::Indented => None,
        };
        let text = self.read_text();
        self.sink.add_code(language, text.strip_suffix('\n').unwrap_or(&text));
    }

    /// Raw HTML as text, line by line.
    fn read_raw_lines(&mut self) {
        let text = self.read_text();
        self.sink.begin_paragraph();
        for (number, line) in text.trim_end().lines().enumerate() {
            if number > 0 {
                self.sink.add_line_break();
            }
            self.sink.add_text(line);
        }
        self.sink.end();
    }

    /// Reads to the end of what was opened last and keeps its text only. Does not recurse.
    fn read_text(&mut self) -> String {
        let mut text = String::new();
        let mut depth = 1_usize;
        while let Some(event) = self.next() {
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
