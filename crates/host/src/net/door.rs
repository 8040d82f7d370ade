//! What every connection passes: the limits, the token, who may come from where, how many are inside.
//!
//! Promises: never more than `connections_max` inside; a peer id is never used twice.
//! Must not know: HTTP, sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kernel::PeerId;

use super::read_buffer::ReadBufferPool;
use crate::limits::ServerLimits;

pub struct Door {
    pub(crate) limits: ServerLimits,
    pub(crate) token: Option<String>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) read_buffers: Arc<ReadBufferPool>,
    ready: AtomicBool,
    connections: AtomicUsize,
    last_peer: AtomicU64,
}

impl Door {
    /// Closed until [`Door::set_ready`]. Without a token everyone who reaches the address may come in.
    pub fn new(
        limits: ServerLimits,
        token: Option<String>,
        allowed_hosts: Vec<String>,
        allowed_origins: Vec<String>,
    ) -> Self {
        Self {
            limits,
            token,
            allowed_hosts,
            allowed_origins,
            read_buffers: Arc::default(),
            ready: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            last_peer: AtomicU64::new(0),
        }
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

    /// A place inside, unless `connections_max` are taken.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let max = self.limits.connections_max;
        self.connections
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < max).then_some(count + 1)
            })
            .ok()?;
        Some(Place { door: self.clone() })
    }
}

/// One of `connections_max`; free again when dropped.
pub(crate) struct Place {
    door: Arc<Door>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.door.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
