//! The environment of a message in tests: the commands, skills and roots that the vectors assume, and a context.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::collections::{BTreeMap, BTreeSet};

use compositor::command::{CommandEffect, Entry, Mentions, Source};
use compositor::compose::{AttachmentBudget, Composed};
use compositor::{Catalogue, Environment, Part, SubmittedMessage, compose};
use serde_json::{Value, json};
use wire::Object;

pub const ROOT: &str = "/ws";
pub const NOW_MS: i64 = 1_760_000_000_000;

pub struct World {
    pub catalogue: Catalogue,
    pub skills: BTreeSet<String>,
    pub contexts: BTreeMap<String, Vec<Part>>,
    pub entity_kinds: BTreeSet<String>,
    pub roots: Vec<String>,
    pub inline: AttachmentBudget,
}

impl World {
    pub fn new() -> Self {
        let mut world = Self {
            catalogue: Catalogue::built_in(),
            skills: BTreeSet::from(["known".to_owned(), "canvas-docs-svg-kit".to_owned()]),
            contexts: BTreeMap::new(),
            entity_kinds: BTreeSet::from(["node".to_owned()]),
            roots: vec![ROOT.to_owned()],
            inline: AttachmentBudget::default(),
        };
        let selection = json!({"type": "editor-context", "kind": "selection", "payload": {"n": 1}});
        let selection = Part::from_value(selection).unwrap();
        world.contexts.insert("selection".to_owned(), vec![selection]);
        let literal = |body: &str| CommandEffect::Template {
            body: body.to_owned(),
            mentions: Mentions::Literal,
        };
        world.command("/review", literal("Review $1 with severity $2."));
        world.command("/ten", literal("A=$1 J=$10 X=${1}0"));
        world.command("/echo", literal("Say: $ARGUMENTS"));
        world.command("/plain", literal("Run the checklist."));
        world.command("/search", CommandEffect::Intent("search".to_owned()));
        let skill = "canvas-docs-svg-kit".to_owned();
        world.command("/svg", CommandEffect::Skill { skill });
        let body = "Look at @file:$1 and @selection".to_owned();
        let mentions = Mentions::Resolved;
        world.command("/look", CommandEffect::Template { body, mentions });
        world
    }

    pub fn command(&mut self, id: &str, effect: CommandEffect) {
        let entry =
            Entry { source: Source::Project, description: None, argument_hint: None, effect };
        assert_eq!(self.catalogue.insert(id, entry), None);
    }

    pub fn environment(&self) -> Environment<'_> {
        Environment {
            catalogue: &self.catalogue,
            skills: &self.skills,
            contexts: &self.contexts,
            entity_kinds: &self.entity_kinds,
            roots: &self.roots,
            inline: self.inline,
            now_ms: NOW_MS,
        }
    }

    pub fn typed(&self, text: &str) -> Composed {
        compose(SubmittedMessage::Text(text.to_owned()), &self.environment()).unwrap()
    }

    pub fn parts(&self, parts: Value) -> Composed {
        let Value::Array(parts) = parts else {
            panic!("no parts");
        };
        let metadata = Object::new();
        compose(SubmittedMessage::Parts { parts, metadata }, &self.environment()).unwrap()
    }

    pub fn message(&self, message: Value) -> Composed {
        let Value::Object(message) = message else {
            panic!("no message");
        };
        compose(SubmittedMessage::Ahp(message), &self.environment()).unwrap()
    }
}

/// The parts as JSON.
pub fn values(composed: &Composed) -> Value {
    composed.parts.iter().map(Part::to_value).collect()
}
