//! A message becomes pieces: prose, commands, mentions and attachments, in the order of the text (3.2).

use std::ops::Range;

use serde_json::{Value, json};
use wire::Object;

use super::anchor::anchors;
use super::attachment;
use crate::command::args;
use crate::compose::Surroundings;
use crate::diagnostics::Diagnostics;
use crate::parse::{self, Kinds, Span, Start};
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
    let attachments = match message.get_mut("attachments") {
        Some(Value::Array(attachments)) => attachments.as_mut_slice(),
        _ => &mut [],
    };
    let mut bodies: Vec<Option<String>> = Vec::with_capacity(attachments.len());
    bodies.extend(attachments.iter_mut().map(take_body));
    let mut walk = Walk::new(&text, around, said);
    walk.attachments(attachments, &mut bodies);
    walk.pieces
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
            let mut part = attachment::part(attachment, self.around.roots, self.said);
            // Where it stands and what it was made from are found out here, whatever it says.
            part.shift_remove("anchor");
            part.shift_remove("derived_from");
            parts.push(part);
        }
        let anchors = anchors(self.text, attachments, &parts, self.said);
        let mut at = 0;
        for (place, (range, index)) in anchors.placed.iter().enumerate() {
            self.prose(at..range.start);
            let next = anchors.placed.get(place + 1);
            let next = next.map_or(self.text.len(), |(range, _)| range.start);
            let mut part = std::mem::take(&mut parts[*index]);
            at = range.end;
            if part.get("type").and_then(Value::as_str) == Some("command") {
                // It owns the text up to the next anchor.
                let raw = args::raw_of(&self.text[at..next]);
                part.insert("args".to_owned(), Value::Object(args::object(raw)));
                at = next;
            }
            part.insert("anchor".to_owned(), json!(&self.text[range.clone()]));
            self.attached(part, *index, bodies);
        }
        self.prose(at..self.text.len());
        for index in anchors.loose {
            let part = std::mem::take(&mut parts[index]);
            self.attached(part, index, bodies);
        }
    }

    fn attached(&mut self, part: Object, index: usize, bodies: &mut [Option<String>]) {
        self.pieces.push(Piece {
            part,
            body: bodies[index].take(),
            attachment: Some(index),
        });
    }

    /// A stretch of the text that no attachment covers.
    fn prose(&mut self, mut within: Range<usize>) {
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
