//! Lowers references: what they resolve to is inlined, linked, or described as missing (C-016 to C-020).

use super::Target;
use super::acp;
use super::part::{MessageLowering, OVER_BUDGET};
use super::texts::{self, ChatWords, NotInlined};
use crate::chat_reference::ChatReference;
use crate::diagnostics::quoted;
use crate::media_type::{Class, MediaType};
use crate::part::{Location, Range, Unit};
use crate::resolve::{self, Reference, Resolved, WhyOmitted, WhyUnavailable};

impl MessageLowering<'_> {
    pub(super) fn lower_reference(&mut self, at: usize, reference: &Reference<'_>) {
        let resolved = match self.resolved.get(&at) {
            Some(stored) => Some(stored.clone()),
            None => resolve::resolve_reference(reference, self.sources, &self.budget.inline),
        };
        let Some(resolved) = resolved else {
            let text = texts::reference(reference.location, NotInlined::Nothing);
            return self.push_text_part(at, "reference", text, Some("the agent fetches it itself"));
        };
        self.report_range(reference, &resolved);
        match (self.target, reference.location) {
            (Target::Acp, Location::Path(path)) if !self.capabilities.text_only => {
                self.push_link(at, reference, path, resolved);
            }
            _ => self.push_resolved(at, reference, resolved),
        }
    }

    fn push_resolved(&mut self, at: usize, reference: &Reference<'_>, resolved: Resolved) {
        match resolved {
            Resolved::Text { size, text, .. } if !self.fits(text.len() as u64) => {
                let why = WhyOmitted::TooLarge;
                self.describe_reference(
                    at,
                    reference,
                    NotInlined::Omitted { why, size },
                    OVER_BUDGET,
                );
            }
            Resolved::Text { text, label, .. } => {
                self.push_text_part(at, "file", texts::file(&label, &text), None);
            }
            Resolved::Media { mime, bytes, size } => {
                let class = Class::of_mime(&mime);
                let name = file_name(reference);
                let shown = display_name(reference);
                match self.media_block(at, &MediaType { class, mime }, &bytes, None, name) {
                    Ok(native) => {
                        if let Some(how) = &native.changed {
                            let name = quoted(shown);
                            self.diagnostics.report(|| format!("file: {name}: {how}"));
                        }
                        self.push_media(at, native);
                    }
                    Err(not_sent)
                        if class == Class::Pdf
                            && self.push_text_of_pdf(at, "file", shown, &bytes, &not_sent) => {}
                    Err(not_sent) => {
                        let why = not_sent.omitted.unwrap_or(WhyOmitted::Binary);
                        let not_inlined = NotInlined::Omitted { why, size };
                        self.describe_reference(at, reference, not_inlined, &not_sent.why);
                    }
                }
            }
            Resolved::Omitted { why, size, .. } => {
                let reason = match why {
                    WhyOmitted::TooLarge => "it is too large to be inlined",
                    WhyOmitted::Binary => "it is not text",
                };
                self.describe_reference(at, reference, NotInlined::Omitted { why, size }, reason);
            }
            Resolved::Unavailable { why, lines } => {
                let reason = why.as_str();
                self.describe_reference(
                    at,
                    reference,
                    NotInlined::Unavailable { why, lines },
                    reason,
                );
            }
        }
    }

    /// The words of another chat, as far as they were found and fit.
    pub(super) fn lower_chat(&mut self, at: usize, chat: &ChatReference<'_>) {
        let (words, why) = match self.resolved.get(&at) {
            Some(Resolved::Text { text, .. }) if self.fits(text.len() as u64) => {
                (ChatWords::Said(text), None)
            }
            Some(Resolved::Text { size, .. }) => {
                let size = *size;
                let why = WhyOmitted::TooLarge;
                let words = ChatWords::NotShown(NotInlined::Omitted { why, size });
                (words, Some(OVER_BUDGET))
            }
            _ => {
                let why = WhyUnavailable::NotFound;
                let lines = None;
                let words = ChatWords::NotShown(NotInlined::Unavailable { why, lines });
                (words, Some("it is not there"))
            }
        };
        if let Some(why) = why {
            let name = quoted(chat.label);
            self.diagnostics.report(|| format!("chat: {name}: {why}"));
        }
        let text = texts::chat(chat, &words);
        self.push_text_part(at, "chat", text, why);
    }

    fn describe_reference(
        &mut self,
        at: usize,
        reference: &Reference<'_>,
        not_inlined: NotInlined,
        why: &str,
    ) {
        let name = quoted(display_name(reference));
        self.diagnostics.report(|| format!("file: {name}: {why}"));
        let text = texts::reference(reference.location, not_inlined);
        self.push_text_part(at, "reference", text, Some(why));
    }

    /// An agent reads whole files itself; lines that were selected go with it.
    fn push_link(&mut self, at: usize, reference: &Reference<'_>, path: &str, resolved: Resolved) {
        let (mime, size) = match &resolved {
            Resolved::Unavailable { .. } => return self.push_resolved(at, reference, resolved),
            Resolved::Text { range: Some(range), text, mime, .. } => match lines_of(range) {
                Some(fragment) if self.capabilities.embedded_text => {
                    let uri = wire::file_uri::uri_of(self.sources.absolute(path));
                    let block = acp::lines(&format!("{uri}{fragment}"), mime, text);
                    self.use_bytes(text.len() as u64);
                    self.out.blocks.push(block);
                    return self.record_decision(at, "file", None, text.len() as u64);
                }
                _ => return self.push_resolved(at, reference, resolved),
            },
            Resolved::Text { mime, size, .. }
            | Resolved::Media { mime, size, .. }
            | Resolved::Omitted { mime, size, .. } => (mime, *size),
        };
        let uri = wire::file_uri::uri_of(self.sources.absolute(path));
        let block = acp::link(&uri, file_name(reference), mime, size);
        self.out.blocks.push(block);
        self.record_decision(at, "link", Some("the agent reads it itself"), 0);
    }

    /// Reports a range that is not the one that was asked for.
    fn report_range(&mut self, reference: &Reference<'_>, resolved: &Resolved) {
        let Some(asked) = reference.range else {
            return; // The whole file was asked for.
        };
        let name = quoted(display_name(reference));
        match resolved {
            Resolved::Media { mime, .. } => {
                let what = match Class::of_mime(mime) {
                    Class::Pdf => "a PDF",
                    _ => "an image",
                };
                self.diagnostics
                    .report(|| format!("file: {name}: {what} has no ranges (sent whole)"));
            }
            Resolved::Text { range: Some(range), .. } if *range != asked => {
                let (unit, Range { start, end, .. }) = (unit_of(range), range);
                let note = format!("only {unit} {start}-{end} exist (clamped)");
                self.diagnostics.report(|| format!("file: {name}: {note}"));
            }
            _ => {}
        }
    }
}

fn unit_of(range: &Range) -> &'static str {
    match range.unit {
        Unit::Line => "lines",
        Unit::Byte => "bytes",
    }
}

fn lines_of(range: &Range) -> Option<String> {
    let Range { start, end, .. } = range;
    (range.unit == Unit::Line).then(|| format!("#L{start}:{end}"))
}

fn display_name<'a>(reference: &Reference<'a>) -> &'a str {
    match reference.location {
        Location::Path(at) | Location::Url(at) | Location::ContentId(at) => at,
    }
}

/// The last name of its path, or what it is called.
fn file_name<'a>(reference: &Reference<'a>) -> &'a str {
    let of_path = || display_name(reference).rsplit('/').find(|name| !name.is_empty());
    reference.name.or_else(of_path).unwrap_or("file")
}
