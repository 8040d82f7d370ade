//! Which request is answered by what.
//!
//! Promises: Host and Origin are checked first, on every route (G-25); whatever is not named here needs a token before it
//! is refused.
//! Must not know: how answers are made.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::CONNECTION;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, Version};
use kernel::Role;
use serde_json::json;

use super::answer::{AnswerBody, HttpResponse};
use super::api::{self, ApiRequest};
use super::gate::{self, Headers};
use super::http_socket::{HttpSocket, UpgradedWay, refuse_silent};
use super::query::one_value;
use super::request_head::HttpRequestHead;
use super::{content, forward, page, spaces, token, upgrade};
use crate::cluster::PeerNode;
use crate::devices::DeviceScope;
use crate::net::access::Access;
use crate::net::{Admission, SpaceHandle, SpaceHandles};

/// Answers a request, or opens a WebSocket.
pub(super) async fn answer(
    request: Request<Incoming>,
    http_socket: &HttpSocket,
) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    let headers = Headers(&parts.headers);
    let goes_on = parts.version == Version::HTTP_11 && !headers.lists(CONNECTION, "close");
    match route(&parts, &headers, body, http_socket).await {
        Ok(RouteOutcome::Answer(answer)) => answer.into_hyper(goes_on && !http_socket.is_late()),
        Ok(RouteOutcome::WebSocket { accept }) => upgrade::answer(&headers, &accept),
        Ok(RouteOutcome::Owner(owner, body)) => {
            let goes_on = goes_on && !http_socket.is_late();
            let answered = forward::pass_on(&parts, body, &owner, http_socket, goes_on).await;
            answered.unwrap_or_else(|refusal| refusal.into_hyper(goes_on))
        }
        Err(refusal) => {
            tracing::debug!(status = refusal.status.as_u16(), "refused a request");
            refusal.into_hyper(goes_on)
        }
    }
}

enum RouteOutcome {
    Answer(HttpResponse),
    WebSocket {
        accept: String,
    },
    /// Another node answers it.
    Owner(Box<PeerNode>, Incoming),
}

/// Answers a request that another node passes on.
pub(crate) async fn answer_forwarded(
    request: Request<Incoming>,
    handles: Arc<SpaceHandles>,
    client: SocketAddr,
) -> Response<AnswerBody> {
    answer(request, &HttpSocket::forwarded(handles, client)).await
}

async fn route(
    parts: &Parts,
    headers: &Headers<'_>,
    body: Incoming,
    http_socket: &HttpSocket,
) -> Result<RouteOutcome, HttpResponse> {
    // The names that the listener answers to are the same for all of its spaces.
    let first = http_socket.handles.first().admission;
    // Where it was passed on, the other node has checked what it answers to.
    if !http_socket.is_forwarded() {
        gate::check(headers, &first)?;
    }
    if parts.uri.authority().is_some() {
        return Err(HttpResponse::new(400, "the target of a request is a path\n"));
    }
    let request = HttpRequestHead::new(parts, headers, http_socket);
    let HttpRequestHead { method, path, query, .. } = request;
    let is_upgrade = upgrade::is_asked_for(headers);
    match path {
        "/healthz" | "/readyz" => return answer_probe(method, path, http_socket),
        "/proof" => return answer_proof(method, query, http_socket),
        // A client that opens a WebSocket there is not asking for the page, nor is one that sends something.
        "/" if is_upgrade || !is_read(method) => {}
        path => {
            if let Some(file) = web::find(path) {
                return Ok(RouteOutcome::Answer(page::answer(file, method, headers)));
            }
            if path.starts_with("/app/") {
                // The digest is of another version of the page: it is loaded anew, which needs no token either.
                return Err(HttpResponse::new(404, "this host has no such file of the page\n"));
            }
        }
    }
    if !is_upgrade
        && path != "/api/pair"
        && let Some(owner) = forward::find_owner(&request).await?
    {
        return Ok(RouteOutcome::Owner(Box::new(owner), body));
    }
    if let Some(name) = path.strip_prefix("/content/") {
        return content::answer(name, &request).await.map(RouteOutcome::Answer);
    }
    if path.starts_with("/api/") {
        let request = ApiRequest { head: &request, admission: &first };
        return api::answer(&request, body).await.map(RouteOutcome::Answer);
    }
    route_with_token(&request, &body).await
}

/// What is served to whoever has a token: the space that it names is here, or elsewhere.
async fn route_with_token(
    request: &HttpRequestHead<'_>,
    body: &Incoming,
) -> Result<RouteOutcome, HttpResponse> {
    let http_socket = request.http_socket;
    let is_upgrade = upgrade::is_asked_for(request.headers);
    let (way, access) = token::identify(request, is_upgrade).await?;
    if let UpgradedWay::Here(handle) = &way {
        refuse_silent(handle)?;
    }
    if *request.method != Method::GET {
        return Err(refuse_method());
    }
    let handle = match way {
        UpgradedWay::Here(handle) => handle,
        way @ UpgradedWay::There(_) => return open_websocket(request, body, access, way).await,
    };
    match request.path {
        "/status" => {
            http_socket.admit()?;
            return Ok(RouteOutcome::Answer(describe_status(&handle.admission)));
        }
        "/spaces" => {
            http_socket.admit()?;
            let listed = spaces::answer(&handle, &access, http_socket);
            return token::find_in_time(request.until, listed).await.map(RouteOutcome::Answer);
        }
        "/metrics" => {
            http_socket.admit()?;
            if access.role() < Role::Owner {
                let text = "metrics are for owners of the space\n";
                return Err(HttpResponse::new(403, text));
            }
            return Ok(RouteOutcome::Answer(describe_metrics(&handle.admission)));
        }
        "/metrics/node" => {
            http_socket.admit()?;
            return describe_node(&handle, &access, &http_socket.handles).map(RouteOutcome::Answer);
        }
        "/" | "/ahp" => {}
        _ if is_upgrade => {}
        _ => return Err(HttpResponse::new(404, "there is nothing at this address\n")),
    }
    let way = UpgradedWay::Here(handle);
    open_websocket(request, body, access, way).await
}

async fn open_websocket(
    request: &HttpRequestHead<'_>,
    body: &Incoming,
    access: Access,
    way: UpgradedWay,
) -> Result<RouteOutcome, HttpResponse> {
    if !access.may(DeviceScope::Use) {
        let text = "this device may not use sessions; pair it again\n";
        return Err(HttpResponse::new(403, text));
    }
    let accept = upgrade::check(request.headers, request.version)?;
    if !body.is_end_stream() {
        return Err(HttpResponse::new(400, "a request that opens a WebSocket has no body\n"));
    }
    let mut place = None;
    if let UpgradedWay::Here(handle) = &way {
        if !handle.admission.is_ready() {
            return Err(HttpResponse::not_ready());
        }
        let found = handle.admission.place_in_space().await;
        place = found.map_err(|why| HttpResponse::text(429, format!("{why}\n")))?;
    }
    request.http_socket.upgrade(access, way, place)?;
    Ok(RouteOutcome::WebSocket { accept })
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
    http_socket: &HttpSocket,
) -> Result<RouteOutcome, HttpResponse> {
    match (*method == Method::GET, path == "/healthz" || http_socket.handles.is_ready()) {
        (false, _) => Err(refuse_method()),
        (true, true) => Ok(RouteOutcome::Answer(HttpResponse::new(200, "ok\n"))),
        (true, false) => Err(HttpResponse::not_ready()),
    }
}

/// A client sends its token over the very connection that was proven, so it stays open; asking for proofs does not extend
/// the time for that.
fn answer_proof(
    method: &Method,
    query: &str,
    http_socket: &HttpSocket,
) -> Result<RouteOutcome, HttpResponse> {
    if *method != Method::GET {
        return Err(refuse_method());
    }
    if http_socket.is_late() {
        return Err(HttpResponse::too_slow());
    }
    let space = one_value(query, "space");
    let handle = http_socket.handles.named(space.as_deref());
    let unknown = || HttpResponse::new(404, "this host has no space of that name\n");
    let handle = handle.ok_or_else(unknown)?;
    let proof = token::prove(query, handle.admission.token.as_deref())?;
    let answer = HttpResponse::with_body(200, "text/plain; charset=utf-8", Bytes::from(proof));
    Ok(RouteOutcome::Answer(answer.keep_open()))
}

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What Prometheus asks for (G-58).
fn describe_metrics(admission: &Admission) -> HttpResponse {
    let metrics = &admission.telemetry.metrics;
    let text = metrics.to_prometheus(admission.connections(), env!("CARGO_PKG_VERSION"));
    HttpResponse::with_body(200, METRICS_TYPE, Bytes::from(text))
}

/// The same of a node of a cluster, for whoever has the token of its data directory: it tells of all spaces.
fn describe_node(
    handle: &SpaceHandle,
    access: &Access,
    handles: &SpaceHandles,
) -> Result<HttpResponse, HttpResponse> {
    if !matches!(access, Access::Owner) || handle.name != handles.first().name {
        let text = "metrics of the node are for whoever has the token of its data directory\n";
        return Err(HttpResponse::new(403, text));
    }
    let no_node = || HttpResponse::new(404, "this host is no node of a cluster\n");
    let text = handles.node_metrics().ok_or_else(no_node)?;
    let answer = HttpResponse::with_body(200, METRICS_TYPE, Bytes::from(text));
    Ok(answer)
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
