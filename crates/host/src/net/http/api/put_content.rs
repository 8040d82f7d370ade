//! `PUT /api/content` stores a file for a message; `POST /api/content/addresses` makes addresses that a browser can load by itself.
//!
//! Promises: a body is on the disk before its name is answered; an address is made for the device that asks, and counts for it alone.
//! Must not know: what content is used for.

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use kernel::Role;
use serde::Deserialize;
use serde_json::{Value, json};
use wire::{Digest, Timestamp};

use super::super::answer::HttpResponse;
use super::{ApiRequest, body, require, require_role, services};
use crate::devices::DeviceScope;
use crate::net::access::Access;
use crate::page::end_of_next_day;

const ADDRESSES_MAX: usize = 256;
const ADDRESSES_BYTES_MAX: usize = 128 << 10;
/// What a message may give as a type, generously.
const TYPE_BYTES_MAX: usize = 200;

pub(super) async fn answer(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    require(access, DeviceScope::Use)?;
    require_role(access, Role::Member)?;
    let bodies = &services(request)?.bodies;
    let content_type = request
        .head
        .headers
        .one(CONTENT_TYPE)
        .ok()
        .flatten()
        .unwrap_or("application/octet-stream")
        .to_owned();
    if content_type.len() > TYPE_BYTES_MAX {
        return Err(HttpResponse::new(400, "this Content-Type is too long\n"));
    }
    if let Some(bounds) = &request.admission.bounds {
        bounds.check_stored().await.map_err(|why| HttpResponse::text(507, format!("{why}\n")))?;
    }
    let bytes_max = request.admission.limits.content_in_bytes;
    let body = body::read(request, body, bytes_max).await?;
    let size = body.bytes.len();
    let (bytes, _room) = body.into_parts();
    let stored = bodies.store_body(bytes.into(), &content_type).await;
    let stored = stored.map_err(|failed| {
        tracing::error!(error = %failed, "a file of a page is not stored");
        HttpResponse::new(507, "the file cannot be stored; the host's log says why\n")
    })?;
    let answer = json!({"uri": stored.uri, "size": size, "contentType": content_type});
    Ok(HttpResponse::json(201, &answer).keep_open())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddressesRequest {
    items: Vec<AddressItem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AddressItem {
    uri: String,
    #[serde(default)]
    content_type: String,
}

pub(super) async fn answer_addresses(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    require(access, DeviceScope::Use)?;
    let page = services(request)?;
    let asked: AddressesRequest = body::read_json(request, body, ADDRESSES_BYTES_MAX).await?;
    if asked.items.len() > ADDRESSES_MAX {
        let text = format!("a request has at most {ADDRESSES_MAX} items\n");
        return Err(HttpResponse::text(413, text));
    }
    let now = page.bodies.now();
    let sign = |item: &AddressItem| {
        let digest = Digest::from_uri(&item.uri)?;
        let is_short = item.content_type.len() <= TYPE_BYTES_MAX;
        is_short.then(|| page.addresses.sign(access.name(), &digest, &item.content_type, now))
    };
    let addresses: Vec<Value> = asked.items.iter().map(|item| json!(sign(item))).collect();
    let end = Timestamp(end_of_next_day(now) * 1_000).to_rfc3339();
    let answer = json!({"items": addresses, "expiresAt": end});
    Ok(HttpResponse::json(200, &answer).keep_open())
}
