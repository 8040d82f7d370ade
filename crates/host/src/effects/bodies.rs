//! Bodies: read for clients and collected when nothing refers to them, away from the kernel's task and its thread.

use std::ops::RangeInclusive;
use std::sync::Arc;

use kernel::{Answer, ErrandFailed, Fetch, Fetched, Query};
use tokio::sync::Semaphore;
use wire::Timestamp;

use crate::blobs::{self, BlobError, Blobs};
use crate::journal::JournalThread;

/// Bodies that are in memory at once on their way from or to the disk; others wait.
const BODIES_MAX: usize = 4;

/// Bodies that are looked up and removed between two batches.
const COLLECT_MAX: usize = 32;

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
    pub async fn fetch(
        &self,
        fetch: Fetch,
        journal: &JournalThread,
    ) -> Result<Fetched, ErrandFailed> {
        let digest = fetch.digest;
        let content_type = match journal.read(Query::ContentType { digest }).await {
            Ok(Answer::ContentType(content_type)) => content_type,
            // It can be served without.
            Ok(_) | Err(_) => None,
        };
        self.work(move |store| blobs::fetch(store, &fetch, content_type))
            .await
    }

    /// Removes what nothing refers to, a few at a time: all batches wait for each removal.
    pub async fn collect(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
        journal: &JournalThread,
    ) {
        let Ok(aged) = self.work(move |store| store.aged(buckets, before)).await else {
            return; // told already; the next sweep tries again
        };
        for some in aged.chunks(COLLECT_MAX) {
            let blobs = Arc::clone(&self.blobs);
            let collected = journal.collect(some.to_vec(), move |unreferred| {
                for digest in unreferred {
                    if let Err(error) = blobs.remove(digest, before) {
                        tracing::warn!(%error, "a body that nothing refers to stays");
                    }
                }
            });
            if let Err(error) = collected.await {
                tracing::warn!(%error, "bodies that nothing refers to stay");
                return;
            }
        }
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
