//! What becomes of each part, in order, whatever the target: texts, attachments, contexts, and what is not shown.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::Object;

use super::media::Refused;
use super::texts::{self, Descriptor};
use super::{Capabilities, Decision, Lowered, Room, Target};
use crate::Part;
use crate::diagnostics::{Diagnostics, quoted};
use crate::part::{self, Attachment, Body, Mention, Range, Unit, View};
use crate::position;
use crate::resolve::slice::{self, Cut};
use crate::resolve::{Reference, Resolved, Sources, WhyOmitted, labelled};
use crate::sniff::{self, Class};

/// A message on its way through the door.
pub(super) struct Lowering<'a> {
    pub(super) target: Target,
    pub(super) capabilities: &'a Capabilities,
    pub(super) sources: &'a mut dyn Sources,
    pub(super) room: &'a mut Room,
    pub(super) resolved: &'a BTreeMap<usize, Resolved>,
    /// Texts that are still to be joined, where only one is taken.
    pub(super) texts: Vec<String>,
    pub(super) said: Diagnostics,
    pub(super) out: Lowered,
}

impl Lowering<'_> {
    pub(super) fn parts(&mut self, parts: &[Part]) {
        let pictures = pictures_among(parts, self.resolved);
        self.room.images_expected = self.room.images_expected.max(pictures);
        for (at, part) in parts.iter().enumerate() {
            self.part(at, part);
        }
        if self.out.blocks.is_empty() && self.texts.is_empty() && must_reach_the_model(parts) {
            self.say(parts.len(), "placeholder", texts::NO_TEXT.to_owned(), None);
        }
    }

    pub(super) fn finish(mut self) -> Lowered {
        if !self.texts.is_empty() {
            let text = self.target.text(&self.texts.join("\n"));
            self.out.blocks.push(text);
        }
        self.out.diagnostics = self.said.finish();
        self.out
    }

    fn part(&mut self, at: usize, part: &Part) {
        match part.view() {
            View::Text(of) => self.text(at, &of),
            View::FileRef(of) => self.reference(at, &Reference::of_file_ref(&of)),
            View::Attachment(of) => self.attachment(at, part, &of),
            View::Command(_) => self.nothing(at, "commands are for the host"),
            View::Mention(of) => self.mention(at, &of),
            View::EditorContext(of) => {
                let text = texts::editor_context(of.kind, of.source, of.payload);
                self.say(at, "editor_context", text, None);
            }
            View::Unknown { kind, text } => self.unknown(at, part, kind, text),
        }
    }

    fn text(&mut self, at: usize, of: &part::Text<'_>) {
        if let Some(kind) = of.intent {
            self.block_of_text(texts::intent(kind));
        }
        if of.text.trim().is_empty() {
            return match of.intent {
                Some(_) => self.decided(at, "text", Some("only what is wanted is known"), 0),
                None => self.nothing(at, "there is nothing in it"),
            };
        }
        self.say(at, "text", of.text.to_owned(), None);
    }

    fn unknown(&mut self, at: usize, part: &Part, kind: &str, text: Option<&str>) {
        if kind == "directory-ref"
            && let Some(path) = directory_of(part)
        {
            return self.say(at, "reference", texts::directory(path), None);
        }
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => self.say(at, "text", text.to_owned(), Some("its type is not known")),
            None => {
                let named = quoted(kind);
                self.said
                    .say(|| format!("part {at}: {named} cannot be shown (placeholder sent)"));
                let why = Some("its type or shape is not known");
                self.say(at, "placeholder", texts::unsupported(kind), why);
            }
        }
    }

    fn mention(&mut self, at: usize, of: &Mention<'_>) {
        match &of.target {
            part::Target::Skill { .. } => self.nothing(at, "skills come by their tool"),
            part::Target::Context { .. } => self.nothing(at, "what it names follows it"),
            part::Target::File { path, range } => {
                self.reference(at, &Reference::of_mention(path, *range));
            }
            part::Target::Entity { kind, target } => self.entity(at, kind, target),
        }
    }

    fn entity(&mut self, at: usize, kind: &str, target: &Object) {
        if !self.sources.entity(kind, target) {
            let name = ["id", "name", "label"]
                .iter()
                .find_map(|key| target.get(*key)?.as_str());
            let (kind, name) = (quoted(kind), quoted(name.unwrap_or("")));
            let kind = kind.trim_matches('\'');
            self.said
                .say(|| format!("mention: {kind} {name} does not resolve (dropped)"));
            return self.nothing(at, "it does not resolve");
        }
        let mut payload = target.clone();
        payload.shift_remove("kind");
        let text = texts::editor_context("ref", Some(kind), &payload);
        self.say(at, "editor_context", text, None);
    }

    fn attachment(&mut self, at: usize, part: &Part, of: &Attachment<'_>) {
        let described = |refused: Refused| (of.size, refused);
        let (size, refused) = match self.body_of(of) {
            Err(refused) => described(refused),
            Ok(bytes) => {
                let size = bytes.len() as u64;
                match self.body(at, part, of, &bytes) {
                    Ok(()) => return,
                    Err(refused) => (Some(size), refused),
                }
            }
        };
        let staged = match of.body {
            Body::Absent => None,
            _ => self.sources.staged(part),
        };
        let descriptor = Descriptor {
            name: of.name,
            mime: of.mime,
            size,
            omitted: refused.omitted,
            path: staged.as_deref().or(of.path),
        };
        if refused.is_told {
            let why = &refused.why;
            let name = quoted(of.name);
            self.said
                .say(|| format!("attachment: {name}: {why} (described instead)"));
        }
        self.say(at, "descriptor", descriptor.text(), Some(&refused.why));
    }

    fn body_of(&mut self, of: &Attachment<'_>) -> Result<Vec<u8>, Refused> {
        let is_hopeless = of.sniffed_mime.is_some() && self.capabilities.binary.is_none();
        match of.body {
            Body::Absent => Err(Refused::quietly("it has no body")),
            _ if is_hopeless => Err(Refused::because("it is not what it is called")),
            Body::Inline(data) => STANDARD
                .decode(data)
                .map_err(|_| Refused::because("its body is no base64")),
            Body::Stored(id) => {
                self.may_be_read(of)?;
                let body = self.sources.body(id);
                body.ok_or_else(|| Refused::because("its body cannot be read any more"))
            }
        }
    }

    /// What cannot go anyway is not read.
    fn may_be_read(&self, of: &Attachment<'_>) -> Result<(), Refused> {
        let base64_bytes = |size: u64| size.div_ceil(3).saturating_mul(4);
        if of.size.is_none_or(|size| self.has_room(base64_bytes(size))) {
            return Ok(());
        }
        let class = Class::of_mime(of.mime);
        Err(match self.capabilities.of_class(class) {
            None if class != Class::Text => Refused::untaken(self.target, class),
            _ => Refused::too_large(NO_ROOM.to_owned()),
        })
    }

    fn body(
        &mut self,
        at: usize,
        part: &Part,
        of: &Attachment<'_>,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let kind = match of.sniffed_mime {
            Some(mime) => sniff::Kind {
                class: Class::Unknown,
                mime: mime.to_owned(),
            },
            None => sniff::classify(of.mime, bytes),
        };
        if kind.class == Class::Text {
            return self.text_body(at, part, of, bytes);
        }
        let data = match of.body {
            Body::Inline(data) => Some(data),
            _ => None,
        };
        let native = self.native(at, &kind, bytes, data, of.name)?;
        if let Some(how) = &native.changed {
            let name = quoted(of.name);
            self.said.say(|| format!("attachment: {name}: {how}"));
        }
        self.put_media(at, native);
        Ok(())
    }

    /// A small text is shown where it stands, or the lines of it that were selected.
    fn text_body(
        &mut self,
        at: usize,
        part: &Part,
        of: &Attachment<'_>,
        bytes: &[u8],
    ) -> Result<(), Refused> {
        let not_text = || Refused::because("it is not what it is called");
        let whole = sniff::text_in(bytes).ok_or_else(not_text)?;
        if let Some(range) = selected(part) {
            match slice::cut(bytes, range, self.room.inline.range_bytes) {
                Cut::Text { text, range } => {
                    let label = labelled(of.name, &range);
                    self.say(at, "file", texts::file(&label, &text), None);
                    return Ok(());
                }
                _ => self.said.say(|| {
                    let name = quoted(of.name);
                    format!("attachment: {name}: the selection is not in it (shown whole)")
                }),
            }
        }
        if bytes.len() as u64 > self.room.inline.text_bytes {
            return Err(Refused::too_large(
                "it is too long to be shown whole".to_owned(),
            ));
        }
        if !self.has_room(bytes.len() as u64) {
            return Err(Refused::too_large(NO_ROOM.to_owned()));
        }
        self.say(at, "file", texts::file(of.name, whole), None);
        Ok(())
    }

    pub(super) fn nothing(&mut self, at: usize, why: &str) {
        self.decided(at, "nothing", Some(why), 0);
    }

    pub(super) fn say(&mut self, at: usize, became: &str, text: String, why: Option<&str>) {
        let bytes = text.len() as u64;
        self.block_of_text(text);
        self.decided(at, became, why, bytes);
    }

    fn block_of_text(&mut self, text: String) {
        self.take_bytes(text.len() as u64);
        if self.capabilities.text_only {
            self.texts.push(text);
        } else {
            self.out.blocks.push(self.target.text(&text));
        }
    }

    pub(super) fn take_bytes(&mut self, bytes: u64) {
        if let Some(left) = &mut self.room.bytes_left {
            *left = left.saturating_sub(bytes);
        }
    }

    pub(super) fn decided(&mut self, part: usize, became: &str, why: Option<&str>, bytes: u64) {
        self.out.decisions.push(Decision {
            part,
            became: became.to_owned(),
            why: why.map(str::to_owned),
            bytes,
        });
    }

    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.room.bytes_left.is_none_or(|left| bytes <= left)
    }
}

pub(super) fn pictures_in(message: &super::Message<'_>) -> u64 {
    pictures_among(message.parts, message.resolved)
}

/// How many parts look like pictures, without decoding any.
fn pictures_among(parts: &[Part], resolved: &BTreeMap<usize, Resolved>) -> u64 {
    let may_be_picture = |(at, part): &(usize, &Part)| match part.view() {
        View::Attachment(of) => {
            of.body != Body::Absent
                && of.sniffed_mime.is_none()
                && Class::of_mime(of.mime) == Class::Image
        }
        _ => matches!(resolved.get(at), Some(Resolved::Media { .. })),
    };
    parts.iter().enumerate().filter(may_be_picture).count() as u64
}

/// Whether a message that lowers to nothing still asks something of the model (C-053, C-067): host actions alone, with
/// blanks around them, do not.
fn must_reach_the_model(parts: &[Part]) -> bool {
    let has_command = parts
        .iter()
        .any(|part| matches!(part.view(), View::Command(_)));
    parts.iter().any(|part| match part.view() {
        View::Command(_) => false,
        View::Text(of) => !has_command || of.derived_from.is_some(),
        _ => true,
    })
}

fn directory_of(part: &Part) -> Option<&str> {
    let of = part.object().get("ref")?;
    (of.get("kind")?.as_str()? == "path").then_some(())?;
    of.get("path")?.as_str()
}

/// The lines of an embedded text that were selected (3.2).
fn selected(part: &Part) -> Option<Range> {
    let selection = part.object().get("selection")?;
    let (start, end) = position::lines_of_selection(selection)?;
    Some(Range {
        unit: Unit::Line,
        start,
        end,
    })
}

pub(super) const NO_ROOM: &str = "there is no room left for it in the request";

/// For [`Refused`]: what is too large says so in its descriptor.
pub(super) const TOO_LARGE: Option<WhyOmitted> = Some(WhyOmitted::TooLarge);
