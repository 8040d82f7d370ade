//! Resolves references: to the text of a file or a slice of it, an image, a PDF, or the reason for neither (C-013 to C-021).
//!
//! Promises: independent of any target, so it is made once and stored; a reference that cannot be resolved is an
//! outcome, never an error; what is read is bounded.
//! Must not know: how files are reached. The crate that may touch them implements [`Sources`].

pub(crate) mod slice;
mod sources;
mod stored;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::Part;
use crate::media_type::{self, Class};
use crate::part::{FileRef, Location, MentionTarget, Range, Unit, View};
use slice::{Cut, Slicer};

pub use sources::{Animation, DocumentRead, FileRead, ImageLimits, InlineLimits, Scanned, Sources};
pub use stored::StoredResolution;

/// What a reference resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    Text {
        text: String,
        /// What it is called above its text: the path, and the range if only a slice was meant.
        label: String,
        /// What was really there of the range that was asked for.
        range: Option<Range>,
        /// Of the whole file.
        size: u64,
        mime: String,
    },
    Media {
        mime: String,
        bytes: Arc<[u8]>,
        size: u64,
    },
    Omitted {
        why: WhyOmitted,
        size: u64,
        mime: String,
    },
    Unavailable {
        why: WhyUnavailable,
        /// How many lines there are, where lines were asked for that are not there.
        lines: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyOmitted {
    TooLarge,
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyUnavailable {
    OutsideWorkspace,
    NotFound,
    InvalidPath,
    InvalidRange,
    RangeOutOfBounds,
}

impl WhyOmitted {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Binary => "binary",
        }
    }
}

impl WhyUnavailable {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OutsideWorkspace => "outside_workspace",
            Self::NotFound => "not_found",
            Self::InvalidPath => "invalid_path",
            Self::InvalidRange => "invalid_range",
            Self::RangeOutOfBounds => "range_out_of_bounds",
        }
    }
}

/// A reference as parts of two types make it: `file-ref`, and a mention of a file, which is the same (C-062).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reference<'a> {
    pub(crate) location: Location<'a>,
    pub(crate) range: Option<Range>,
    pub(crate) name: Option<&'a str>,
    pub(crate) mime: Option<&'a str>,
}

impl<'a> Reference<'a> {
    pub(crate) fn of_mention(path: &'a str, range: Option<Range>) -> Self {
        Self { location: Location::Path(path), range, name: None, mime: None }
    }

    pub(crate) fn of_file_ref(of: &FileRef<'a>) -> Self {
        Self { location: of.location, range: of.range, name: of.name, mime: of.mime }
    }

    /// The line above its text.
    fn title(&self) -> &'a str {
        match self.location {
            Location::Path(path) => path,
            Location::Url(url) => url,
            Location::ContentId(id) => self.name.unwrap_or(id),
        }
    }
}

/// Resolves the reference in a part; `None` if there is none, or none that is resolved here (C-020).
pub fn resolve(part: &Part, sources: &mut dyn Sources, limits: &InlineLimits) -> Option<Resolved> {
    let reference = match part.view() {
        View::FileRef(of) => Reference::of_file_ref(&of),
        View::Mention(mention) => match mention.target {
            MentionTarget::File { path, range } => Reference::of_mention(path, range),
            _ => return None,
        },
        _ => return None,
    };
    resolve_reference(&reference, sources, limits)
}

/// Resolves the reference in a part to a body that somebody else has read; `None` if there is no reference.
pub fn resolve_to_body(part: &Part, body: Vec<u8>, limits: &InlineLimits) -> Option<Resolved> {
    match part.view() {
        View::FileRef(of) => Some(of_body(&Reference::of_file_ref(&of), body, limits)),
        _ => None,
    }
}

/// Resolves every reference of a message, by the number of its part. What a message may refer to in all is bounded.
pub fn resolve_all(
    parts: &[Part],
    sources: &mut dyn Sources,
    limits: &InlineLimits,
) -> BTreeMap<usize, Resolved> {
    let mut resolved = BTreeMap::new();
    let mut limits = *limits;
    for (at, part) in parts.iter().enumerate() {
        limits.media_bytes = limits.media_bytes.min(limits.message_media_bytes);
        let Some(resolution) = resolve(part, sources, &limits) else { continue };
        if let Resolved::Media { size, .. } = &resolution {
            limits.message_media_bytes = limits.message_media_bytes.saturating_sub(*size);
        }
        resolved.insert(at, resolution);
    }
    resolved
}

pub(crate) fn resolve_reference(
    reference: &Reference<'_>,
    sources: &mut dyn Sources,
    limits: &InlineLimits,
) -> Option<Resolved> {
    match reference.location {
        Location::Url(_) => None,
        Location::ContentId(id) => Some(match sources.body(id) {
            None => unavailable(WhyUnavailable::NotFound),
            Some(bytes) => of_body(reference, bytes, limits),
        }),
        Location::Path(path) if path.is_empty() || path.contains('\0') => {
            Some(unavailable(WhyUnavailable::InvalidPath))
        }
        Location::Path(path) => Some(of_file(reference, path, sources, limits)),
    }
}

fn unavailable(why: WhyUnavailable) -> Resolved {
    Resolved::Unavailable { why, lines: None }
}

fn of_file(
    reference: &Reference<'_>,
    path: &str,
    sources: &mut dyn Sources,
    limits: &InlineLimits,
) -> Resolved {
    let (size, head) = match sources.file(path, limits.text_bytes) {
        FileRead::Unavailable(why) => return unavailable(why),
        FileRead::Bytes { bytes } => return of_body(reference, bytes, limits),
        FileRead::TooLarge { size, head } => (size, head),
    };
    if is_media(&head) {
        return match sources.file(path, limits.media_bytes) {
            FileRead::Unavailable(why) => unavailable(why),
            // Classified again: it may be another file by now.
            FileRead::Bytes { bytes } => of_body(reference, bytes, limits),
            FileRead::TooLarge { size, head } => omit_body(WhyOmitted::TooLarge, size, &head),
        };
    }
    match reference.range {
        Some(range) => scan(reference, path, range, sources, limits),
        None if starts_like_text(&head) => omit_body(WhyOmitted::TooLarge, size, &head),
        None => omit_body(WhyOmitted::Binary, size, &head),
    }
}

/// A slice of a file that is not read whole.
fn scan(
    reference: &Reference<'_>,
    path: &str,
    range: Range,
    sources: &mut dyn Sources,
    limits: &InlineLimits,
) -> Resolved {
    if !slice::is_valid(&range) {
        return unavailable(WhyUnavailable::InvalidRange);
    }
    let mut slicer = Slicer::new(range, limits.range_bytes);
    let mut head = Vec::new();
    let mut left_bytes = limits.scan_bytes;
    let mut is_cut_short = false;
    let scanned = sources.scan(path, &mut |piece: &[u8]| {
        let missing = media_type::TEXT_CHECK_BYTES.saturating_sub(head.len());
        head.extend_from_slice(&piece[..piece.len().min(missing)]);
        if piece.len() as u64 > left_bytes {
            is_cut_short = true;
            return ControlFlow::Break(());
        }
        left_bytes -= piece.len() as u64;
        slicer.feed(piece)
    });
    match scanned {
        Scanned::Unavailable(why) => unavailable(why),
        Scanned::Complete { size } if is_cut_short => omit_body(WhyOmitted::TooLarge, size, &head),
        Scanned::Complete { size } => of_cut(reference, slicer.finish(), size, &head),
    }
}

/// A complete body: an image, a PDF, text, a slice of it, or something else.
fn of_body(reference: &Reference<'_>, bytes: Vec<u8>, limits: &InlineLimits) -> Resolved {
    let size = bytes.len() as u64;
    if is_media(&bytes) {
        if size > limits.media_bytes {
            return omit_body(WhyOmitted::TooLarge, size, &bytes);
        }
        return Resolved::Media { mime: mime_of(&bytes).to_owned(), bytes: bytes.into(), size };
    }
    if let Some(range) = reference.range {
        let cut = slice::cut(&bytes, range, limits.range_bytes);
        return of_cut(reference, cut, size, &bytes);
    }
    match media_type::as_text(&bytes) {
        None => omit_body(WhyOmitted::Binary, size, &bytes),
        Some(_) if size > limits.text_bytes => omit_body(WhyOmitted::TooLarge, size, &bytes),
        Some(text) => Resolved::Text {
            text: text.to_owned(),
            label: reference.title().to_owned(),
            range: None,
            size,
            mime: text_mime(reference),
        },
    }
}

fn of_cut(reference: &Reference<'_>, cut: Cut, size: u64, head: &[u8]) -> Resolved {
    match cut {
        Cut::Text { text, range } => Resolved::Text {
            text,
            label: label_with_range(reference.title(), &range),
            range: Some(range),
            size,
            mime: text_mime(reference),
        },
        Cut::TooLarge => omit_body(WhyOmitted::TooLarge, size, head),
        Cut::Binary => omit_body(WhyOmitted::Binary, size, head),
        Cut::Invalid => unavailable(WhyUnavailable::InvalidRange),
        Cut::OutOfBounds { lines } => {
            Resolved::Unavailable { why: WhyUnavailable::RangeOutOfBounds, lines }
        }
    }
}

fn omit_body(why: WhyOmitted, size: u64, head: &[u8]) -> Resolved {
    let mime = mime_of(head).to_owned();
    Resolved::Omitted { why, size, mime }
}

/// A name with the slice that is sent of it.
pub(crate) fn label_with_range(title: &str, range: &Range) -> String {
    let Range { start, end, .. } = range;
    match range.unit {
        Unit::Line => format!("{title}:{start}-{end}"),
        Unit::Byte => format!("{title}:bytes={start}-{end}"),
    }
}

/// Whether it is sent as itself where a target takes it: an image or a PDF.
fn is_media(bytes: &[u8]) -> bool {
    media_type::detect(bytes)
        .is_some_and(|mime| matches!(Class::of_mime(mime), Class::Image | Class::Pdf))
}

/// What a file begins like, its last character perhaps cut.
fn starts_like_text(head: &[u8]) -> bool {
    let until = match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => head.len(),
    };
    media_type::as_text(&head[..until]).is_some()
}

fn mime_of(head: &[u8]) -> &'static str {
    match media_type::detect(head) {
        Some(mime) => mime,
        None if starts_like_text(head) => "text/plain",
        None => media_type::OCTET_STREAM,
    }
}

/// What a text is called where a target wants a type: as the reference says, if that is a text type.
fn text_mime(reference: &Reference<'_>) -> String {
    let claimed = reference.mime.map(media_type::essence);
    claimed
        .filter(|mime| Class::of_mime(mime) == Class::Text)
        .unwrap_or_else(|| "text/plain".to_owned())
}
