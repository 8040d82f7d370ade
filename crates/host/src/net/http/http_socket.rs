//! What is known of one socket while it speaks HTTP: whether it showed a secret, since when it is there, what it became.
//!
//! Promises: a socket counts among those without a token until it shows one, and among `connections_max` from then on; it
//! never counts twice.
//! Must not know: hyper, routes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::HttpResponse;
use crate::accounts::BoundedSlot;
use crate::cluster::OwnerSocket;
use crate::net::access::Access;
use crate::net::admission::{ConnectionSlot, HttpSlot};
use crate::net::handshakes::Handshake;
use crate::net::space_handles::{SpaceHandle, SpaceHandles};

/// One socket.
pub(crate) struct HttpSocket {
    /// The spaces that it may ask for.
    pub(super) handles: Arc<SpaceHandles>,
    pub(super) address: SocketAddr,
    /// Until when it must have shown a secret.
    pub(super) deadline: Instant,
    /// It came to another node, which passes its request on.
    is_forwarded: bool,
    state: Mutex<HttpSocketState>,
}

struct HttpSocketState {
    standing: HttpSocketStanding,
    has_asked: bool,
}

enum HttpSocketStanding {
    /// It may be sent away when its place is needed (ADR 0025).
    Unknown(Handshake),
    Admitted(HttpSlot),
    /// The answer that opens the WebSocket is on its way.
    Upgrading(UpgradedSocket),
}

/// What a socket becomes that is upgraded.
pub(crate) struct UpgradedSocket {
    pub(crate) slot: ConnectionSlot,
    pub(crate) access: Access,
    pub(crate) way: UpgradedWay,
}

/// Who serves it.
pub(crate) enum UpgradedWay {
    /// This node: the space that its token named.
    Here(SpaceHandle),
    /// The node at the other end.
    There(Box<OwnerSocket>),
}

impl HttpSocket {
    pub(crate) fn new(
        handles: Arc<SpaceHandles>,
        address: SocketAddr,
        handshake: Handshake,
    ) -> Self {
        let time = Duration::from_millis(handles.limits().handshake_timeout_ms);
        Self {
            handles,
            address,
            deadline: Instant::now() + time,
            is_forwarded: false,
            state: Mutex::new(HttpSocketState {
                standing: HttpSocketStanding::Unknown(handshake),
                has_asked: false,
            }),
        }
    }

    /// Somebody whose one request another node passes on.
    pub(super) fn forwarded(handles: Arc<SpaceHandles>, address: SocketAddr) -> Self {
        let handshake = Handshake::alone();
        Self { is_forwarded: true, ..Self::new(handles, address, handshake) }
    }

    pub(super) fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn note_request(&self) {
        self.state.lock().has_asked = true;
    }

    /// A request came whole, so that it is answered or was.
    pub(super) fn has_asked(&self) -> bool {
        self.state.lock().has_asked
    }

    /// Cancelled when the place of a socket without a secret is needed for another.
    pub(crate) fn eviction(&self) -> CancellationToken {
        match &self.state.lock().standing {
            HttpSocketStanding::Unknown(handshake) => handshake.eviction(),
            HttpSocketStanding::Admitted(_) | HttpSocketStanding::Upgrading(_) => {
                CancellationToken::new()
            }
        }
    }

    /// It has shown no secret in the time for that.
    pub(super) fn is_late(&self) -> bool {
        let is_unknown = matches!(self.state.lock().standing, HttpSocketStanding::Unknown(_));
        is_unknown && Instant::now() >= self.deadline
    }

    /// A secret was shown: from now on it is one of `connections_max`.
    pub(super) fn admit(&self) -> Result<(), HttpResponse> {
        let mut state = self.state.lock();
        if matches!(state.standing, HttpSocketStanding::Unknown(_)) {
            let slot =
                self.handles.first().admission.try_admit_http().ok_or_else(HttpResponse::full)?;
            state.standing = HttpSocketStanding::Admitted(slot);
        }
        Ok(())
    }

    /// The next that is sent over this socket are frames.
    pub(super) fn upgrade(
        &self,
        access: Access,
        way: UpgradedWay,
        place: Option<BoundedSlot>,
    ) -> Result<(), HttpResponse> {
        let mut state = self.state.lock();
        let admission = match &way {
            UpgradedWay::Here(handle) => Arc::clone(&handle.admission),
            UpgradedWay::There(_) => self.handles.first().admission,
        };
        let slot = match &state.standing {
            // Its own slot is the one that it gets.
            HttpSocketStanding::Admitted(slot) => Some(slot.take_connection_slot()),
            HttpSocketStanding::Unknown(_) => admission.try_admit(),
            HttpSocketStanding::Upgrading(_) => None,
        };
        let slot = slot.ok_or_else(HttpResponse::full)?.in_space(place);
        state.standing = HttpSocketStanding::Upgrading(UpgradedSocket { slot, access, way });
        Ok(())
    }

    /// What the socket became, if it was upgraded.
    pub(super) fn into_upgraded(self) -> Option<UpgradedSocket> {
        match self.state.into_inner().standing {
            HttpSocketStanding::Upgrading(upgraded) => Some(upgraded),
            HttpSocketStanding::Unknown(_) | HttpSocketStanding::Admitted(_) => None,
        }
    }
}

/// A node that may not speak for a space says nothing of it.
pub(super) fn refuse_silent(handle: &SpaceHandle) -> Result<(), HttpResponse> {
    if handle.admission.may_speak() { Ok(()) } else { Err(HttpResponse::not_ready()) }
}
