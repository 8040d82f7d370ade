//! Bodies of attachments: decoded, classified, and detached from the message if they are too large (C-033, C-035, C-036).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use wire::{Digest, Object};

use crate::compose::{AttachmentBudget, DetachedBody};
use crate::diagnostics::{Diagnostics, quoted};
use crate::media_type::{self, Class};
use crate::normalize::SubmittedBody;

/// What was done with a body.
#[derive(Debug)]
pub(crate) enum BodyOutcome {
    /// It stays in its part.
    Inline,
    /// It is to be stored outside of the message, under this name.
    Detached { digest: Digest, size: u64 },
    /// It is not base64 and stays unchanged in its message.
    NotBase64(String),
}

/// Collects the bodies of a message, those that stay and those that go.
pub(crate) struct BodyCollector {
    pub budget: AttachmentBudget,
    pub inline_bytes: u64,
    pub detached: Vec<DetachedBody>,
    names: BTreeSet<Digest>,
}

impl BodyCollector {
    pub(crate) fn new(budget: AttachmentBudget) -> Self {
        Self { budget, inline_bytes: 0, detached: Vec::new(), names: BTreeSet::new() }
    }

    /// Puts a body into the `file-attachment` it belongs to, or its name if it is detached. A body that cannot be decoded
    /// leaves a descriptor (G-38).
    pub(crate) fn attach(
        &mut self,
        part: &mut Object,
        body: SubmittedBody,
        diagnostics: &mut Diagnostics,
    ) -> BodyOutcome {
        let (bytes, base64) = match body {
            SubmittedBody::Bytes(bytes) => (bytes, None),
            SubmittedBody::Base64(base64) => match STANDARD.decode(&base64) {
                Ok(bytes) => (Bytes::from(bytes), Some(base64)),
                Err(_) => {
                    describe(part, diagnostics);
                    return BodyOutcome::NotBase64(base64);
                }
            },
        };
        let size = bytes.len() as u64;
        part.insert("size".to_owned(), json!(size));
        let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or("");
        let (name, mime) = (quoted(text("name")), text("mime").to_owned());
        let kind = media_type::classify(&mime, &bytes);
        let is_unknown = kind.class == Class::Unknown;
        if is_unknown && kind.mime != media_type::essence(&mime) {
            let (mime, sniffed) = (quoted(&mime), kind.mime);
            diagnostics.report(|| {
                format!("attachment: {name} is not {mime} but {sniffed} (described only)")
            });
            part.insert("sniffed_mime".to_owned(), json!(sniffed));
        } else {
            part.shift_remove("sniffed_mime");
        }
        if !is_unknown && self.reserve_inline(size) {
            part.shift_remove("content_id");
            let base64 = base64.unwrap_or_else(|| STANDARD.encode(&bytes));
            part.insert("data".to_owned(), Value::String(base64));
            return BodyOutcome::Inline;
        }
        let digest = self.detach(mime, bytes);
        part.shift_remove("data");
        part.insert("content_id".to_owned(), json!(format!("sha256:{digest}")));
        BodyOutcome::Detached { digest, size }
    }

    /// What is not base64 stays unchanged, if it fits.
    pub(crate) fn inline_undecoded(&mut self, body: String) -> BodyOutcome {
        let size = body.len() as u64;
        if self.reserve_inline(size) {
            return BodyOutcome::NotBase64(body);
        }
        let digest = self.detach("text/plain".to_owned(), Bytes::from(body));
        BodyOutcome::Detached { digest, size }
    }

    /// Whether so many bytes may stay inline; if so, they are counted.
    fn reserve_inline(&mut self, size: u64) -> bool {
        let fits = size <= self.budget.each_bytes && size <= self.budget.left_bytes;
        if fits {
            self.budget.left_bytes -= size;
            self.inline_bytes += size;
        }
        fits
    }

    fn detach(&mut self, mime: String, bytes: Bytes) -> Digest {
        let digest = Digest::of(&bytes);
        if self.names.insert(digest) {
            self.detached.push(DetachedBody {
                content_id: format!("sha256:{digest}"),
                digest,
                mime,
                bytes,
            });
        }
        digest
    }
}

fn describe(part: &mut Object, diagnostics: &mut Diagnostics) {
    let name = quoted(part.get("name").and_then(Value::as_str).unwrap_or(""));
    diagnostics.report(|| format!("attachment: the body of {name} is not base64 (described only)"));
    for key in ["data", "size", "content_id", "sniffed_mime"] {
        part.shift_remove(key);
    }
}
