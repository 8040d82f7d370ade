//! Texts in a row that all go to the same peers: handed to each of them as one item, and put into WebSocket frames once
//! for all of them.
//!
//! Promises: a peer gets the same bytes as if it had been given the texts one by one.
//! Must not know: who the peers are, what the texts mean.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kernel::Frame;

use super::ws::frame::{Fin, Opcode, put_head};

/// A longer run is cut, so that what a writer takes at a time stays within its bounds.
const TEXTS_MAX: usize = 128;
const BYTES_MAX: usize = 64 * 1_024;
/// A text above this goes alone: copying it would cost more than it saves, and it may have to be cut into fragments.
const TEXT_BYTES_MAX: usize = 4 * 1_024;

/// What is handed to a connection at a time.
#[derive(Debug, Clone)]
pub(crate) enum LinkItem {
    Frame(Frame),
    Run(Arc<TextRun>),
}

impl LinkItem {
    pub(crate) fn frames(&self) -> usize {
        match self {
            Self::Frame(_) => 1,
            Self::Run(run) => run.texts.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.size_hint(),
            Self::Run(run) => run.bytes,
        }
    }
}

/// Texts in the order in which they are sent.
#[derive(Debug, Default)]
pub(crate) struct TextRun {
    texts: Vec<Bytes>,
    bytes: usize,
    framed: OnceLock<FramedRun>,
}

/// The texts of a run as WebSocket frames, one behind the other.
#[derive(Debug)]
pub(crate) struct FramedRun {
    pub(crate) bytes: Bytes,
    /// Where each frame ends.
    pub(crate) ends: Arc<[usize]>,
}

impl TextRun {
    /// Whether a text may be part of a run.
    pub(crate) fn takes(text: &Bytes) -> bool {
        text.len() <= TEXT_BYTES_MAX
    }

    /// Whether the run has no room for another text.
    pub(crate) fn is_full(&self) -> bool {
        self.texts.len() >= TEXTS_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn add(&mut self, text: Bytes) {
        debug_assert!(Self::takes(&text) && !self.is_full());
        self.bytes += text.len();
        self.texts.push(text);
    }

    pub(crate) fn texts(&self) -> &[Bytes] {
        &self.texts
    }

    /// As frames; the first writer that asks makes them for all.
    pub(crate) fn framed(&self) -> &FramedRun {
        self.framed.get_or_init(|| {
            let mut bytes = Vec::with_capacity(self.bytes + self.texts.len() * 4);
            let mut ends = Vec::with_capacity(self.texts.len());
            for text in &self.texts {
                put_head(&mut bytes, Opcode::Text, Fin::Last, text.len());
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
            }
            FramedRun { bytes: Bytes::from(bytes), ends: Arc::from(ends) }
        })
    }

    /// The run as an item: a single text is a frame as any other.
    pub(crate) fn into_item(mut self) -> LinkItem {
        match self.texts.pop() {
            Some(text) if self.texts.is_empty() => LinkItem::Frame(Frame::Text(text)),
            last => {
                self.texts.extend(last);
                LinkItem::Run(Arc::new(self))
            }
        }
    }
}
