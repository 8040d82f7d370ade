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

/// The value of an attribute. Each character is looked at once; what is in the value of another is none.
pub(super) fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = &tag[..tag.floor_char_boundary(ATTRIBUTES_BYTES_MAX)];
    let ends_name = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/' | '>');
    let (_, mut rest) = split_at(tag, ends_name);
    while !rest.is_empty() {
        // A stray `=` is part of a name, as browsers read it; it also lets this go on.
        let before = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let first = before.chars().next()?.len_utf8();
        let (_, after) = split_at(&before[first..], ends_name);
        let found = &before[..before.len() - after.len()];
        let Some(value) = after.trim_start().strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => {
                let (value, after) = split_at(&value[1..], |c| c == quote);
                (value, after.strip_prefix(quote).unwrap_or(""))
            }
            None => split_at(value, |c| c.is_ascii_whitespace() || c == '>'),
        };
        if found.eq_ignore_ascii_case(name) {
            return Some(decode(value).trim().to_owned());
        }
        rest = after;
    }
    None
}

/// What is before the first such character, and what begins with it.
fn split_at(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_by_its_name_alone() {
        for (tag, expected) in [
            ("a href=\"/x\"", Some("/x")),
            ("a HREF = '/x y' rel=b", Some("/x y")),
            ("a\nhref=/x>", Some("/x")),
            ("a data-href=/no href=/x", Some("/x")),
            ("a title=\" href=/no\" href=/x", Some("/x")),
            ("a disabled href=/x/", Some("/x/")),
            ("a/href=/x", Some("/x")),
            ("a href=\"/open", Some("/open")),
            ("a href=\"a&amp;b\"", Some("a&b")),
            ("a = href=/x", Some("/x")),
            ("a href", None),
            ("a", None),
            ("", None),
            ("a ä=ö hrefs=/no", None),
        ] {
            assert_eq!(attribute(tag, "href").as_deref(), expected, "{tag}");
        }
    }
}
