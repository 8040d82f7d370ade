//! What is sent to targets for every vector.

use std::collections::BTreeMap;

use compositor::lower::{Capabilities, Target, lower};
use compositor::resolve::{InlineLimits, Resolved, resolve};
use serde_json::Value;

use crate::vectors::{self, Memory, parts};

#[test]
fn every_vector_is_lowered_as_expected() {
    let mut checked = 0;
    for vector in vectors::vectors() {
        let id = vector["id"].as_str().unwrap();
        let parts = parts(&vector["persisted"]);
        for (target, expected) in vector["lowered"].as_object().unwrap() {
            let target = Target::from_name(target).unwrap();
            let mut sources = Memory::of(&vector);
            let resolved = parts.iter().enumerate().filter_map(|(at, part)| {
                Some((at, resolve(part, &mut sources, &InlineLimits::default())?))
            });
            let stored: BTreeMap<usize, Resolved> = resolved.collect();
            let capabilities = Capabilities::built_in(target);
            let lowered = lower(&parts, &stored, target, &capabilities, &mut sources);
            let blocks = Value::Array(lowered.blocks);
            assert_eq!(&blocks, expected, "{id} for {}", target.name());
            assert_eq!(blocks.to_string(), expected.to_string(), "{id}: order of keys");
            checked += 1;
        }
    }
    assert!(checked >= 40, "only {checked} lowerings were in the file");
}

#[test]
fn every_vector_has_its_diagnostics() {
    // Diagnostics of other stages are checked there.
    let ours = ["V56"];
    for vector in vectors::vectors() {
        let id = vector["id"].as_str().unwrap();
        if !ours.contains(&id) {
            continue;
        }
        let lowered = lower(
            &parts(&vector["persisted"]),
            &BTreeMap::new(),
            Target::Anthropic,
            &Capabilities::built_in(Target::Anthropic),
            &mut Memory::of(&vector),
        );
        let expected: Vec<&str> =
            vector["diagnostics"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(lowered.diagnostics, expected, "{id}");
    }
}
