//! The text of a block with its emphasis, code and links.
//!
//! Promises: where a link leads is seen, by the terminal's own means where it has them. Without colours the marks stay.

use std::sync::Arc;

use markup::markdown::{Inline, MarkdownLink, plain_text};

use super::styled::StyledText;
use super::{LinkStyle, Page};
use crate::chat::line::{Color, Colors, Style, TextStyle};

/// The text of inlines, beginning with this look.
pub(super) fn style_inlines(inlines: &[Inline], style: TextStyle, page: Page) -> StyledText {
    let mut text = StyledText::default();
    add(inlines, style, page, &mut text);
    text
}

fn add(inlines: &[Inline], style: TextStyle, page: Page, text: &mut StyledText) {
    for inline in inlines {
        match inline {
            Inline::Text(piece) => text.push(plain_if_unset(style), piece, None),
            Inline::Code(code) => {
                let style = TextStyle { color: Some(Color::Cyan), ..style };
                match page.colors {
                    Colors::On => text.push(Style::Text(style), code, None),
                    Colors::Off => text.push(Style::Plain, &format!("`{code}`"), None),
                }
            }
            Inline::Emphasis(content) => {
                let inner = TextStyle { is_italic: true, ..style };
                add_marked("*", content, inner, page, text);
            }
            Inline::Strong(content) => {
                let inner = TextStyle { is_bold: true, ..style };
                add_marked("**", content, inner, page, text);
            }
            Inline::Strikethrough(content) => {
                let inner = TextStyle { is_struck: true, ..style };
                add_marked("~~", content, inner, page, text);
            }
            Inline::Link(link) => add_link(link, style, page, text),
            Inline::Image { to, alt } => add_image(to, alt, style, page, text),
            Inline::LineBreak => text.push_line_break(),
        }
    }
}

fn add_marked(mark: &str, content: &[Inline], style: TextStyle, page: Page, text: &mut StyledText) {
    let mark = match page.colors {
        Colors::On => "",
        Colors::Off => mark,
    };
    text.push(Style::Plain, mark, None);
    add(content, style, page, text);
    text.push(Style::Plain, mark, None);
}

fn add_link(link: &MarkdownLink, style: TextStyle, page: Page, text: &mut StyledText) {
    let to: Arc<str> = Arc::from(encode_target(&link.to));
    let style = TextStyle { is_underlined: true, ..style };
    let said = plain_text(&link.content);
    if said == link.to || link.to.strip_prefix("mailto:") == Some(said.as_str()) {
        return text.push(Style::Text(style), &said, Some(&to));
    }
    // The looks of what stands in a link are those of the link: it is one thing to follow.
    text.push(Style::Text(style), &said, Some(&to));
    match (page.links, &link.other_host) {
        (LinkStyle::WrittenOut, _) => {
            text.push(Style::Dim, " (", None);
            text.push(Style::Dim, &link.to, Some(&to));
            text.push(Style::Dim, ")", None);
        }
        (LinkStyle::Followed, Some(host)) => text.push(Style::Warn, &format!(" ({host})"), None),
        (LinkStyle::Followed, None) => {}
    }
}

/// A picture elsewhere is not fetched: what it shows and where it is.
fn add_image(to: &str, alt: &str, style: TextStyle, page: Page, text: &mut StyledText) {
    let link = MarkdownLink {
        to: to.to_owned(),
        other_host: None,
        content: vec![Inline::Text(match alt {
            "" => "image".to_owned(),
            alt => format!("image: {alt}"),
        })],
    };
    add_link(&link, style, page, text);
}

/// A target in printable ASCII, as an escape sequence needs it.
fn encode_target(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        if byte.is_ascii_graphic() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

pub(super) fn plain_if_unset(style: TextStyle) -> Style {
    if style == TextStyle::default() { Style::Plain } else { Style::Text(style) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use markup::markdown::{MarkdownBlock, parse};

    use super::*;

    fn check(markdown: &str, page: Page, expected: Expect) {
        let blocks = parse(markdown).unwrap();
        let [MarkdownBlock::Paragraph(inlines)] = &blocks[..] else {
            panic!("a paragraph: {blocks:?}")
        };
        let lines = style_inlines(inlines, TextStyle::default(), page).wrap(200);
        let encoded: Vec<String> = lines.iter().map(|line| line.encode(page.colors)).collect();
        expected.assert_eq(&encoded.join("\n").replace('\u{1b}', "^"));
    }

    #[test]
    fn spans_have_their_looks() {
        check(
            "a *b* **c `d`** ~~e~~ `f`",
            Page::of_width(80),
            expect!["a ^[3mb^[0m ^[1mc ^[0m^[1;36md^[0m ^[9me^[0m ^[36mf^[0m"],
        );
        let plain = Page { colors: Colors::Off, ..Page::of_width(80) };
        check(
            "a *b* **c `d`** ~~e~~ [f](https://e.x)",
            plain,
            expect!["a *b* **c `d`** ~~e~~ f (https://e.x)"],
        );
    }

    #[test]
    fn links_say_where_they_lead() {
        let page = Page::of_width(80);
        check(
            "[a](https://e.x/ü) https://e.x",
            page,
            expect![
                "^]8;;https://e.x/%C3%BC^\\^[4ma^[0m^]8;;^\\^[2m (^[0m^]8;;https://e.x/%C3%BC^\\^[2mhttps://e.x/ü^[0m^]8;;^\\^[2m)^[0m ^]8;;https://e.x^\\^[4mhttps://e.x^[0m^]8;;^\\"
            ],
        );
        let follows = Page { links: LinkStyle::Followed, ..page };
        check(
            "[a](https://e.x/) [b.org](https://e.x/) [c](javascript:x)",
            follows,
            expect![
                "^]8;;https://e.x/^\\^[4ma^[0m^]8;;^\\ ^]8;;https://e.x/^\\^[4mb.org^[0m^]8;;^\\^[33m (e.x)^[0m c (javascript:x)"
            ],
        );
        check(
            "![a view](https://e.x/i.png)",
            follows,
            expect!["^]8;;https://e.x/i.png^\\^[4mimage: a view^[0m^]8;;^\\"],
        );
    }
}
