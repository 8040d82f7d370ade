//! What is persisted and reported for every vector, and whether a model is called.

use std::collections::{BTreeMap, BTreeSet};

use compositor::command::{CommandEffect, Entry, Mentions, Source};
use compositor::compose::AttachmentBudget;
use compositor::{Catalogue, ComposeRefusal, Environment, SubmittedMessage, compose};
use serde_json::Value;
use wire::Object;

use crate::vectors;

/// The commands that the file uses.
fn catalogue(file: &Value) -> Catalogue {
    let mut catalogue = Catalogue::built_in();
    for (id, what) in file["commands"].as_object().unwrap() {
        let (source, effect) = match what {
            Value::String(what) if what == "host action" => {
                assert_eq!(catalogue.lookup(id).unwrap().effect, CommandEffect::Action);
                continue;
            }
            Value::String(body) => (
                Source::Project,
                CommandEffect::Template { body: body.clone(), mentions: Mentions::Literal },
            ),
            other => match (other["intent"].as_str(), other["skill"].as_str()) {
                (Some(intent), _) => (Source::Project, CommandEffect::Intent(intent.to_owned())),
                (_, Some(skill)) => {
                    let skill = skill.to_owned();
                    (Source::Skill, CommandEffect::Skill { skill })
                }
                _ => panic!("a command of a new kind: {other}"),
            },
        };
        let entry = Entry { source, description: None, argument_hint: None, effect };
        assert_eq!(catalogue.insert(id, entry), None);
    }
    catalogue
}

fn input(vector: &Value) -> SubmittedMessage {
    let input = vector["input"].as_object().unwrap();
    match (&vector["input"]["parts"], &vector["input"]["text"]) {
        (Value::Array(parts), _) => SubmittedMessage::Parts {
            parts: parts.clone(),
            metadata: match input.get("metadata") {
                Some(Value::Object(metadata)) => metadata.clone(),
                _ => Object::new(),
            },
        },
        (_, Value::String(text)) if input.len() == 1 => SubmittedMessage::Text(text.clone()),
        _ => SubmittedMessage::Ahp(input.clone()),
    }
}

/// Diagnostics that come from lowering, not from composing.
const DIAGNOSED_LATER: [&str; 1] = ["V56"];

#[test]
fn every_vector_is_persisted_as_expected() {
    let file = vectors::file();
    let catalogue = catalogue(&file);
    let skills: BTreeSet<String> = file["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect();
    let roots = [file["root"].as_str().unwrap().to_owned()];
    let mut checked = 0;
    for vector in vectors::vectors() {
        let id = vector["id"].as_str().unwrap();
        let inline = AttachmentBudget::default();
        let taken = vector["input"]["session_inline_bytes"].as_u64();
        let environment = Environment {
            catalogue: &catalogue,
            skills: &skills,
            contexts: &BTreeMap::new(),
            entity_kinds: &BTreeSet::new(),
            roots: &roots,
            inline: AttachmentBudget {
                left_bytes: inline.left_bytes - taken.unwrap_or(0),
                ..inline
            },
            now_ms: 1_760_000_000_000,
        };
        let model_called = vector["model_called"].as_bool().unwrap_or(true);
        let composed = match compose(input(&vector), &environment) {
            Ok(composed) => composed,
            Err(refused) => {
                assert_eq!((refused.clone(), id), (ComposeRefusal::EmptyMessage, "V59"));
                assert!(refused.to_string().starts_with("empty_message"));
                assert_eq!(vector["persisted"], Value::Array(vec![]));
                continue;
            }
        };
        let parts = composed.parts.iter().map(|part| part.to_value()).collect();
        assert_eq!(Value::Array(parts), vector["persisted"], "{id}");
        assert_eq!(composed.reaches_model, model_called, "{id}");
        let version = if id == "V61" { 2 } else { 1 };
        assert_eq!(composed.metadata["schema_version"], version, "{id}");
        if let Value::Array(expected) = &vector["diagnostics"]
            && !DIAGNOSED_LATER.contains(&id)
        {
            let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
            assert_eq!(composed.diagnostics, expected, "{id}");
        }
        checked += 1;
    }
    assert!(checked >= 35, "only {checked} vectors were in the file");
}
