//! A message that was just composed, for the turn that begins with it.
//!
//! Promises: it is what the rows of the message hold (C-081).
//! Must not know: how it was composed, who works on it.

use bytes::Bytes;
use compositor::Part;

/// What a message means, as its rows have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposedMessage {
    pub parts: Vec<MessagePart>,
}

/// A part of a message that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessagePart {
    /// The id of its row.
    pub id: String,
    pub part: Part,
    /// What it was resolved to, if it was: opaque, like that of a [`crate::FrozenRecord`].
    pub frozen: Option<Bytes>,
}
