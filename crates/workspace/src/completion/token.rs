//! The part of a text that is to be completed: from its sigil to the cursor.
//!
//! Must not know: what there is to suggest.

use super::OffsetOutsideText;

/// Longer queries are not typed.
const QUERY_BYTES_MAX: usize = 256;

/// What the token can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Command,
    File,
    Skill,
    /// Anything that may follow an `@`.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) query: &'a str,
    pub(super) sigil: char,
    /// Where its sigil is, in UTF-16 units.
    pub(super) start: u64,
    /// Where the cursor is.
    pub(super) end: u64,
}

/// A token that ends at the cursor, as it was found.
struct FoundToken<'a> {
    kind: TokenKind,
    /// Byte offset of its sigil.
    start: usize,
    query: &'a str,
}

/// The token the cursor is in or after, if there is one.
pub(super) fn find(text: &str, offset: u64) -> Result<Option<Token<'_>>, OffsetOutsideText> {
    let before = &text[..byte_offset(text, offset)?];
    let found = command(before).or_else(|| mention(before));
    // What is neither is plain text.
    Ok(found.and_then(|found| locate(before, found)))
}

/// A command of several words that the cursor is in, if it may become one of these names.
pub(super) fn find_phrase<'a, 'b>(
    text: &'a str,
    offset: u64,
    mut names: impl Iterator<Item = &'b str>,
) -> Result<Option<Token<'a>>, OffsetOutsideText> {
    let before = &text[..byte_offset(text, offset)?];
    let Some(query) = before.strip_prefix('/') else { return Ok(None) };
    let is_begun = names.any(|name| name.contains(' ') && name.starts_with(query));
    let found = is_begun.then_some(FoundToken { kind: TokenKind::Command, start: 0, query });
    Ok(found.and_then(|found| locate(before, found)))
}

/// Where a token is that ends at the cursor; none if it is too long to be meant.
fn locate<'a>(before: &'a str, found: FoundToken<'a>) -> Option<Token<'a>> {
    let FoundToken { kind, start, query } = found;
    if query.len() > QUERY_BYTES_MAX {
        return None;
    }
    let units = |text: &str| text.encode_utf16().count() as u64;
    let token = units(&before[start..]);
    // A cursor between the halves of a pair stands before it.
    let end = units(&before[..start]) + token;
    let sigil = before[start..].chars().next().unwrap_or('@');
    Some(Token { kind, query, sigil, start: end - token, end })
}

/// The byte offset of an offset in UTF-16 units.
fn byte_offset(text: &str, offset: u64) -> Result<usize, OffsetOutsideText> {
    let mut units = 0;
    for (byte, char) in text.char_indices() {
        if units + char.len_utf16() as u64 > offset {
            return Ok(byte);
        }
        units += char.len_utf16() as u64;
    }
    if units == offset { Ok(text.len()) } else { Err(OffsetOutsideText) }
}

/// A slash means something only at the very beginning (C-045).
fn command(before: &str) -> Option<FoundToken<'_>> {
    let query = before.strip_prefix('/')?;
    let is_one_word = !query.contains(char::is_whitespace);
    is_one_word.then_some(FoundToken { kind: TokenKind::Command, start: 0, query })
}

fn mention(before: &str) -> Option<FoundToken<'_>> {
    find_quoted(before).or_else(|| find_unquoted(before))
}

/// `@file:src/ma`, or `#ma`: after a `#` there are only files.
fn find_unquoted(before: &str) -> Option<FoundToken<'_>> {
    let word = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let mut sigils = before[word..].match_indices(['@', '#']).map(|(at, sigil)| (word + at, sigil));
    let (start, sigil) = sigils.find(|(at, _)| may_begin(&before[..*at]))?;
    let value = &before[start + 1..];
    let (kind, query) = match sigil {
        "#" => (TokenKind::File, value.strip_prefix("file:").unwrap_or(value)),
        _ => split_kind(value),
    };
    Some(FoundToken { kind, start, query })
}

/// `@file:"my fi`: the quotes are open, so blanks belong to it.
fn find_quoted(before: &str) -> Option<FoundToken<'_>> {
    let line = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let quote = line + before[line..].rfind('"')?;
    let query = &before[quote + 1..];
    for (prefix, kind) in [
        ("@file:", TokenKind::File),
        ("@skill:", TokenKind::Skill),
        ("@", TokenKind::Any),
        ("#file:", TokenKind::File),
        ("#", TokenKind::File),
    ] {
        if let Some(prose) = before[..quote].strip_suffix(prefix) {
            let start = prose.len();
            return may_begin(prose).then_some(FoundToken { kind, start, query });
        }
    }
    None
}

fn split_kind(value: &str) -> (TokenKind, &str) {
    if let Some(query) = value.strip_prefix("file:") {
        (TokenKind::File, query)
    } else if let Some(query) = value.strip_prefix("skill:") {
        (TokenKind::Skill, query)
    } else {
        (TokenKind::Any, value)
    }
}

/// C-066: the `@` of an address begins nothing.
fn may_begin(before: &str) -> bool {
    let last = before.chars().next_back();
    !last.is_some_and(|c| c.is_alphanumeric() || "_@#".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cursor is where the bar is; at the end if there is none.
    fn check(text: &str, expected: Option<(TokenKind, &str, u64, u64)>) {
        let (before, after) = text.split_once('|').unwrap_or((text, ""));
        let whole = format!("{before}{after}");
        let offset = before.encode_utf16().count() as u64;
        let token = find(&whole, offset).unwrap();
        let token = token.map(|token| (token.kind, token.query, token.start, token.end));
        assert_eq!(token, expected, "{text:?}");
    }

    #[test]
    fn a_slash_counts_at_the_beginning_only() {
        check("/", Some((TokenKind::Command, "", 0, 1)));
        check("/rev|iew x", Some((TokenKind::Command, "rev", 0, 4)));
        check("|/review", None);
        check("/review x", None);
        check(" /re", None);
        check("see /re", None);
        check("\\/re", None);
        check("/review @fi", Some((TokenKind::Any, "fi", 8, 11)));
    }

    #[test]
    fn a_name_of_several_words_is_one_token() {
        let names = || ["memory", "memory show", "chat save"].into_iter();
        let query = |text: &str| {
            let token = find_phrase(text, text.len() as u64, names()).unwrap();
            token.map(|token| (token.query.to_owned(), token.start, token.end))
        };
        assert_eq!(query("/memory sh"), Some(("memory sh".to_owned(), 0, 10)));
        assert_eq!(query("/memory "), Some(("memory ".to_owned(), 0, 8)));
        assert_eq!(query("/memory show all"), None);
        assert_eq!(query("/review me"), None);
        assert_eq!(query("memory sh"), None);
    }

    #[test]
    fn an_at_sign_counts_where_it_begins_a_word() {
        check("@", Some((TokenKind::Any, "", 0, 1)));
        check("see (@src/m", Some((TokenKind::Any, "src/m", 5, 11)));
        check("a\n@x", Some((TokenKind::Any, "x", 2, 4)));
        check("me@home", None);
        check("@@x", Some((TokenKind::Any, "@x", 0, 3)));
        check("é@x", None);
        check("@a b", None);
        check("@file:src/@types/n", Some((TokenKind::File, "src/@types/n", 0, 18)));
        check("use @skill:ta|bles", Some((TokenKind::Skill, "ta", 4, 13)));
        check("@x\u{3000}@y", Some((TokenKind::Any, "y", 3, 5)));
    }

    #[test]
    fn a_number_sign_begins_a_file() {
        check("#", Some((TokenKind::File, "", 0, 1)));
        check("see #src/m", Some((TokenKind::File, "src/m", 4, 10)));
        check("see #file:src/m", Some((TokenKind::File, "src/m", 4, 15)));
        check("#file:\"my fi", Some((TokenKind::File, "my fi", 0, 12)));
        check("#skill:x", Some((TokenKind::File, "skill:x", 0, 8)));
        check("@file:a#L1", Some((TokenKind::File, "a#L1", 0, 10)));
        check("# heading", None);
        check("a#b", None);
        assert_eq!(find("x #b", 4).unwrap().unwrap().sigil, '#');
        assert_eq!(find("/b", 2).unwrap().unwrap().sigil, '/');
    }

    #[test]
    fn open_quotes_take_blanks_in() {
        check("@file:\"my fi", Some((TokenKind::File, "my fi", 0, 12)));
        check("see @\"my fi", Some((TokenKind::Any, "my fi", 4, 11)));
        check("@file:\"my file\" and", None);
        check("say \"hi\n@x", Some((TokenKind::Any, "x", 8, 10)));
        check("me@file:\"my fi", None);
    }

    #[test]
    fn offsets_count_utf_16_units() {
        check("👍 @x", Some((TokenKind::Any, "x", 3, 5)));
        check("é @é👍", Some((TokenKind::Any, "é👍", 2, 6)));
        let inside = find("@a👍", 3).unwrap().unwrap();
        assert_eq!((inside.query, inside.start, inside.end), ("a", 0, 2));
        assert_eq!(find("👍", 1), Ok(None));
        assert_eq!(find("ab", 3), Err(OffsetOutsideText));
        assert_eq!(find("", 1), Err(OffsetOutsideText));
        assert_eq!(find("", u64::MAX), Err(OffsetOutsideText));
        assert_eq!(find("", 0), Ok(None));
    }

    #[test]
    fn a_query_that_is_too_long_is_not_completed() {
        check(&format!("@{}", "x".repeat(QUERY_BYTES_MAX + 1)), None);
        let text = "x ".repeat(1_000_000) + "@ab";
        assert_eq!(find(&text, 2_000_003).unwrap().unwrap().query, "ab");
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_offset_is_answered(text in "([/@#\"a: \n👍é]|file:|skill:){0,12}", offset in 0u64..30) {
            let length = text.encode_utf16().count() as u64;
            match find(&text, offset) {
                Ok(Some(token)) => {
                    assert!(token.start < token.end && token.end <= offset && offset <= length);
                    assert!(offset - token.end <= 1);
                }
                Ok(None) => assert!(offset <= length),
                Err(OffsetOutsideText) => assert!(offset > length),
            }
        }
    }
}
