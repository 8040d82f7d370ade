//! The tags of a web page: where they begin and end, what they are called, what they say.
//!
//! Promises: no tag, however long or broken, takes more than a bounded amount of time beyond reading it.
//! Must not know: what a tag means.

use super::entities::decode;

/// What is looked at of a tag for its attributes.
const ATTRIBUTES_BYTES_MAX: usize = 4 * 1_024;

/// Where a tag begins, in whatever case it is written.
pub(super) fn find_tag(html: &str, tag: &str) -> Option<usize> {
    let (html, tag) = (html.as_bytes(), tag.as_bytes());
    memchr::memchr_iter(b'<', html).find(|at| {
        let here = html.get(*at..at + tag.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(tag))
    })
}

/// Where a tag ends: a `>` in a quoted value does not end it.
pub(super) fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // An odd quote: the tag ends where it seems to.
    tag.find('>')
}

pub(super) fn name_of(tag: &str) -> String {
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    tag[..end.unwrap_or(tag.len())].to_ascii_lowercase()
}

/// The value of an attribute.
pub(super) fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = &tag[..tag.floor_char_boundary(ATTRIBUTES_BYTES_MAX)];
    loop {
        let at = rest.to_ascii_lowercase().find(name)?;
        let is_start = rest[..at].ends_with(|c: char| c.is_ascii_whitespace());
        let after = rest[at + name.len()..].trim_start();
        rest = &rest[at + name.len()..];
        let Some(value) = after.strip_prefix('=').filter(|_| is_start) else {
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let value = match quote {
            Some(quote) => value[1..].split(quote).next(),
            None => value
                .split(|c: char| c.is_ascii_whitespace() || c == '>')
                .next(),
        };
        return value.map(|value| decode(value).trim().to_owned());
    }
}
