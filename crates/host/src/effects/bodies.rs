//! Bodies: read for clients, away from the kernel's task and its thread.

use std::sync::Arc;

use kernel::{ErrandFailed, Fetch, Fetched};
use tokio::sync::Semaphore;

use crate::blobs::{self, BlobError, Blobs};

/// Bodies that are in memory at once on their way from or to the disk; others wait.
const BODIES_MAX: usize = 4;

/// A handle on the blob store for tasks.
#[derive(Clone)]
pub(crate) struct Bodies {
    blobs: Arc<dyn Blobs>,
    room: Arc<Semaphore>,
}

impl Bodies {
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        let room = Arc::new(Semaphore::new(BODIES_MAX));
        Self { blobs, room }
    }

    /// Content for a client, encoded.
    pub async fn fetch(&self, fetch: Fetch) -> Result<Fetched, ErrandFailed> {
        self.work(move |store| blobs::fetch(store, &fetch)).await
    }

    /// Does what may wait for the disk where waiting harms nobody.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Blobs) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, ErrandFailed> {
        let _room = self.room.acquire().await;
        let blobs = Arc::clone(&self.blobs);
        let done = tokio::task::spawn_blocking(move || work(&*blobs)).await;
        let done = done.unwrap_or_else(|died| Err(BlobError::Unreadable(died.to_string())));
        done.map_err(|error| {
            tracing::error!(%error, "the blob store failed");
            ErrandFailed(error.to_string())
        })
    }
}
