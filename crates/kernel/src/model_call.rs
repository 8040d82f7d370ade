//! A request to a model as the journal keeps it: documents in pieces, each of which is stored once however many requests
//! repeat it.
//!
//! Must not know: what a request holds, how it was taken apart.

use bytes::Bytes;
use wire::{Digest, Timestamp};

use crate::ids::ChannelId;

/// A request that was sent to a model (G-37).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallRecord {
    pub chat: ChannelId,
    /// Under this its end is recorded.
    pub key: u64,
    pub turn_id: String,
    pub at: Timestamp,
    pub purpose: String,
    pub round: u64,
    /// The wire format, and the model that was asked.
    pub api: String,
    pub model: String,
    /// The bytes that were sent: their number, their digest, and the pieces that they are made of.
    pub body_bytes: u64,
    pub body_digest: Digest,
    pub body: Vec<DocumentPiece>,
    /// What is known of it besides, as JSON.
    pub details: Vec<DocumentPiece>,
    /// How many calls of the chat are kept, this one included, and how many bytes of pieces. The newest is always kept.
    pub calls_max: u64,
    pub bytes_max: u64,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPiece {
    /// So short that it is kept in the document itself.
    Short(Bytes),
    /// Kept once in a chat.
    Shared { digest: Digest, bytes: Bytes },
    /// The Base64 of a body in the blob store: it is kept as long as the piece is.
    Body { digest: Digest, bytes: u64, content_type: String },
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallEndRecord {
    pub key: u64,
    pub at: Timestamp,
    /// As JSON.
    pub json: Bytes,
}
