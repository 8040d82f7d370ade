//! The front matter of a Markdown file: `key: value` lines between two lines of `---`.
//!
//! A small part of YAML, what people write there: plain, quoted and block values, and lists of them. Maps are skipped. A plain
//! value is taken to its end, colons and number signs included: YAML would refuse or cut what people mean.

/// Fields and what comes after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Document<'a> {
    fields: Vec<(&'a str, Field)>,
    pub(super) body: &'a str,
}

/// A value, and the items if it is a list with a line for each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Field {
    text: String,
    items: Vec<String>,
    /// There are lines beneath its key that are not understood: a map.
    is_map: bool,
}

impl Document<'_> {
    /// A field that has a value.
    pub(super) fn field(&self, key: &str) -> Option<&str> {
        let mut matching = self.fields.iter().filter(|(known, _)| *known == key);
        let (_, value) = matching.next()?;
        Some(value.text.trim()).filter(|value| !value.is_empty())
    }

    /// The items of a list: a line each, between brackets, or separated by commas.
    pub(super) fn list(&self, key: &str) -> Option<Vec<String>> {
        let (_, field) = self.fields.iter().find(|(known, _)| *known == key)?;
        if !field.items.is_empty() {
            return Some(field.items.clone());
        }
        let text = field.text.trim();
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let items = split_items(inner.unwrap_or(text));
        Some(items.into_iter().map(|item| unquote(&item)).filter(|item| !item.is_empty()).collect())
    }

    /// Whether a field's value is a map, which is not read.
    pub(super) fn is_map(&self, key: &str) -> bool {
        let mut fields = self.fields.iter();
        let field = fields.find(|(known, _)| *known == key);
        field.is_some_and(|(_, field)| field.is_map)
    }

    /// Whether a field is true. What follows a number sign is a comment.
    pub(super) fn is_true(&self, key: &str) -> bool {
        self.has_word(key, &["true", "yes", "on"])
    }

    /// Whether a field is false.
    pub(super) fn is_false(&self, key: &str) -> bool {
        self.has_word(key, &["false", "no", "off"])
    }

    fn has_word(&self, key: &str, words: &[&str]) -> bool {
        let value = self.field(key).and_then(|value| value.split_whitespace().next());
        value.is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
    }
}

/// Parses a file, or says what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Document<'_>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = HeaderLines { rest: text, number: 0 };
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return Ok(Document { fields: Vec::new(), body: text });
    }
    let mut fields = Vec::new();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if line == "---" || line == "..." {
            return Ok(Document { fields, body: lines.rest });
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = lines.number;
        let field = field(line, &mut lines);
        fields.push(field.ok_or_else(|| format!("line {number} is not `key: value`"))?);
    }
    Err("its front matter is not closed by a line `---`".to_owned())
}

/// Lines, each with its end taken off, and what comes after them.
struct HeaderLines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> HeaderLines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.number += 1;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    /// The next line if it belongs to the value before it.
    fn next_indented(&mut self) -> Option<&'a str> {
        let (line, _) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        let belongs = line.trim().is_empty() || line.starts_with([' ', '\t', '-']);
        let belongs = belongs && !self.rest.is_empty() && line.trim_end() != "---";
        belongs.then(|| self.next()).flatten()
    }
}

fn field<'a>(line: &'a str, lines: &mut HeaderLines<'a>) -> Option<(&'a str, Field)> {
    let (key, value) = line.split_once(':')?;
    let belongs = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.is_empty() || !key.chars().all(belongs) {
        return None;
    }
    if !(value.is_empty() || value.starts_with([' ', '\t'])) {
        return None;
    }
    let value = value.trim();
    let mut more = Vec::new();
    while let Some(line) = lines.next_indented() {
        more.push(line);
    }
    let items = if value.is_empty() { list_items(&more) } else { Vec::new() };
    let text = match value.as_bytes().first() {
        Some(b'|') => block(&more).join("\n"),
        Some(b'>') => fold_lines(&more),
        Some(b'"') => double_quoted(value)?,
        Some(b'\'') => single_quoted(value)?,
        _ => plain(value, &more),
    };
    let is_map = value.is_empty()
        && items.is_empty()
        && more.iter().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with(['#', '-'])
        });
    let field = Field { text, items, is_map };
    Some((key, field))
}

/// The items of lines that each begin with a dash.
fn list_items(lines: &[&str]) -> Vec<String> {
    let items = lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix('-'))
        .map(|item| unquote(item.trim()));
    items.filter(|item| !item.is_empty()).collect()
}

/// Items between commas, of which those in quotes, brackets or braces are no separators.
fn split_items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let (mut quote, mut depth) = (None, 0_usize);
    for c in text.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '{' | '(') => depth += 1,
            (None, '}' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(c);
        }
    }
    items
}

fn unquote(text: &str) -> String {
    let text = text.trim();
    let read = match text.as_bytes().first() {
        Some(b'"') => double_quoted(text),
        Some(b'\'') => single_quoted(text),
        _ => None,
    };
    read.unwrap_or_else(|| text.to_owned())
}

/// Lines without what they are all indented by.
fn block<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indent = |line: &&str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    let mut lines: Vec<&str> = lines.iter().map(|line| line.get(least..).unwrap_or("")).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// Lines joined into paragraphs.
fn fold_lines(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in block(lines) {
        let line = line.trim();
        if line.is_empty() {
            text.push('\n');
        } else {
            if !(text.is_empty() || text.ends_with('\n')) {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text
}

/// A value that may go on in the lines after it; a list or a map there is skipped.
fn plain(value: &str, more: &[&str]) -> String {
    if value.is_empty() {
        return String::new();
    }
    let first = std::iter::once(value);
    let rest = more.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    first.chain(rest).collect::<Vec<_>>().join(" ")
}

fn double_quoted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = value.chars().skip(1);
    loop {
        match chars.next()? {
            '"' => return Some(text),
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => text.push(other),
        }
    }
}

fn single_quoted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = value.chars().skip(1).peekable();
    loop {
        match chars.next()? {
            '\'' if chars.peek() == Some(&'\'') => {
                chars.next();
                text.push('\'');
            }
            '\'' => return Some(text),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, key: &str, value: Option<&str>, body: &str) {
        let document = parse(text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        assert_eq!(document.field(key), value, "{text:?}");
        assert_eq!(document.body, body, "{text:?}");
    }

    #[test]
    fn values_are_plain_quoted_or_blocks() {
        for (text, value) in [
            ("a: one two ", "one two"),
            ("a: Use when: fixing #12", "Use when: fixing #12"),
            ("a: \"say \\\"hi\\\"\\n\\\\\" # remark", "say \"hi\"\n\\"),
            ("a: 'it''s: so'", "it's: so"),
            ("a: one\n  two\n\tthree", "one two three"),
            ("a: |\n  one\n    two\n\n  three\n\nb: x", "one\n  two\n\nthree"),
            ("a: >-\n  one\n  two\n\n  three", "one two\nthree"),
            ("# remark\n\nb:\n  - x\n- y\na: z", "z"),
            ("a: first\na: second", "first"),
        ] {
            check(&format!("---\n{text}\n---\nbody\n"), "a", Some(value), "body\n");
        }
    }

    #[test]
    fn a_file_may_have_no_front_matter_or_an_empty_one() {
        check("just text\n---\n", "a", None, "just text\n---\n");
        check("", "a", None, "");
        check("---\n---\nbody", "a", None, "body");
        check("\u{feff}---\r\na: b\r\n---\r\nbody\r\n", "a", Some("b"), "body\r\n");
        check("---\na:\n---", "a", None, "");
    }

    #[test]
    fn an_error_names_the_line() {
        for (text, why) in [
            ("---\na: b\n", "not closed"),
            ("---\nno field\n---\n", "line 2"),
            ("---\na: b\nhttp://x\n---\n", "line 3"),
            ("---\na: \"open\n---\n", "line 2"),
            ("---\n: x\n---\n", "line 2"),
        ] {
            let reason = parse(text).unwrap_err();
            assert!(reason.contains(why), "{text:?}: {reason}");
        }
    }

    #[test]
    fn lists_are_lines_brackets_or_commas() {
        for text in [
            "a:\n  - x\n  - \"y, z\"\n  - Bash(git:*, ls)",
            "a: [x, \"y, z\", Bash(git:*, ls)]",
            "a: x, 'y, z',, Bash(git:*, ls)",
        ] {
            let text = format!("---\n{text}\n---\n");
            let document = parse(&text).unwrap();
            assert_eq!(document.list("a").unwrap(), ["x", "y, z", "Bash(git:*, ls)"], "{text}");
            assert_eq!(document.list("b"), None);
        }
        let document = parse("---\na:\nb: []\nc: **/*.{ts,js}\n---\n").unwrap();
        assert_eq!(document.list("a"), Some(Vec::new()));
        assert_eq!(document.list("b"), Some(Vec::new()));
        assert_eq!(document.list("c").unwrap(), ["**/*.{ts,js}"]);
        let document = parse("---\na:\n  # none\nb:\n  x: false\nc:\n  - x\n---\n").unwrap();
        let maps = ["a", "b", "c", "d"].map(|key| document.is_map(key));
        assert_eq!(maps, [false, true, false, false]);
    }

    #[test]
    fn true_and_false_may_have_a_comment() {
        let document = parse("---\na: true # now\nb: False\nc: maybe\n---\n").unwrap();
        assert!(document.is_true("a") && !document.is_true("b") && !document.is_true("d"));
        assert!(document.is_false("b") && !document.is_false("a") && !document.is_false("c"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(---\n)?([ab:|>\"'\\-# \n\t]|é){0,60}(---\n)?.{0,20}") {
            if let Ok(document) = parse(&text) {
                assert!(text.ends_with(document.body));
            }
        }
    }
}
