//! What is checked of every request before anything else: the name it was sent to, and the page it comes from (G-25).
//!
//! Promises: no header panics, whatever it holds; one that may not be repeated is refused if it is.
//! Must not know: routes, tokens.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{HOST, HeaderMap, HeaderName, ORIGIN};

use super::answer::HttpResponse;
use crate::net::Admission;

/// Both checks.
pub(super) fn check(headers: &Headers<'_>, admission: &Admission) -> Result<(), HttpResponse> {
    let host = check_host(headers, admission)?;
    check_origin(headers, host, admission)
}

pub(super) struct Headers<'a>(pub(super) &'a HeaderMap);

impl<'a> Headers<'a> {
    pub(super) fn all(&self, name: HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.0.get_all(name).into_iter().map(|value| value.as_bytes().trim_ascii())
    }

    /// A list that is text, over however many headers; empty if there is none.
    pub(super) fn joined(&self, name: HeaderName) -> Cow<'a, str> {
        let mut texts = self.all(name).map(String::from_utf8_lossy);
        let first = texts.next().unwrap_or_default();
        texts.fold(first, |list, next| Cow::Owned(format!("{list},{next}")))
    }

    /// The one value of a header that may not be repeated.
    pub(super) fn one(&self, name: HeaderName) -> Result<Option<&'a str>, InvalidHeader> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => std::str::from_utf8(value).map(Some).map_err(|_| InvalidHeader),
            (Some(_), Some(_)) => Err(InvalidHeader),
        }
    }

    /// The items of a comma-separated list, perhaps over several headers.
    pub(super) fn items(&self, name: HeaderName) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.all(name).flat_map(|value| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
    }

    pub(super) fn lists(&self, name: HeaderName, item: &str) -> bool {
        self.items(name).any(|listed| listed.eq_ignore_ascii_case(item.as_bytes()))
    }
}

/// A header that is repeated, or is not text.
pub(super) struct InvalidHeader;

/// `name` or `name:port`, as in `Host`; the name in brackets if it is an IPv6 address.
#[derive(Clone, Copy)]
struct Authority<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let name_end = if text.starts_with('[') {
            text.find(']')? + 1
        } else {
            text.find(':').unwrap_or(text.len())
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
        match self.name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
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
    let text = match headers.one(HOST) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(HttpResponse::new(400, "the Host header is missing\n")),
        Err(InvalidHeader) => {
            return Err(HttpResponse::new(400, "the Host header must come once\n"));
        }
    };
    let host = Authority::parse(text).ok_or(forbidden.clone())?;
    if is_allowed(text, host, admission) { Ok(host) } else { Err(forbidden) }
}

fn is_allowed(text: &str, host: Authority<'_>, admission: &Admission) -> bool {
    let listed = |allowed: &String| {
        allowed.eq_ignore_ascii_case(host.name) || allowed.eq_ignore_ascii_case(text)
    };
    host.is_ip_literal()
        || host.name.eq_ignore_ascii_case("localhost")
        || admission.allowed_hosts.iter().any(listed)
}

/// Whether a page at this address, such as `https://laptop.example/`, would be served: what browsers send from there is let in.
pub(super) fn answers_to(address: &str, admission: &Admission) -> bool {
    let text = address.trim_end_matches('/');
    let Some((_, authority)) = text.split_once("://") else { return false };
    page_address(text).is_some_and(|(host, _)| is_allowed(authority, host, admission))
}

/// Browsers name the page that asks; programs name none (G-25).
fn check_origin(
    headers: &Headers<'_>,
    host: Authority<'_>,
    admission: &Admission,
) -> Result<(), HttpResponse> {
    let forbidden = HttpResponse::new(403, "this Origin is not allowed; see allowed_origins\n");
    let Some(origin) = headers.one(ORIGIN).map_err(|InvalidHeader| forbidden.clone())? else {
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
