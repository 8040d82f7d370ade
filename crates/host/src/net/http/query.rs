//! What stands behind the `?` of an address.
//!
//! Promises: whatever is not an escape stays as it is; nothing panics.
//! Must not know: what the names mean.

use wire::percent;

/// The one value of a name, decoded; `None` if it is absent, repeated, or not text.
pub(super) fn one_value(query: &str, name: &str) -> Option<String> {
    let mut values = values_of(query, name);
    match (values.next(), values.next()) {
        (Some(value), None) => String::from_utf8(percent::decode_leniently(value)).ok(),
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
