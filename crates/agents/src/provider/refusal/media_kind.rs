//! The kinds of bodies that a request may hold, and the words that servers have for them.

use serde::{Deserialize, Serialize};

/// The kinds of bodies that a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    Image,
    Document,
    Audio,
    Video,
}

impl MediaKind {
    pub const ALL: [Self; 4] = [Self::Image, Self::Document, Self::Audio, Self::Video];

    /// As decisions of the lowering call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Document => "document",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }

    /// What people call several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Document => "PDFs",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }

    /// Words by which servers name it, in lower case.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Image => &["image", "picture", "vision", "visual", "photo"],
            Self::Document => &[
                "pdf",
                "document",
                "input_file",
                "file_data",
                "'file'",
                "\"file\"",
                "`file`",
                "type: file",
                "type file",
                "file content",
                "file input",
                "file part",
            ],
            Self::Audio => &["audio"],
            Self::Video => &["video"],
        }
    }
}
