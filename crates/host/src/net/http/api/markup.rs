//! `POST /api/markup`: texts as trees, runs and rows.
//!
//! Promises: a request is bounded in items and bytes; the answer is packed if the other side takes that.
//! Must not know: how a text is rendered.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue, RETRY_AFTER};
use serde::Deserialize;

use super::super::answer::HttpResponse;
use super::{ApiRequest, body, require, services};
use crate::devices::DeviceScope;
use crate::net::access::Access;
use crate::page::MarkupItem;

const ITEMS_MAX: usize = 64;
const BYTES_MAX: usize = 256 << 10;
/// Below this, packing costs more than it saves.
const PACKED_BYTES_MIN: usize = 1_024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkupRequest {
    items: Vec<MarkupItem>,
}

pub(super) async fn answer(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    require(access, DeviceScope::Use)?;
    let markup = &services(request)?.markup;
    let Some(in_flight) = markup.begin(access.name()) else {
        let text = "this device has as many requests in flight as it may; wait for one of them\n";
        let refusal = HttpResponse::new(429, text);
        return Err(refusal.with(RETRY_AFTER, HeaderValue::from_static("1")));
    };
    let MarkupRequest { items } = body::read_json(request, body, BYTES_MAX).await?;
    if items.len() > ITEMS_MAX {
        let text = format!("a request has at most {ITEMS_MAX} items\n");
        return Err(HttpResponse::text(413, text));
    }
    let accept = request.head.headers.joined(ACCEPT_ENCODING);
    let takes_gzip = web::Encoding::Gzip.is_accepted(&accept);
    let rendered = markup.render_all(in_flight, items, move |answer| {
        if takes_gzip && answer.len() >= PACKED_BYTES_MIN {
            (pack(&answer), true)
        } else {
            (answer, false)
        }
    });
    let broken = || HttpResponse::new(500, "this cannot be rendered\n");
    let (answer, is_packed) = rendered.await.ok_or_else(broken)?;
    let mut response = HttpResponse::with_body(200, "application/json", answer);
    if is_packed {
        let gzip = HeaderValue::from_static("gzip");
        response = response.with(CONTENT_ENCODING, gzip);
    }
    Ok(response.keep_open())
}

fn pack(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory does not fail.
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    Bytes::from(packed.unwrap_or_default())
}
