//! The JSON of a tree, made from the tree: what `markup` writes without one is held to it.

use markup::markdown::{Align, Inline, MarkdownBlock};
use serde_json::{Value, json};

pub(crate) fn blocks_json(blocks: &[MarkdownBlock]) -> Value {
    blocks.iter().map(block_json).collect()
}

fn node(tag: &str, attributes: Value, content: impl Iterator<Item = Value>) -> Value {
    let has_attributes = attributes.as_object().is_some_and(|all| !all.is_empty());
    let attributes = has_attributes.then_some(attributes);
    [json!(tag)].into_iter().chain(attributes).chain(content).collect()
}

fn block_json(block: &MarkdownBlock) -> Value {
    let none = json!({});
    match block {
        MarkdownBlock::Heading { level, content } => {
            node(&format!("h{level}"), none, content.iter().map(inline_json))
        }
        MarkdownBlock::Paragraph(content) => node("p", none, content.iter().map(inline_json)),
        MarkdownBlock::Quote(blocks) => node("quote", none, blocks.iter().map(block_json)),
        MarkdownBlock::List(list) => {
            let (tag, mut attributes) = ("ul", json!({"tight": list.is_tight}));
            let tag = match list.start {
                Some(start) => {
                    attributes["start"] = json!(start);
                    "ol"
                }
                None => tag,
            };
            let items = list.items.iter().map(|item| {
                let checked = item.checked.map(|checked| json!({"checked": checked}));
                let content = item.blocks.iter().map(block_json);
                node("li", checked.unwrap_or(json!({})), content)
            });
            node(tag, attributes, items)
        }
        MarkdownBlock::Code { language, text } => {
            let attributes = language.as_ref().map(|name| json!({"language": name}));
            node("pre", attributes.unwrap_or(none), [json!(text)].into_iter())
        }
        MarkdownBlock::Table(table) => {
            let align = table.columns.iter().map(|align| match align {
                Align::None => "",
                Align::Left => "left",
                Align::Center => "center",
                Align::Right => "right",
            });
            let rows = [("th", &table.head)].into_iter();
            let rows = rows.chain(table.rows.iter().map(|row| ("td", row))).map(|(tag, cells)| {
                let cells =
                    cells.iter().map(|cell| node(tag, json!({}), cell.iter().map(inline_json)));
                node("tr", json!({}), cells)
            });
            let attributes = json!({"align": align.collect::<Vec<_>>()});
            node("table", attributes, rows)
        }
        MarkdownBlock::Rule => json!(["hr"]),
    }
}

fn inline_json(inline: &Inline) -> Value {
    let none = json!({});
    match inline {
        Inline::Text(text) => json!(text),
        Inline::Code(text) => json!(["code", text]),
        Inline::Emphasis(content) => node("em", none, content.iter().map(inline_json)),
        Inline::Strong(content) => node("strong", none, content.iter().map(inline_json)),
        Inline::Strikethrough(content) => node("del", none, content.iter().map(inline_json)),
        Inline::Link(link) => {
            let mut attributes = json!({"to": link.to});
            if let Some(host) = &link.other_host {
                attributes["host"] = json!(host);
            }
            node("a", attributes, link.content.iter().map(inline_json))
        }
        Inline::Image { to, alt } => json!(["image", {"to": to}, alt]),
        Inline::LineBreak => json!(["br"]),
    }
}
