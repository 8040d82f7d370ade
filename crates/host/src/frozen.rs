//! A resolved reference as the journal holds it: a small object that names its body in the blob store (C-021).
//!
//! Promises: what was stored is read back as the same, or is not there any more, or that is an error: it is never taken for something else.
//! Must not know: who resolves references, and when.

use bytes::Bytes;
use compositor::part::{FileRef, Location};
use compositor::resolve::{Resolved, StoredResolution};
use compositor::{Part, View};
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

/// Stores the body of a resolved reference. One to stored content that is shown whole has the name of that: it is not hashed again.
pub(crate) fn store(
    part: &Part,
    resolved: &Resolved,
    blobs: &dyn Blobs,
    now: Timestamp,
) -> Result<FrozenReference, BlobError> {
    let StoredResolution { mut about, body } = resolved.to_stored();
    let put = |body: Vec<u8>| match content_shown_whole(part, resolved) {
        Some(digest) => blobs.put_named(&digest, &body, now).map(|()| digest),
        None => blobs.put(&body, now),
    };
    let digest = body.map(put).transpose()?;
    if let Some(digest) = &digest {
        about.insert("body".to_owned(), json!(digest.uri()));
    }
    Ok(FrozenReference { json: Bytes::from(rpc::to_json(&about)), digest })
}

/// The stored content that a part refers to, if what is shown of it is all of it.
fn content_shown_whole(part: &Part, resolved: &Resolved) -> Option<Digest> {
    let is_whole = match resolved {
        Resolved::Media { bytes, size, .. } => bytes.len() as u64 == *size,
        // A mark at its beginning is no part of a text.
        Resolved::Text { text, range, size, .. } => range.is_none() && text.len() as u64 == *size,
        Resolved::Omitted { .. } | Resolved::Unavailable { .. } => false,
    };
    match part.view() {
        View::FileRef(FileRef { location: Location::ContentId(id), .. }) if is_whole => {
            Digest::from_hex(id.strip_prefix("sha256:")?)
        }
        _ => None,
    }
}

/// Why what was recorded of a reference cannot be used. To resolve it again could show something else than before.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrozenError {
    #[error("what a reference was resolved to is damaged: {0}")]
    Damaged(String),
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

/// What a reference was resolved to before; `None` if its body is not there any more, so that nothing but its file can be shown.
pub(crate) fn load(json: &[u8], blobs: &dyn Blobs) -> Result<Option<Resolved>, FrozenError> {
    let damaged = |why: &str| FrozenError::Damaged(why.to_owned());
    let mut about: Object =
        serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
    let body = match about.shift_remove("body") {
        None => None,
        Some(uri) => {
            let digest = uri
                .as_str()
                .and_then(Digest::from_uri)
                .ok_or_else(|| damaged("it names no content"))?;
            match blobs.read(&digest, RESOLVED_BYTES_MAX)? {
                Found::Body(body) => Some(body),
                Found::TooLarge { .. } => return Err(damaged("its content is too large")),
                Found::Missing => {
                    tracing::warn!(%digest, "the content of a reference is not there any more; it is resolved again");
                    return Ok(None);
                }
            }
        }
    };
    let resolved = Resolved::from_stored(StoredResolution { about, body });
    resolved.map(Some).ok_or_else(|| damaged("it is none that is known"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    #[cfg(debug_assertions)]
    use wire::content::HashCount;

    use super::*;
    use crate::blobs::MemoryBlobs;

    const NOW: Timestamp = Timestamp(1);

    fn text(text: &str) -> Resolved {
        Resolved::Text {
            text: text.to_owned(),
            label: "a.txt".to_owned(),
            range: None,
            size: text.len() as u64,
            mime: "text/plain".to_owned(),
        }
    }

    fn reference(to: serde_json::Value) -> Part {
        Part::from_value(json!({"type": "file-ref", "ref": to})).unwrap()
    }

    #[test]
    fn what_was_stored_is_read_or_said_to_be_missing_or_an_error() {
        let part = reference(json!({"kind": "path", "path": "a.txt"}));
        let blobs = MemoryBlobs::new();
        let stored = store(&part, &text("as it was"), &blobs, NOW).unwrap();
        let load = |json: &[u8]| load(json, &blobs);
        assert_eq!(load(&stored.json).unwrap(), Some(text("as it was")));
        for damaged in [&b"{"[..], b"{}", br#"{"is":"text","body":"file:///a"}"#] {
            let error = load(damaged).unwrap_err();
            assert!(matches!(error, FrozenError::Damaged(_)), "{error}");
        }
        let digest = stored.digest.unwrap();
        blobs.damage(&digest);
        let error = load(&stored.json).unwrap_err();
        assert!(matches!(
            error,
            FrozenError::Blobs(BlobError::Damaged(named)) if named == digest
        ));
        blobs.remove(&digest, Timestamp(9)).unwrap();
        assert_eq!(load(&stored.json).unwrap(), None);
    }

    #[cfg(debug_assertions)] // others do not count
    #[test]
    fn content_that_is_shown_whole_is_not_hashed_again() {
        let blobs = MemoryBlobs::new();
        let body = b"\x89PNG\r\n\x1a\n and so on";
        let digest = blobs.put(body, NOW).unwrap();
        let count = HashCount::watch(body);
        let content_id = format!("sha256:{digest}");
        let part = reference(json!({"kind": "content-id", "content_id": content_id}));
        let picture = Resolved::Media {
            mime: "image/png".to_owned(),
            bytes: Arc::from(&body[..]),
            size: body.len() as u64,
        };
        let stored = store(&part, &picture, &blobs, NOW).unwrap();
        assert_eq!((stored.digest, count.get()), (Some(digest), 0));
        // A part of it is something else.
        let Resolved::Text { label, mime, .. } = text("") else { unreachable!() };
        let slice = Resolved::Text {
            text: "so".to_owned(),
            label,
            range: None,
            size: body.len() as u64,
            mime,
        };
        let stored = store(&part, &slice, &blobs, NOW).unwrap();
        assert_eq!(stored.digest, Some(Digest::of(b"so")));
    }
}
