//! Rust sources as the checks read them: code without comments and strings, comments without code, tests left out.
//!
//! Promises: every view has the length and the lines of the text, so that an offset or a line number means the same in all
//! of them. This is a scanner of tokens, not a parser: it knows strings, comments, characters and braces.

use std::ops::Range;

/// A source file and its views.
#[derive(Clone)]
pub(crate) struct Source {
    /// Path from the root of the repository, or from wherever a test says.
    pub(crate) name: String,
    /// Code alone: comments and the inside of strings are blank, items under `#[cfg(test)]` too.
    pub(crate) code: String,
    /// Comments alone.
    pub(crate) comments: String,
    /// Strings and characters alone, with their quotes; those of items under `#[cfg(test)]` are blank.
    pub(crate) literals: String,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Source {
        let Views { mut code, comments, mut literals } = split_views(text);
        for range in find_tests(&code) {
            code.replace_range(range.clone(), &blank(&code[range.clone()]));
            literals.replace_range(range.clone(), &blank(&literals[range]));
        }
        Source { name: name.to_owned(), code, comments, literals }
    }

    /// The line an offset into the code is on, counted from 0.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.code.bytes().take(offset).filter(|b| *b == b'\n').count()
    }
}

/// Files that hold tests only, by their names.
pub(crate) fn is_test_file(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("_tests.rs") || name.ends_with("/tests.rs")
}

/// The offset behind the brace that closes the one at `open`; the end of the code if none does.
pub(crate) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

#[derive(Default)]
struct Views {
    code: String,
    comments: String,
    literals: String,
}

fn split_views(text: &str) -> Views {
    let bytes = text.as_bytes();
    let mut views = Views::default();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (length, kind) = token(rest, at.checked_sub(1).map(|before| bytes[before]));
        let piece = &text[at..at + length];
        let blanked = blank(piece);
        let (mut code, mut comment, mut literal) = (&*blanked, &*blanked, &*blanked);
        match kind {
            Kind::Code => code = piece,
            Kind::Comment => comment = piece,
            Kind::Literal => literal = piece,
        }
        views.code.push_str(code);
        views.comments.push_str(comment);
        views.literals.push_str(literal);
        at += length;
    }
    views
}

enum Kind {
    Code,
    Comment,
    Literal,
}

/// How long the token at the beginning of `rest` is, always up to the border of a character, and what it is.
fn token(rest: &[u8], before: Option<u8>) -> (usize, Kind) {
    if rest.starts_with(b"//") {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        return (end, Kind::Comment);
    }
    if rest.starts_with(b"/*") {
        return (block_comment(rest), Kind::Comment);
    }
    if rest[0] == b'"' {
        return (quoted(rest), Kind::Literal);
    }
    let in_word = before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !in_word && let Some(length) = raw_string(rest) {
        return (length, Kind::Literal);
    }
    if rest[0] == b'\''
        && let Some(length) = character(rest)
    {
        return (length, Kind::Literal);
    }
    let next = (1..rest.len()).find(|at| may_begin_token(rest[*at], rest[at - 1]));
    (next.unwrap_or(rest.len()), Kind::Code)
}

/// Whether something other than code may begin with a byte.
fn may_begin_token(byte: u8, before: u8) -> bool {
    match byte {
        b'/' | b'"' | b'\'' => true,
        b'r' | b'b' => !(before.is_ascii_alphanumeric() || before == b'_'),
        _ => false,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = usize::from(rest[0] == b'b');
    if rest.get(prefix) != Some(&b'r') {
        return None;
    }
    let hashes = rest[prefix + 1..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + 1 + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    let inside = &rest[open + 1..];
    let length = inside
        .windows(end.len())
        .position(|window| window == end)
        .unwrap_or(inside.len().saturating_sub(end.len()));
    Some(open + 1 + length + end.len())
}

/// A character, not a lifetime: closed by a quote after one character or one escape.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|b| *b == b'\'')?;
        return Some(close + 4);
    }
    let close = (2..rest.len().min(6)).find(|at| rest[*at] == b'\'')?;
    let inside = std::str::from_utf8(&rest[1..close]).ok()?;
    (inside.chars().count() == 1).then_some(close + 1)
}

fn blank(piece: &str) -> String {
    let lines: Vec<String> = piece.split('\n').map(|line| " ".repeat(line.len())).collect();
    lines.join("\n")
}

/// Every item that is under `#[cfg(test)]`, up to its closing brace or its semicolon.
fn find_tests(code: &str) -> Vec<Range<usize>> {
    const MARK: &str = "#[cfg(test)]";
    let mut tests = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find(MARK) {
        let start = from + found;
        let after = start + MARK.len();
        let brace = code[after..].find('{').map(|at| after + at);
        let semicolon = code[after..].find(';').map(|at| after + at);
        let end = match (brace, semicolon) {
            (Some(brace), Some(semicolon)) if semicolon < brace => semicolon + 1,
            (Some(brace), _) => closing_brace(code, brace),
            (None, Some(semicolon)) => semicolon + 1,
            (None, None) => code.len(),
        };
        tests.push(start..end);
        from = end;
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let source =
            Source::new("a.rs", "let a = \"x // y\"; // why\nlet b = 'c'; /* /* */ */ r#\"\"z\"#;");
        assert_eq!(
            source.code.split_whitespace().collect::<Vec<_>>(),
            ["let", "a", "=", ";", "let", "b", "=", ";", ";"]
        );
        assert_eq!(source.comments.lines().next().unwrap().trim(), "// why");
        assert_eq!(
            source.literals.split_whitespace().collect::<Vec<_>>(),
            ["\"x", "//", "y\"", "'c'", "r#\"\"z\"#"]
        );
        assert_eq!(source.code.len(), source.comments.len());
        assert_eq!(source.code.len(), source.literals.len());
    }

    #[test]
    fn a_lifetime_is_code_and_a_quote_character_is_not() {
        let source = Source::new("a.rs", "fn a<'a>(b: &'a str) { '\"'; '\\''; 'é'; }");
        assert!(source.code.contains("fn a<'a>(b: &'a str) {"));
        assert!(source.code.ends_with('}'));
        assert!(!source.code.contains('"'));
    }

    #[test]
    fn tests_are_left_out_and_what_follows_is_not() {
        let source = Source::new(
            "a.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { \"d\" } }\n#[cfg(test)]\nmod more;\nfn c() {}",
        );
        assert!(!source.code.contains("fn b"));
        assert!(!source.code.contains("more"));
        assert_eq!(source.literals.trim(), "");
        assert!(source.code.contains("fn c"));
        assert_eq!(source.line_of(source.code.find("fn c").unwrap()), 5);
    }
}
