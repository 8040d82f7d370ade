//! Addresses that stand in a text without any marks, as people and models write them.
//!
//! Promises: the text stays the same, character by character; an address becomes a link to itself. Must not know: the parser.

use super::link::is_allowed;
use super::{Inline, MarkdownLink};

/// Characters that end an address.
const ENDS: &[char] = &['<', '>', '"', '`', '|'];

/// Characters that belong to the sentence if they stand behind an address.
const SENTENCE: &[char] = &['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~'];

/// Makes links of the addresses in inlines, outside of links and code.
pub(super) fn link_addresses(inlines: Vec<Inline>) -> Vec<Inline> {
    let mut linked = Vec::with_capacity(inlines.len());
    for inline in inlines {
        match inline {
            Inline::Text(text) => link_in_text(text, &mut linked),
            Inline::Emphasis(content) => linked.push(Inline::Emphasis(link_addresses(content))),
            Inline::Strong(content) => linked.push(Inline::Strong(link_addresses(content))),
            Inline::Strikethrough(content) => {
                linked.push(Inline::Strikethrough(link_addresses(content)));
            }
            inline => linked.push(inline),
        }
    }
    linked
}

fn link_in_text(text: String, linked: &mut Vec<Inline>) {
    let mut shown = 0;
    let mut from = 0;
    while let Some(start) = find_scheme(&text, from) {
        let rest = text.get(start..).unwrap_or("");
        let address = take_address(rest);
        from = start + address.len().max(1);
        let before = text.get(..start).and_then(|text| text.chars().next_back());
        let begins_word = before.is_none_or(|c| !c.is_alphanumeric());
        let has_host = address
            .split_once("//")
            .is_some_and(|(_, host)| host.starts_with(|c: char| c.is_alphanumeric() || c == '['));
        if begins_word && has_host && is_allowed(address) {
            add_text(text.get(shown..start), linked);
            shown = start + address.len();
            linked.push(Inline::Link(MarkdownLink {
                to: address.to_owned(),
                other_host: None,
                content: vec![Inline::Text(address.to_owned())],
            }));
        }
    }
    if shown == 0 {
        return linked.push(Inline::Text(text));
    }
    add_text(text.get(shown..), linked);
}

fn add_text(text: Option<&str>, linked: &mut Vec<Inline>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        linked.push(Inline::Text(text.to_owned()));
    }
}

fn find_scheme(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let found = rest.match_indices("http").find(|(at, _)| {
        let rest = rest.get(*at..).unwrap_or("");
        rest.starts_with("http://") || rest.starts_with("https://")
    });
    found.map(|(at, _)| from + at)
}

/// The address at the beginning of a text, without the end of the sentence or a bracket that was opened before it.
fn take_address(text: &str) -> &str {
    let end = text.find(|c: char| c.is_whitespace() || ENDS.contains(&c));
    let mut address = text.get(..end.unwrap_or(text.len())).unwrap_or(text);
    let count = |address: &str, c: char| address.matches(c).count();
    // Each bracket at the end takes a look at the whole, so there is an end to that, too.
    for _ in 0..16 {
        let shorter = address.trim_end_matches(SENTENCE);
        let shorter = match shorter.chars().next_back() {
            Some(')') if count(shorter, ')') > count(shorter, '(') => shorter.strip_suffix(')'),
            Some(']') if count(shorter, ']') > count(shorter, '[') => shorter.strip_suffix(']'),
            _ => None,
        }
        .unwrap_or(shorter);
        if shorter.len() == address.len() {
            break;
        }
        address = shorter;
    }
    address
}
