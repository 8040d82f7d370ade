//! The token of a request: where it may be carried, how it is compared, and the host's proof that it knows it.
//!
//! Promises: tokens are compared in constant time and never repeated; a token that is anywhere in a request must be right.
//! Must not know: sockets, what a connection is used for.

use std::net::IpAddr;

use hmac::{Hmac, Mac};
use hyper::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use sha2::Sha256;

use super::answer::HttpResponse;
use super::gate::Headers;
use crate::net::Admission;
use crate::net::access::Access;

/// A page puts its token into a subprotocol: browsers let it choose those, but no header and, for good, no query (G-25).
const PROTOCOL_PREFIX: &[u8] = b"tkn.";
/// The subprotocol that is agreed on, if it is offered.
pub(super) const PROTOCOL: &str = "ahp";

/// Hex digits of a nonce.
const NONCE_DIGITS: usize = 32;

/// Who asks. Every token in the request must be of the same one, so that two that contradict each other are refused.
pub(super) fn check(
    headers: &Headers<'_>,
    query: &str,
    admission: &Admission,
    address: IpAddr,
) -> Result<Access, HttpResponse> {
    let in_query = values_of(query, "tkn").map(percent_decoded);
    let in_header = headers.all(AUTHORIZATION).filter_map(|value| {
        let (scheme, token) = value.split_at_checked("Bearer ".len())?;
        scheme
            .eq_ignore_ascii_case(b"Bearer ")
            .then(|| token.trim_ascii().to_vec())
    });
    let in_protocols = headers
        .items(SEC_WEBSOCKET_PROTOCOL)
        .filter_map(|item| item.strip_prefix(PROTOCOL_PREFIX).map(<[u8]>::to_vec));
    let wrong = || HttpResponse::new(401, "the token is not the right one\n");
    let mut found: Option<Access> = None;
    for presented in in_query.chain(in_header).chain(in_protocols) {
        let access = Access::of_token(admission, &presented, Some(address)).ok_or_else(wrong)?;
        if found.as_ref().is_some_and(|found| !found.is_same(&access)) {
            return Err(wrong());
        }
        found = Some(access);
    }
    match (found, &admission.token) {
        (Some(access), _) => Ok(access),
        // Everybody who reaches the address is admitted.
        (None, None) => Ok(Access::Owner),
        (None, Some(_)) => {
            let text = "a token is needed: ?tkn=..., Authorization: Bearer ... or the subprotocol tkn....\n";
            Err(HttpResponse::new(401, text))
        }
    }
}

/// The same for routes where a token must not be in an address: browsers keep those.
pub(super) fn check_header(
    headers: &Headers<'_>,
    query: &str,
    admission: &Admission,
    address: IpAddr,
) -> Result<Access, HttpResponse> {
    if values_of(query, "tkn").next().is_some() {
        let text = "a token is sent here in Authorization: Bearer ..., not in the address\n";
        return Err(HttpResponse::new(401, text));
    }
    check(headers, query, admission, address)
}

/// The subprotocol of the answer: one that was offered, and never the one with the token in it.
pub(super) fn agreed_protocol(headers: &Headers<'_>) -> Option<&'static str> {
    let mut offered = headers.items(SEC_WEBSOCKET_PROTOCOL);
    offered
        .any(|item| item == PROTOCOL.as_bytes())
        .then_some(PROTOCOL)
}

/// The answer to `/proof`: shows that this host knows the token to somebody who will not send it before (G-62).
pub(super) fn prove(query: &str, token: Option<&str>) -> Result<String, HttpResponse> {
    let Some(token) = token else {
        let text = "this host asks for no token, so there is nothing to prove\n";
        return Err(HttpResponse::new(404, text));
    };
    let mut nonces = values_of(query, "nonce");
    let nonce = match (nonces.next(), nonces.next()) {
        (Some(nonce), None) if is_nonce(nonce) => nonce,
        _ => {
            let text = "/proof needs one nonce of 32 hex digits: /proof?nonce=...\n";
            return Err(HttpResponse::new(400, text));
        }
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes())
        .map_err(|_| HttpResponse::new(500, "the token cannot be used as a key\n"))?;
    mac.update(nonce.as_bytes());
    Ok(hex(&mac.finalize().into_bytes()))
}

fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The values of a name in a query, not decoded; a name without one has the empty value.
fn values_of<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// `%XX` becomes its byte; whatever is not such an escape stays as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_the_hmac_of_the_nonce_as_it_was_sent() {
        // HMAC-SHA256 of 32 zeros under `key`, by another implementation.
        let nonce = "0".repeat(32);
        assert_eq!(
            prove(&format!("nonce={nonce}"), Some("key")).unwrap(),
            "3a94e7f3e0d284db532c793621888659904dce5dc6f97329a6ae7553395aaae1"
        );
        let upper = prove("nonce=ABCDEF00000000000000000000000000", Some("key")).unwrap();
        let lower = prove("nonce=abcdef00000000000000000000000000", Some("key")).unwrap();
        assert_ne!(upper, lower);
    }

    #[test]
    fn a_nonce_that_is_none_is_refused_with_words() {
        let digits = "0123456789abcdef0123456789abcdef";
        for query in [
            String::new(),
            "nonce".to_owned(),
            "nonce=".to_owned(),
            format!("nonce={}", &digits[1..]),
            format!("nonce={digits}0"),
            format!("nonce={}g", &digits[1..]),
            format!("nonce={digits}&nonce={digits}"),
            format!("n%6fnce={digits}"),
        ] {
            let answer = prove(&query, Some("key")).unwrap_err();
            assert_eq!(answer.status, 400, "{query}");
            assert!(answer.body.ends_with(b"32 hex digits: /proof?nonce=...\n"));
        }
        let answer = prove(&format!("nonce={digits}"), None).unwrap_err();
        assert_eq!(answer.status, 404);
    }
}
