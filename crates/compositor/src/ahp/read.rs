//! A message becomes pieces: prose, commands, mentions and attachments, in the order of the text (3.2).

use std::ops::Range;

use serde_json::{Value, json};
use wire::Object;

use super::anchor::anchors;
use super::attachment::{self, Found};
use super::skeleton::{self, Entry, Skeleton, Way};
use crate::command::args;
use crate::compose::Surroundings;
use crate::diagnostics::Diagnostics;
use crate::parse::{self, Kinds, Span, Start};
use crate::part::Part;
use crate::position::{Ruler, read_range};
use crate::settle::Piece;

/// How many mentions are read in one message: what comes after them is prose. A text of a million tokens is not a
/// million parts.
const MENTIONS_MAX: usize = 1_000;

/// Takes a message apart. The bodies of its attachments are moved out of it into the pieces.
pub(crate) fn pieces(
    message: &mut Object,
    around: &Surroundings<'_>,
    said: &mut Diagnostics,
) -> Vec<Piece> {
    let text = match message.get("text") {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let mut bodies = match message.get_mut("attachments") {
        Some(Value::Array(attachments)) => attachments.iter_mut().map(take_body).collect(),
        _ => Vec::new(),
    };
    let attachments = match message.get("attachments") {
        Some(Value::Array(attachments)) => attachments.as_slice(),
        _ => &[],
    };
    match skeleton::read(message, &text, attachments) {
        Skeleton::Fits(entries) => {
            return rebuild(entries, &text, attachments, &mut bodies, around, said);
        }
        Skeleton::DoesNotFit(why) => said.say(|| {
            format!("message: the parts it carries do not fit, {why} (read from its text)")
        }),
        Skeleton::Absent => {}
    }
    let mut walk = Walk::new(&text, around, said);
    walk.attachments(attachments, &mut bodies);
    walk.pieces
}

/// The parts that a message was made from.
fn rebuild(
    entries: Vec<Entry>,
    text: &str,
    attachments: &[Value],
    bodies: &mut [Option<String>],
    around: &Surroundings<'_>,
    said: &mut Diagnostics,
) -> Vec<Piece> {
    let ruler = Ruler::new(text);
    let mut piece = |entry| match entry {
        Entry::Text(range) => Piece::new(json!({"type": "text", "text": &text[range]})),
        Entry::Part(part) => Piece::of(part),
        Entry::Attachment { index, way } => {
            let attachment = &attachments[index];
            let found = again(attachment, way, &ruler, around.roots, said);
            attached(found, index, bodies)
        }
    };
    entries.into_iter().map(&mut piece).collect()
}

/// The part that an attachment was made from.
pub(super) fn again(
    attachment: &Value,
    way: Way,
    ruler: &Ruler<'_>,
    roots: &[String],
    said: &mut Diagnostics,
) -> Found {
    let mut found = attachment::part(attachment, roots, said);
    if found.is_carried {
        return found;
    }
    if way == Way::Stored
        && let Some(stored) = attachment::stored(attachment)
    {
        found.part = stored;
    }
    let range = attachment.get("range").and_then(read_range);
    if let Some(range) = range.and_then(|range| ruler.bytes(&range)) {
        found
            .part
            .insert("anchor".to_owned(), json!(&ruler.text()[range]));
    }
    found
}

/// A part with the body of its attachment.
fn attached(found: Found, index: usize, bodies: &mut [Option<String>]) -> Piece {
    let body = bodies.get_mut(index).and_then(Option::take);
    let mut part = found.part;
    if let Some(body) = &body
        && !found.is_carried
    {
        part.insert("size".to_owned(), json!(decoded_len(body)));
    }
    Piece {
        part,
        body,
        attachment: Some(index),
    }
}

/// The bytes that base64 stands for, if it is well formed.
pub(super) fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take(2).filter(|it| *it == b'=');
    (base64.len() / 4 * 3).saturating_sub(padding.count())
}

/// The parts that a message says, as it says them: nothing is looked up, checked or expanded. And what there is to tell.
pub fn from_ahp(mut message: Object, around: &Surroundings<'_>) -> (Vec<Part>, Vec<String>) {
    let mut said = Diagnostics::default();
    let part = |piece: Piece| {
        let mut part = piece.part;
        if let Some(body) = piece.body {
            part.insert("data".to_owned(), json!(body));
        }
        Part::make(Value::Object(part))
    };
    let pieces = pieces(&mut message, around, &mut said);
    (pieces.into_iter().map(part).collect(), said.finish())
}

/// What somebody typed, without any attachment.
pub(crate) fn text_pieces(
    text: &str,
    around: &Surroundings<'_>,
    said: &mut Diagnostics,
) -> Vec<Piece> {
    let mut walk = Walk::new(text, around, said);
    walk.prose(0..text.len());
    walk.pieces
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
    around: &'a Surroundings<'a>,
    said: &'b mut Diagnostics,
    mentions: usize,
    pieces: Vec<Piece>,
}

impl<'a, 'b> Walk<'a, 'b> {
    fn new(text: &'a str, around: &'a Surroundings<'a>, said: &'b mut Diagnostics) -> Self {
        Self {
            text,
            around,
            said,
            mentions: 0,
            pieces: Vec::new(),
        }
    }

    fn attachments(&mut self, attachments: &[Value], bodies: &mut [Option<String>]) {
        let mut parts = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let mut found = attachment::part(attachment, self.around.roots, self.said);
            // Where it stands and what it was made from are found out here, whatever it says.
            found.part.shift_remove("anchor");
            found.part.shift_remove("derived_from");
            parts.push(found);
        }
        let anchors = anchors(self.text, attachments, &parts, self.said);
        let mut at = 0;
        for (place, (range, index)) in anchors.placed.iter().enumerate() {
            self.prose(at..range.start);
            let next = anchors.placed.get(place + 1);
            let next = next.map_or(self.text.len(), |(range, _)| range.start);
            let mut found = std::mem::take(&mut parts[*index]);
            at = range.end;
            if found.part.get("type").and_then(Value::as_str) == Some("command") {
                // It owns the text up to the next anchor.
                let raw = args::raw_of(&self.text[at..next]);
                let args = Value::Object(args::object(raw));
                found.part.insert("args".to_owned(), args);
                at = next;
            }
            let anchor = json!(&self.text[range.clone()]);
            found.part.insert("anchor".to_owned(), anchor);
            self.pieces.push(attached(found, *index, bodies));
        }
        self.prose(at..self.text.len());
        for index in anchors.loose {
            let found = std::mem::take(&mut parts[index]);
            self.pieces.push(attached(found, index, bodies));
        }
    }

    /// A stretch of the text that no attachment covers.
    fn prose(&mut self, mut within: Range<usize>) {
        if within.is_empty() {
            return;
        }
        if within.start == 0 {
            match parse::start(self.text) {
                Start::Command(id)
                    if id.len() <= within.end && self.around.catalogue.lookup(id).is_some() =>
                {
                    return self.command(id, within.end);
                }
                Start::Escaped if within.end > 1 => within.start = 1,
                Start::Command(_) | Start::Escaped | Start::Prose => {}
            }
        }
        let contexts = |name: &str| self.around.contexts.contains_key(name);
        let kinds = Kinds::All {
            contexts: &contexts,
            entities: self.around.entity_kinds,
        };
        let spans = parse::spans(self.text, within, &kinds, MENTIONS_MAX - self.mentions);
        for span in spans {
            let part = match span {
                Span::Prose(range) => json!({"type": "text", "text": &self.text[range]}),
                Span::Mention(token) => {
                    self.mentions += 1;
                    if self.mentions == MENTIONS_MAX {
                        self.said
                            .say(|| format!("mention: only the first {MENTIONS_MAX} were read"));
                    }
                    json!({"type": "mention", "target": token.target})
                }
            };
            self.pieces.push(Piece::new(part));
        }
    }

    /// A command at the beginning owns the text up to the first anchor.
    fn command(&mut self, id: &str, end: usize) {
        let raw = args::raw_of(&self.text[id.len()..end]);
        let args = args::object(raw);
        self.pieces.push(Piece::new(
            json!({"type": "command", "id": id, "args": args}),
        ));
    }
}
