//! The JSON of what a reader tells: arrays with a tag first, then attributes if there are any, then the content.
//!
//! `["p", "see ", ["code", "x"]]`, `["a", {"to": "https://example.com"}, "text"]`, `["pre", {"language": "rust"}, "let a;"]`.
//! Promises: a tag is one of those below, and so is the name of an attribute; everything from outside is a string's value. It is
//! written as it is read: there is no tree in between. Must not know: what a reader makes of a tag, how code is coloured.

use super::Align;
use super::sink::{MarkdownSink, MarkedSpan};
use crate::highlight::CodeRun;
use crate::json_text::{write_number, write_string};

/// Gives the runs of a code by the name of its language, counted as the reader of the JSON counts; none: it is shown plain.
pub type CodeColourer<'c> = dyn FnMut(&str, &str) -> Option<Vec<CodeRun>> + 'c;

/// Writes blocks with commas between them behind what a buffer holds already.
pub(crate) struct JsonWriter<'w> {
    out: &'w mut Vec<u8>,
    colour: &'w mut CodeColourer<'w>,
    /// Where the blocks begin that stand in no other, each with the comma before it.
    starts: Vec<usize>,
    /// How many nodes are open.
    depth: usize,
    /// Behind the tags of lists and items that are open and behind the targets of links: what is known at their end goes there.
    places: Vec<usize>,
}

impl<'w> JsonWriter<'w> {
    pub(crate) fn new(out: &'w mut Vec<u8>, colour: &'w mut CodeColourer<'w>) -> Self {
        Self { out, colour, starts: Vec::new(), depth: 0, places: Vec::new() }
    }

    fn write(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Begins a node; `tag` is its beginning as it is written.
    fn open(&mut self, tag: &str) {
        if self.depth == 0 {
            self.starts.push(self.out.len());
        }
        // Inside of a node a tag stands before.
        if self.depth > 0 || self.starts.len() > 1 {
            self.out.push(b',');
        }
        self.depth += 1;
        self.write(tag);
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.out.push(b']');
    }

    fn write_text(&mut self, text: &str) {
        self.out.push(b',');
        write_string(self.out, text);
    }

    /// Writes what is known only at the end of a list, an item or a link to its beginning, instead of the `replaced` bytes there. Its
    /// content moves on; nesting is bounded, so no byte moves often.
    fn fill_in(&mut self, replaced: usize, text: &[u8]) {
        let Some(place) = self.places.pop() else {
            return debug_assert!(false, "every list, item and link has its place");
        };
        if !text.is_empty() {
            let start = place - replaced;
            self.out.splice(start..place, text.iter().copied());
        }
    }
}

impl MarkdownSink for JsonWriter<'_> {
    fn begin_heading(&mut self, level: u8) {
        const TAGS: [&str; 6] = ["[\"h1\"", "[\"h2\"", "[\"h3\"", "[\"h4\"", "[\"h5\"", "[\"h6\""];
        let index = usize::from(level).saturating_sub(1);
        self.open(TAGS.get(index).copied().unwrap_or("[\"h6\""));
    }

    fn begin_paragraph(&mut self) {
        self.open("[\"p\"");
    }

    fn begin_quote(&mut self) {
        self.open("[\"quote\"");
    }

    fn begin_table(&mut self, columns: &[Align]) {
        self.open("[\"table\",{\"align\":[");
        for (number, align) in columns.iter().enumerate() {
            if number > 0 {
                self.out.push(b',');
            }
            self.write(match align {
                Align::None => "\"\"",
                Align::Left => "\"left\"",
                Align::Center => "\"center\"",
                Align::Right => "\"right\"",
            });
        }
        self.write("]}");
    }

    fn begin_row(&mut self, _is_head: bool) {
        self.open("[\"tr\"");
    }

    fn begin_cell(&mut self, is_head: bool) {
        self.open(if is_head { "[\"th\"" } else { "[\"td\"" });
    }

    fn begin_span(&mut self, span: MarkedSpan) {
        self.open(match span {
            MarkedSpan::Emphasis => "[\"em\"",
            MarkedSpan::Strong => "[\"strong\"",
            MarkedSpan::Strikethrough => "[\"del\"",
        });
    }

    fn end(&mut self) {
        self.close();
    }

    fn begin_list(&mut self, start: Option<u64>) {
        self.open(match start {
            Some(_) => "[\"ol\",{\"tight\":true",
            None => "[\"ul\",{\"tight\":true",
        });
        self.places.push(self.out.len());
        if let Some(start) = start {
            self.write(",\"start\":");
            write_number(self.out, start);
        }
        self.out.push(b'}');
    }

    fn end_list(&mut self, is_tight: bool) {
        self.fill_in("true".len(), if is_tight { b"" } else { b"false" });
        self.close();
    }

    fn begin_item(&mut self) {
        self.open("[\"li\"");
        self.places.push(self.out.len());
    }

    fn end_item(&mut self, checked: Option<bool>) {
        let attributes: &[u8] = match checked {
            Some(true) => b",{\"checked\":true}",
            Some(false) => b",{\"checked\":false}",
            None => b"",
        };
        self.fill_in(0, attributes);
        self.close();
    }

    fn begin_link(&mut self, to: &str) {
        self.open("[\"a\",{\"to\":");
        write_string(self.out, to);
        self.places.push(self.out.len());
        self.out.push(b'}');
    }

    fn end_link(&mut self, other_host: Option<&str>) {
        let mut host = Vec::new();
        if let Some(other_host) = other_host {
            host.extend_from_slice(b",\"host\":");
            write_string(&mut host, other_host);
        }
        self.fill_in(0, &host);
        self.close();
    }

    fn add_code(&mut self, language: Option<&str>, text: &str) {
        self.open("[\"pre\"");
        if let Some(language) = language {
            self.write(",{\"language\":");
            write_string(self.out, language);
            if let Some(runs) = (self.colour)(text, language) {
                self.write(",\"runs\":");
                CodeRun::write_all(&runs, self.out);
            }
            self.out.push(b'}');
        }
        self.write_text(text);
        self.close();
    }

    fn add_rule(&mut self) {
        self.open("[\"hr\"");
        self.close();
    }

    fn add_text(&mut self, text: &str) {
        self.write_text(text);
    }

    fn add_code_span(&mut self, text: &str) {
        self.open("[\"code\"");
        self.write_text(text);
        self.close();
    }

    fn add_image(&mut self, to: &str, alt: &str) {
        self.open("[\"image\",{\"to\":");
        write_string(self.out, to);
        self.out.push(b'}');
        self.write_text(alt);
        self.close();
    }

    fn add_line_break(&mut self) {
        self.open("[\"br\"");
        self.close();
    }

    fn count_blocks(&self) -> usize {
        self.starts.len()
    }

    fn truncate(&mut self, blocks: usize) {
        debug_assert_eq!(self.depth, 0, "nothing is begun");
        if let Some(start) = self.starts.get(blocks) {
            self.out.truncate(*start);
        }
        self.starts.truncate(blocks);
    }
}
