//! Bodies that are too large for state: which they are, and what stands in their place (G-32, C-033).
//!
//! Moving a body out takes two steps: here it is taken out, decoded if it is base64, and a reference without a name put in
//! its place; when the host has stored it, its digest is filled in as the name. Nothing here hashes a body.

mod detached;
mod event;
mod message;
mod result;

pub(crate) use detached::DetachedBodies;
pub use detached::SentAction;
pub use event::{detach_from_event, fill_event};
pub(crate) use message::{InlineBudget, detach_message};
pub(crate) use result::{clip_content, detach_result};

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use wire::{Digest, Object};

/// A body that is to be stored, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct UnstoredBody {
    /// Where its reference stands: a JSON pointer into what it was lifted out of.
    pub pointer: String,
    pub data: BodyData,
}

/// The bytes of a body, as they came.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyData {
    Bytes(Bytes),
    /// Not decoded yet, or not base64 after all.
    Base64(Arc<String>),
}

impl BodyData {
    fn text(text: String) -> Self {
        Self::Bytes(Bytes::from(text))
    }

    /// Decodes what can be decoded; the rest stays what it is, for whoever has to say so.
    fn decode(base64: String) -> Self {
        match STANDARD.decode(&base64) {
            Ok(bytes) => Self::Bytes(Bytes::from(bytes)),
            Err(_) => Self::Base64(Arc::new(base64)),
        }
    }

    /// How many bytes it stands for.
    fn decoded_len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Base64(base64) => decoded_len(base64),
        }
    }
}

/// Fills in the names of bodies that were kept.
pub(crate) fn fill_names(whole: &mut Value, names: impl IntoIterator<Item = (String, Digest)>) {
    for (pointer, digest) in names {
        if let Some(reference) = whole.pointer_mut(&pointer) {
            reference["uri"] = json!(digest.uri());
        }
    }
}

/// The bytes that base64 text stands for, if it is well formed; otherwise nearly.
fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding.min(2))
}

/// Takes a string field out of an object.
fn take_text(object: &mut Object, field: &str) -> Option<String> {
    match object.get_mut(field) {
        Some(Value::String(text)) => Some(std::mem::take(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_base64_is_known_without_decoding_it() {
        for (base64, bytes) in
            [("", 0), ("YQ==", 1), ("YWE=", 2), ("YWFh", 3), ("YWFhYQ==", 4), ("====", 1)]
        {
            assert_eq!(decoded_len(base64), bytes, "{base64}");
        }
    }
}
