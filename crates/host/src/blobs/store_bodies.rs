//! Stores the bodies of a message or a result: decodes them and puts them into the store.
//!
//! Must not know: what they belong to.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::{BodyData, UnstoredBody, WorkFailed};
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs};

/// Stores all bodies of a message or a result, one after the other. Returns the digest for each pointer.
pub fn store_bodies(
    blobs: &dyn Blobs,
    bodies: Vec<UnstoredBody>,
    now: Timestamp,
) -> Result<Vec<(String, Digest)>, WorkFailed> {
    let store = |UnstoredBody { pointer, data }| match put(blobs, data, now) {
        Ok(digest) => Ok((pointer, digest)),
        Err(StoreFailure::BadBase64) => {
            Err(WorkFailed(format!("the data of `{pointer}` is not valid base64")))
        }
        Err(StoreFailure::Failed(error)) => Err(WorkFailed(error.to_string())),
    };
    bodies.into_iter().map(store).collect()
}

enum StoreFailure {
    /// The standard alphabet, padded, without white space (C-035).
    BadBase64,
    Failed(BlobError),
}

fn put(blobs: &dyn Blobs, data: BodyData, now: Timestamp) -> Result<Digest, StoreFailure> {
    let put = match data {
        BodyData::Bytes(body) => blobs.put(&body, now),
        BodyData::Base64(text) => {
            let body = STANDARD.decode(&*text).map_err(|_| StoreFailure::BadBase64)?;
            drop(text);
            blobs.put(&body, now)
        }
    };
    put.map_err(StoreFailure::Failed)
}
