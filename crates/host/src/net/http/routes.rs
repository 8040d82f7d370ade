//! Which request is answered by what.
//!
//! Promises: Host and Origin are checked first, on every route (G-25); whatever is not named here needs a token before it
//! is refused.
//! Must not know: how answers are made.

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::CONNECTION;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};
use serde_json::json;

use super::answer::{AnswerBody, HttpResponse};
use super::api::{self, ApiRequest};
use super::gate::{self, Headers};
use super::visitor::Visitor;
use super::{content, page, token, upgrade};
use crate::devices::DeviceScope;
use crate::net::Admission;
use crate::net::access::Access;

/// Answers a request, or opens a WebSocket.
pub(super) async fn answer(request: Request<Incoming>, visitor: &Visitor) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    let headers = Headers(&parts.headers);
    let goes_on = parts.version == Version::HTTP_11 && !headers.lists(CONNECTION, "close");
    match route(&parts, &headers, body, visitor).await {
        Ok(Routed::Answer(answer)) => answer.into_hyper(goes_on && !visitor.is_late()),
        Ok(Routed::WebSocket { accept }) => upgrade::answer(&headers, &accept),
        Err(refusal) => {
            tracing::debug!(status = refusal.status.as_u16(), "refused a request");
            refusal.into_hyper(goes_on)
        }
    }
}

enum Routed {
    Answer(HttpResponse),
    WebSocket { accept: String },
}

async fn route(
    parts: &Parts,
    headers: &Headers<'_>,
    body: Incoming,
    visitor: &Visitor,
) -> Result<Routed, HttpResponse> {
    gate::check(headers, &visitor.admission)?;
    if parts.uri.authority().is_some() {
        return Err(HttpResponse::new(
            400,
            "the target of a request is a path\n",
        ));
    }
    let admission = &visitor.admission;
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or(""));
    let is_upgrade = upgrade::is_asked_for(headers);
    match path {
        "/healthz" | "/readyz" => return answer_probe(&parts.method, path, admission),
        "/proof" => return answer_proof(&parts.method, query, visitor),
        // A client that opens a WebSocket there is not asking for the page, nor is one that sends something.
        "/" if is_upgrade || !is_read(&parts.method) => {}
        path => {
            if let Some(file) = web::find(path) {
                return Ok(Routed::Answer(page::answer(file, &parts.method, headers)));
            }
            if path.starts_with("/app/") {
                // The digest is of another version of the page: it is loaded anew, which needs no token either.
                return Err(HttpResponse::new(
                    404,
                    "this host has no such file of the page\n",
                ));
            }
        }
    }
    if let Some(name) = path.strip_prefix("/content/") {
        let answer = content::answer(&parts.method, name, query, headers, visitor);
        return answer.await.map(Routed::Answer);
    }
    if path.starts_with("/api/") {
        let request = ApiRequest {
            method: &parts.method,
            path,
            query,
            headers,
            visitor,
        };
        return api::answer(&request, body).await.map(Routed::Answer);
    }
    let access = token::check(headers, query, admission, visitor.address.ip())?;
    if parts.method != Method::GET {
        return Err(refuse_method());
    }
    match path {
        "/status" => {
            visitor.admit()?;
            return Ok(Routed::Answer(describe_status(admission)));
        }
        "/" | "/ahp" => {}
        _ if is_upgrade => {}
        _ => return Err(HttpResponse::new(404, "there is nothing at this address\n")),
    }
    open_websocket(parts, headers, &body, access, visitor)
}

fn open_websocket(
    parts: &Parts,
    headers: &Headers<'_>,
    body: &Incoming,
    access: Access,
    visitor: &Visitor,
) -> Result<Routed, HttpResponse> {
    if !access.may(DeviceScope::Use) {
        let text = "this device may not use sessions; pair it again\n";
        return Err(HttpResponse::new(403, text));
    }
    let accept = upgrade::check(headers, parts.version)?;
    if !body.is_end_stream() {
        return Err(HttpResponse::new(
            400,
            "a request that opens a WebSocket has no body\n",
        ));
    }
    if !visitor.admission.is_ready() {
        return Err(HttpResponse::not_ready());
    }
    visitor.upgrade(access)?;
    Ok(Routed::WebSocket { accept })
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn refuse_method() -> HttpResponse {
    HttpResponse::new(405, "only GET is served here\n")
}

fn answer_probe(
    method: &Method,
    path: &str,
    admission: &Admission,
) -> Result<Routed, HttpResponse> {
    match (
        *method == Method::GET,
        path == "/healthz" || admission.is_ready(),
    ) {
        (false, _) => Err(refuse_method()),
        (true, true) => Ok(Routed::Answer(HttpResponse::new(200, "ok\n"))),
        (true, false) => Err(HttpResponse::not_ready()),
    }
}

/// A client sends its token over the very connection that was proven, so it stays open; asking for proofs does not extend
/// the time for that.
fn answer_proof(method: &Method, query: &str, visitor: &Visitor) -> Result<Routed, HttpResponse> {
    if *method != Method::GET {
        return Err(refuse_method());
    }
    if visitor.is_late() {
        return Err(HttpResponse::too_slow());
    }
    let proof = token::prove(query, visitor.admission.token.as_deref())?;
    let answer = HttpResponse::with_body(200, "text/plain; charset=utf-8", Bytes::from(proof));
    Ok(Routed::Answer(answer.staying_open()))
}

/// What an operator asks a host that no client sees: how many are connected, and which process it is.
fn describe_status(admission: &Admission) -> HttpResponse {
    let status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "clients": admission.connections(),
    });
    HttpResponse::json(200, &status)
}
