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
use wire::Digest;

use super::answer::HttpResponse;
use super::gate::Headers;
use super::query::one_value;
use super::range::{AskedPart, find_part};
use super::visitor::Visitor;
use crate::net::access::Access;
use crate::page::{AddressFault, AddressParts, PageServices, ServedAs, served_as};

const CONTENT_POLICY: &str = "sandbox; default-src 'none'";
/// No longer than any address counts.
const CACHING: &str = "private, max-age=172800, immutable";

pub(super) async fn answer(
    method: &Method,
    name: &str,
    query: &str,
    headers: &Headers<'_>,
    visitor: &Visitor,
) -> Result<HttpResponse, HttpResponse> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let refusal = HttpResponse::new(405, "content is read with GET or HEAD\n");
        return Err(refusal.with(ALLOW, HeaderValue::from_static("GET, HEAD")));
    }
    let page = visitor.admission.page.as_deref();
    let page = page.ok_or_else(HttpResponse::not_ready)?;
    let (digest, claimed) = check_address(name, query, page, visitor)?;
    visitor.admit()?;
    let etag = format!("\"{digest}\"");
    if headers.joined(IF_NONE_MATCH).contains(&etag) {
        let mut answer = HttpResponse::with_body(304, "", bytes::Bytes::new());
        answer.headers.remove(CONTENT_TYPE);
        return Ok(finish(answer, &etag));
    }
    let read = page.read_content(digest).await.map_err(|error| {
        tracing::warn!(%error, "content cannot be served");
        HttpResponse::new(
            500,
            "this content cannot be read; the host's log says why\n",
        )
    })?;
    let gone = || HttpResponse::new(404, "this content is not there any more, or too large\n");
    let body = read.ok_or_else(gone)?;
    let ServedAs {
        content_type,
        is_download,
    } = served_as(&claimed, &body);
    let length = body.len();
    let is_other = headers
        .one(IF_RANGE)
        .ok()
        .flatten()
        .is_some_and(|tag| tag != etag);
    let range = headers.one(RANGE).ok().flatten().filter(|_| !is_other);
    let mut answer = match find_part(range, length) {
        AskedPart::Whole => HttpResponse::with_body(200, content_type, body),
        AskedPart::Nothing => {
            let refusal = HttpResponse::new(416, "this range is outside of the content\n");
            return Err(with_text(refusal, format!("bytes */{length}")));
        }
        AskedPart::Part(part) => {
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

fn with_text(answer: HttpResponse, place: String) -> HttpResponse {
    match HeaderValue::try_from(place) {
        Ok(place) => answer.with(CONTENT_RANGE, place),
        Err(_) => answer, // digits and signs always are a header's value
    }
}

fn finish(answer: HttpResponse, etag: &str) -> HttpResponse {
    let mut answer = answer
        .with(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(CONTENT_POLICY),
        )
        .with(CACHE_CONTROL, HeaderValue::from_static(CACHING))
        .with(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Ok(etag) = HeaderValue::try_from(etag) {
        answer = answer.with(ETAG, etag);
    }
    answer.staying_open()
}

/// The content that an address names, and the type that was asked for.
fn check_address(
    name: &str,
    query: &str,
    page: &PageServices,
    visitor: &Visitor,
) -> Result<(Digest, String), HttpResponse> {
    let wrong = || HttpResponse::new(403, "this address was not made by this host\n");
    let digest = Digest::from_hex(name).ok_or_else(wrong)?;
    let parts = AddressParts {
        content_type: one_value(query, "type"),
        end: one_value(query, "exp"),
        signature: one_value(query, "sig"),
    };
    let now = page.bodies.now();
    let signed = page
        .addresses
        .check(&digest, parts, now)
        .map_err(|fault| match fault {
            AddressFault::Wrong => wrong(),
            AddressFault::Expired => {
                HttpResponse::new(403, "this address has expired; ask for another\n")
            }
        })?;
    if !Access::is_known(&visitor.admission, &signed.device) {
        return Err(HttpResponse::new(
            403,
            "the device of this address was signed out\n",
        ));
    }
    Ok((digest, signed.content_type))
}
