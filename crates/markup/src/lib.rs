//! Markdown, code and diffs as trees, runs and rows: what a page and a terminal both draw from.
//!
//! Promises: every function is total and bounded. What comes in is untrusted; no input panics, recurses without bound, or makes
//! more than a fixed multiple of itself. No text is dropped: what is not understood, not allowed or nested too deeply is text.
//! Must not know: I/O, clocks, the protocol, HTML, terminals.

pub mod diff;
mod fence;
pub mod highlight;
mod json_text;
pub mod markdown;
pub mod stable;
pub mod stream;
mod tail;
pub mod visible;

/// An input above its bound; it is shown as plain text instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are more than the {max} that are rendered")]
pub struct MarkupTooLarge {
    pub bytes: usize,
    pub max: usize,
}

impl MarkupTooLarge {
    /// Refuses more than `max` bytes.
    pub(crate) fn check(bytes: usize, max: usize) -> Result<(), Self> {
        if bytes > max {
            return Err(Self { bytes, max });
        }
        Ok(())
    }
}
