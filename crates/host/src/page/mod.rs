//! What the page is served beside the protocol: text as trees, content by address, what models were sent.
//!
//! Promises: nothing here holds up a task's thread; what is kept in memory is bounded.
//! Must not know: HTTP, sockets, tokens.

mod markup_cache;
mod render_markup;
mod render_service;

use std::sync::Arc;

use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::effects::Bodies;

pub(crate) use render_markup::MarkupItem;
pub(crate) use render_service::MarkupService;

/// All of it.
pub struct PageServices {
    pub(crate) bodies: Bodies,
    pub(crate) markup: MarkupService,
}

impl PageServices {
    /// For a store that nobody else uses.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        let limits = kernel::Limits::default();
        Self::over(Bodies::new(blobs, Clock::start(), &limits))
    }

    /// Over the store of a host.
    pub(crate) fn over(bodies: Bodies) -> Self {
        Self {
            markup: MarkupService::new(bodies.store()),
            bodies,
        }
    }
}
