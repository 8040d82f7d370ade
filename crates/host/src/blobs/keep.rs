//! Bodies on their way into the store: decoded, put, named.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kernel::{Body, Data, WorkFailed};
use wire::{Digest, Timestamp};

use super::{BlobError, Blobs};

/// Keeps all bodies of a message or a result, one after the other; where each of their names belongs.
pub fn compose(
    blobs: &dyn Blobs,
    bodies: Vec<Body>,
    now: Timestamp,
) -> Result<Vec<(String, Digest)>, WorkFailed> {
    let keep = |Body { pointer, data }| match put(blobs, data, now) {
        Ok(digest) => Ok((pointer, digest)),
        Err(NotKept::BadBase64) => Err(WorkFailed(format!(
            "the data of `{pointer}` is not valid base64"
        ))),
        Err(NotKept::Failed(error)) => Err(WorkFailed(error.to_string())),
    };
    bodies.into_iter().map(keep).collect()
}

enum NotKept {
    /// The standard alphabet, padded, without white space (C-035).
    BadBase64,
    Failed(BlobError),
}

fn put(blobs: &dyn Blobs, data: Data, now: Timestamp) -> Result<Digest, NotKept> {
    let put = match data {
        Data::Text(text) => blobs.put(text.as_bytes(), now),
        Data::Base64(text) => {
            let body = STANDARD.decode(&*text).map_err(|_| NotKept::BadBase64)?;
            drop(text);
            blobs.put(&body, now)
        }
    };
    put.map_err(NotKept::Failed)
}
