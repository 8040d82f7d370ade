//! Addresses that stand in a text without any marks, as people and models write them.
//!
//! Promises: the text stays the same, character by character; an address is a piece of its own. Must not know: the parser.

use super::link::is_allowed;

/// Characters that end an address.
const ENDS: &[char] = &['<', '>', '"', '`', '|'];

/// Characters that belong to the sentence if they stand behind an address.
const SENTENCE: &[char] = &['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~'];

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressPiece<'a> {
    Text(&'a str),
    Address(&'a str),
}

/// Tells the pieces of a text, in order; none of them is empty.
pub(super) fn split_addresses<'a>(text: &'a str, mut tell: impl FnMut(AddressPiece<'a>)) {
    let mut done = 0;
    let mut from = 0;
    while let Some(start) = find_scheme(text, from) {
        let rest = text.get(start..).unwrap_or("");
        let address = take_address(rest);
        from = start + address.len().max(1);
        let before = text.get(..start).and_then(|text| text.chars().next_back());
        let begins_word = before.is_none_or(|c| !c.is_alphanumeric());
        let has_host = address
            .split_once("//")
            .is_some_and(|(_, host)| host.starts_with(|c: char| c.is_alphanumeric() || c == '['));
        if begins_word && has_host && is_allowed(address) {
            tell_text(text.get(done..start), &mut tell);
            done = start + address.len();
            tell(AddressPiece::Address(address));
        }
    }
    tell_text(text.get(done..), &mut tell);
}

fn tell_text<'a>(text: Option<&'a str>, tell: &mut impl FnMut(AddressPiece<'a>)) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        tell(AddressPiece::Text(text));
    }
}

fn find_scheme(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    if !rest.as_bytes().contains(&b':') {
        return None; // most texts: looking for one byte is much faster
    }
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
