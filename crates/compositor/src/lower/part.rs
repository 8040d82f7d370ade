//! Lowers each part, in order, whatever the target: texts, attachments, contexts, and what is not sent.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::Object;

use super::media::NotSent;
use super::texts::{self, Descriptor};
use super::{Capabilities, Lowered, LoweringDecision, RequestBudget, Target};
use crate::Part;
use crate::chat_reference::ChatReference;
use crate::command::args;
use crate::compose::reaches_model;
use crate::diagnostics::{Diagnostics, quoted};
use crate::media_type::{self, Class};
use crate::part::{self, Attachment, Body, Mention, Range, Unit, View};
use crate::position;
use crate::resolve::slice::{self, Cut};
use crate::resolve::{Reference, Resolved, Sources, WhyOmitted, label_with_range};

/// A message that is being lowered.
pub(super) struct MessageLowering<'a> {
    pub(super) target: Target,
    pub(super) capabilities: &'a Capabilities,
    pub(super) sources: &'a mut dyn Sources,
    pub(super) budget: &'a mut RequestBudget,
    pub(super) resolved: &'a BTreeMap<usize, Resolved>,
    /// Texts that are still to be joined, where only one is taken.
    pub(super) texts: Vec<String>,
    pub(super) diagnostics: Diagnostics,
    pub(super) out: Lowered,
}

impl MessageLowering<'_> {
    pub(super) fn lower_parts(&mut self, parts: &[Part]) {
        if !reaches_model(parts) {
            return (0..parts.len()).for_each(|at| self.omit(at, "the message is for the host"));
        }
        let images = count_images(parts, self.resolved);
        self.budget.images_expected = self.budget.images_expected.max(images);
        let first = self.agent_command_of(parts);
        let (first, others): (Vec<_>, Vec<_>) =
            parts.iter().enumerate().partition(|(at, _)| Some(*at) == first);
        for (at, part) in first.into_iter().chain(others) {
            self.lower_part(at, part);
        }
        if self.out.blocks.is_empty() && self.texts.is_empty() && must_reach_the_model(parts) {
            self.push_text_part(parts.len(), "placeholder", texts::NO_TEXT.to_owned(), None);
        }
    }

    pub(super) fn finish(mut self) -> Lowered {
        if !self.texts.is_empty() {
            let text = self.target.text(&self.texts.join("\n"));
            self.out.blocks.push(text);
        }
        // One may have been sent before its turn.
        self.out.decisions.sort_by_key(|decision| decision.part);
        self.out.diagnostics = self.diagnostics.finish();
        self.out
    }

    fn lower_part(&mut self, at: usize, part: &Part) {
        match part.view() {
            View::Text(of) => self.lower_text(at, &of),
            View::FileRef(of) => self.lower_reference(at, &Reference::of_file_ref(&of)),
            View::Attachment(of) => self.lower_attachment(at, part, &of),
            View::Command(of) => self.lower_command(at, &of),
            View::Mention(of) => self.lower_mention(at, &of),
            View::EditorContext(of) => {
                let text = texts::editor_context(of.kind, of.source, of.payload);
                self.push_text_part(at, "editor_context", text, None);
            }
            View::Unknown { kind, text } => self.lower_unknown(at, part, kind, text),
        }
    }

    /// The command that must come before everything else: an agent looks for one at the very beginning alone (AG-28).
    fn agent_command_of(&self, parts: &[Part]) -> Option<usize> {
        let is_for_agent =
            |part: &Part| matches!(part.view(), View::Command(of) if of.agent_command.is_some());
        parts.iter().position(is_for_agent).filter(|_| self.target == Target::Acp)
    }

    fn lower_command(&mut self, at: usize, of: &part::Command<'_>) {
        match (of.agent_command, self.target) {
            (Some(name), Target::Acp) => {
                let (raw, _) = args::read(of.args);
                let blank = if raw.is_empty() { "" } else { " " };
                let text = format!("/{name}{blank}{raw}");
                self.push_text_part(at, "text", text, Some("it is a command of the agent"));
            }
            (Some(_), _) => self.omit(at, "it is a command of an agent"),
            (None, _) => self.omit(at, "commands are for the host"),
        }
    }

    fn lower_text(&mut self, at: usize, of: &part::Text<'_>) {
        if let Some(kind) = of.intent {
            self.push_text(texts::intent(kind));
        }
        if of.text.trim().is_empty() {
            return match of.intent {
                Some(_) => {
                    self.record_decision(at, "text", Some("it has an intent and no text"), 0)
                }
                None => self.omit(at, "it is empty"),
            };
        }
        self.push_text_part(at, "text", of.text.to_owned(), None);
    }

    fn lower_unknown(&mut self, at: usize, part: &Part, kind: &str, text: Option<&str>) {
        if kind == "directory-ref"
            && let Some(path) = directory_of(part)
        {
            return self.push_text_part(at, "reference", texts::directory(path), None);
        }
        if let Some(chat) = ChatReference::of(part) {
            return self.lower_chat(at, &chat);
        }
        match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                self.push_text_part(at, "text", text.to_owned(), Some("its type is not known"))
            }
            None => {
                let named = quoted(kind);
                self.diagnostics
                    .report(|| format!("part {at}: {named} cannot be shown (placeholder sent)"));
                let why = Some("its type or shape is not known");
                self.push_text_part(at, "placeholder", texts::unsupported(kind), why);
            }
        }
    }

    fn lower_mention(&mut self, at: usize, of: &Mention<'_>) {
        match &of.target {
            part::MentionTarget::Skill { .. } => self.omit(at, "skills are loaded by their tool"),
            part::MentionTarget::Context { .. } => self.omit(at, "its parts follow it"),
            part::MentionTarget::File { path, range } => {
                self.lower_reference(at, &Reference::of_mention(path, *range));
            }
            part::MentionTarget::Entity { kind: "mcp", .. } => self.omit(at, "its parts follow it"),
            part::MentionTarget::Entity { kind, target } => self.lower_entity(at, kind, target),
        }
    }

    fn lower_entity(&mut self, at: usize, kind: &str, target: &Object) {
        if !self.sources.entity(kind, target) {
            let name = ["id", "name", "label"].iter().find_map(|key| target.get(*key)?.as_str());
            let (kind, name) = (quoted(kind), quoted(name.unwrap_or("")));
            let kind = kind.trim_matches('\'');
            self.diagnostics
                .report(|| format!("mention: {kind} {name} does not resolve (dropped)"));
            return self.omit(at, "it does not resolve");
        }
        let mut payload = target.clone();
        payload.shift_remove("kind");
        let text = texts::editor_context("ref", Some(kind), &payload);
        self.push_text_part(at, "editor_context", text, None);
    }

    fn lower_attachment(&mut self, at: usize, part: &Part, of: &Attachment<'_>) {
        let described = |refused: NotSent| (of.size, refused);
        let (size, refused) = match self.read_body(of) {
            Err(refused) => described(refused),
            Ok(bytes) => {
                let size = bytes.len() as u64;
                match self.lower_body(at, part, of, &bytes) {
                    Ok(()) => return,
                    Err(refused)
                        if is_pdf(of, &bytes)
                            && self.push_text_of_pdf(
                                at,
                                "attachment",
                                of.name,
                                &bytes,
                                &refused,
                            ) =>
                    {
                        return;
                    }
                    Err(refused) => (Some(size), refused),
                }
            }
        };
        let staged = match of.body {
            Body::Absent => None,
            _ => self.sources.find_staged_copy(part),
        };
        let descriptor = Descriptor {
            name: of.name,
            mime: of.mime,
            size,
            omitted: refused.omitted,
            path: staged.as_deref().or(of.path),
        };
        if refused.is_reported {
            let why = &refused.why;
            let name = quoted(of.name);
            self.diagnostics.report(|| format!("attachment: {name}: {why} (described instead)"));
        }
        self.push_text_part(at, "descriptor", descriptor.text(), Some(&refused.why));
    }

    fn read_body(&mut self, of: &Attachment<'_>) -> Result<Vec<u8>, NotSent> {
        let is_mislabelled = of.sniffed_mime.is_some() && self.capabilities.binary.is_none();
        match of.body {
            Body::Absent => Err(NotSent::unreported("it has no body")),
            _ if is_mislabelled => Err(NotSent::because("its content does not match its type")),
            Body::Inline(data) => {
                STANDARD.decode(data).map_err(|_| NotSent::because("its body is not base64"))
            }
            Body::Stored(id) => {
                self.check_readable(of)?;
                let body = self.sources.body(id);
                body.ok_or_else(|| NotSent::because("its body is no longer available"))
            }
        }
    }

    /// What cannot be sent anyway is not read.
    fn check_readable(&self, of: &Attachment<'_>) -> Result<(), NotSent> {
        let base64_bytes = |size: u64| size.div_ceil(3).saturating_mul(4);
        if of.size.is_none_or(|size| self.fits(base64_bytes(size))) {
            return Ok(());
        }
        let class = Class::of_mime(of.mime);
        let is_small = of.size.is_some_and(|size| size <= self.budget.inline.message_media_bytes);
        if class == Class::Pdf && is_small {
            return Ok(()); // its text may fit
        }
        Err(match self.capabilities.of_class(class) {
            None if class != Class::Text => NotSent::unsupported(self.target, class),
            _ => NotSent::too_large(OVER_BUDGET.to_owned()),
        })
    }

    fn lower_body(
        &mut self,
        at: usize,
        part: &Part,
        of: &Attachment<'_>,
        bytes: &[u8],
    ) -> Result<(), NotSent> {
        let kind = match of.sniffed_mime {
            Some(mime) => media_type::MediaType { class: Class::Unknown, mime: mime.to_owned() },
            None => media_type::classify(of.mime, bytes),
        };
        if kind.class == Class::Text {
            return self.lower_text_body(at, part, of, bytes);
        }
        let data = match of.body {
            Body::Inline(data) => Some(data),
            _ => None,
        };
        let native = self.media_block(at, &kind, bytes, data, of.name)?;
        if let Some(how) = &native.changed {
            let name = quoted(of.name);
            self.diagnostics.report(|| format!("attachment: {name}: {how}"));
        }
        self.push_media(at, native);
        Ok(())
    }

    /// Sends the text of a PDF that is not sent as it is; `false` if it has none that can be read, or that fits. `what` it is, and
    /// its name.
    pub(super) fn push_text_of_pdf(
        &mut self,
        at: usize,
        what: &str,
        name: &str,
        bytes: &[u8],
        refused: &NotSent,
    ) -> bool {
        let read = self.sources.read_document(bytes);
        if let Some(problem) = read.as_ref().and_then(|read| read.problem.as_deref()) {
            let name = quoted(name);
            self.diagnostics.report(|| format!("{what}: {name}: {problem}"));
        }
        let Some(read) = read.filter(|read| !read.text.trim().is_empty()) else {
            return false; // it is described
        };
        let limit = self.budget.inline.range_bytes;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let end = read.text.floor_char_boundary(limit.min(read.text.len()));
        let text = read.text.get(..end).unwrap_or_default();
        let is_whole = text.len() == read.text.len() && read.pages == Some(read.text_pages);
        let label = match (is_whole, read.pages) {
            (true, _) => format!("{name} (its text)"),
            (false, Some(pages)) => {
                format!("{name} (the beginning of its text; it has {pages} pages)")
            }
            (false, None) => format!("{name} (the beginning of its text)"),
        };
        let file = texts::file(&label, text);
        if !self.fits(file.len() as u64) {
            return false;
        }
        let why = &refused.why;
        let name = quoted(name);
        self.diagnostics.report(|| format!("{what}: {name}: {why} (its text is sent instead)"));
        self.push_text_part(at, "file", file, Some(why));
        true
    }

    /// A small text is inlined where it is, or the lines of it that were selected.
    fn lower_text_body(
        &mut self,
        at: usize,
        part: &Part,
        of: &Attachment<'_>,
        bytes: &[u8],
    ) -> Result<(), NotSent> {
        let not_text = || NotSent::because("its content does not match its type");
        let whole = media_type::as_text(bytes).ok_or_else(not_text)?;
        if let Some(range) = selected_lines(part) {
            match slice::cut(bytes, range, self.budget.inline.range_bytes) {
                Cut::Text { text, range } => {
                    let label = label_with_range(of.name, &range);
                    self.push_text_part(at, "file", texts::file(&label, &text), None);
                    return Ok(());
                }
                _ => self.diagnostics.report(|| {
                    let name = quoted(of.name);
                    format!("attachment: {name}: the selection is not in it (sent whole)")
                }),
            }
        }
        if bytes.len() as u64 > self.budget.inline.text_bytes {
            return Err(NotSent::too_large("it is too long to be inlined".to_owned()));
        }
        if !self.fits(bytes.len() as u64) {
            return Err(NotSent::too_large(OVER_BUDGET.to_owned()));
        }
        self.push_text_part(at, "file", texts::file(of.name, whole), None);
        Ok(())
    }

    pub(super) fn omit(&mut self, at: usize, why: &str) {
        self.record_decision(at, "nothing", Some(why), 0);
    }

    pub(super) fn push_text_part(
        &mut self,
        at: usize,
        became: &str,
        text: String,
        why: Option<&str>,
    ) {
        let bytes = text.len() as u64;
        self.push_text(text);
        self.record_decision(at, became, why, bytes);
    }

    fn push_text(&mut self, text: String) {
        self.use_bytes(text.len() as u64);
        if self.capabilities.text_only {
            self.texts.push(text);
        } else {
            self.out.blocks.push(self.target.text(&text));
        }
    }

    pub(super) fn use_bytes(&mut self, bytes: u64) {
        if let Some(left) = &mut self.budget.bytes_left {
            *left = left.saturating_sub(bytes);
        }
    }

    pub(super) fn record_decision(
        &mut self,
        part: usize,
        became: &str,
        why: Option<&str>,
        bytes: u64,
    ) {
        self.out.decisions.push(LoweringDecision {
            part,
            became: became.to_owned(),
            why: why.map(str::to_owned),
            bytes,
        });
    }

    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.budget.bytes_left.is_none_or(|left| bytes <= left)
    }
}

/// Whether an attachment is a PDF, and passes for nothing else.
fn is_pdf(of: &Attachment<'_>, bytes: &[u8]) -> bool {
    of.sniffed_mime.is_none() && media_type::classify(of.mime, bytes).class == Class::Pdf
}

pub(super) fn count_images_in(message: &super::ResolvedMessage<'_>) -> u64 {
    count_images(message.parts, message.resolved)
}

/// How many parts look like images, without decoding any.
fn count_images(parts: &[Part], resolved: &BTreeMap<usize, Resolved>) -> u64 {
    let may_be_image = |(at, part): &(usize, &Part)| match part.view() {
        View::Attachment(of) => {
            of.body != Body::Absent
                && of.sniffed_mime.is_none()
                && Class::of_mime(of.mime) == Class::Image
        }
        _ => match resolved.get(at) {
            Some(Resolved::Media { mime, .. }) => Class::of_mime(mime) == Class::Image,
            _ => false,
        },
    };
    parts.iter().enumerate().filter(may_be_image).count() as u64
}

/// Whether a message that lowers to nothing still asks something of the model (C-053, C-067): host actions alone, with
/// blanks around them, do not.
fn must_reach_the_model(parts: &[Part]) -> bool {
    let has_command = parts.iter().any(|part| matches!(part.view(), View::Command(_)));
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
fn selected_lines(part: &Part) -> Option<Range> {
    let selection = part.object().get("selection")?;
    let (start, end) = position::lines_of_selection(selection)?;
    Some(Range { unit: Unit::Line, start, end })
}

pub(super) const OVER_BUDGET: &str = "it does not fit in the request";

/// For [`NotSent`]: what is too large says so in its descriptor.
pub(super) const TOO_LARGE: Option<WhyOmitted> = Some(WhyOmitted::TooLarge);
