//! The blob store: bodies that are too large for state, stored under the digest of what they hold (G-32).
//!
//! Promises: a body that was put is on the disk before its digest is returned, and is there once however often it is put; one that was
//! put unsynced is on the disk once it was made durable;
//! what is read is what was put, or an error; a body is removed only if it was not put again since. What
//! is referred to is known by the journal alone. `contract` holds every store to it.
//! Must not know: channels, turns, why a body was moved out.

#[cfg(test)]
mod contract;
mod files;
mod held;
mod memory;
mod object_store;
mod serve;
mod store_bodies;

pub use files::FileBlobs;
pub(crate) use held::{BodyHold, HeldBodies};
pub use memory::MemoryBlobs;
pub use object_store::{BlobSettings, ObjectBodies};
pub use serve::{encode_body, fetch};
pub use store_bodies::store_bodies;

use std::ops::RangeInclusive;

use wire::{Digest, Timestamp};

/// Why the store failed; the operator reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    #[error("a body cannot be stored: {0}")]
    Unwritable(String),
    #[error("content cannot be read: {0}")]
    Unreadable(String),
    /// The file does not hold what was put.
    #[error("the content {0} is damaged")]
    Damaged(Digest),
    /// It was to be made durable and is not there.
    #[error("the content {0} is not there any more")]
    Lost(Digest),
}

/// What lies under a digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Body(Vec<u8>),
    Missing,
    /// More than was asked for; nothing of it was read.
    TooLarge {
        bytes: u64,
    },
}

/// Where bodies lie. Every call may wait for a disk: never on a task's thread.
pub trait Blobs: Send + Sync {
    /// Stores a body. One that is there already counts as put now: the collector spares it.
    fn put(&self, body: &[u8], now: Timestamp) -> Result<Digest, BlobError> {
        let digest = digest_of(body);
        self.put_named(&digest, body, now)?;
        Ok(digest)
    }

    /// Stores a body whose digest is known already: hashing is most of the work with a large one.
    fn put_named(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError>;

    /// Stores a body that is needed as long as this host runs: it is read and ages like any other, and is lost if the host ends before
    /// [`Blobs::make_durable`]. No disk is waited for; a store for which that is no cheaper makes it durable at once.
    fn put_unsynced(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        self.put_named(digest, body, now)
    }

    /// Makes a body durable that was put: before anything is written that refers to it.
    fn make_durable(&self, digest: &Digest) -> Result<(), BlobError> {
        match self.read(digest, 0)? {
            Found::Body(_) | Found::TooLarge { .. } => Ok(()),
            Found::Missing => Err(BlobError::Lost(*digest)),
        }
    }

    /// The body under a digest, checked against it, if it has at most `bytes_max` bytes.
    fn read(&self, digest: &Digest, bytes_max: u64) -> Result<Found, BlobError>;

    /// Bodies last put before a moment whose digest begins with one of these bytes, in order.
    fn list_older_than(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    ) -> Result<Vec<Digest>, BlobError>;

    /// Removes a body unless it was put at that moment or later.
    fn remove(&self, digest: &Digest, before: Timestamp) -> Result<(), BlobError>;

    /// Removes several, each as [`Blobs::remove`] does. The error is that of the first that could not be removed; the others are.
    fn remove_all(&self, digests: &[Digest], before: Timestamp) -> Result<(), BlobError> {
        let mut removed = Ok(());
        for digest in digests {
            removed = removed.and(self.remove(digest, before));
        }
        removed
    }
}

/// The name of a body.
pub fn digest_of(body: &[u8]) -> Digest {
    Digest::of(body)
}
