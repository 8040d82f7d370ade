//! Characters that are written as names or numbers in HTML.

use std::borrow::Cow;

/// The names that pages use; others stay as they are written.
const NAMED: [(&str, &str); 34] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("bull", "•"),
    ("middot", "·"),
    ("times", "×"),
    ("deg", "°"),
    ("para", "¶"),
    ("sect", "§"),
    ("euro", "€"),
    ("pound", "£"),
    ("rarr", "→"),
    ("larr", "←"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("le", "≤"),
    ("ge", "≥"),
    ("ne", "≠"),
    ("zwj", "\u{200d}"),
];

/// The longest of them, and of numbers.
const LENGTH_MAX: usize = 10;

/// A text with its characters as themselves.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        match reference(rest) {
            Some((character, length)) => {
                decoded.push_str(&character);
                rest = &rest[length..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// What a text that begins with `&` begins with, and how long that is.
fn reference(text: &str) -> Option<(String, usize)> {
    let within = &text.as_bytes()[..text.len().min(LENGTH_MAX + 2)];
    let end = memchr::memchr(b';', within)?;
    let name = text.get(1..end)?;
    let length = end + 1;
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        let character = char::from_u32(code).filter(|c| *c != '\0');
        return Some((character.unwrap_or('\u{fffd}').to_string(), length));
    }
    let named = NAMED.iter().find(|(known, _)| *known == name)?;
    Some((named.1.to_owned(), length))
}
