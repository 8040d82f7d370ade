//! Admission of connections: their limits, the token, permitted hosts and origins, how many are open.
//!
//! Promises: never more than `connections_max` that showed a secret are open; a peer id is never used twice.
//! Must not know: HTTP, sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kernel::{EmbedLimits, PeerId};

use super::inbound::InboundBudget;
use super::read_buffer::ReadBufferPool;
use super::tls::TlsIdentity;
use crate::accounts::{BoundedSlot, SpaceBounds};
use crate::clock::Clock;
use crate::cluster::Tenure;
use crate::devices::Devices;
use crate::limits::ServerLimits;
use crate::page::PageServices;
use crate::telemetry::Telemetry;

/// What decides about every connection.
pub struct Admission {
    /// Those of all spaces that have the same.
    pub(crate) limits: Arc<ServerLimits>,
    pub(crate) token: Option<String>,
    pub(crate) devices: Arc<Devices>,
    /// What the page is served beside the protocol; a host on standard output has no page.
    pub(crate) page: Option<Arc<PageServices>>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    /// With a certificate, other machines are answered over TLS alone.
    pub(crate) tls: Option<TlsIdentity>,
    /// What all spaces behind one listener share.
    pub(crate) room: Arc<ConnectionCapacity>,
    /// What stays embedded in messages; the rest is taken out where they are decoded.
    pub(crate) inline: EmbedLimits,
    /// What operators see of the host.
    pub(crate) telemetry: Arc<Telemetry>,
    /// Whether this node may still speak for the space, where another could.
    pub(crate) tenure: Option<Tenure>,
    /// What the space may take, where its database says so.
    pub(crate) bounds: Option<Arc<SpaceBounds>>,
    ready: AtomicBool,
}

/// How many connections fit: one for each listener, however many spaces it leads to.
pub(crate) struct ConnectionCapacity {
    pub(crate) read_buffers: Arc<ReadBufferPool>,
    pub(crate) inbound: InboundBudget,
    connections: AtomicUsize,
    /// Sockets that showed a secret and speak HTTP.
    http_connections: AtomicUsize,
    last_peer: AtomicU64,
    /// The node gives its spaces away: balancers shall send nobody here any more.
    is_draining: AtomicBool,
}

impl ConnectionCapacity {
    pub(crate) fn set_draining(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Upgraded connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Admission {
    /// Admits no connection until [`Admission::set_ready`]. Without a token everyone who reaches the address is admitted.
    pub fn new(
        limits: impl Into<Arc<ServerLimits>>,
        token: Option<String>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
    ) -> Self {
        let limits = limits.into();
        let room = ConnectionCapacity {
            read_buffers: Arc::default(),
            inbound: InboundBudget::new(limits.inbound_bytes_max),
            connections: AtomicUsize::new(0),
            http_connections: AtomicUsize::new(0),
            last_peer: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
        };
        Self {
            room: Arc::new(room),
            inline: EmbedLimits::from(&kernel::Limits::default()),
            limits,
            token,
            devices: Arc::new(Devices::in_memory()),
            page: None,
            allowed_hosts,
            allowed_origins,
            tls: None,
            telemetry: Telemetry::new(Clock::start()),
            tenure: None,
            bounds: None,
            ready: AtomicBool::new(false),
        }
    }

    /// The same, sharing the room for connections with another space of the same listener.
    pub(crate) fn sharing_room_of(self, other: &Self) -> Self {
        let room = Arc::clone(&other.room);
        Self { room, ..self }
    }

    /// Connections count against this room from now on.
    pub(crate) fn share_room(&mut self, room: &Arc<ConnectionCapacity>) {
        self.room = Arc::clone(room);
    }

    /// The same, telling which space it is of.
    pub(crate) fn of_space(self, name: &str) -> Self {
        let telemetry = Telemetry::of_space(Clock::start(), Some(name.to_owned()));
        Self { telemetry, ..self }
    }

    /// The same, for a kernel with limits of its own.
    pub fn with_embed_limits(self, inline: EmbedLimits) -> Self {
        Self { inline, ..self }
    }

    /// The same, with these devices instead of none.
    pub fn with_devices(self, devices: Arc<Devices>) -> Self {
        Self { devices, ..self }
    }

    /// The same, serving a page what it asks for.
    pub fn with_page(self, page: PageServices) -> Self {
        let page = Some(Arc::new(page));
        Self { page, ..self }
    }

    /// The same, with a certificate.
    pub fn with_tls(self, tls: TlsIdentity) -> Self {
        let tls = Some(tls);
        Self { tls, ..self }
    }

    /// While not ready, `/readyz` and every upgrade are answered with 503.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire) && self.may_speak()
    }

    /// Whether the space may answer: its node may have been silent for too long.
    pub(crate) fn may_speak(&self) -> bool {
        self.tenure.as_ref().is_none_or(Tenure::may_speak)
    }

    /// Upgraded connections that are open.
    pub fn connections(&self) -> usize {
        self.room.connections()
    }

    /// Connections that showed a token or a signature and speak HTTP.
    pub fn http_connections(&self) -> usize {
        self.room.http_connections.load(Ordering::Relaxed)
    }

    /// A place in the space for one more client, where it has so many; else why there is none.
    pub(crate) async fn place_in_space(&self) -> Result<Option<BoundedSlot>, String> {
        match &self.bounds {
            Some(bounds) => bounds.connect().await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn next_peer(&self) -> PeerId {
        PeerId(self.room.last_peer.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes a slot for a WebSocket, unless `connections_max` are taken.
    pub(crate) fn try_admit(&self) -> Option<ConnectionSlot> {
        self.take_one(&self.room.connections)?;
        Some(ConnectionSlot { room: Arc::clone(&self.room), place: None })
    }

    /// Takes a slot for a socket that speaks HTTP and showed a secret.
    pub(crate) fn try_admit_http(&self) -> Option<HttpSlot> {
        self.take_one(&self.room.http_connections)?;
        Some(HttpSlot { room: Arc::clone(&self.room) })
    }

    /// One more of a kind, unless both kinds together are as many as there may be.
    fn take_one(&self, kind: &AtomicUsize) -> Option<()> {
        kind.fetch_add(1, Ordering::SeqCst);
        let open = self.room.connections.load(Ordering::SeqCst)
            + self.room.http_connections.load(Ordering::SeqCst);
        if open > self.limits.connections_max {
            kind.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(())
    }
}

/// One of `connections_max`, upgraded; free again when dropped.
pub(crate) struct ConnectionSlot {
    room: Arc<ConnectionCapacity>,
    /// Its place in its space.
    place: Option<BoundedSlot>,
}

impl ConnectionSlot {
    /// The same, with the place in its space that it has until it is dropped.
    pub(crate) fn in_space(self, place: Option<BoundedSlot>) -> Self {
        let mut slot = self;
        slot.place = place;
        slot
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.room.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One of `connections_max` that speaks HTTP; free again when dropped.
pub(crate) struct HttpSlot {
    room: Arc<ConnectionCapacity>,
}

impl HttpSlot {
    /// A slot for the WebSocket that the same socket becomes; for a moment it has both.
    pub(crate) fn take_connection_slot(&self) -> ConnectionSlot {
        self.room.connections.fetch_add(1, Ordering::SeqCst);
        ConnectionSlot { room: Arc::clone(&self.room), place: None }
    }
}

impl Drop for HttpSlot {
    fn drop(&mut self) {
        self.room.http_connections.fetch_sub(1, Ordering::SeqCst);
    }
}
