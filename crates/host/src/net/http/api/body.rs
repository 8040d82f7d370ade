//! Bodies of requests, read whole.
//!
//! Promises: no more than the bound is ever held, and none before there is room for it; a body that does not come in time is given up.
//! Must not know: what a body is for.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::super::answer::HttpResponse;
use super::ApiRequest;
use crate::net::inbound::InboundPermit;

/// A body, and the room it takes until this is dropped.
pub(super) struct ReadBody {
    pub(super) bytes: Bytes,
    room: InboundPermit,
}

impl ReadBody {
    /// The bytes, and the room that they take.
    pub(super) fn into_parts(self) -> (Bytes, InboundPermit) {
        (self.bytes, self.room)
    }
}

/// Reads a body of at most `bytes_max` bytes.
pub(super) async fn read(
    request: &ApiRequest<'_>,
    body: Incoming,
    bytes_max: usize,
) -> Result<ReadBody, HttpResponse> {
    let length = request.head.headers.one(CONTENT_LENGTH).ok().flatten();
    let length: Option<usize> = length.and_then(|length| length.parse().ok());
    let length =
        length.ok_or_else(|| HttpResponse::new(411, "a body needs its Content-Length\n"))?;
    let too_large =
        || HttpResponse::text(413, format!("a body here has at most {bytes_max} bytes\n"));
    if length > bytes_max {
        return Err(too_large());
    }
    let admission = request.admission;
    let room = admission.room.inbound.admit_large(length).await;
    let time = Duration::from_millis(admission.limits.message_in_timeout_ms);
    match timeout(time, Limited::new(body, length).collect()).await {
        Ok(Ok(collected)) => Ok(ReadBody { bytes: collected.to_bytes(), room }),
        Ok(Err(_)) => Err(HttpResponse::new(400, "the body did not come whole\n")),
        Err(_) => Err(HttpResponse::too_slow()),
    }
}

/// Reads a body that is JSON.
pub(super) async fn read_json<T: DeserializeOwned>(
    request: &ApiRequest<'_>,
    body: Incoming,
    bytes_max: usize,
) -> Result<T, HttpResponse> {
    let content_type = request.head.headers.one(CONTENT_TYPE).ok().flatten();
    let essence = content_type.unwrap_or("").split(';').next().unwrap_or("");
    if !essence.trim().eq_ignore_ascii_case("application/json") {
        return Err(HttpResponse::new(415, "the body must be application/json\n"));
    }
    let body = read(request, body, bytes_max).await?;
    // Deeper nesting than 128 is refused by the parser.
    serde_json::from_slice(&body.bytes)
        .map_err(|error| HttpResponse::text(400, format!("the body cannot be read: {error}\n")))
}
