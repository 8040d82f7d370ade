//! References: what was found under them is shown, linked, or told to be missing (C-016 to C-020).

use super::Target;
use super::acp;
use super::decide::{Lowering, NO_ROOM};
use super::texts::{self, Instead};
use crate::diagnostics::quoted;
use crate::part::{Place, Range, Unit};
use crate::resolve::{self, Reference, Resolved, WhyOmitted};
use crate::sniff::{Class, Kind};

impl Lowering<'_> {
    pub(super) fn reference(&mut self, at: usize, reference: &Reference<'_>) {
        let resolved = match self.resolved.get(&at) {
            Some(frozen) => Some(frozen.clone()),
            None => resolve::follow(reference, self.sources, &self.room.inline),
        };
        let Some(resolved) = resolved else {
            let text = texts::reference(reference.place, Instead::Nothing);
            return self.say(at, "reference", text, Some("the agent fetches it itself"));
        };
        self.note_range(reference, &resolved);
        match (self.target, reference.place) {
            (Target::Acp, Place::Path(path)) if !self.capabilities.text_only => {
                self.linked(at, reference, path, resolved);
            }
            _ => self.shown(at, reference, resolved),
        }
    }

    fn shown(&mut self, at: usize, reference: &Reference<'_>, resolved: Resolved) {
        match resolved {
            Resolved::Text { size, text, .. } if !self.has_room(text.len() as u64) => {
                let why = WhyOmitted::TooLarge;
                self.instead(at, reference, Instead::Omitted { why, size }, NO_ROOM);
            }
            Resolved::Text { text, label, .. } => {
                self.say(at, "file", texts::file(&label, &text), None);
            }
            Resolved::Media { mime, bytes, size } => {
                let class = Class::of_mime(&mime);
                let name = file_name(reference);
                match self.native(at, &Kind { class, mime }, &bytes, None, name) {
                    Ok(native) => {
                        if let Some(how) = &native.changed {
                            let name = quoted(called(reference));
                            self.said.say(|| format!("file: {name}: {how}"));
                        }
                        self.put_media(at, native);
                    }
                    Err(refused) => {
                        let why = refused.omitted.unwrap_or(WhyOmitted::Binary);
                        let instead = Instead::Omitted { why, size };
                        self.instead(at, reference, instead, &refused.why);
                    }
                }
            }
            Resolved::Omitted { why, size, .. } => {
                let told = match why {
                    WhyOmitted::TooLarge => "it is too large to be shown",
                    WhyOmitted::Binary => "it is no text",
                };
                self.instead(at, reference, Instead::Omitted { why, size }, told);
            }
            Resolved::Unavailable { why, lines } => {
                let told = why.as_str();
                self.instead(at, reference, Instead::Unavailable { why, lines }, told);
            }
        }
    }

    fn instead(&mut self, at: usize, reference: &Reference<'_>, instead: Instead, why: &str) {
        let name = quoted(called(reference));
        self.said.say(|| format!("file: {name}: {why}"));
        let text = texts::reference(reference.place, instead);
        self.say(at, "reference", text, Some(why));
    }

    /// An agent reads whole files itself; lines that were selected go with it.
    fn linked(&mut self, at: usize, reference: &Reference<'_>, path: &str, resolved: Resolved) {
        let (mime, size) = match &resolved {
            Resolved::Unavailable { .. } => return self.shown(at, reference, resolved),
            Resolved::Text {
                range: Some(range),
                text,
                mime,
                ..
            } => match lines_of(range) {
                Some(fragment) if self.capabilities.embedded_text => {
                    let uri = texts::file_uri(&self.sources.absolute(path));
                    let block = acp::lines(&format!("{uri}{fragment}"), mime, text);
                    self.take_bytes(text.len() as u64);
                    self.out.blocks.push(block);
                    return self.decided(at, "file", None, text.len() as u64);
                }
                _ => return self.shown(at, reference, resolved),
            },
            Resolved::Text { mime, size, .. }
            | Resolved::Media { mime, size, .. }
            | Resolved::Omitted { mime, size, .. } => (mime, *size),
        };
        let uri = texts::file_uri(&self.sources.absolute(path));
        let block = acp::link(&uri, file_name(reference), mime, size);
        self.out.blocks.push(block);
        self.decided(at, "link", Some("the agent reads it itself"), 0);
    }

    /// What was asked for and is not what is shown.
    fn note_range(&mut self, reference: &Reference<'_>, resolved: &Resolved) {
        let (Some(asked), name) = (reference.range, quoted(called(reference))) else {
            return;
        };
        match resolved {
            Resolved::Media { .. } => {
                self.said
                    .say(|| format!("file: {name}: a picture has no ranges (sent whole)"));
            }
            Resolved::Text {
                range: Some(range), ..
            } if *range != asked => {
                let (unit, Range { start, end, .. }) = (unit_of(range), range);
                let shown = format!("only {unit} {start}-{end} are there (clamped)");
                self.said.say(|| format!("file: {name}: {shown}"));
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

fn called<'a>(reference: &Reference<'a>) -> &'a str {
    match reference.place {
        Place::Path(at) | Place::Url(at) | Place::ContentId(at) => at,
    }
}

/// The last name of its path, or what it is called.
fn file_name<'a>(reference: &Reference<'a>) -> &'a str {
    let of_path = || called(reference).rsplit('/').find(|name| !name.is_empty());
    reference.name.or_else(of_path).unwrap_or("file")
}
