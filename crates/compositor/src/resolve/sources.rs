//! What resolving needs from outside: files, bodies and entities, and the limits on reading them.
//!
//! Must not know: how files are reached. The crate that may touch them implements [`Sources`].

use std::ops::ControlFlow;

use wire::Object;

use super::WhyUnavailable;
use crate::Part;

/// How much of references is read and sent (C-017). Host configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlineLimits {
    /// The largest file that is sent whole.
    pub text_bytes: u64,
    /// The largest slice of a file.
    pub range_bytes: u64,
    /// The largest image or PDF that is read.
    pub media_bytes: u64,
    /// All images and PDFs that one message refers to.
    pub message_media_bytes: u64,
    /// How far into a file a slice is looked for.
    pub scan_bytes: u64,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self {
            text_bytes: 64 * 1_024,
            range_bytes: 200 * 1_000,
            media_bytes: 32 * 1_024 * 1_024,
            message_media_bytes: 64 * 1_024 * 1_024,
            scan_bytes: 256 * 1_024 * 1_024,
        }
    }
}

/// What a file held when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRead {
    Bytes {
        bytes: Vec<u8>,
    },
    /// More than was asked for.
    TooLarge {
        size: u64,
        /// Its first 8 KiB.
        head: Vec<u8>,
    },
    Unavailable(WhyUnavailable),
}

/// How reading a file in pieces ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// At its end, or where the caller stopped.
    Complete {
        size: u64,
    },
    Unavailable(WhyUnavailable),
}

/// What an image must be so that a target accepts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLimits {
    /// Accepted types, the preferred one first.
    pub mimes: Vec<String>,
    /// Of the image itself, not of its base64.
    pub bytes_max: Option<u64>,
    /// Of its longer side.
    pub side_px_max: Option<u32>,
    pub animation: Animation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Animation {
    Allowed,
    /// Only the first frame is needed.
    Refused,
}

/// What a document turned out to be when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentRead {
    /// Unknown if it could not be read so far.
    pub pages: Option<u64>,
    pub encrypted: bool,
    /// Its text, from the first page on; empty if it has none, or could not be read.
    pub text: String,
    /// How many of its pages the text is of.
    pub text_pages: u64,
    /// Why not all of it could be read, for the user.
    pub problem: Option<String>,
}

/// Files, bodies and entities, as far as they may be seen. Implemented by the crate that may touch them. Calls are
/// synchronous; each is bounded in time and memory.
pub trait Sources {
    /// A file of the workspace, whole, if it has no more than `limit_bytes`. Checked at every open (C-019).
    fn file(&mut self, path: &str, limit_bytes: u64) -> FileRead;

    /// Reads a file of the workspace in pieces until `each` breaks.
    fn scan(&mut self, path: &str, each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        match self.file(path, u64::MAX) {
            FileRead::Bytes { bytes } => {
                let size = bytes.len() as u64;
                let _ = each(&bytes); // There is no second piece to stop before.
                Scanned::Complete { size }
            }
            FileRead::TooLarge { size, head } => {
                let _ = each(&head); // Likewise.
                Scanned::Complete { size }
            }
            FileRead::Unavailable(why) => Scanned::Unavailable(why),
        }
    }

    /// A body in the blob store, checked against its name.
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>>;

    /// Whether a mention names something that is there (G-42).
    fn entity(&mut self, kind: &str, target: &Object) -> bool;

    /// The path of a copy of an attachment's body that tools can read; `None` if none is staged.
    fn find_staged_copy(&mut self, part: &Part) -> Option<String>;

    /// Scales or transcodes an image; `None` if that is not possible.
    fn fit_image(
        &mut self,
        mime: &str,
        bytes: &[u8],
        limits: &ImageLimits,
    ) -> Option<(String, Vec<u8>)>;

    /// Reads a PDF: its pages and its text, as far as that is possible and safe; `None` if nobody can.
    fn read_document(&mut self, _bytes: &[u8]) -> Option<DocumentRead> {
        None
    }

    /// The absolute path of a path of the workspace.
    fn absolute(&self, path: &str) -> String;
}
