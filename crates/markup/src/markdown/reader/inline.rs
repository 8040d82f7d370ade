//! Reads what stands inside of a block: text, code, spans, links and pictures.
//!
//! Promises: neighbouring texts are told as one; an address in a text is a link to itself; a link that leads nowhere allowed is its text
//! with its target behind it. Must not know: blocks.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, Tag};

use super::{LooseText, Reader};
use crate::markdown::DEPTH_MAX;
use crate::markdown::address::{AddressPiece, split_addresses};
use crate::markdown::link::{find_other_host, is_allowed, is_allowed_image, is_by_label, shorten};
use crate::markdown::sink::{MarkdownSink, MarkedSpan};

impl<'a, I, S> Reader<'_, I, S>
where
    I: Iterator<Item = (Event<'a>, Range<usize>)>,
    S: MarkdownSink,
{
    pub(super) fn read_inlines(&mut self, depth: usize) {
        while let Some(event) = self.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            self.read_inline(event, depth + 1);
        }
    }

    pub(super) fn read_inline(&mut self, event: Event<'a>, depth: usize) {
        match event {
            Event::Code(text) => {
                self.add_plain(&text);
                self.begin_inline();
                self.sink.add_code_span(&text);
            }
            Event::HardBreak => {
                self.add_plain("\n");
                self.begin_inline();
                self.sink.add_line_break();
            }
            Event::SoftBreak => self.add_text("\n"),
            Event::TaskListMarker(checked) => self.checked = Some(checked),
            Event::Start(tag) => self.read_span(tag, depth),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.add_text(&text),
            // Callers take the ends; a rule stands between blocks.
            Event::End(_) | Event::Rule => {}
        }
    }

    fn read_span(&mut self, tag: Tag<'a>, depth: usize) {
        if depth >= DEPTH_MAX {
            let text = self.read_text();
            return self.add_text(&text);
        }
        match tag {
            Tag::Emphasis => self.read_marked(MarkedSpan::Emphasis, depth),
            Tag::Strong => self.read_marked(MarkedSpan::Strong, depth),
            Tag::Strikethrough => self.read_marked(MarkedSpan::Strikethrough, depth),
            Tag::Link { link_type, dest_url, id, .. } => {
                let to = self.find_target(link_type, dest_url, &id);
                self.tell_link(&to, |reader| reader.read_inlines(depth));
            }
            Tag::Image { link_type, dest_url, id, .. } => {
                let to = self.find_target(link_type, dest_url, &id);
                let alt = self.read_text();
                self.tell_image(&to, &alt);
            }
            // Nothing else stands inside of a paragraph; if it did, its content would stand there.
            _ => self.read_inlines(depth),
        }
    }

    fn read_marked(&mut self, span: MarkedSpan, depth: usize) {
        self.begin_inline();
        self.sink.begin_span(span);
        self.read_inlines(depth);
        self.tell_text();
        self.sink.end();
    }

    /// A link, or what stands there instead: its content, and its target if the content does not say it.
    fn tell_link(&mut self, to: &str, read_content: impl FnOnce(&mut Self)) {
        let is_link = is_allowed(to);
        if is_link {
            self.begin_inline();
            self.sink.begin_link(to);
            self.links += 1;
        }
        let start = self.plain.len();
        self.targets += 1;
        read_content(self);
        self.targets -= 1;
        if is_link {
            self.tell_text();
            self.links -= 1;
            let text = self.plain.get(start..).unwrap_or("");
            self.sink.end_link(find_other_host(text, to));
        } else if !to.is_empty() && self.plain.get(start..) != Some(to) {
            self.add_text(&format!(" ({})", shorten(to)));
        }
        if self.targets == 0 {
            self.plain.clear();
        }
    }

    /// A picture's reference, or its description and target as text.
    fn tell_image(&mut self, to: &str, alt: &str) {
        if !is_allowed_image(to) {
            return self.tell_link(to, |reader| reader.add_text(alt));
        }
        self.add_plain(alt);
        self.begin_inline();
        self.sink.add_image(to, alt);
    }

    fn find_target(&self, kind: LinkType, target: CowStr<'a>, label: &str) -> CowStr<'a> {
        if kind == LinkType::Email {
            return CowStr::from(format!("mailto:{target}"));
        }
        let earlier = is_by_label(kind).then(|| self.earlier.find(label));
        earlier.flatten().map_or(target, CowStr::from)
    }

    /// Neighbouring texts are one.
    fn add_text(&mut self, text: &str) {
        self.text.push_str(text);
        self.add_plain(text);
    }

    fn add_plain(&mut self, text: &str) {
        if self.targets > 0 {
            self.plain.push_str(text);
        }
    }

    /// Something that is no text follows the text that was read.
    fn begin_inline(&mut self) {
        self.tell_text();
        self.begin_loose_text();
    }

    fn begin_loose_text(&mut self) {
        if self.loose == LooseText::Awaited {
            self.sink.begin_paragraph();
            self.loose = LooseText::Begun;
        }
    }

    /// Tells the text that was read, with links of the addresses in it, outside of links.
    pub(super) fn tell_text(&mut self) {
        if self.text.is_empty() {
            return; // nothing was read since
        }
        self.begin_loose_text();
        let sink = &mut *self.sink;
        match self.links {
            0 => split_addresses(&self.text, |piece| match piece {
                AddressPiece::Text(text) => sink.add_text(text),
                AddressPiece::Address(address) => {
                    sink.begin_link(address);
                    sink.add_text(address);
                    sink.end_link(None);
                }
            }),
            _ => sink.add_text(&self.text),
        }
        self.text.clear();
    }
}
