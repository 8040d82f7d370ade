//! `GET /content/<sha256>`: content by a signed address, for pictures, sounds, films and downloads of the page.
//!
//! Promises: without a signature of this host, or after its end, or once its device is signed out, nothing is served; what is
//! served can run nothing, whatever it is.
//! Must not know: where content lies.

use hyper::Method;
use hyper::StatusCode;
use hyper::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use wire::{Digest, Timestamp};

use super::answer::HttpResponse;
use super::http_socket::{HttpSocket, refuse_silent};
use super::query::one_value;
use super::range::{RequestedPart, find_part};
use super::request_head::HttpRequestHead;
use super::token;
use crate::accounts::Accounts;
use crate::net::access::Access;
use crate::net::{Admission, SpaceHandle};
use crate::page::{
    AddressFault, AddressParts, ContentAddresses, PageServices, ServedAs, served_as,
};

const CONTENT_POLICY: &str = "sandbox; default-src 'none'";
/// No longer than any address counts.
const CACHING: &str = "private, max-age=172800, immutable";

/// Whatever it says, a refusal too, can run nothing.
pub(super) async fn answer(
    name: &str,
    request: &HttpRequestHead<'_>,
) -> Result<HttpResponse, HttpResponse> {
    let policy = HeaderValue::from_static(CONTENT_POLICY);
    match give(name, request).await {
        Ok(answer) => Ok(answer.with(CONTENT_SECURITY_POLICY, policy)),
        Err(refusal) => Err(refusal.with(CONTENT_SECURITY_POLICY, policy)),
    }
}

async fn give(name: &str, request: &HttpRequestHead<'_>) -> Result<HttpResponse, HttpResponse> {
    let HttpRequestHead { method, query, headers, http_socket, .. } = *request;
    if !matches!(*method, Method::GET | Method::HEAD) {
        let refusal = HttpResponse::new(405, "content is read with GET or HEAD\n");
        return Err(refusal.with(ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    let found = async {
        let (handle, signed) = open_handle(name, query, http_socket).await?;
        refuse_silent(&handle)?;
        check_signer(&signed.device, &handle, http_socket).await?;
        Ok((handle, signed))
    };
    let (handle, signed) = token::find_in_time(request.until, found).await?;
    let (digest, claimed) = (signed.digest, signed.content_type);
    let page = find_page(&handle.admission)?;
    http_socket.admit()?;
    let etag = format!("\"{digest}\"");
    if headers.joined(IF_NONE_MATCH).contains(&etag) {
        let mut answer = HttpResponse::with_body(304, "", bytes::Bytes::new());
        answer.headers.remove(CONTENT_TYPE);
        return Ok(finish(answer, &etag));
    }
    let read = page.read_content(digest).await.map_err(|error| {
        tracing::warn!(%error, "content cannot be served");
        HttpResponse::new(500, "this content cannot be read; the host's log says why\n")
    })?;
    let gone = || HttpResponse::new(404, "this content is not there any more, or too large\n");
    let body = read.ok_or_else(gone)?;
    let ServedAs { content_type, is_download } = served_as(&claimed, &body);
    let length = body.len();
    let is_other = headers.one(IF_RANGE).ok().flatten().is_some_and(|tag| tag != etag);
    let range = headers.one(RANGE).ok().flatten().filter(|_| !is_other);
    let mut answer = match find_part(range, length) {
        RequestedPart::Whole => HttpResponse::with_body(200, content_type, body),
        RequestedPart::Nothing => {
            let refusal = HttpResponse::new(416, "this range is outside of the content\n");
            return Err(with_text(refusal, format!("bytes */{length}")));
        }
        RequestedPart::Part(part) => {
            let place = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            let mut answer = HttpResponse::with_body(206, content_type, body.slice(part));
            answer.status = StatusCode::PARTIAL_CONTENT;
            with_text(answer, place)
        }
    };
    if is_download {
        let attachment = HeaderValue::from_static("attachment");
        answer = answer.with(CONTENT_DISPOSITION, attachment);
    }
    Ok(finish(answer, &etag))
}

/// The space that an address leads to, and what it says.
async fn open_handle(
    name: &str,
    query: &str,
    http_socket: &HttpSocket,
) -> Result<(SpaceHandle, SignedContent), HttpResponse> {
    let check = |handle: &SpaceHandle| check_address(name, query, &handle.admission);
    let space = find_space(name, query, http_socket).await?;
    let (Some(space), Some(relays)) = (space, http_socket.handles.relays()) else {
        return http_socket.handles.open(check);
    };
    let handle = relays.find_here(&space).await.map_err(token::refuse_relay)?;
    let signed = check(&handle)?;
    Ok((handle, signed))
}

/// The space of the account that an address was signed for; `None`: it was for a device of a data directory. An address that no
/// node of this database made is refused before anything is loaded for it.
pub(super) async fn find_space(
    name: &str,
    query: &str,
    http_socket: &HttpSocket,
) -> Result<Option<String>, HttpResponse> {
    let signature = one_value(query, "sig").unwrap_or_default();
    let device = signature.split_once('.').map(|(device, _)| device);
    let id = device.and_then(Accounts::signed_token_id);
    let Some((id, accounts)) = id.zip(http_socket.handles.accounts()) else { return Ok(None) };
    let space = accounts.space_of(id).await.map_err(|error| {
        tracing::warn!(%error, "the space of a device could not be looked up");
        token::refuse_unread_accounts()
    })?;
    let Some(space) = space else { return Err(signed_out()) };
    let first = http_socket.handles.first();
    let now = find_page(&first.admission)?.bodies.now();
    let addresses = accounts.addresses_of(&space);
    check_signature(&addresses, name, query, now)?;
    Ok(Some(space))
}

fn signed_out() -> HttpResponse {
    HttpResponse::new(403, "the device of this address was signed out\n")
}

fn with_text(answer: HttpResponse, place: String) -> HttpResponse {
    match HeaderValue::try_from(place) {
        Ok(place) => answer.with(CONTENT_RANGE, place),
        Err(_) => answer, // digits and signs always are a header's value
    }
}

fn finish(answer: HttpResponse, etag: &str) -> HttpResponse {
    let mut answer = answer
        .with(CACHE_CONTROL, HeaderValue::from_static(CACHING))
        .with(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        answer = answer.with(ETAG, etag);
    }
    answer.keep_open()
}

fn find_page(admission: &Admission) -> Result<&PageServices, HttpResponse> {
    admission.page.as_deref().ok_or_else(HttpResponse::not_ready)
}

/// What an address names.
struct SignedContent {
    digest: Digest,
    /// The type that was asked for.
    content_type: String,
    /// Whom it was made for.
    device: String,
}

fn check_address(
    name: &str,
    query: &str,
    admission: &Admission,
) -> Result<SignedContent, HttpResponse> {
    let page = find_page(admission)?;
    check_signature(&page.addresses, name, query, page.bodies.now())
}

fn check_signature(
    addresses: &ContentAddresses,
    name: &str,
    query: &str,
    now: Timestamp,
) -> Result<SignedContent, HttpResponse> {
    let wrong = || HttpResponse::new(403, "this address was not made by this host\n");
    let digest = Digest::from_hex(name).ok_or_else(wrong)?;
    let parts = AddressParts {
        content_type: one_value(query, "type"),
        end: one_value(query, "exp"),
        signature: one_value(query, "sig"),
    };
    let signed = addresses.check(&digest, parts, now).map_err(|fault| match fault {
        AddressFault::Wrong => wrong(),
        AddressFault::Expired => {
            HttpResponse::new(403, "this address has expired; ask for another\n")
        }
    })?;
    Ok(SignedContent { digest, content_type: signed.content_type, device: signed.device })
}

/// An address counts as long as the one it was made for.
async fn check_signer(
    name: &str,
    handle: &SpaceHandle,
    http_socket: &HttpSocket,
) -> Result<(), HttpResponse> {
    let token = Accounts::signed_token_id(name).zip(http_socket.handles.accounts());
    let is_known = match token {
        None => Access::is_known(&handle.admission, name),
        Some((id, accounts)) => accounts.still_counts(id).await.map_err(|error| {
            tracing::warn!(%error, "cannot check a signed content address; answered 503");
            token::refuse_unread_accounts()
        })?,
    };
    if is_known { Ok(()) } else { Err(signed_out()) }
}
