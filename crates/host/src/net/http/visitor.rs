//! What is known of one socket while it speaks HTTP: whether it showed a secret, since when it is there, what it became.
//!
//! Promises: a socket counts among those without a token until it shows one, and among `connections_max` from then on; it
//! never counts twice.
//! Must not know: hyper, routes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::HttpResponse;
use crate::net::access::Access;
use crate::net::admission::{Admission, ConnectionSlot, HttpSlot};
use crate::net::handshakes::Handshake;

/// One socket.
pub(crate) struct Visitor {
    pub(super) admission: Arc<Admission>,
    pub(super) address: SocketAddr,
    /// Until when it must have shown a secret.
    pub(super) deadline: Instant,
    state: Mutex<VisitorState>,
}

struct VisitorState {
    standing: VisitorStanding,
    has_asked: bool,
}

enum VisitorStanding {
    /// It may be sent away when its place is needed (ADR 0025).
    Unknown(Handshake),
    Admitted(HttpSlot),
    /// The answer that opens the WebSocket is on its way.
    Upgrading(ConnectionSlot, Access),
}

impl Visitor {
    pub(crate) fn new(
        admission: Arc<Admission>,
        address: SocketAddr,
        handshake: Handshake,
    ) -> Self {
        let time = Duration::from_millis(admission.limits.handshake_timeout_ms);
        Self {
            admission,
            address,
            deadline: Instant::now() + time,
            state: Mutex::new(VisitorState {
                standing: VisitorStanding::Unknown(handshake),
                has_asked: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VisitorState> {
        // Every change here is complete before the lock is given back.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_request(&self) {
        self.lock().has_asked = true;
    }

    /// A request came whole, so that it is answered or was.
    pub(super) fn has_asked(&self) -> bool {
        self.lock().has_asked
    }

    /// Cancelled when the place of a socket without a secret is needed for another.
    pub(super) fn eviction(&self) -> CancellationToken {
        match &self.lock().standing {
            VisitorStanding::Unknown(handshake) => handshake.eviction(),
            VisitorStanding::Admitted(_) | VisitorStanding::Upgrading(..) => {
                CancellationToken::new()
            }
        }
    }

    /// It has shown no secret in the time for that.
    pub(super) fn is_late(&self) -> bool {
        let is_unknown = matches!(self.lock().standing, VisitorStanding::Unknown(_));
        is_unknown && Instant::now() >= self.deadline
    }

    /// A secret was shown: from now on it is one of `connections_max`.
    pub(super) fn admit(&self) -> Result<(), HttpResponse> {
        let mut state = self.lock();
        if matches!(state.standing, VisitorStanding::Unknown(_)) {
            let slot = self.admission.try_admit_http();
            let slot = slot.ok_or_else(HttpResponse::full)?;
            state.standing = VisitorStanding::Admitted(slot);
        }
        Ok(())
    }

    /// The next that is sent over this socket are frames.
    pub(super) fn upgrade(&self, access: Access) -> Result<(), HttpResponse> {
        let mut state = self.lock();
        let slot = match &state.standing {
            // Its own slot is the one that it gets.
            VisitorStanding::Admitted(slot) => Some(slot.become_connection()),
            VisitorStanding::Unknown(_) => self.admission.try_admit(),
            VisitorStanding::Upgrading(..) => None,
        };
        let slot = slot.ok_or_else(HttpResponse::full)?;
        state.standing = VisitorStanding::Upgrading(slot, access);
        Ok(())
    }

    /// What the socket became, if it was upgraded.
    pub(super) fn into_upgraded(self) -> Option<(ConnectionSlot, Access)> {
        let state = self.state.into_inner();
        match state.unwrap_or_else(PoisonError::into_inner).standing {
            VisitorStanding::Upgrading(slot, access) => Some((slot, access)),
            VisitorStanding::Unknown(_) | VisitorStanding::Admitted(_) => None,
        }
    }
}
