//! Escapes in URIs: `%20` for a space.
//!
//! Promises: what is escaped here comes back as it was; a decoder that judges addresses takes no escape that is cut off.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// What has no meaning anywhere in a URI stays; all else is escaped.
const WORD: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A segment of a path: what a path may hold beside words stays too.
const SEGMENT: &AsciiSet = &WORD
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

const PATH: &AsciiSet = &SEGMENT.remove(b'/');

/// Text that has no `/`, `?`, `&` or other mark of a URI afterwards.
pub fn encode_word(text: &str) -> String {
    percent_encode(text.as_bytes(), WORD).to_string()
}

/// One segment of a path.
pub fn encode_segment(text: &str) -> String {
    percent_encode(text.as_bytes(), SEGMENT).to_string()
}

/// A path with its `/`, which need not be text.
pub fn encode_path(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// The bytes that were escaped; `None` if a `%` is not followed by two digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let mut escapes = text.split('%').skip(1).map(str::as_bytes);
    let whole = escapes.all(|escape| is_digit(escape.first()) && is_digit(escape.get(1)));
    whole.then(|| decode_leniently(text))
}

/// The bytes that were escaped; whatever is not an escape stays as it is.
pub fn decode_leniently(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_keeps_the_marks_that_mean_nothing_there() {
        let text = "a-._~ !$&'()*+,;=:@/?#%ü";
        let word = "a-._~%20%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40%2F%3F%23%25%C3%BC";
        assert_eq!(encode_word(text), word);
        let segment = "a-._~%20!$&'()*+,;=:@%2F%3F%23%25%C3%BC";
        assert_eq!(encode_segment(text), segment);
        let path = "a-._~%20!$&'()*+,;=:@/%3F%23%25%C3%BC";
        assert_eq!(encode_path(text.as_bytes()), path);
        for escaped in [word, segment, path] {
            assert_eq!(decode(escaped).as_deref(), Some(text.as_bytes()));
        }
    }

    #[test]
    fn an_escape_that_is_cut_off_is_refused_or_left() {
        for wrong in ["a%", "a%2", "%zz", "%+f", "%2", "100%"] {
            assert_eq!(decode(wrong), None, "{wrong}");
            assert_eq!(decode_leniently(wrong), wrong.as_bytes(), "{wrong}");
        }
        assert_eq!(decode("%ff%00").as_deref(), Some(&b"\xff\0"[..]));
    }
}
