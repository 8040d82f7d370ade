//! Admission of connections: their limits, the token, permitted hosts and origins, how many are open.
//!
//! Promises: never more than `connections_max` that showed a secret are open; a peer id is never used twice.
//! Must not know: HTTP, sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kernel::{EmbedLimits, PeerId};

use super::inbound::InboundRoom;
use super::read_buffer::ReadBufferPool;
use crate::devices::Devices;
use crate::limits::ServerLimits;
use crate::page::PageServices;

/// What decides about every connection.
pub struct Admission {
    pub(crate) limits: ServerLimits,
    pub(crate) token: Option<String>,
    pub(crate) devices: Arc<Devices>,
    /// What the page is served beside the protocol; a host on standard output has no page.
    pub(crate) page: Option<Arc<PageServices>>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) read_buffers: Arc<ReadBufferPool>,
    pub(crate) inbound: InboundRoom,
    /// What stays embedded in messages; the rest is taken out where they are decoded.
    pub(crate) inline: EmbedLimits,
    ready: AtomicBool,
    connections: AtomicUsize,
    /// Sockets that showed a secret and speak HTTP.
    http_connections: AtomicUsize,
    last_peer: AtomicU64,
}

impl Admission {
    /// Admits no connection until [`Admission::set_ready`]. Without a token everyone who reaches the address is admitted.
    pub fn new(
        limits: ServerLimits,
        token: Option<String>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
    ) -> Self {
        Self {
            inbound: InboundRoom::new(limits.inbound_bytes_max),
            inline: EmbedLimits::from(&kernel::Limits::default()),
            limits,
            token,
            devices: Arc::new(Devices::in_memory()),
            page: None,
            allowed_hosts,
            allowed_origins,
            read_buffers: Arc::default(),
            ready: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            http_connections: AtomicUsize::new(0),
            last_peer: AtomicU64::new(0),
        }
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

    /// While not ready, `/readyz` and every upgrade are answered with 503.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Upgraded connections that are open.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn next_peer(&self) -> PeerId {
        PeerId(self.last_peer.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes a slot for a WebSocket, unless `connections_max` are taken.
    pub(crate) fn try_admit(self: &Arc<Self>) -> Option<ConnectionSlot> {
        self.take_one(&self.connections)?;
        Some(ConnectionSlot {
            admission: self.clone(),
        })
    }

    /// Takes a slot for a socket that speaks HTTP and showed a secret.
    pub(crate) fn try_admit_http(self: &Arc<Self>) -> Option<HttpSlot> {
        self.take_one(&self.http_connections)?;
        Some(HttpSlot {
            admission: self.clone(),
        })
    }

    /// One more of a kind, unless both kinds together are as many as there may be.
    fn take_one(&self, kind: &AtomicUsize) -> Option<()> {
        kind.fetch_add(1, Ordering::SeqCst);
        let open =
            self.connections.load(Ordering::SeqCst) + self.http_connections.load(Ordering::SeqCst);
        if open > self.limits.connections_max {
            kind.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        Some(())
    }
}

/// One of `connections_max`, upgraded; free again when dropped.
pub(crate) struct ConnectionSlot {
    admission: Arc<Admission>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.admission.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One of `connections_max` that speaks HTTP; free again when dropped.
pub(crate) struct HttpSlot {
    admission: Arc<Admission>,
}

impl HttpSlot {
    /// A slot for the WebSocket that the same socket becomes; for a moment it has both.
    pub(crate) fn become_connection(&self) -> ConnectionSlot {
        self.admission.connections.fetch_add(1, Ordering::SeqCst);
        ConnectionSlot {
            admission: self.admission.clone(),
        }
    }
}

impl Drop for HttpSlot {
    fn drop(&mut self) {
        self.admission
            .http_connections
            .fetch_sub(1, Ordering::SeqCst);
    }
}
