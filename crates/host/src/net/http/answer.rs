//! Answers: status, headers, body, and whether the connection goes on.
//!
//! Promises: every answer says what a page may do with it (Content-Security-Policy and its companions); no answer is
//! stored by anyone unless it says so.
//! Must not know: requests, sockets.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    self, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Response, StatusCode};
use serde_json::Value;

use crate::cluster::ForwardedBody;

/// What scripts of the page may load and do: nothing from elsewhere, nothing inline, no HTML from strings. The one policy is
/// the one that registers the service worker, which Trusted Types refuse otherwise.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    media-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types greenroom-sw";

/// What this node says, or what another says and is passed on as it comes.
pub(crate) type AnswerBody = Either<Full<Bytes>, ForwardedBody>;

/// A plain answer.
#[derive(Debug, Clone)]
pub(crate) struct HttpResponse {
    pub status: StatusCode,
    /// Boxed: most functions here may refuse, and few do.
    pub headers: Box<HeaderMap>,
    pub body: Bytes,
    /// The next request may come over the same connection.
    pub stays_open: bool,
}

impl HttpResponse {
    /// A refusal, or another short text, after which the connection is closed.
    pub(crate) fn new(status: u16, text: &'static str) -> Self {
        Self::with_body(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
    }

    /// The same with a text that is put together.
    pub(crate) fn text(status: u16, text: String) -> Self {
        Self::with_body(status, "text/plain; charset=utf-8", Bytes::from(text))
    }

    pub(crate) fn json(status: u16, value: &Value) -> Self {
        let text = format!("{value}\n");
        Self::with_body(status, "application/json", Bytes::from(text))
    }

    pub(crate) fn with_body(status: u16, content_type: &'static str, body: Bytes) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        for (name, value) in extra_headers(status) {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Self { status, headers: Box::new(headers), body, stays_open: false }
    }

    /// The same with one more header, or another value of it.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn keep_open(mut self) -> Self {
        self.stays_open = true;
        self
    }

    /// Only the node that serves a space answers this.
    pub(crate) fn elsewhere() -> Self {
        Self::new(421, "another node serves the space of this token\n")
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(408, "the request did not come in time\n")
    }

    pub(crate) fn not_ready() -> Self {
        Self::new(503, "the host is not ready\n")
    }

    pub(crate) fn full() -> Self {
        Self::new(503, "the host has too many connections\n")
    }

    pub(crate) fn too_many_handshakes() -> Self {
        let text = "too many connections wait to be admitted, and this was the oldest; try again\n";
        Self::new(503, text)
    }

    /// As hyper sends it. `goes_on`: the request allows another after it.
    pub(crate) fn into_hyper(self, goes_on: bool) -> Response<AnswerBody> {
        let connection = if self.stays_open && goes_on { "keep-alive" } else { "close" };
        let mut response = Response::new(Either::Left(Full::new(self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        *headers = *self.headers;
        headers.insert(CONNECTION, HeaderValue::from_static(connection));
        guard(headers);
        response
    }

    /// The whole answer, for a socket that hyper has given back.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let response = self.clone().into_hyper(false);
        let status = response.status();
        let reason = status.canonical_reason().unwrap_or("");
        let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
        for (name, value) in response.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// What goes with a status, whatever it is about.
fn extra_headers(status: StatusCode) -> Vec<(HeaderName, &'static str)> {
    match status.as_u16() {
        401 => vec![(header::WWW_AUTHENTICATE, "Bearer")],
        405 => vec![(ALLOW, "GET")],
        426 => vec![(header::UPGRADE, "websocket"), (header::SEC_WEBSOCKET_VERSION, "13")],
        503 => vec![(header::RETRY_AFTER, "1")],
        _ => Vec::new(),
    }
}

/// What an answer says of itself stays: content has a stricter policy of its own.
fn guard(headers: &mut HeaderMap) {
    let same_origin = "same-origin";
    let guards = [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), same_origin),
        (HeaderName::from_static("cross-origin-resource-policy"), same_origin),
    ];
    for (name, value) in guards {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    }
}
