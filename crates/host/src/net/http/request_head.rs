//! The head of a request, in the form that routes read it.
//!
//! Promises: one deadline covers everything that is looked up before a request is answered.
//! Must not know: bodies of requests, routes, which space answers.

use hyper::http::request::Parts;
use hyper::{Method, Version};
use tokio::time::Instant;

use super::gate::Headers;
use super::http_socket::HttpSocket;
use super::token;

/// Everything that is known of a request beside its body.
#[derive(Clone, Copy)]
pub(super) struct HttpRequestHead<'a> {
    pub(super) method: &'a Method,
    pub(super) version: Version,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) headers: &'a Headers<'a>,
    pub(super) http_socket: &'a HttpSocket,
    /// Deadline for finding out who asks and where their space is.
    pub(super) until: Instant,
}

impl<'a> HttpRequestHead<'a> {
    pub(super) fn new(
        parts: &'a Parts,
        headers: &'a Headers<'a>,
        http_socket: &'a HttpSocket,
    ) -> Self {
        Self {
            method: &parts.method,
            version: parts.version,
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or(""),
            headers,
            http_socket,
            until: token::finding_deadline(),
        }
    }
}
