//! Bodies in memory: for tests, for simulated crashes, and for hosts that store nothing.
//!
//! Promises: the same contract as on disk. Clones share their contents, so what a crashed host put can be found again.
//! Must not know: files.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::Mutex;
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs, Found};

/// A handle on a store in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryBlobs {
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default)]
struct Store {
    bodies: BTreeMap<Digest, (Arc<[u8]>, Timestamp)>,
    /// Those of them that are lost in a crash.
    unsynced: BTreeSet<Digest>,
    disk_broken: bool,
}

impl MemoryBlobs {
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing can be put until [`MemoryBlobs::mend_disk`]: a full disk (G-15).
    pub fn break_disk(&self) {
        self.store.lock().disk_broken = true;
    }

    pub fn mend_disk(&self) {
        self.store.lock().disk_broken = false;
    }

    /// The host crashed: what was not durable is gone.
    pub fn lose_unsynced(&self) {
        let mut store = self.store.lock();
        for digest in std::mem::take(&mut store.unsynced) {
            store.bodies.remove(&digest);
        }
    }

    /// All digests, in order.
    pub fn digests(&self) -> Vec<Digest> {
        self.store.lock().bodies.keys().copied().collect()
    }

    #[cfg(test)]
    pub(crate) fn damage(&self, digest: &Digest) {
        if let Some((body, _)) = self.store.lock().bodies.get_mut(digest) {
            *body = body.iter().map(|byte| byte ^ 1).collect();
        }
    }
}

impl Store {
    /// Whether the body was not there before.
    fn insert(&mut self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<bool, BlobError> {
        debug_assert!(digest.is_of(body), "a body is named by what it holds");
        if self.disk_broken {
            return Err(BlobError::Unwritable("the disk is full".to_owned()));
        }
        let is_new = !self.bodies.contains_key(digest);
        let (_, put) = self.bodies.entry(*digest).or_insert_with(|| (Arc::from(body), now));
        *put = now.max(*put);
        Ok(is_new)
    }
}

impl Blobs for MemoryBlobs {
    fn put_named(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        let mut store = self.store.lock();
        store.insert(digest, body, now)?;
        store.unsynced.remove(digest);
        Ok(())
    }

    fn put_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        let mut store = self.store.lock();
        if store.insert(digest, body, now)? {
            store.unsynced.insert(*digest);
        }
        Ok(())
    }

    fn make_durable(&self, digest: &Digest) -> Result<(), BlobError> {
        let mut store = self.store.lock();
        if store.disk_broken {
            return Err(BlobError::Unwritable("the disk is full".to_owned()));
        }
        store.unsynced.remove(digest);
        if store.bodies.contains_key(digest) { Ok(()) } else { Err(BlobError::Lost(*digest)) }
    }

    fn read(&self, digest: &Digest, bytes_max: u64) -> Result<Found, BlobError> {
        let entry = self.store.lock().bodies.get(digest).map(|(body, _)| body.clone());
        let Some(body) = entry else { return Ok(Found::Missing) };
        let bytes = body.len() as u64;
        if bytes > bytes_max {
            return Ok(Found::TooLarge { bytes });
        }
        if !digest.is_of(&body) {
            return Err(BlobError::Damaged(*digest));
        }
        Ok(Found::Body(body.to_vec()))
    }

    fn list_older_than(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    ) -> Result<Vec<Digest>, BlobError> {
        let store = self.store.lock();
        let aged = store
            .bodies
            .iter()
            .filter(|(digest, (_, put))| *put < before && buckets.contains(&digest.as_bytes()[0]));
        Ok(aged.map(|(digest, _)| *digest).collect())
    }

    fn remove(&self, digest: &Digest, before: Timestamp) -> Result<(), BlobError> {
        let mut store = self.store.lock();
        if store.bodies.get(digest).is_some_and(|(_, put)| *put < before) {
            store.bodies.remove(digest);
            store.unsynced.remove(digest);
        }
        Ok(())
    }
}
