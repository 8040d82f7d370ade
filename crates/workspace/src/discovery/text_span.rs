//! Where in a file of JSON something is declared, so that a client can show it there.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A part of a text, counted from zero, in lines and UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceSpan {
    pub start: SourcePosition,
    pub end: SourcePosition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    pub line: usize,
    pub character: usize,
}

/// Where a member of an object stands, from its name to the end of its value. The object is the whole file without `outer`,
/// else what the file has by that name. `None` if there is no such member.
pub fn find_member(text: &str, outer: Option<&str>, name: &str) -> Option<SourceSpan> {
    let object = match outer {
        None => text,
        Some(outer) => members(text)?.remove(outer)?.get(),
    };
    let value = members(object)?.remove(name)?.get();
    // The value is a part of the text: both are the same memory.
    let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + value.len();
    let quoted = serde_json::to_string(name).ok()?;
    // A name that is written with other escapes is not found: then the value alone is meant.
    let before = text.get(..start)?.trim_end();
    let before = before.strip_suffix(':').unwrap_or(before).trim_end();
    let start = match before.strip_suffix(&quoted) {
        Some(before) => before.len(),
        None => start,
    };
    Some(SourceSpan::of(text, start, end))
}

impl SourceSpan {
    /// From one byte of a text to another.
    pub fn of(text: &str, start: usize, end: usize) -> Self {
        Self { start: position(text, start), end: position(text, end) }
    }
}

fn members(object: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(object).ok()
}

fn position(text: &str, at: usize) -> SourcePosition {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let in_line = before.get(line_start..).unwrap_or_default();
    SourcePosition { line: before.matches('\n').count(), character: in_line.encode_utf16().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(span: SourceSpan) -> [usize; 4] {
        let SourceSpan { start, end } = span;
        [start.line, start.character, end.line, end.character]
    }

    #[test]
    fn a_member_is_found_where_it_is_declared_and_not_where_it_is_named() {
        let text = "{\"x\": {\"b\": 1},\n \"mcpServers\": {\"a\": {\"b\": 2},\n  \"\u{1f600}\", \"b\" :\n {\"c\": 3}}}";
        // Not JSON: a name without a value.
        assert_eq!(find_member(text, Some("mcpServers"), "b"), None);
        let text = text.replace("\"\u{1f600}\", ", "\"\u{1f600}\": 1, ");
        let find = |outer, name| find_member(&text, outer, name).map(shown);
        assert_eq!(find(Some("mcpServers"), "b"), Some([2, 11, 3, 9]));
        assert_eq!(find(None, "x"), Some([0, 1, 0, 14]));
        assert_eq!(find(Some("mcpServers"), "c"), None);
        assert_eq!(find(Some("none"), "b"), None);
        let escaped = find_member("{\"\\u0061\": [1]}", None, "a").map(shown);
        assert_eq!(escaped, Some([0, 11, 0, 14]));
    }
}
