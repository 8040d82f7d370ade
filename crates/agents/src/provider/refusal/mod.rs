//! What a server's refusal of a request is about, as far as its message says.
//!
//! Promises: words that list what a server takes are not read as a complaint about it; a refusal for the key, for money or
//! for too many requests is none of the kind that a smaller request could mend.
//! Must not know: what was asked.

mod media_kind;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeSet;

pub use media_kind::MediaKind;
use words::{FOREIGN, MISSING, kinds_in, names_any, read_words, without_quotes};

/// What a refused request should do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalCause {
    /// The message does not say.
    Unknown,
    /// Whatever is of these kinds: the model or its server takes none.
    Kinds(BTreeSet<MediaKind>),
    /// A body of one of these kinds, or of any if none is named: it is too large, damaged or of a format that is not
    /// known. Another one may do.
    Body(BTreeSet<MediaKind>),
    /// Lists where a text is expected.
    Lists,
    /// What the model itself had added to its answers: signatures, reasoning that only the server can read.
    Signatures,
    /// Thoughts, or signatures of them, that the model's own server wants back and that are not there: another model wrote that part
    /// of the conversation, or it was told in other words.
    ReasoningMissing,
    /// That what the model thinks is to be shown: its server does not do that for everybody.
    ShownThoughts,
    /// All of it together: it is longer than what the model can take in.
    TooLong,
}

impl RefusalCause {
    /// Whether to send the same again is of no use: the words say why, or something else can be sent.
    pub(super) fn forbids_repeating(&self, reducible: bool) -> bool {
        match self {
            Self::Lists
            | Self::Signatures
            | Self::ReasoningMissing
            | Self::ShownThoughts
            | Self::Kinds(_)
            | Self::TooLong => true,
            Self::Unknown | Self::Body(_) => reducible,
        }
    }
}

/// Statuses of a refusal that a smaller request may mend.
pub(super) fn is_refusal(status: u16) -> bool {
    matches!(status, 400 | 404 | 413 | 415 | 422 | 500 | 501)
}

/// What a refusal is about; none if it is about something that no smaller request mends. `words` are in lower case.
pub(super) fn cause_of_refusal(status: Option<u16>, words: &str) -> Option<RefusalCause> {
    // What is quoted may be the name of an attachment.
    let is_foreign = names_any(&without_quotes(words), FOREIGN);
    if status.is_some_and(|status| !is_refusal(status)) || is_foreign {
        return None;
    }
    // A pointer to the documentation is no complaint about documents.
    let words = &words.replace("documentation", "");
    let blame = read_words(words);
    let is_missing =
        status == Some(404) && blame == RefusalCause::Unknown && names_any(words, MISSING);
    if is_missing {
        return None;
    }
    Some(match (status, blame) {
        (Some(413), RefusalCause::Unknown | RefusalCause::Kinds(_)) => {
            RefusalCause::Body(kinds_in(words))
        }
        (_, blame) => blame,
    })
}
