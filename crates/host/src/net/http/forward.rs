//! Requests for a space that another node serves: found by their token or their signature, and passed on to it (ADR 0110).
//!
//! Promises: the owner checks whoever asks itself; one hop at most; nothing that a client sends is taken for the word of a node.
//! Must not know: what is asked, how nodes reach each other.

use http_body_util::Either;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::http::request::Parts;

use super::answer::{AnswerBody, HttpResponse};
use super::http_socket::HttpSocket;
use super::query::values_of;
use super::request_head::HttpRequestHead;
use super::{content, token};
use crate::cluster::PeerNode;

/// The node that serves the space of a request, if it is another.
pub(super) async fn find_owner(
    request: &HttpRequestHead<'_>,
) -> Result<Option<PeerNode>, HttpResponse> {
    let HttpRequestHead { path, query, http_socket, .. } = *request;
    let handles = &http_socket.handles;
    let (Some(relays), Some(accounts)) = (handles.relays(), handles.accounts()) else {
        return Ok(None); // there are no others
    };
    let has_misplaced_token = path.starts_with("/api/") && values_of(query, "tkn").next().is_some();
    if http_socket.is_forwarded() || has_misplaced_token {
        return Ok(None); // this node answers, or refuses
    }
    let found = async {
        let space = match path.strip_prefix("/content/") {
            Some(name) => content::find_space(name, query, http_socket).await?,
            None => token::find_space(request.headers, query, accounts).await?,
        };
        let Some(space) = space else {
            return Ok(None); // it is for a space of this node's settings, or for none
        };
        relays.find_owner(&space).await.map_err(token::refuse_relay)
    };
    let owner = token::find_in_time(request.until, found).await?;
    if owner.is_some() {
        http_socket.admit()?;
    }
    Ok(owner)
}

/// Passes a request on to the node that serves its space, and the answer back.
pub(super) async fn pass_on(
    parts: &Parts,
    body: Incoming,
    owner: &PeerNode,
    http_socket: &HttpSocket,
    goes_on: bool,
) -> Result<Response<AnswerBody>, HttpResponse> {
    let Some(relays) = http_socket.handles.relays() else { return Err(HttpResponse::elsewhere()) };
    let answered = relays.forward(owner, parts, body, http_socket.address).await;
    let mut answer = answered.map_err(token::refuse_relay)?.map(Either::Right);
    let connection = if goes_on { "keep-alive" } else { "close" };
    let connection = HeaderValue::from_static(connection);
    answer.headers_mut().insert(CONNECTION, connection);
    Ok(answer)
}
