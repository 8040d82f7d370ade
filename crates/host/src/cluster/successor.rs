//! The next node of a space that leaves this one: it is found, and told to load the space before the clients are sent away (ADR 0151).
//!
//! Promises: it is asked once, and waited for no longer than a part of the time that a space has to end; whoever does not answer is not needed, as the lease is
//! free already and any node takes the space that a client comes to.
//! Must not know: why the space leaves, how it is taken and loaded there.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lease_table::{PeerNode, SpaceId};
use super::node::ClusterShared;
use super::peer_dial::{DialError, connect, unreachable_by};

/// What the path begins with, on the address for nodes; the number of the space follows.
pub(super) const TAKE_PREFIX: &str = "/take/";
/// Of [`crate::ServerLimits::shutdown_ms`], 1.5 s by default. Clients hear nothing meanwhile: a node that takes longer has more to do
/// than they would wait for, and the rest is for what follows.
const LOADED_WITHIN: f64 = 0.375;

/// The way to the next node of a space.
#[derive(Clone)]
pub(crate) struct Successor {
    node: Weak<ClusterShared>,
    space: SpaceId,
}

impl Successor {
    pub(super) fn new(node: &Arc<ClusterShared>, space: SpaceId) -> Self {
        let node = Arc::downgrade(node);
        Self { node, space }
    }

    /// Has the space loaded where it goes now that its lease is free; returns when it is, or when that takes too long.
    pub(crate) async fn load(&self) {
        let Some(node) = self.node.upgrade() else {
            return; // this node is gone, and others find that out by themselves
        };
        let limit =
            Duration::from_millis(node.config.limits.server.shutdown_ms).mul_f64(LOADED_WITHIN);
        match timeout(limit, load_elsewhere(&node, self.space)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(node = node.id, space = self.space, %error, "the next node of a space did not load it");
            }
            Err(_) => {
                tracing::debug!(
                    node = node.id,
                    space = self.space,
                    "the next node of a space did not load it in time"
                );
            }
        }
    }
}

async fn load_elsewhere(node: &ClusterShared, space: SpaceId) -> Result<(), DialError> {
    let taker = node.database.find_taker(node.id, space, node.is_draining()).await;
    let Some(taker) = taker.map_err(unreachable_by)? else {
        return Ok(()); // no other node takes spaces, or nobody ordered this one away
    };
    tokio::select! {
        asked = ask(node, &taker, space) => asked,
        () = node.living.wait_until_gone(taker.id) => Err(DialError::Unreachable("it is gone".to_owned())),
    }
}

async fn ask(node: &ClusterShared, taker: &PeerNode, space: SpaceId) -> Result<(), DialError> {
    let stream = connect(&node.identity, taker).await?;
    let request = Request::post(format!("{TAKE_PREFIX}{space}"))
        .header(HOST, &taker.address)
        .body(Empty::<Bytes>::new())
        .map_err(unreachable_by)?;
    let opened = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(unreachable_by)?;
    // It ends with this function.
    let mut carrying = JoinSet::new();
    carrying.spawn(async move { drop(connection.await) }.boxed());
    let answer = sender.send_request(request).await.map_err(unreachable_by)?;
    match answer.status() {
        StatusCode::OK => Ok(()),
        StatusCode::MISDIRECTED_REQUEST => Err(DialError::NotOwner),
        status => Err(DialError::Refused(status)),
    }
}
