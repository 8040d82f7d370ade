//! The files of the page.
//!
//! Promises: a file that its path names is kept for ever; any other is asked about each time and sent only if it changed.
//! Must not know: tokens. The files hold nothing of the user (G-25).

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH, VARY,
};
use hyper::{Method, StatusCode};
use web::PageFile;

use super::answer::HttpResponse;
use super::gate::Headers;

/// For files whose path names their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const ASK_EACH_TIME: &str = "no-cache";

pub(super) fn answer(
    file: &'static PageFile,
    method: &Method,
    headers: &Headers<'_>,
) -> HttpResponse {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let refusal = HttpResponse::new(405, "files are read with GET or HEAD\n");
        return refusal.with(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    let chosen = file.choose(&headers.joined(ACCEPT_ENCODING));
    let mut answer = HttpResponse::with_body(200, file.content_type, Bytes::new());
    if file.is_known(&headers.joined(IF_NONE_MATCH)) {
        answer.status = StatusCode::NOT_MODIFIED;
        answer.headers.clear();
    } else {
        answer.body = Bytes::from_static(chosen.bytes);
        if let Some(encoding) = chosen.encoding.name() {
            let encoding = HeaderValue::from_static(encoding);
            answer.headers.insert(CONTENT_ENCODING, encoding);
        }
    }
    let caching = if file.is_immutable { FOR_EVER } else { ASK_EACH_TIME };
    let headers = &mut answer.headers;
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if let Ok(etag) = HeaderValue::try_from(chosen.etag) {
        headers.insert(ETAG, etag);
    }
    answer.keep_open()
}
