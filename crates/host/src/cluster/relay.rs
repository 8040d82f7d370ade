//! Finds the node that serves a client's space: this one, or another that is asked to.
//!
//! Promises: one hop at most; a node that turns out not to own the space is looked up again, `LOOKUPS_AGAIN_MAX` times; then the
//! client hears that it may try again.
//! Must not know: HTTP of clients, what is passed on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::forward::forward;
use super::forwarded_body::ForwardedBody;
use super::peer_dial::{DialError, OwnerSocket, dial};
use super::space_directory::{RelayedClient, SpaceDirectory};
use super::{PeerIdentity, PeerNode, SpaceLocation, SpaceUnavailable};
use crate::net::SpaceHandle;

const LOOKUPS_AGAIN_MAX: u32 = 3;
/// Before each: long enough for a row to change, short enough for a client that waits.
const LOOKUP_PAUSE: Duration = Duration::from_millis(50);

/// Where a client is served.
pub(crate) enum ClientRoute {
    Here(SpaceHandle),
    There(Box<OwnerSocket>),
}

/// Why it is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayRefusal {
    NoSpace,
    /// Another node serves it, and the request is none that is relayed.
    Elsewhere,
    /// The owner said no.
    Refused(StatusCode),
    /// The owner is not there, or there is none yet.
    TryAgain,
}

/// The way from this node to the others.
pub(crate) struct Relays {
    identity: Arc<PeerIdentity>,
    directory: Arc<dyn SpaceDirectory>,
    opened: AtomicU64,
    forwarded: AtomicU64,
    failed: AtomicU64,
}

impl Relays {
    pub(crate) fn new(identity: Arc<PeerIdentity>, directory: Arc<dyn SpaceDirectory>) -> Self {
        Self {
            identity,
            directory,
            opened: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Connections that were passed on, and clients that were sent away because nobody could be reached.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.opened), read(&self.failed))
    }

    /// The way into a space that this node serves, or takes now.
    pub(crate) async fn find_here(&self, space: &str) -> Result<SpaceHandle, RelayRefusal> {
        match self.directory.locate(space).await {
            Ok(SpaceLocation::Here(handle)) => Ok(handle),
            Ok(SpaceLocation::At(_)) => Err(RelayRefusal::Elsewhere),
            Err(SpaceUnavailable::Missing) => Err(RelayRefusal::NoSpace),
            Err(SpaceUnavailable::Nobody | SpaceUnavailable::Failed(_)) => {
                Err(RelayRefusal::TryAgain)
            }
        }
    }

    /// The node that serves a space, if it is another; it is taken here if nobody has it.
    pub(crate) async fn find_owner(&self, space: &str) -> Result<Option<PeerNode>, RelayRefusal> {
        match self.directory.locate(space).await {
            Ok(SpaceLocation::Here(_)) => Ok(None),
            Ok(SpaceLocation::At(node)) => Ok(Some(node)),
            Err(SpaceUnavailable::Missing) => Err(RelayRefusal::NoSpace),
            Err(SpaceUnavailable::Nobody | SpaceUnavailable::Failed(_)) => {
                Err(RelayRefusal::TryAgain)
            }
        }
    }

    /// Passes one request on to the node that serves its space. What it brings along is gone if that fails, so it is for the
    /// client to try again.
    pub(crate) async fn forward(
        &self,
        node: &PeerNode,
        parts: &Parts,
        body: Incoming,
        client: SocketAddr,
    ) -> Result<Response<ForwardedBody>, RelayRefusal> {
        let gone = self.directory.wait_until_gone(node.id);
        match forward(&self.identity, node, gone, parts, body, client).await {
            Ok(answer) => {
                self.forwarded.fetch_add(1, Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) => {
                tracing::debug!(%error, "a request could not be passed on");
                self.failed.fetch_add(1, Ordering::Relaxed);
                Err(RelayRefusal::TryAgain)
            }
        }
    }

    /// Requests that were passed on.
    pub(crate) fn forwarded(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }

    /// Finds the way to a client's space.
    pub(crate) async fn reach(&self, client: &RelayedClient) -> Result<ClientRoute, RelayRefusal> {
        for attempt in 0..=LOOKUPS_AGAIN_MAX {
            if attempt > 0 {
                tokio::time::sleep(LOOKUP_PAUSE * attempt).await;
            }
            let node = match self.directory.locate(&client.space).await {
                Ok(SpaceLocation::Here(handle)) => return Ok(ClientRoute::Here(handle)),
                Ok(SpaceLocation::At(node)) => node,
                Err(SpaceUnavailable::Missing) => return Err(RelayRefusal::NoSpace),
                Err(error @ (SpaceUnavailable::Nobody | SpaceUnavailable::Failed(_))) => {
                    tracing::debug!(%error, "looking the owner up again");
                    continue;
                }
            };
            let gone = self.directory.wait_until_gone(node.id);
            match dial(&self.identity, &node, client, gone).await {
                Ok(owner) => {
                    self.opened.fetch_add(1, Ordering::Relaxed);
                    return Ok(ClientRoute::There(Box::new(owner)));
                }
                Err(DialError::Refused(status)) => return Err(RelayRefusal::Refused(status)),
                Err(error @ (DialError::NotOwner | DialError::Unreachable(_))) => {
                    tracing::debug!(%error, "looking the owner up again");
                }
            }
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        Err(RelayRefusal::TryAgain)
    }
}
