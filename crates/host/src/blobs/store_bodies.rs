//! Stores the bodies of a message or a result: decodes them and puts them into the store.
//!
//! Must not know: what they belong to.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::{Body, Data, ErrandFailed};
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs};

/// Stores all bodies of a message or a result, one after the other. Returns the digest for each place.
pub fn store_bodies(
    blobs: &dyn Blobs,
    bodies: Vec<Body>,
    now: Timestamp,
) -> Result<Vec<(String, Digest)>, ErrandFailed> {
    let store = |Body { place, data }| match put(blobs, data, now) {
        Ok(digest) => Ok((place, digest)),
        Err(StoreFailure::BadBase64) => Err(ErrandFailed(format!(
            "the data of `{place}` is not valid base64"
        ))),
        Err(StoreFailure::Failed(error)) => Err(ErrandFailed(error.to_string())),
    };
    bodies.into_iter().map(store).collect()
}

enum StoreFailure {
    /// The standard alphabet, padded, without white space (C-035).
    BadBase64,
    Failed(BlobError),
}

fn put(blobs: &dyn Blobs, data: Data, now: Timestamp) -> Result<Digest, StoreFailure> {
    let put = match data {
        Data::Text(text) => blobs.put(text.as_bytes(), now),
        Data::Base64(text) => {
            let body = STANDARD
                .decode(&*text)
                .map_err(|_| StoreFailure::BadBase64)?;
            drop(text);
            blobs.put(&body, now)
        }
    };
    put.map_err(StoreFailure::Failed)
}
