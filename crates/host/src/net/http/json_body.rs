//! The body of a request that must be JSON.
//!
//! Promises: at most so many bytes are held, and they must come within `handshake_timeout_ms`; what is wrong is said without
//! repeating any of it.
//! Must not know: what the JSON means.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::answer::HttpResponse;
use super::gate::Headers;
use super::visitor::Visitor;

/// Reads and decodes it.
pub(super) async fn read<T: DeserializeOwned>(
    headers: &Headers<'_>,
    body: Incoming,
    visitor: &Visitor,
    bytes_max: usize,
) -> Result<T, HttpResponse> {
    let is_json = headers.all(CONTENT_TYPE).any(|value| {
        let kind = value.split(|byte| *byte == b';').next();
        kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"application/json"))
    });
    if !is_json {
        let text = "the body must be JSON: Content-Type: application/json\n";
        return Err(HttpResponse::new(415, text));
    }
    let time = Duration::from_millis(visitor.admission.limits.handshake_timeout_ms);
    let collected = timeout(time, Limited::new(body, bytes_max).collect()).await;
    let bytes: Bytes = match collected {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(HttpResponse::new(413, "the body is too large\n"));
        }
        Ok(Err(_)) => return Err(HttpResponse::new(400, "the body did not come whole\n")),
        Err(_) => return Err(HttpResponse::too_slow()),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        HttpResponse::text(
            400,
            format!("the body is not what is expected here: line {line}, column {column}\n"),
        )
    })
}
