//! Parts as somebody submitted them become parts as they are persisted: bodies are checked, commands expanded, mentions
//! looked up. Whoever made them is not believed (G-38).
//!
//! Promises: what is settled already stays as it is; what is unknown stays as it is; order is kept (C-002).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::Object;

use crate::body::{Bodies, Fate};
use crate::command::template::{self, Expansion};
use crate::command::{Entry, Mentions, What, args};
use crate::compose::Surroundings;
use crate::diagnostics::{Diagnostics, quoted};
use crate::parse::{self, Kinds, Span};
use crate::part::Part;

/// How many mentions are read in what a command became.
const DERIVED_MENTIONS_MAX: usize = 100;

/// How much all templates of a message may add to what was typed: chips are small and templates are not.
const EXPANDED_BYTES_MAX: usize = 4 * 1_048_576;

/// A part on its way.
#[derive(Debug)]
pub(crate) struct Piece {
    pub part: Object,
    /// The base64 that belongs at its `data`.
    pub body: Option<String>,
    /// Which attachment of the message it comes from.
    pub attachment: Option<usize>,
}

impl Piece {
    pub fn new(part: Value) -> Self {
        let Value::Object(part) = part else {
            unreachable!("parts are made from objects");
        };
        Self::of(part)
    }

    /// A part that was made elsewhere: its body is taken out of it.
    pub fn of(mut part: Object) -> Self {
        let is_attachment = part.get("type").and_then(Value::as_str) == Some("file-attachment");
        let body = match part.get_mut("data") {
            Some(Value::String(data)) if is_attachment => Some(std::mem::take(data)),
            _ => None,
        };
        Self {
            part,
            body,
            attachment: None,
        }
    }
}

/// What became of the bodies of a message's attachments.
pub(crate) struct Settled {
    pub parts: Vec<Part>,
    /// For each body of an attachment: which attachment, which part, and what became of it.
    pub fates: Vec<(usize, usize, Fate)>,
}

pub(crate) fn settle(
    pieces: Vec<Piece>,
    around: &Surroundings<'_>,
    bodies: &mut Bodies,
    said: &mut Diagnostics,
) -> Settled {
    // What was made from a part comes after it.
    let expanded = pieces
        .iter()
        .enumerate()
        .filter_map(|(index, piece)| derived_from(&piece.part).filter(|origin| *origin < index));
    let sampled = pieces.iter().filter_map(|piece| context_kind(&piece.part));
    let mut settling = Settling {
        expanded: expanded.collect(),
        sampled: sampled.map(str::to_owned).collect(),
        expansion_room: Some(EXPANDED_BYTES_MAX),
        around,
        bodies,
        said,
        parts: Vec::with_capacity(pieces.len()),
        places: Vec::with_capacity(pieces.len()),
        fates: Vec::new(),
    };
    for (index, piece) in pieces.into_iter().enumerate() {
        settling.take(index, piece);
    }
    let Settling { parts, fates, .. } = settling;
    let parts = parts.into_iter().map(|it| Part::make(Value::Object(it)));
    let parts: Vec<Part> = parts.collect();
    for part in parts.iter().filter(|part| !part.is_readable()) {
        let kind = quoted(part.kind());
        said.say(|| format!("part: one of type {kind} cannot be read (kept as it is)"));
    }
    Settled { parts, fates }
}

fn derived_from(part: &Object) -> Option<usize> {
    let index = part.get("derived_from")?.get("part")?.as_u64()?;
    usize::try_from(index).ok()
}

fn context_kind(part: &Object) -> Option<&str> {
    let is_context = part.get("type")?.as_str()? == "editor-context";
    part.get("kind")?.as_str().filter(|_| is_context)
}

struct Settling<'a, 'b> {
    /// Pieces that others were derived from when they were settled before: not again (C-044).
    expanded: BTreeSet<usize>,
    /// Contexts that are in the message: nobody needs them twice.
    sampled: BTreeSet<String>,
    /// `None` once there is no more.
    expansion_room: Option<usize>,
    around: &'a Surroundings<'a>,
    bodies: &'b mut Bodies,
    said: &'b mut Diagnostics,
    parts: Vec<Object>,
    /// Where each piece went.
    places: Vec<usize>,
    fates: Vec<(usize, usize, Fate)>,
}

impl Settling<'_, '_> {
    fn take(&mut self, index: usize, mut piece: Piece) {
        self.places.push(self.parts.len());
        self.follow_origin(index, &mut piece.part);
        let is_expanded = self.expanded.contains(&index);
        match piece.part.get("type").and_then(Value::as_str) {
            Some("file-attachment") => self.attachment(piece),
            Some("command") => self.command(piece.part, is_expanded),
            Some("mention") => self.mention(piece.part, is_expanded),
            Some("editor-context") => self.editor_context(piece.part),
            _ => self.parts.push(piece.part),
        }
    }

    /// A part that another was made from may have moved.
    fn follow_origin(&self, index: usize, part: &mut Object) {
        if let Some(origin) = derived_from(part).filter(|origin| *origin < index)
            && self.places[origin] != origin
        {
            part["derived_from"]["part"] = json!(self.places[origin]);
        }
    }

    fn attachment(&mut self, piece: Piece) {
        let mut part = piece.part;
        if let Some(body) = piece.body {
            let fate = self.bodies.settle(&mut part, body, self.said);
            if let Some(attachment) = piece.attachment {
                let fate = match fate {
                    Fate::NotBase64(body) => self.bodies.as_it_came(body),
                    fate => fate,
                };
                self.fates.push((attachment, self.parts.len(), fate));
            }
        }
        self.parts.push(part);
    }

    fn command(&mut self, mut command: Object, is_expanded: bool) {
        let Some(id) = command.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return self.parts.push(command);
        };
        let given = command.entry("args").or_insert_with(|| json!({}));
        let Some(given) = given.as_object() else {
            return self.parts.push(command);
        };
        let (raw, words) = args::read(given);
        let typed = command.get("anchor").and_then(Value::as_str);
        let typed = typed.unwrap_or(&id).to_owned();
        let origin = self.parts.len();
        self.parts.push(command);
        if is_expanded {
            return;
        }
        let around = self.around;
        match around.catalogue.lookup(&id) {
            Some(entry) => self.expand(origin, &id, entry, &raw, &words),
            None => {
                self.said
                    .say(|| format!("command: unknown {} (passed on as text)", quoted(&id)));
                let blank = if raw.is_empty() { "" } else { " " };
                self.derived_text(origin, &format!("{typed}{blank}{raw}"), None);
            }
        }
    }

    fn expand(&mut self, origin: usize, id: &str, entry: &Entry, raw: &str, words: &[String]) {
        match &entry.what {
            What::Action => {}
            What::Intent(intent) => self.derived(origin, raw, Some(intent), Mentions::Literal),
            What::Skill { skill } => {
                let target = json!({"kind": "skill", "name": skill});
                let mention = json!({"type": "mention", "target": target,
                    "derived_from": {"part": origin}});
                self.take_derived(mention);
                if !raw.is_empty() {
                    self.derived(origin, raw, None, Mentions::Literal);
                }
            }
            What::Template { body, mentions } => {
                let text = self.expansion(id, body, raw, words);
                self.derived(origin, &text, None, *mentions);
            }
            What::Directed {
                intent,
                body,
                mentions,
            } => {
                let text = self.expansion(id, body, raw, words);
                self.derived(origin, &text, Some(intent), *mentions);
            }
        }
    }

    fn expansion(&mut self, id: &str, body: &str, raw: &str, words: &[String]) -> String {
        let expansion = self.filled(body, raw, words);
        if expansion.cut {
            let id = quoted(id);
            self.said
                .say(|| format!("command: {id} expands without end (cut)"));
        }
        expansion.text
    }

    /// A template with its slots filled, as long as there is room: each costs what it becomes and what it is.
    fn filled(&mut self, body: &str, raw: &str, words: &[String]) -> Expansion {
        let Some(room) = self.expansion_room else {
            return Expansion::nothing();
        };
        let room = room.saturating_add(raw.len());
        let expansion = template::expand(body, raw, words);
        let cost = expansion.text.len().max(body.len());
        self.expansion_room = room.checked_sub(cost);
        match self.expansion_room {
            Some(_) => expansion,
            None => Expansion::nothing(),
        }
    }

    /// What a command became. Skills in it are never shown to a model; other tokens mean something only if the entry says
    /// so (C-052, C-061).
    fn derived(&mut self, origin: usize, text: &str, intent: Option<&str>, mentions: Mentions) {
        let contexts = |name: &str| self.around.contexts.contains_key(name);
        let kinds = match mentions {
            Mentions::Literal => Kinds::Skills,
            Mentions::Resolved => Kinds::All {
                contexts: &contexts,
                entities: self.around.entity_kinds,
            },
        };
        let spans = parse::spans(text, 0..text.len(), &kinds, DERIVED_MENTIONS_MAX);
        if spans.is_empty() {
            self.derived_text(origin, text, intent);
        }
        for span in spans {
            match span {
                Span::Prose(range) => self.derived_text(origin, &text[range], intent),
                Span::Mention(token) => self.take_derived(json!({"type": "mention",
                    "target": token.target, "derived_from": {"part": origin}})),
            }
        }
    }

    fn derived_text(&mut self, origin: usize, text: &str, intent: Option<&str>) {
        let mut part = json!({"type": "text", "text": text});
        if let Some(intent) = intent {
            part["intent"] = json!(intent);
        }
        part["derived_from"] = json!({"part": origin});
        self.take_derived(part);
    }

    /// Takes a part of our own making, whose origin is where it will stay.
    fn take_derived(&mut self, part: Value) {
        let piece = Piece::new(part);
        match piece.part.get("type").and_then(Value::as_str) {
            Some("mention") => self.mention(piece.part, false),
            _ => self.parts.push(piece.part),
        }
    }

    fn mention(&mut self, mut mention: Object, is_expanded: bool) {
        let target = mention.get_mut("target").and_then(Value::as_object_mut);
        let Some(target) = target else {
            return self.parts.push(mention);
        };
        let text = |key: &str| target.get(key).and_then(Value::as_str).map(str::to_owned);
        match (text("kind").as_deref(), text("name")) {
            (Some("skill"), Some(name)) if self.around.skills.contains(&name) => {
                target.shift_remove("unresolved");
            }
            (Some("skill"), Some(name)) => {
                target.insert("unresolved".to_owned(), json!(true));
                let name = quoted(&name);
                self.said
                    .say(|| format!("mention: unknown skill {name} (dropped from model view)"));
            }
            (Some("context"), Some(name)) if !is_expanded => {
                return self.context(mention, name);
            }
            (Some("context"), Some(name)) => {
                self.sampled.insert(name);
            }
            _ => {}
        }
        self.parts.push(mention);
    }

    /// A context is what it is at this moment, and stays that (C-065).
    fn context(&mut self, mention: Object, name: String) {
        let origin = self.parts.len();
        self.parts.push(mention);
        if self.sampled.contains(&name) {
            return;
        }
        let found = self.around.contexts.get(&name);
        let found = found.filter(|parts| !parts.is_empty());
        let Some(found) = found else {
            let name = quoted(&name);
            return self
                .said
                .say(|| format!("mention: context {name} does not resolve (dropped)"));
        };
        for context in found {
            let mut context = context.object().clone();
            context.insert("derived_from".to_owned(), json!({"part": origin}));
            self.editor_context(context);
        }
        self.sampled.insert(name);
    }

    fn editor_context(&mut self, mut context: Object) {
        if !context.contains_key("emitted_at") {
            context.insert("emitted_at".to_owned(), json!(self.around.now_ms));
        }
        self.parts.push(context);
    }
}
