//! Normalizes submitted parts to persisted ones: bodies are checked, commands expanded, mentions looked up. Nothing that a
//! client says about them is trusted (G-38).
//!
//! Promises: normalized parts stay unchanged; unknown ones stay unchanged; the order stays (C-002).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use wire::Object;

use crate::body::{BodyCollector, BodyOutcome};
use crate::command::template::{self, Expansion};
use crate::command::{CommandEffect, Entry, Mentions, args};
use crate::compose::Environment;
use crate::diagnostics::{Diagnostics, quoted};
use crate::parse::{self, Kinds, TextSpan};
use crate::part::{AGENT_COMMAND, Part};

/// How many mentions are read in what a command became.
const DERIVED_MENTIONS_MAX: usize = 100;

/// How much all templates of a message may add to what was typed: chips are small and templates are not.
const EXPANDED_BYTES_MAX: usize = 4 * 1_048_576;

/// A part as it was submitted.
#[derive(Debug)]
pub(crate) struct SubmittedPart {
    pub part: Object,
    /// What belongs at its `data`.
    pub body: Option<SubmittedBody>,
    /// Which attachment of the message it comes from.
    pub attachment: Option<usize>,
}

/// The body of an attachment.
#[derive(Debug)]
pub(crate) enum SubmittedBody {
    /// As it is in a message.
    Base64(String),
    /// It came apart from its message.
    Bytes(Bytes),
}

impl SubmittedBody {
    pub(crate) fn decoded_len(&self) -> usize {
        match self {
            Self::Base64(base64) => decoded_len(base64),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// As it is in a message.
    pub(crate) fn into_base64(self) -> String {
        match self {
            Self::Base64(base64) => base64,
            Self::Bytes(bytes) => STANDARD.encode(bytes),
        }
    }
}

/// The decoded length of well-formed base64.
pub(crate) fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take(2).filter(|it| *it == b'=');
    (base64.len() / 4 * 3).saturating_sub(padding.count())
}

impl SubmittedPart {
    pub(crate) fn new(part: Value) -> Self {
        let Value::Object(part) = part else {
            unreachable!("parts are made from objects");
        };
        Self::from_object(part)
    }

    /// From the JSON of a part: its body is taken out of it.
    pub(crate) fn from_object(mut part: Object) -> Self {
        let is_attachment = part.get("type").and_then(Value::as_str) == Some("file-attachment");
        let body = match part.get_mut("data") {
            Some(Value::String(data)) if is_attachment => {
                Some(SubmittedBody::Base64(std::mem::take(data)))
            }
            _ => None,
        };
        Self { part, body, attachment: None }
    }
}

/// The parts as they are persisted.
pub(crate) struct Normalized {
    pub parts: Vec<Part>,
    /// For each body of an attachment: which attachment, which part, and what was done with it.
    pub body_outcomes: Vec<(usize, usize, BodyOutcome)>,
}

pub(crate) fn normalize(
    submitted: Vec<SubmittedPart>,
    environment: &Environment<'_>,
    bodies: &mut BodyCollector,
    diagnostics: &mut Diagnostics,
) -> Normalized {
    // What was made from a part comes after it.
    let expanded = submitted.iter().enumerate().filter_map(|(index, submitted)| {
        derived_from(&submitted.part).filter(|origin| *origin < index)
    });
    let sampled = submitted.iter().filter_map(|submitted| context_kind(&submitted.part));
    let attached = submitted.iter().filter_map(|submitted| editor_file(&submitted.part));
    let mut normalizer = Normalizer {
        expanded: expanded.collect(),
        sampled: sampled.map(str::to_owned).collect(),
        attached: attached.collect(),
        expansion_budget: Some(EXPANDED_BYTES_MAX),
        environment,
        bodies,
        diagnostics,
        parts: Vec::with_capacity(submitted.len()),
        positions: Vec::with_capacity(submitted.len()),
        body_outcomes: Vec::new(),
    };
    for (index, part) in submitted.into_iter().enumerate() {
        normalizer.add(index, part);
    }
    let Normalizer { parts, body_outcomes, .. } = normalizer;
    let parts: Vec<Part> = parts.into_iter().map(|it| Part::new(Value::Object(it))).collect();
    for part in parts.iter().filter(|part| !part.is_readable()) {
        let kind = quoted(part.kind());
        diagnostics.report(|| format!("part: one of type {kind} cannot be read (kept unchanged)"));
    }
    Normalized { parts, body_outcomes }
}

fn derived_from(part: &Object) -> Option<usize> {
    let index = part.get("derived_from")?.get("part")?.as_u64()?;
    usize::try_from(index).ok()
}

fn context_kind(part: &Object) -> Option<&str> {
    let is_context = part.get("type")?.as_str()? == "editor-context";
    part.get("kind")?.as_str().filter(|_| is_context)
}

/// The context that a file is which an editor attached beside the text: `@open`, or `@selection` of lines of it.
fn editor_file(part: &Object) -> Option<&'static str> {
    if part.contains_key("anchor") {
        return None;
    }
    let has_lines = match part.get("type")?.as_str()? {
        "file-ref" => part.get("ref")?.get("range").is_some(),
        "file-attachment" => part.contains_key("selection"),
        _ => return None,
    };
    Some(if has_lines { "selection" } else { "open" })
}

struct Normalizer<'a, 'b> {
    /// Submitted parts that others were derived from before: they are not expanded again (C-044).
    expanded: BTreeSet<usize>,
    /// Contexts that are in the message already.
    sampled: BTreeSet<String>,
    /// Contexts that files of the message are.
    attached: BTreeSet<&'static str>,
    /// `None` once there is no more.
    expansion_budget: Option<usize>,
    environment: &'a Environment<'a>,
    bodies: &'b mut BodyCollector,
    diagnostics: &'b mut Diagnostics,
    parts: Vec<Object>,
    /// Where each submitted part begins among the parts.
    positions: Vec<usize>,
    body_outcomes: Vec<(usize, usize, BodyOutcome)>,
}

impl Normalizer<'_, '_> {
    fn add(&mut self, index: usize, mut submitted: SubmittedPart) {
        self.positions.push(self.parts.len());
        self.renumber_origin(index, &mut submitted.part);
        let is_expanded = self.expanded.contains(&index);
        match submitted.part.get("type").and_then(Value::as_str) {
            Some("file-attachment") => self.add_attachment(submitted),
            Some("command") => self.add_command(submitted.part, is_expanded),
            Some("mention") => self.add_mention(submitted.part, is_expanded),
            Some("editor-context") => self.add_editor_context(submitted.part),
            _ => self.parts.push(submitted.part),
        }
    }

    /// Updates the number of the part that another was made from: it may have moved.
    fn renumber_origin(&self, index: usize, part: &mut Object) {
        if let Some(origin) = derived_from(part).filter(|origin| *origin < index)
            && self.positions[origin] != origin
            && let Some(derived) = part.get_mut("derived_from")
        {
            derived["part"] = json!(self.positions[origin]);
        }
    }

    fn add_attachment(&mut self, submitted: SubmittedPart) {
        let mut part = submitted.part;
        if let Some(body) = submitted.body {
            let outcome = self.bodies.attach(&mut part, body, self.diagnostics);
            if let Some(attachment) = submitted.attachment {
                let outcome = match outcome {
                    BodyOutcome::NotBase64(body) => self.bodies.inline_undecoded(body),
                    outcome => outcome,
                };
                self.body_outcomes.push((attachment, self.parts.len(), outcome));
            }
        }
        self.parts.push(part);
    }

    fn add_command(&mut self, mut command: Object, is_expanded: bool) {
        let Some(id) = command.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return self.parts.push(command);
        };
        let given = command.entry("args").or_insert_with(|| json!({}));
        let Some(given) = given.as_object() else { return self.parts.push(command) };
        let (raw, words) = args::read(given);
        let typed = command.get("anchor").and_then(Value::as_str).unwrap_or(&id).to_owned();
        let origin = self.parts.len();
        let entry = self.environment.catalogue.lookup(&id);
        // Whether it is for the agent is known here, whatever the part says.
        command.shift_remove(AGENT_COMMAND);
        if let Some(CommandEffect::Agent { name }) = entry.map(|entry| &entry.effect)
            && !is_expanded
        {
            command.insert(AGENT_COMMAND.to_owned(), json!(name));
        }
        self.parts.push(command);
        if is_expanded {
            return;
        }
        match entry {
            Some(entry) => self.expand(origin, &id, entry, &raw, &words),
            None => {
                self.diagnostics
                    .report(|| format!("command: unknown {} (passed on as text)", quoted(&id)));
                let blank = if raw.is_empty() { "" } else { " " };
                self.add_derived_text(origin, &format!("{typed}{blank}{raw}"), None);
            }
        }
    }

    fn expand(&mut self, origin: usize, id: &str, entry: &Entry, raw: &str, words: &[String]) {
        match &entry.effect {
            // The command itself is all there is.
            CommandEffect::Action | CommandEffect::Agent { .. } | CommandEffect::Refused { .. } => {
            }
            CommandEffect::Prompt { answers, .. } => {
                // Without an answer it is asked for, and the message is read again; a refusal refuses the message.
                if let Some(Ok(text)) = answers.get(raw) {
                    let text = self.take_expansion(id, text);
                    self.add_derived(origin, &text, None, Mentions::Literal);
                }
            }
            CommandEffect::Intent(intent) => {
                self.add_derived(origin, raw, Some(intent), Mentions::Literal)
            }
            CommandEffect::Skill { skill } => {
                let target = json!({"kind": "skill", "name": skill});
                let mention = json!({"type": "mention", "target": target,
                    "derived_from": {"part": origin}});
                self.add_derived_part(mention);
                if !raw.is_empty() {
                    self.add_derived(origin, raw, None, Mentions::Literal);
                }
            }
            CommandEffect::Template { body, mentions } => {
                let text = self.expand_template(id, body, raw, words);
                self.add_derived(origin, &text, None, *mentions);
            }
            CommandEffect::Directed { intent, body, mentions } => {
                let text = self.expand_template(id, body, raw, words);
                self.add_derived(origin, &text, Some(intent), *mentions);
            }
        }
    }

    /// The text of a prompt, as long as the budget lasts.
    fn take_expansion(&mut self, id: &str, text: &str) -> String {
        let left = self.expansion_budget.unwrap_or_default();
        self.expansion_budget = left.checked_sub(text.len());
        if self.expansion_budget.is_some() {
            return text.to_owned();
        }
        let id = quoted(id);
        self.diagnostics.report(|| format!("command: {id} expands to too much text (cut)"));
        String::new()
    }

    fn expand_template(&mut self, id: &str, body: &str, raw: &str, words: &[String]) -> String {
        let expansion = self.fill_template(body, raw, words);
        if expansion.cut {
            let id = quoted(id);
            self.diagnostics.report(|| format!("command: {id} expands to too much text (cut)"));
        }
        expansion.text
    }

    /// A template with its slots filled, as long as the budget lasts: each costs the larger of its text and its template.
    fn fill_template(&mut self, body: &str, raw: &str, words: &[String]) -> Expansion {
        let Some(budget) = self.expansion_budget else { return Expansion::nothing() };
        let budget = budget.saturating_add(raw.len());
        let expansion = template::expand(body, raw, words);
        let cost = expansion.text.len().max(body.len());
        self.expansion_budget = budget.checked_sub(cost);
        match self.expansion_budget {
            Some(_) => expansion,
            None => Expansion::nothing(),
        }
    }

    /// The expansion of a command. Skills in it are never sent to a model; other tokens mean something only if the entry says
    /// so (C-052, C-061).
    fn add_derived(&mut self, origin: usize, text: &str, intent: Option<&str>, mentions: Mentions) {
        let contexts = |name: &str| self.environment.contexts.contains_key(name);
        let kinds = match mentions {
            Mentions::Literal => Kinds::Skills,
            Mentions::Resolved => {
                Kinds::All { contexts: &contexts, entities: self.environment.entity_kinds }
            }
        };
        let spans = parse::spans(text, 0..text.len(), &kinds, DERIVED_MENTIONS_MAX);
        if spans.is_empty() {
            self.add_derived_text(origin, text, intent);
        }
        for span in spans {
            match span {
                TextSpan::Prose(range) => self.add_derived_text(origin, &text[range], intent),
                TextSpan::Mention(token) => self.add_derived_part(json!({"type": "mention",
                    "target": token.target, "derived_from": {"part": origin}})),
            }
        }
    }

    fn add_derived_text(&mut self, origin: usize, text: &str, intent: Option<&str>) {
        let mut part = json!({"type": "text", "text": text});
        if let Some(intent) = intent {
            part["intent"] = json!(intent);
        }
        part["derived_from"] = json!({"part": origin});
        self.add_derived_part(part);
    }

    /// Adds a part that was made here, whose origin has its final number.
    fn add_derived_part(&mut self, part: Value) {
        let Value::Object(part) = part else {
            unreachable!("parts are made from objects");
        };
        match part.get("type").and_then(Value::as_str) {
            Some("mention") => self.add_mention(part, false),
            _ => self.parts.push(part),
        }
    }

    fn add_mention(&mut self, mut mention: Object, is_expanded: bool) {
        let target = mention.get_mut("target").and_then(Value::as_object_mut);
        let Some(target) = target else { return self.parts.push(mention) };
        let text = |key: &str| target.get(key).and_then(Value::as_str).map(str::to_owned);
        match (text("kind").as_deref(), text("name")) {
            (Some("skill"), Some(name)) if self.environment.skills.contains(&name) => {
                target.shift_remove("unresolved");
            }
            (Some("skill"), Some(name)) => {
                target.insert("unresolved".to_owned(), json!(true));
                let name = quoted(&name);
                self.diagnostics
                    .report(|| format!("mention: unknown skill {name} (dropped from model view)"));
            }
            (Some("mcp"), _) if !is_expanded => {
                let (server, uri) = (text("server"), text("uri"));
                return self.add_mcp_resource(mention, server, uri);
            }
            (Some("context"), Some(name)) if !is_expanded => {
                return self.add_context(mention, name);
            }
            (Some("context"), Some(name)) => {
                self.sampled.insert(name);
            }
            _ => {}
        }
        self.parts.push(mention);
    }

    /// Something of an MCP server is a reference that follows its mention (MC-13).
    fn add_mcp_resource(&mut self, mention: Object, server: Option<String>, uri: Option<String>) {
        let origin = self.parts.len();
        self.parts.push(mention);
        if let (Some(server), Some(uri)) = (server, uri) {
            let url = wire::mcp_uri::uri_of(&server, &uri);
            let reference = json!({"kind": "url", "url": url, "name": uri});
            self.add_derived_part(json!({"type": "file-ref", "ref": reference,
                "derived_from": {"part": origin}}));
        }
    }

    /// A context is what it is at this moment, and stays that (C-065).
    fn add_context(&mut self, mention: Object, name: String) {
        let origin = self.parts.len();
        self.parts.push(mention);
        if self.sampled.contains(&name) {
            return;
        }
        let context_parts = self.environment.contexts.get(&name).filter(|parts| !parts.is_empty());
        let Some(context_parts) = context_parts else {
            if self.attached.contains(name.as_str()) {
                return; // the model is shown the file
            }
            let name = quoted(&name);
            return self
                .diagnostics
                .report(|| format!("mention: context {name} does not resolve (dropped)"));
        };
        for context in context_parts {
            let mut context = context.object().clone();
            context.insert("derived_from".to_owned(), json!({"part": origin}));
            self.add_editor_context(context);
        }
        self.sampled.insert(name);
    }

    fn add_editor_context(&mut self, mut context: Object) {
        if !context.contains_key("emitted_at") {
            context.insert("emitted_at".to_owned(), json!(self.environment.now_ms));
        }
        self.parts.push(context);
    }
}
