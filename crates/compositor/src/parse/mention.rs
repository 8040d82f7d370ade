//! Mention tokens in prose (C-066): `@skill:name`, `@file:path` or `#file:path`, `@selection`.
//!
//! A token is recognised only if its kind is known: an address or a decorator is prose.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Value, json};
use wire::Object;

/// Contexts that are known without anybody saying so (C-065).
const CONTEXTS: [&str; 4] = ["selection", "open", "cursor", "last"];

/// What marks the end of a sentence or a bracket, not of a name.
const PROSE_AFTER: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}'];

/// Which tokens mean something.
pub(crate) enum Kinds<'a> {
    /// Only skills: they are never sent to a model, wherever they are (C-061).
    Skills,
    All {
        /// Names beyond those that are always known.
        contexts: &'a dyn Fn(&str) -> bool,
        entities: &'a BTreeSet<String>,
    },
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextSpan {
    Prose(Range<usize>),
    Mention(MentionToken),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MentionToken {
    /// The `target` of the part.
    pub target: Object,
}

/// Parses a range of a text. The character before the range decides whether a token at its beginning is one.
/// At most so many tokens are read; what comes after them is prose.
pub(crate) fn spans(
    text: &str,
    within: Range<usize>,
    kinds: &Kinds<'_>,
    tokens_max: usize,
) -> Vec<TextSpan> {
    let mut spans = Vec::new();
    let mut tokens = 0;
    let mut prose = within.start;
    let mut from = within.start;
    while let Some(offset) = text[from..within.end].find(['@', '#'])
        && tokens < tokens_max
    {
        let at = from + offset;
        from = at + 1;
        if !may_begin(&text[..at]) {
            continue;
        }
        let Some((target, len)) = token(&text[at..within.end], kinds) else { continue };
        if prose < at {
            spans.push(TextSpan::Prose(prose..at));
        }
        spans.push(TextSpan::Mention(MentionToken { target }));
        tokens += 1;
        from = at + len;
        prose = from;
    }
    if prose < within.end {
        spans.push(TextSpan::Prose(prose..within.end));
    }
    spans
}

fn may_begin(before: &str) -> bool {
    let last = before.chars().next_back();
    !last.is_some_and(|c| c.is_alphanumeric() || "_@#".contains(c))
}

/// The target of the token that a text begins with, and its length.
fn token(text: &str, kinds: &Kinds<'_>) -> Option<(Object, usize)> {
    let Some(after) = text.strip_prefix('@') else { return file_token(text, kinds) };
    let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name_end = after.find(|c| !belongs(c)).unwrap_or(after.len());
    let (name, beyond) = after.split_at(name_end);
    if let Some(value) = beyond.strip_prefix(':')
        && let Some((target, len)) = with_value(name, value, kinds)
    {
        return Some((target, 1 + name.len() + 1 + len));
    }
    let Kinds::All { contexts, .. } = kinds else { return None };
    // `@open.` ends a sentence, `@open/x` and `@open.x` are something else.
    let ends =
        beyond.trim_start_matches(PROSE_AFTER).chars().next().is_none_or(char::is_whitespace);
    let known = CONTEXTS.contains(&name) || contexts(name);
    let target = json!({"kind": "context", "name": name});
    (known && ends).then(|| (object(target), 1 + name.len()))
}

/// `#file:path`, as editors type it. Nothing else begins with `#`: headings and numbers of issues are prose.
fn file_token(text: &str, kinds: &Kinds<'_>) -> Option<(Object, usize)> {
    const PREFIX: &str = "#file:";
    let value = text.strip_prefix(PREFIX)?;
    let (target, len) = with_value("file", value, kinds)?;
    Some((target, PREFIX.len() + len))
}

fn with_value(kind: &str, text: &str, kinds: &Kinds<'_>) -> Option<(Object, usize)> {
    let is_known = match (kind, kinds) {
        ("skill", _) => true,
        (_, Kinds::Skills) => false,
        ("file" | "mcp", _) => true,
        (kind, Kinds::All { entities, .. }) => entities.contains(kind),
    };
    if !is_known {
        return None;
    }
    let (value, len) = value_of(text)?;
    let target = match kind {
        "skill" => (json!({"kind": "skill", "name": value}), len),
        "file" => file(value, len, text),
        "mcp" => {
            let (server, uri) = value.split_once(':')?;
            if server.is_empty() || uri.is_empty() {
                return None;
            }
            (json!({"kind": "mcp", "server": server, "uri": uri}), len)
        }
        kind => (json!({"kind": kind, "id": value}), len),
    };
    Some((object(target.0), target.1))
}

/// What a token names, and how much of the text that is. Up to a blank, or between double quotes on one line.
fn value_of(text: &str) -> Option<(&str, usize)> {
    if let Some(inside) = text.strip_prefix('"') {
        let end = inside.find(['"', '\n', '\r']);
        if let Some(end) = end.filter(|end| inside[*end..].starts_with('"')) {
            return (end > 0).then(|| (&inside[..end], end + 2));
        }
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let value = text[..end].trim_end_matches(PROSE_AFTER);
    (!value.is_empty()).then_some((value, value.len()))
}

/// A value as it is typed: between quotes if it would be read as something else without them.
pub(crate) fn quote_value(value: &str) -> String {
    let is_bare = value_of(value) == Some((value, value.len())) && lines(value).is_none();
    // What cannot be quoted is typed as it is.
    if is_bare || value.contains(['"', '\n', '\r']) {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

/// A file, with the lines that its suffix names: inside of the value, or after its quotes.
fn file(value: &str, len: usize, text: &str) -> (Value, usize) {
    let target = |path: &str, range: Option<(u64, u64)>| match range {
        None => json!({"kind": "file", "path": path}),
        Some((start, end)) => json!({"kind": "file", "path": path,
            "range": {"unit": "line", "start": start, "end": end}}),
    };
    if text.starts_with('"') && len > value.len() {
        let (suffix, _) = value_of(&text[len..]).unwrap_or(("", 0));
        return match lines(suffix) {
            Some(("", range)) => (target(value, Some(range)), len + suffix.len()),
            _ => (target(value, None), len),
        };
    }
    match lines(value) {
        Some((path, range)) if !path.is_empty() => (target(path, Some(range)), len),
        _ => (target(value, None), len),
    }
}

/// What comes before a suffix `:a-b` or `#La-b` (or one line alone), and its lines.
fn lines(value: &str) -> Option<(&str, (u64, u64))> {
    let digits_from = |text: &str| {
        let rest = text.trim_end_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len()).then_some(rest.len())
    };
    let last = digits_from(value)?;
    let end = value[last..].parse().ok()?;
    let before = &value[..last];
    let (start, before) = match before.strip_suffix('-') {
        Some(before) => {
            let first = digits_from(before)?;
            (before[first..].parse().ok()?, &before[..first])
        }
        None => (end, before),
    };
    let path = before.strip_suffix("#L").or_else(|| before.strip_suffix(':'))?;
    Some((path, (start, end)))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => unreachable!("targets are made as objects"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with each token as what it means.
    fn read(text: &str) -> String {
        let entities = BTreeSet::from(["node".to_owned()]);
        let contexts = |name: &str| name == "tabs";
        let kinds = Kinds::All { contexts: &contexts, entities: &entities };
        render(text, &kinds)
    }

    fn render(text: &str, kinds: &Kinds<'_>) -> String {
        let render = |span| match span {
            TextSpan::Prose(range) => text[range].to_owned(),
            TextSpan::Mention(token) => {
                let values = token.target.values().map(|value| match value {
                    Value::String(text) => text.clone(),
                    range => format!("{}-{}", range["start"], range["end"]),
                });
                format!("<{}>", values.collect::<Vec<_>>().join("|"))
            }
        };
        let spans = spans(text, 0..text.len(), kinds, 1_000);
        spans.into_iter().map(render).collect()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(read(text), expected, "{text:?}");
    }

    #[test]
    fn c_060_skills_and_files_are_mentions() {
        check("use @skill:x here", "use <skill|x> here");
        check("@file:src/a.ts", "<file|src/a.ts>");
        check("@file:a@skill:b", "<file|a@skill:b>");
        check("see #file:a.ts:1-2, ok", "see <file|a.ts|1-2>, ok");
        check("#file:\"a b\" (#file:c)", "<file|a b> (<file|c>)");
        check(
            "# file #12 #skill:x ##file:a a#file:b #selection",
            "# file #12 #skill:x ##file:a a#file:b #selection",
        );
    }

    #[test]
    fn c_065_contexts_are_known_by_their_names() {
        check("look at @selection.", "look at <context|selection>.");
        check("(@tabs) @open\n@cursor", "(<context|tabs>) <context|open>\n<context|cursor>");
        check("@opens @last/x @open.rs @nobody", "@opens @last/x @open.rs @nobody");
    }

    #[test]
    fn c_066_a_token_does_not_follow_a_word_or_another_sigil() {
        check("a@file:b é@file:b _@file:b @@file:b", "a@file:b é@file:b _@file:b @@file:b");
        check("(@file:b)\n@file:c", "(<file|b>)\n<file|c>");
    }

    #[test]
    fn c_066_values_end_at_blanks_or_quotes_and_leave_punctuation_to_the_prose() {
        check("see @file:a.ts.", "see <file|a.ts>.");
        check("see (@file:a.ts)!?", "see (<file|a.ts>)!?");
        check("@file:\"my file.ts\", ok", "<file|my file.ts>, ok");
        check("@skill:\"a b\"c", "<skill|a b>c");
        check("@file:\"open end", "<file|\"open> end");
        check("@file:\"a\nb\"", "<file|\"a>\nb\"");
        check("@file: @skill:, @file:\"\"", "@file: @skill:, @file:\"\"");
    }

    #[test]
    fn c_066_a_suffix_names_lines() {
        check("@file:a.ts:10-25,", "<file|a.ts|10-25>,");
        check("@file:a.ts#L10-25", "<file|a.ts|10-25>");
        check("@file:a.ts:7", "<file|a.ts|7-7>");
        check("@file:\"a b.ts\":1-2.", "<file|a b.ts|1-2>.");
        check("@file:\"a b:1-2\"", "<file|a b:1-2>");
        check("@file::1-2", "<file|:1-2>");
        check("@file:a-1-2", "<file|a-1-2>");
        check("@file:a:99999999999999999999-1", "<file|a:99999999999999999999-1>");
    }

    #[test]
    fn entities_are_mentions_only_if_their_kind_is_known() {
        check("move @node:n42 to @edge:e1", "move <node|n42> to @edge:e1");
        let text = "@file:a @skill:b @selection";
        assert_eq!(render(text, &Kinds::Skills), "@file:a <skill|b> @selection");
        assert_eq!(render("#file:a", &Kinds::Skills), "#file:a");
    }

    #[test]
    fn a_text_of_nothing_but_sigils_is_read_once() {
        let hostile = "@file:\"".repeat(200_000);
        assert!(spans(&hostile, 0..hostile.len(), &Kinds::Skills, 9).len() <= 1);
        let hostile = " @file:\"".repeat(200_000);
        assert!(!read(&hostile).is_empty());
    }
}
