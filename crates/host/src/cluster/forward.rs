//! One HTTP request over the connection between two nodes, to the one that serves its space.
//!
//! Promises: nothing is sent before the other side has shown the key that its row names; what only concerns one connection stays
//! on it; the answer is passed on as it comes, and is held nowhere; a node that stops without a word is waited for no longer than
//! it takes to judge it.
//! Must not know: what is asked, who may ask it.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::forwarded_body::ForwardedBody;
use super::peer_dial::{CLIENT_HEADER, CONNECT_WAIT, DialError, connect, unreachable_by};
use super::space_directory::NodeGone;
use super::{PeerIdentity, PeerNode};

/// What the path of a request of a client begins with, on the address for nodes.
pub(super) const FORWARD_PREFIX: &str = "/forward";
/// Where the client is.
pub(super) const FORWARDED_HEADER: &str = "greenroom-forwarded-for";

/// The owner reads a body within limits of its own; this is for one that has stopped.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Passes a request on and waits for the head of its answer.
pub(super) async fn forward(
    identity: &PeerIdentity,
    node: &PeerNode,
    mut gone: NodeGone,
    parts: &Parts,
    body: Incoming,
    client: SocketAddr,
) -> Result<Response<ForwardedBody>, DialError> {
    let target = parts.uri.path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    let mut request = Request::builder()
        .method(parts.method.clone())
        .uri(format!("{FORWARD_PREFIX}{target}"))
        .body(body)
        .map_err(unreachable_by)?;
    *request.headers_mut() = carried(&parts.headers);
    let client = HeaderValue::try_from(client.to_string()).map_err(unreachable_by)?;
    request.headers_mut().insert(FORWARDED_HEADER, client);
    let connected = timeout(CONNECT_WAIT, connect(identity, node)).await;
    let stream =
        connected.map_err(|_| DialError::Unreachable("it does not answer".to_owned()))??;
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(unreachable_by)?;
    // It ends with the answer's body, or when nobody wants that any more.
    let mut carrying = JoinSet::new();
    let transport = async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection between nodes ended");
        }
    };
    carrying.spawn(transport.boxed());
    let answered = tokio::select! {
        answered = timeout(ANSWER_WAIT, sender.send_request(request)) => answered,
        () = &mut gone => return Err(DialError::Unreachable("it went away".to_owned())),
    }
    .map_err(|_| DialError::Unreachable("it did not answer in time".to_owned()))?;
    let mut answer = answered.map_err(unreachable_by)?;
    if answer.status() == StatusCode::MISDIRECTED_REQUEST {
        return Err(DialError::NotOwner);
    }
    *answer.headers_mut() = carried(answer.headers());
    Ok(answer.map(|body| ForwardedBody::new(body, gone, carrying)))
}

/// Headers without those of one connection, and without any that only nodes may send.
fn carried(headers: &HeaderMap) -> HeaderMap {
    let listed: Vec<String> = headers
        .get_all(CONNECTION)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let own = [
        CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static(CLIENT_HEADER),
        HeaderName::from_static(FORWARDED_HEADER),
    ];
    let mut carried = HeaderMap::new();
    for (name, value) in headers {
        let is_own = own.contains(name) || listed.iter().any(|listed| listed == name.as_str());
        if !is_own {
            carried.append(name.clone(), value.clone());
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_concerns_one_connection_or_is_for_nodes_to_say_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer grt_1_2"),
            ("connection", "keep-alive, X-Mine"),
            ("keep-alive", "timeout=5"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("range", "bytes=0-1"),
            ("greenroom-forwarded-for", "10.0.0.1:1"),
            ("greenroom-client", "e30"),
        ] {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        let left = carried(&headers);
        let mut names: Vec<&str> = left.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["authorization", "range"]);
    }
}
