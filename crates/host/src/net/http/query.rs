//! What stands behind the `?` of an address.
//!
//! Promises: whatever is not an escape stays as it is; nothing panics.
//! Must not know: what the names mean.

/// The one value of a name, decoded; `None` if it is absent, repeated, or not text.
pub(super) fn one_value(query: &str, name: &str) -> Option<String> {
    let mut values = values_of(query, name);
    match (values.next(), values.next()) {
        (Some(value), None) => String::from_utf8(percent_decoded(value)).ok(),
        _ => None,
    }
}

/// The values of a name in a query, not decoded; a name without one has the empty value.
pub(super) fn values_of<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// `%XX` becomes its byte; whatever is not such an escape stays as it is.
pub(super) fn percent_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escape = match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => u8::try_from(high << 4 | low).ok(),
            _ => None,
        };
        out.push(escape.unwrap_or(byte));
        at += if escape.is_some() { 3 } else { 1 };
    }
    out
}
