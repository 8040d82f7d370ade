//! Puts a stored document together again: byte for byte, or for people to read, with bodies by their names.
//!
//! Promises: nothing is made up: a body that is gone is an error.
//! Must not know: what a document means.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use wire::Digest;

use crate::blobs::{BlobError, Blobs, Found};
use crate::journal::ArchivedPiece;

/// Why a document cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the body sha256 {} that was sent is not stored any more", .0.to_hex())]
    Gone(Digest),
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// The document as it was.
pub fn join(pieces: &[ArchivedPiece], blobs: &dyn Blobs) -> Result<Vec<u8>, JoinError> {
    let mut document = Vec::new();
    for piece in pieces {
        match piece {
            ArchivedPiece::Text(text) => document.extend_from_slice(text),
            ArchivedPiece::Body { digest, bytes, .. } => match blobs.read(digest, *bytes)? {
                Found::Body(body) => document.extend(BASE64.encode(body).into_bytes()),
                Found::Missing | Found::TooLarge { .. } => return Err(JoinError::Gone(*digest)),
            },
        }
    }
    Ok(document)
}

/// The document with the names of bodies where they stood.
pub fn outline(pieces: &[ArchivedPiece]) -> Vec<u8> {
    let mut document = Vec::new();
    for piece in pieces {
        match piece {
            ArchivedPiece::Text(text) => document.extend_from_slice(text),
            ArchivedPiece::Body { digest, bytes, content_type } => {
                // It stands in a string: nothing of it may end that.
                let is_plain =
                    |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '<' | '>');
                let content_type: String = content_type.chars().filter(is_plain).collect();
                let name = format!("<{content_type}, {bytes} bytes, sha256 {}>", digest.to_hex());
                document.extend(name.into_bytes());
            }
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use wire::Timestamp;

    use super::*;
    use crate::blobs::{MemoryBlobs, digest_of};

    #[test]
    fn a_document_comes_back_whole_or_not_at_all() {
        let blobs = MemoryBlobs::default();
        let body = |content: &[u8]| ArchivedPiece::Body {
            digest: digest_of(content),
            bytes: content.len() as u64,
            content_type: "image/png\"".to_owned(),
        };
        let text = |text: &str| ArchivedPiece::Text(text.as_bytes().to_vec());
        blobs.put(b"cat", Timestamp(0)).unwrap();
        let pieces = [text("{\"data\":\""), body(b"cat"), text("\"}")];
        assert_eq!(join(&pieces, &blobs).unwrap(), b"{\"data\":\"Y2F0\"}");
        let shown: serde_json::Value = serde_json::from_slice(&outline(&pieces)).unwrap();
        let shown = shown["data"].as_str().unwrap();
        assert!(shown.starts_with("<image/png, 3 bytes, sha256 "), "{shown}");
        let gone = join(&[body(b"dog")], &blobs).unwrap_err();
        assert_eq!(gone, JoinError::Gone(digest_of(b"dog")));
    }
}
