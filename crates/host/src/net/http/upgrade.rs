//! The request that opens a WebSocket, and the answer 101.
//!
//! Promises: no extension is ever agreed on: permessage-deflate is declined (G-25); no answer repeats a token.
//! Must not know: frames, who is admitted.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Response, StatusCode, Version};
use sha1::{Digest, Sha1};

use super::answer::{AnswerBody, HttpResponse};
use super::gate::Headers;
use super::token;

const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a request means to open a WebSocket, rightly or not.
pub(super) fn is_asked_for(headers: &Headers<'_>) -> bool {
    headers.lists(UPGRADE, "websocket")
}

/// The answer to a request that may open one.
pub(super) fn answer(headers: &Headers<'_>, accept: &str) -> Response<AnswerBody> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::new())));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let fields = response.headers_mut();
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Ok(accept) = HeaderValue::try_from(accept) {
        fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(protocol) = token::agreed_protocol(headers) {
        fields.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    response
}

/// `Sec-WebSocket-Accept`, if the request is one that opens a WebSocket.
pub(super) fn check(headers: &Headers<'_>, version: Version) -> Result<String, HttpResponse> {
    let asks = is_asked_for(headers) && headers.lists(CONNECTION, "upgrade");
    if !asks || version != Version::HTTP_11 {
        return Err(HttpResponse::new(
            426,
            "this is a WebSocket endpoint of an agent host (AHP)\n",
        ));
    }
    if !matches!(headers.one(SEC_WEBSOCKET_VERSION), Ok(Some("13"))) {
        return Err(HttpResponse::new(426, "only WebSocket version 13 is supported here\n"));
    }
    let bad_key = HttpResponse::new(400, "Sec-WebSocket-Key must be 16 bytes in base64\n");
    let Ok(Some(key)) = headers.one(SEC_WEBSOCKET_KEY) else { return Err(bad_key) };
    match STANDARD.decode(key) {
        Ok(nonce) if nonce.len() == 16 => Ok(accept_of(key)),
        _ => Err(bad_key),
    }
}

pub(super) fn accept_of(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(ACCEPT_SALT);
    STANDARD.encode(hash.finalize())
}
