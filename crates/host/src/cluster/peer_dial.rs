//! A connection to the node that owns a space, up to the moment when the client's frames may pass.
//!
//! Promises: nothing is sent before the other side has shown the key that its row names; every step has a deadline.
//! Must not know: where a space is, what is passed on.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, UPGRADE};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::space_directory::{NodeGone, RelayedClient};
use super::{NodeFingerprint, PeerIdentity, PeerNode};
use crate::task;

/// What is asked for on the peer address.
pub(super) const RELAY_PATH: &str = "/relay";
/// What the connection becomes: the frames of one client.
pub(super) const RELAY_PROTOCOL: &str = "greenroom-relay";
/// Who the client is: JSON in base64.
pub(super) const CLIENT_HEADER: &str = "greenroom-client";

/// Nodes are near each other: one that takes longer is not there.
pub(super) const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// The owner may have to load the space before it answers.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A connection that the owner has opened for a client.
pub(crate) struct OwnerSocket {
    pub(super) stream: TlsStream<TcpStream>,
    /// What it said already.
    pub(super) early: Bytes,
    /// Ends when the owner is gone: one that is only stopped says nothing, and its sockets stay open.
    pub(super) gone: NodeGone,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("the node does not own the space")]
    NotOwner,
    #[error("the owner refused the client with {0}")]
    Refused(StatusCode),
    #[error("the owner cannot be reached: {0}")]
    Unreachable(String),
}

pub(super) fn unreachable_by(error: impl std::fmt::Display) -> DialError {
    DialError::Unreachable(error.to_string())
}

/// Asks a node to serve a client.
pub(super) async fn dial(
    identity: &PeerIdentity,
    node: &PeerNode,
    client: &RelayedClient,
    mut gone: NodeGone,
) -> Result<OwnerSocket, DialError> {
    let late = |words: &str| DialError::Unreachable(words.to_owned());
    let opening = async {
        let connected = timeout(CONNECT_WAIT, connect(identity, node)).await;
        let stream = connected.map_err(|_| late("it does not answer"))??;
        let asked = timeout(ANSWER_WAIT, ask(stream, node, client)).await;
        asked.map_err(|_| late("it did not answer in time"))?
    };
    // The system takes connections for a process that is stopped: whoever is judged meanwhile is not waited for.
    let (stream, early) = tokio::select! {
        opened = opening => opened?,
        () = &mut gone => return Err(late("it is gone")),
    };
    Ok(OwnerSocket { stream, early, gone })
}

pub(super) async fn connect(
    identity: &PeerIdentity,
    node: &PeerNode,
) -> Result<TlsStream<TcpStream>, DialError> {
    let fingerprint =
        NodeFingerprint::from_bytes(&node.fingerprint).filter(|_| !node.address.is_empty());
    let nowhere = || DialError::Unreachable("it takes no connections of other nodes".to_owned());
    let config = identity.client(fingerprint.ok_or_else(nowhere)?).map_err(unreachable_by)?;
    let name = PeerIdentity::server_name().map_err(unreachable_by)?;
    let socket = TcpStream::connect(&node.address).await.map_err(unreachable_by)?;
    // Frames are passed on as they come. Without the option it is only slower.
    let _ = socket.set_nodelay(true);
    let connector = TlsConnector::from(std::sync::Arc::new(config));
    connector.connect(name, socket).await.map_err(unreachable_by)
}

/// The connection as the owner has opened it, and what it said already.
async fn ask(
    stream: TlsStream<TcpStream>,
    node: &PeerNode,
    client: &RelayedClient,
) -> Result<(TlsStream<TcpStream>, Bytes), DialError> {
    let about = serde_json::to_vec(client).map_err(unreachable_by)?;
    let request = Request::get(RELAY_PATH)
        .header(HOST, &node.address)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, RELAY_PROTOCOL)
        .header(CLIENT_HEADER, URL_SAFE_NO_PAD.encode(about))
        .body(Empty::<Bytes>::new())
        .map_err(unreachable_by)?;
    let io = TokioIo::new(stream);
    let (mut sender, connection) = http1::handshake(io).await.map_err(unreachable_by)?;
    // It ends with the answer: the socket then belongs to whoever takes what it became, or to nobody.
    let carrying = task::spawn(async move { drop(connection.with_upgrades().await) });
    let mut response = sender.send_request(request).await.map_err(unreachable_by)?;
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {}
        StatusCode::MISDIRECTED_REQUEST => return Err(DialError::NotOwner),
        status => return Err(DialError::Refused(status)),
    }
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(unreachable_by)?;
    drop(carrying);
    let parts = upgraded
        .downcast::<TokioIo<TlsStream<TcpStream>>>()
        .map_err(|_| DialError::Unreachable("no socket was left".to_owned()))?;
    Ok((parts.io.into_inner(), parts.read_buf))
}
