//! The kernel's end of a connection.
//!
//! Promises: nothing here blocks; a reader that is too slow is cut instead of being waited for; dropping the last
//! handle closes the connection once everything that was pushed is written.
//! Must not know: sockets, what the frames mean.

use std::sync::Arc;

use kernel::Frame;

use super::outbox::{Backlog, CloseUrgency, Outbox, WrittenBy};
use super::text_run::LinkItem;
use super::ws::frame::close;

/// The way back to one peer.
pub struct Link {
    outbox: Arc<Outbox>,
}

impl Link {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox }
    }

    /// A link that leads nowhere and the queue behind it, for tests of what pushes.
    #[cfg(test)]
    pub(crate) fn detached(frames_max: usize, bytes_max: usize) -> (Self, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::new(frames_max, bytes_max));
        (Self::new(outbox.clone()), outbox)
    }

    /// Hands over a frame that may be held back for `window_ms` to travel with others; 0 sends it, and all that was
    /// held before it, at once. Over `outbox_frames_max` or `outbox_bytes_max` the connection is cut with 1008.
    pub fn push(&self, frame: Frame, window_ms: u32) {
        let item = (LinkItem::Frame(frame), window_ms);
        self.outbox.push([item], WrittenBy::Writer);
    }

    /// The same for several items in order, each with its window.
    pub(crate) fn push_all(&self, items: impl IntoIterator<Item = (LinkItem, u32)>, by: WrittenBy) {
        self.outbox.push(items, by);
    }

    /// Closes the connection after everything pushed before is written.
    pub fn close(&self, code: u16, reason: &str) {
        self.outbox.end(code, reason.to_owned(), CloseUrgency::AfterQueue);
    }

    /// Whether much waits for this peer, and whether it is the peer's own doing.
    pub fn backlog(&self) -> Option<Backlog> {
        self.outbox.backlog()
    }

    /// The reader takes nothing more from the socket until [`Link::resume`].
    pub fn pause(&self) {
        self.outbox.set_paused(true);
    }

    pub fn resume(&self) {
        self.outbox.set_paused(false);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let reason = "the host let go of the connection".to_owned();
        self.outbox.end(close::GOING_AWAY, reason, CloseUrgency::AfterQueue);
    }
}
