//! A resolved reference as the journal holds it: a small object that names its body in the blob store (C-021).
//!
//! Promises: what was stored is read back as the same, or not at all.
//! Must not know: who resolves references, and when.

use bytes::Bytes;
use compositor::resolve::{Resolved, StoredResolution};
use serde_json::json;
use wire::{Digest, Object, Timestamp, rpc};

use crate::blobs::{BlobError, Blobs, Found};

/// The largest body that a reference was ever resolved to.
const RESOLVED_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// A resolved reference whose body is stored.
pub(crate) struct FrozenReference {
    pub json: Bytes,
    pub digest: Option<Digest>,
}

/// Stores the body of a resolved reference.
pub(crate) fn store(
    resolved: &Resolved,
    blobs: &dyn Blobs,
    now: Timestamp,
) -> Result<FrozenReference, BlobError> {
    let StoredResolution { mut about, body } = resolved.to_stored();
    let digest = body.map(|body| blobs.put(&body, now)).transpose()?;
    if let Some(digest) = &digest {
        about.insert("body".to_owned(), json!(digest.uri()));
    }
    Ok(FrozenReference {
        json: Bytes::from(rpc::to_json(&about)),
        digest,
    })
}

/// What a reference was resolved to before; `None` if that cannot be read any more.
pub(crate) fn load(json: &[u8], blobs: &dyn Blobs) -> Option<Resolved> {
    let mut about: Object = serde_json::from_slice(json).ok()?;
    let body = match about.shift_remove("body") {
        None => None,
        Some(uri) => {
            let digest = Digest::from_uri(uri.as_str()?)?;
            match blobs.read(&digest, RESOLVED_BYTES_MAX) {
                Ok(Found::Body(body)) => Some(body),
                Ok(Found::Missing | Found::TooLarge { .. }) | Err(_) => return None,
            }
        }
    };
    Resolved::from_stored(StoredResolution { about, body })
}
