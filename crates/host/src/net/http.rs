//! The HTTP request that opens a connection: who is admitted, and what the others are answered.
//!
//! Promises: checks run in the order Host, Origin, token; no head panics, whatever its headers hold. Without a token only
//! `/healthz`, `/readyz` and `/proof` are answered; with one `/status`, too.
//! Must not know: sockets, WebSocket frames.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::Header;
use serde_json::json;
use sha1::{Digest, Sha1};

use super::access::Access;
use super::admission::Admission;
use super::token;
use crate::devices::Scope;

/// The longest request head that is read.
pub const HEAD_BYTES_MAX: usize = 16 * 1_024;
const HEADERS_MAX: usize = 64;
const ACCEPT_SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What is to be done with a request.
#[derive(Debug, Clone)]
pub(crate) enum HttpVerdict {
    Upgrade(Upgrade),
    Answer(HttpResponse),
}

/// What the answer 101 says.
#[derive(Debug, Clone)]
pub(crate) struct Upgrade {
    /// `Sec-WebSocket-Accept`.
    pub accept: String,
    /// The subprotocol, if one of those that were offered is ours.
    pub protocol: Option<&'static str>,
    /// Whose connection it becomes.
    pub access: Access,
}

/// A plain answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    pub text: Cow<'static, str>,
    pub content_type: ContentType,
    /// The next request may come over the same connection: a client sends its token over the very one that was proven.
    pub stays_open: bool,
}

/// What the text of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    Text,
    Json,
}

impl ContentType {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

impl HttpResponse {
    pub const UNREADABLE: Self = Self::new(400, "this is not an HTTP/1.1 request\n");
    pub const TOO_SLOW: Self = Self::new(408, "the request did not come in time\n");
    pub const HEAD_TOO_LARGE: Self = Self::new(431, "the request head is too large\n");
    pub const NOT_READY: Self = Self::new(503, "the host is not ready\n");
    pub const FULL: Self = Self::new(503, "the host has too many connections\n");
    pub const CROWDED: Self = Self::new(
        503,
        "too many connections wait to be admitted, and this was the oldest; try again\n",
    );
    const OK: Self = Self::new(200, "ok\n");

    pub(super) const fn new(status: u16, text: &'static str) -> Self {
        Self {
            status,
            text: Cow::Borrowed(text),
            content_type: ContentType::Text,
            stays_open: false,
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { status, text, .. } = self;
        let connection = if self.stays_open {
            "keep-alive"
        } else {
            "close"
        };
        let (reason, extra) = match status {
            200 => ("OK", ""),
            400 => ("Bad Request", ""),
            401 => ("Unauthorized", "WWW-Authenticate: Bearer\r\n"),
            403 => ("Forbidden", ""),
            404 => ("Not Found", ""),
            405 => ("Method Not Allowed", "Allow: GET\r\n"),
            408 => ("Request Timeout", ""),
            426 => (
                "Upgrade Required",
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            ),
            431 => ("Request Header Fields Too Large", ""),
            500 => ("Internal Server Error", ""),
            _ => ("Service Unavailable", "Retry-After: 1\r\n"),
        };
        format!(
            "HTTP/1.1 {status} {reason}\r\n{extra}Content-Type: {}\r\n\
             Content-Length: {}\r\nCache-Control: no-store\r\nConnection: {connection}\r\n\r\n{text}",
            self.content_type.name(),
            text.len()
        )
        .into_bytes()
    }
}

/// The answer that opens the WebSocket. No extension is ever agreed on: permessage-deflate is declined (G-25).
pub(crate) fn switching_protocols(upgrade: &Upgrade) -> Vec<u8> {
    let Upgrade {
        accept, protocol, ..
    } = upgrade;
    let protocol = protocol.map(|protocol| format!("Sec-WebSocket-Protocol: {protocol}\r\n"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{}\r\n",
        protocol.unwrap_or_default()
    )
    .into_bytes()
}

/// Looks at what was read so far. `None`: the head is not complete. Otherwise its length and the verdict.
pub(crate) fn decide(read: &[u8], admission: &Admission) -> Option<(usize, HttpVerdict)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let answer = |answer| Some((read.len(), HttpVerdict::Answer(answer)));
    match request.parse(read) {
        Ok(httparse::Status::Partial) if read.len() >= HEAD_BYTES_MAX => {
            answer(HttpResponse::HEAD_TOO_LARGE)
        }
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(len)) if len > HEAD_BYTES_MAX => {
            answer(HttpResponse::HEAD_TOO_LARGE)
        }
        Ok(httparse::Status::Complete(len)) => {
            let verdict = check_request(&request, admission);
            Some((len, verdict.unwrap_or_else(HttpVerdict::Answer)))
        }
        Err(httparse::Error::TooManyHeaders) => answer(HttpResponse::HEAD_TOO_LARGE),
        Err(_) => answer(HttpResponse::UNREADABLE),
    }
}

fn check_request(
    request: &httparse::Request<'_, '_>,
    admission: &Admission,
) -> Result<HttpVerdict, HttpResponse> {
    let headers = Headers(request.headers);
    let host = check_host(&headers, admission)?;
    check_origin(&headers, host, admission)?;
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_get = request.method == Some("GET");
    let method_not_allowed = HttpResponse::new(405, "only GET is served here\n");
    if matches!(path, "/healthz" | "/readyz") {
        return match (is_get, path == "/healthz" || admission.is_ready()) {
            (false, _) => Err(method_not_allowed),
            (true, true) => Err(HttpResponse::OK),
            (true, false) => Err(HttpResponse::NOT_READY),
        };
    }
    let token = admission.token.as_deref();
    if path == "/proof" {
        return match is_get {
            true => answer_proof(&headers, query, token, request.version),
            false => Err(method_not_allowed),
        };
    }
    let access = token::check(&headers, query, admission)?;
    if !is_get {
        return Err(method_not_allowed);
    }
    if path == "/status" {
        return Ok(HttpVerdict::Answer(describe_status(admission)));
    }
    if !access.may(Scope::Use) {
        let text = "this device may not use sessions; pair it again\n";
        return Err(HttpResponse::new(403, text));
    }
    let accept = check_upgrade(&headers, request.version)?;
    if admission.is_ready() {
        let protocol = token::agreed_protocol(&headers);
        Ok(HttpVerdict::Upgrade(Upgrade {
            accept,
            protocol,
            access,
        }))
    } else {
        Err(HttpResponse::NOT_READY)
    }
}

/// What an operator asks a host that no client sees: how many are connected, and which process it is.
fn describe_status(admission: &Admission) -> HttpResponse {
    let status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "clients": admission.connections(),
    });
    HttpResponse {
        status: 200,
        text: Cow::Owned(format!("{status}\n")),
        content_type: ContentType::Json,
        stays_open: false,
    }
}

fn answer_proof(
    headers: &Headers<'_>,
    query: &str,
    token: Option<&str>,
    http_minor: Option<u8>,
) -> Result<HttpVerdict, HttpResponse> {
    let proof = token::prove(query, token)?;
    Ok(HttpVerdict::Answer(HttpResponse {
        status: 200,
        text: Cow::Owned(proof),
        content_type: ContentType::Text,
        stays_open: http_minor == Some(1) && !headers.lists("Connection", "close"),
    }))
}

pub(super) struct Headers<'a>(&'a [Header<'a>]);

impl<'a> Headers<'a> {
    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value.trim_ascii())
    }

    /// The one value of a header that may not be repeated.
    fn one(&self, name: &'static str) -> Result<Option<&'a str>, Repeated> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => std::str::from_utf8(value).map(Some).map_err(|_| Repeated),
            (Some(_), Some(_)) => Err(Repeated),
        }
    }

    /// The items of a comma-separated list, perhaps over several headers.
    pub(super) fn items(&self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name)
            .flat_map(|value| value.split(|&byte| byte == b','))
            .map(<[u8]>::trim_ascii)
    }

    fn lists(&self, name: &'static str, item: &str) -> bool {
        self.items(name)
            .any(|listed| listed.eq_ignore_ascii_case(item.as_bytes()))
    }
}

/// Repeated, or not text.
struct Repeated;

/// `name` or `name:port`, as in `Host`; the name in brackets if it is an IPv6 address.
#[derive(Clone, Copy)]
struct Authority<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let name_end = match text.starts_with('[') {
            true => text.find(']')? + 1,
            false => text.find(':').unwrap_or(text.len()),
        };
        let (name, rest) = text.split_at(name_end);
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { name, port })
    }

    fn is_ip_literal(&self) -> bool {
        match self
            .name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
        {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => self.name.parse::<IpAddr>().is_ok(),
        }
    }
}

/// A name that is not ours may be a page's own name pointed at this machine (DNS rebinding).
fn check_host<'a>(
    headers: &Headers<'a>,
    admission: &Admission,
) -> Result<Authority<'a>, HttpResponse> {
    let forbidden = HttpResponse::new(403, "this Host is not allowed; see allowed_hosts\n");
    let text = match headers.one("Host") {
        Ok(Some(text)) => text,
        Ok(None) => return Err(HttpResponse::new(400, "the Host header is missing\n")),
        Err(Repeated) => return Err(HttpResponse::new(400, "the Host header must come once\n")),
    };
    let host = Authority::parse(text).ok_or(forbidden.clone())?;
    let listed = |allowed: &String| {
        allowed.eq_ignore_ascii_case(host.name) || allowed.eq_ignore_ascii_case(text)
    };
    let allowed = host.is_ip_literal()
        || host.name.eq_ignore_ascii_case("localhost")
        || admission.allowed_hosts.iter().any(listed);
    if allowed { Ok(host) } else { Err(forbidden) }
}

/// Browsers name the page that asks; programs name none (G-25).
fn check_origin(
    headers: &Headers<'_>,
    host: Authority<'_>,
    admission: &Admission,
) -> Result<(), HttpResponse> {
    let forbidden = HttpResponse::new(403, "this Origin is not allowed; see allowed_origins\n");
    let Some(origin) = headers
        .one("Origin")
        .map_err(|Repeated| forbidden.clone())?
    else {
        return Ok(());
    };
    let listed = |allowed: &String| is_equal_origin(allowed.trim_end_matches('/'), origin);
    if admission.allowed_origins.iter().any(listed) || is_same_origin(origin, host) {
        return Ok(());
    }
    Err(forbidden)
}

/// Name and port of a page that was loaded over HTTP, and the port that goes without saying there.
fn page_address(origin: &str) -> Option<(Authority<'_>, u16)> {
    let (scheme, authority) = origin.split_once("://")?;
    let default_port = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    Some((Authority::parse(authority)?, default_port))
}

/// A default port equals none, on either side.
fn is_same_origin(origin: &str, host: Authority<'_>) -> bool {
    page_address(origin).is_some_and(|(page, default_port)| {
        page.name.eq_ignore_ascii_case(host.name)
            && page.port.unwrap_or(default_port) == host.port.unwrap_or(default_port)
    })
}

fn is_equal_origin(allowed: &str, origin: &str) -> bool {
    let is_same_page = match (page_address(allowed), page_address(origin)) {
        // The default port tells the schemes apart.
        (Some((allowed, port)), Some((page, page_port))) => {
            port == page_port
                && allowed.name.eq_ignore_ascii_case(page.name)
                && allowed.port.unwrap_or(port) == page.port.unwrap_or(page_port)
        }
        _ => false,
    };
    is_same_page || allowed.eq_ignore_ascii_case(origin)
}

fn check_upgrade(headers: &Headers<'_>, http_minor: Option<u8>) -> Result<String, HttpResponse> {
    let asks = headers.lists("Upgrade", "websocket") && headers.lists("Connection", "upgrade");
    if !asks || http_minor != Some(1) {
        return Err(HttpResponse::new(
            426,
            "this is a WebSocket endpoint of an agent host (AHP)\n",
        ));
    }
    if !matches!(headers.one("Sec-WebSocket-Version"), Ok(Some("13"))) {
        return Err(HttpResponse::new(
            426,
            "only WebSocket version 13 is supported here\n",
        ));
    }
    let bad_key = HttpResponse::new(400, "Sec-WebSocket-Key must be 16 bytes in base64\n");
    let Ok(Some(key)) = headers.one("Sec-WebSocket-Key") else {
        return Err(bad_key);
    };
    match STANDARD.decode(key) {
        Ok(nonce) if nonce.len() == 16 => Ok(accept_of(key)),
        _ => Err(bad_key),
    }
}

fn accept_of(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(ACCEPT_SALT);
    STANDARD.encode(hash.finalize())
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
