//! A message of a peer as the host hands it over: decoded, its large bodies apart from it.
//!
//! Promises: a body is decoded once, where its message is, and shared from then on.
//! Must not know: how it was read, what it means.

use wire::Incoming;

use crate::bodies::DetachedBodies;
use crate::host_guard::HostGuard;
use crate::limits::EmbedLimits;

/// One message of a peer.
#[derive(Debug, Clone)]
pub struct Received {
    pub message: Incoming,
    /// What it took on the wire.
    pub bytes: usize,
    pub(crate) bodies: DetachedBodies,
    pub(crate) hold: HostGuard,
}

impl Received {
    /// Takes the large bodies out of a message and decodes them. That takes its time: it belongs where nobody waits.
    pub fn new(mut message: Incoming, bytes: usize, inline: EmbedLimits) -> Self {
        Self {
            bodies: DetachedBodies::detach_from(&mut message, inline),
            message,
            bytes,
            hold: HostGuard::default(),
        }
    }

    /// The message with what the host holds for it.
    pub fn with_guard(self, hold: HostGuard) -> Self {
        Self { hold, ..self }
    }
}
