//! A body together with its name.
//!
//! Promises: the name is that of the bytes; it was computed once, and goes with them from there on.

use std::ops::Deref;

use bytes::Bytes;

use super::Digest;

/// A body whose digest is known. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedBody {
    bytes: Bytes,
    digest: Digest,
}

impl NamedBody {
    /// Hashes the body.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let digest = Digest::of(&bytes);
        Self { bytes, digest }
    }

    /// The same as [`NamedBody::of`]. If the bytes are those of a body that is named already they are compared with it, which is much
    /// less work than hashing, and no weaker.
    pub fn like(bytes: impl Into<Bytes>, known: Option<&Self>) -> Self {
        let bytes = bytes.into();
        match known.filter(|known| known.bytes == bytes) {
            Some(known) => known.clone(),
            None => Self::of(bytes),
        }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn digest(&self) -> Digest {
        self.digest
    }
}

impl Deref for NamedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_its_own_name_whatever_it_is_compared_with() {
        let known = NamedBody::of("one");
        for body in ["one", "two"] {
            let named = NamedBody::like(body, Some(&known));
            assert_eq!(named, NamedBody::of(body));
            assert!(named.digest().is_of(body.as_bytes()));
        }
    }
}
