//! Reads a message as parts: prose, commands, mentions and attachments, in the order of the text.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::Object;

use super::anchor::find_anchors;
use super::attachment::{self, AttachmentPart};
use super::skeleton::{self, PartLocation, ReadAs, Skeleton};
use crate::command::args;
use crate::compose::Environment;
use crate::diagnostics::Diagnostics;
use crate::normalize::{SubmittedBody, SubmittedPart};
use crate::parse::{self, Kinds, Start, TextSpan};
use crate::part::Part;
use crate::position::{PositionConverter, read_range};

/// How many mentions are read in one message: what comes after them is prose. A text of a million tokens is not a
/// million parts.
const MENTIONS_MAX: usize = 1_000;

/// Reads a message. The bodies of its attachments are moved out of it into the parts.
/// Those that came apart from it, by the number of their attachment, are in `apart`.
pub(crate) fn read_message(
    message: &mut Object,
    mut apart: BTreeMap<usize, Bytes>,
    environment: &Environment<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<SubmittedPart> {
    let text = match message.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let mut bodies = match message.get_mut("attachments") {
        Some(Value::Array(attachments)) => {
            let mut take = |(index, attachment)| {
                let body = take_body(attachment)?;
                let apart = apart.remove(&index).map(SubmittedBody::Bytes);
                Some(apart.unwrap_or(SubmittedBody::Base64(body)))
            };
            attachments.iter_mut().enumerate().map(&mut take).collect()
        }
        _ => Vec::new(),
    };
    let attachments = match message.get("attachments") {
        Some(Value::Array(attachments)) => attachments.as_slice(),
        _ => &[],
    };
    match skeleton::read(message, &text, attachments) {
        Skeleton::Fits(entries) => {
            return rebuild(entries, &text, attachments, &mut bodies, environment, diagnostics);
        }
        Skeleton::DoesNotFit(why) => diagnostics.report(|| {
            format!("message: the parts it carries do not match, {why} (read from its text)")
        }),
        Skeleton::Absent => {}
    }
    let mut walk = Walk::new(&text, environment, diagnostics);
    walk.attachments(attachments, &mut bodies);
    walk.parts
}

/// The parts that a message was made from.
fn rebuild(
    entries: Vec<PartLocation>,
    text: &str,
    attachments: &[Value],
    bodies: &mut [Option<SubmittedBody>],
    environment: &Environment<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<SubmittedPart> {
    let ruler = PositionConverter::new(text);
    let mut read_entry = |entry| match entry {
        PartLocation::Text(range) => {
            SubmittedPart::new(json!({"type": "text", "text": &text[range]}))
        }
        PartLocation::Part(part) => SubmittedPart::from_object(part),
        PartLocation::Attachment { index, read_as } => {
            let attachment = &attachments[index];
            let part = read_attachment(attachment, read_as, &ruler, environment.roots, diagnostics);
            with_body(part, index, bodies)
        }
    };
    entries.into_iter().map(&mut read_entry).collect()
}

/// The part that an attachment was made from.
pub(super) fn read_attachment(
    attachment: &Value,
    read_as: ReadAs,
    ruler: &PositionConverter<'_>,
    roots: &[String],
    diagnostics: &mut Diagnostics,
) -> AttachmentPart {
    let mut part = attachment::to_part(attachment, roots, diagnostics);
    if part.is_carried {
        return part;
    }
    if read_as == ReadAs::Stored
        && let Some(stored) = attachment::stored(attachment)
    {
        part.part = stored;
    }
    let range = attachment.get("range").and_then(read_range);
    if let Some(range) = range.and_then(|range| ruler.bytes(&range)) {
        part.part.insert("anchor".to_owned(), json!(&ruler.text()[range]));
    }
    part
}

/// A part with the body of its attachment.
fn with_body(
    read: AttachmentPart,
    index: usize,
    bodies: &mut [Option<SubmittedBody>],
) -> SubmittedPart {
    let body = bodies.get_mut(index).and_then(Option::take);
    let mut part = read.part;
    if let Some(body) = &body
        && !read.is_carried
    {
        part.insert("size".to_owned(), json!(body.decoded_len()));
    }
    SubmittedPart { part, body, attachment: Some(index) }
}

/// The parts of a message, with diagnostics. Nothing is looked up, checked or expanded.
pub fn from_ahp(mut message: Object, environment: &Environment<'_>) -> (Vec<Part>, Vec<String>) {
    let mut diagnostics = Diagnostics::default();
    let part = |submitted: SubmittedPart| {
        let mut part = submitted.part;
        if let Some(body) = submitted.body {
            part.insert("data".to_owned(), json!(body.into_base64()));
        }
        Part::new(Value::Object(part))
    };
    let submitted = read_message(&mut message, BTreeMap::new(), environment, &mut diagnostics);
    (submitted.into_iter().map(part).collect(), diagnostics.finish())
}

/// Reads text that a person typed, without attachments.
pub(crate) fn read_text(
    text: &str,
    environment: &Environment<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<SubmittedPart> {
    let mut walk = Walk::new(text, environment, diagnostics);
    walk.prose(0..text.len());
    walk.parts
}

/// Bodies are large: they are moved, and what stays behind says only that there was one.
fn take_body(attachment: &mut Value) -> Option<String> {
    if !attachment::has_body(attachment) {
        return None;
    }
    match attachment.get_mut("data") {
        Some(Value::String(data)) => Some(std::mem::take(data)),
        _ => None,
    }
}

struct Walk<'a, 'b> {
    text: &'a str,
    environment: &'a Environment<'a>,
    diagnostics: &'b mut Diagnostics,
    mentions: usize,
    parts: Vec<SubmittedPart>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(
        text: &'a str,
        environment: &'a Environment<'a>,
        diagnostics: &'b mut Diagnostics,
    ) -> Self {
        Self { text, environment, diagnostics, mentions: 0, parts: Vec::new() }
    }

    fn attachments(&mut self, attachments: &[Value], bodies: &mut [Option<SubmittedBody>]) {
        let mut parts = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let mut part =
                attachment::to_part(attachment, self.environment.roots, self.diagnostics);
            // Its anchor and its origin are determined here, whatever it says.
            part.part.shift_remove("anchor");
            part.part.shift_remove("derived_from");
            parts.push(part);
        }
        let anchors = find_anchors(self.text, attachments, &parts, self.diagnostics);
        let mut at = 0;
        for (position, (range, index)) in anchors.anchored.iter().enumerate() {
            self.prose(at..range.start);
            let next = anchors
                .anchored
                .get(position + 1)
                .map_or(self.text.len(), |(range, _)| range.start);
            let mut part = std::mem::take(&mut parts[*index]);
            at = range.end;
            if part.part.get("type").and_then(Value::as_str) == Some("command") {
                // It owns the text up to the next anchor.
                let raw = args::raw_of(&self.text[at..next]);
                let args = Value::Object(args::object(raw));
                part.part.insert("args".to_owned(), args);
                at = next;
            }
            let anchor = json!(&self.text[range.clone()]);
            part.part.insert("anchor".to_owned(), anchor);
            self.parts.push(with_body(part, *index, bodies));
        }
        self.prose(at..self.text.len());
        for index in anchors.unanchored {
            let part = std::mem::take(&mut parts[index]);
            self.parts.push(with_body(part, index, bodies));
        }
    }

    /// A stretch of the text that no attachment covers.
    fn prose(&mut self, mut within: Range<usize>) {
        if within.is_empty() {
            return;
        }
        if within.start == 0 {
            let phrase = self.text.get(..within.end).unwrap_or_default();
            if let Some(id) = self.environment.catalogue.find_phrase(phrase) {
                return self.command(id, within.end);
            }
            match parse::start(self.text) {
                Start::Command(id)
                    if id.len() <= within.end
                        && self.environment.catalogue.lookup(id).is_some() =>
                {
                    return self.command(id, within.end);
                }
                Start::Escaped if within.end > 1 => within.start = 1,
                Start::Command(_) | Start::Escaped | Start::Prose => {}
            }
        }
        let contexts = |name: &str| self.environment.contexts.contains_key(name);
        let kinds = Kinds::All { contexts: &contexts, entities: self.environment.entity_kinds };
        let spans = parse::spans(self.text, within, &kinds, MENTIONS_MAX - self.mentions);
        for span in spans {
            let part = match span {
                TextSpan::Prose(range) => json!({"type": "text", "text": &self.text[range]}),
                TextSpan::Mention(token) => {
                    self.mentions += 1;
                    if self.mentions == MENTIONS_MAX {
                        self.diagnostics
                            .report(|| format!("mention: only the first {MENTIONS_MAX} were read"));
                    }
                    json!({"type": "mention", "target": token.target})
                }
            };
            self.parts.push(SubmittedPart::new(part));
        }
    }

    /// A command at the beginning owns the text up to the first anchor.
    fn command(&mut self, id: &str, end: usize) {
        let raw = args::raw_of(&self.text[id.len()..end]);
        let args = args::object(raw);
        self.parts.push(SubmittedPart::new(json!({"type": "command", "id": id, "args": args})));
    }
}
