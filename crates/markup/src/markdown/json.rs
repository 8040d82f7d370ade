//! The JSON form of a tree: arrays with a tag first, then attributes if there are any, then the content.
//!
//! `["p", "see ", ["code", "x"]]`, `["a", {"to": "https://example.com"}, "text"]`, `["pre", {"language": "rust"}, "let a;"]`.
//! Promises: a tag is one of those below, and so is the name of an attribute; everything from outside is a string's value.
//! Must not know: what a reader makes of a tag.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Align, Inline, Item, List, MarkdownBlock, MarkdownLink, Table};

/// What the value of an attribute may be.
enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Flag(bool),
    Words(Vec<&'static str>),
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Words(words) => words.serialize(serializer),
        }
    }
}

struct Attributes<'a>(Vec<(&'static str, Value<'a>)>);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// `[tag, {attributes}, content..]`
fn write_node<S: Serializer, T: Serialize>(
    serializer: S,
    tag: &str,
    attributes: Vec<(&'static str, Value<'_>)>,
    content: &[T],
) -> Result<S::Ok, S::Error> {
    let mut node = serializer.serialize_seq(None)?;
    node.serialize_element(tag)?;
    if !attributes.is_empty() {
        node.serialize_element(&Attributes(attributes))?;
    }
    for child in content {
        node.serialize_element(child)?;
    }
    node.end()
}

impl Serialize for MarkdownBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];
        match self {
            Self::Heading { level, content } => {
                let index = usize::from(*level).saturating_sub(1);
                let tag = HEADINGS.get(index).copied().unwrap_or("h6");
                write_node(serializer, tag, vec![], content)
            }
            Self::Paragraph(content) => write_node(serializer, "p", vec![], content),
            Self::Quote(blocks) => write_node(serializer, "quote", vec![], blocks),
            Self::List(list) => list.serialize(serializer),
            Self::Code { language, text } => {
                let language = language.iter();
                let attributes = language.map(|name| ("language", Value::Text(name)));
                write_node(serializer, "pre", attributes.collect(), &[text])
            }
            Self::Table(table) => table.serialize(serializer),
            Self::Rule => write_node::<S, Inline>(serializer, "hr", vec![], &[]),
        }
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut attributes = vec![("tight", Value::Flag(self.is_tight))];
        let mut tag = "ul";
        if let Some(start) = self.start {
            tag = "ol";
            attributes.push(("start", Value::Number(start)));
        }
        write_node(serializer, tag, attributes, &self.items)
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let checked = self.checked.iter();
        let attributes = checked.map(|checked| ("checked", Value::Flag(*checked)));
        write_node(serializer, "li", attributes.collect(), &self.blocks)
    }
}

/// A cell of a table's head or body.
struct Cell<'a>(&'static str, &'a [Inline]);

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_node(serializer, self.0, vec![], self.1)
    }
}

struct TableRow<'a>(&'static str, &'a [Vec<Inline>]);

impl Serialize for TableRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells: Vec<_> = self.1.iter().map(|cell| Cell(self.0, cell)).collect();
        write_node(serializer, "tr", vec![], &cells)
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let align = self.columns.iter().map(|align| match align {
            Align::None => "",
            Align::Left => "left",
            Align::Center => "center",
            Align::Right => "right",
        });
        let attributes = vec![("align", Value::Words(align.collect()))];
        let mut rows = vec![TableRow("th", &self.head)];
        rows.extend(self.rows.iter().map(|row| TableRow("td", row)));
        write_node(serializer, "table", attributes, &rows)
    }
}

impl Serialize for Inline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Code(text) => write_node(serializer, "code", vec![], &[text]),
            Self::Emphasis(content) => write_node(serializer, "em", vec![], content),
            Self::Strong(content) => write_node(serializer, "strong", vec![], content),
            Self::Strikethrough(content) => write_node(serializer, "del", vec![], content),
            Self::Link(link) => link.serialize(serializer),
            Self::Image { to, alt } => {
                write_node(serializer, "image", vec![("to", Value::Text(to))], &[alt])
            }
            Self::LineBreak => write_node::<S, Inline>(serializer, "br", vec![], &[]),
        }
    }
}

impl Serialize for MarkdownLink {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut attributes = vec![("to", Value::Text(&self.to))];
        if let Some(host) = &self.other_host {
            attributes.push(("host", Value::Text(host)));
        }
        write_node(serializer, "a", attributes, &self.content)
    }
}
