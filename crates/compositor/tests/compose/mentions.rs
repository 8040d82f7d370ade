//! Mentions and editor context (C-060 to C-076).

use compositor::Part;
use compositor::ahp::insert_text;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::environment::{NOW_MS, World, values};

fn check(text: &str, expected: Value) {
    assert_eq!(values(&World::new().typed(text)), expected, "{text:?}");
}

#[test]
fn c_060_and_c_066_tokens_become_mentions() {
    check(
        "see @file:src/lib/foo.ts:10-25, please",
        json!([
            {"type": "text", "text": "see "},
            {"type": "mention", "target": {"kind": "file", "path": "src/lib/foo.ts",
                "range": {"unit": "line", "start": 10, "end": 25}}},
            {"type": "text", "text": ", please"},
        ]),
    );
    check(
        "@skill:known",
        json!([{"type": "mention", "target": {"kind": "skill", "name": "known"}}]),
    );
    check(
        "mail a@file:b or @types/node",
        json!([{"type": "text", "text": "mail a@file:b or @types/node"}]),
    );
}

#[test]
fn c_061_and_c_064_an_unknown_skill_is_flagged_and_reported() {
    let world = World::new();
    let composed = world.typed("use @skill:nope");
    let target = json!({"kind": "skill", "name": "nope", "unresolved": true});
    assert_eq!(values(&composed)[1], json!({"type": "mention", "target": target}));
    let diagnostics = ["mention: unknown skill 'nope' (dropped from model view)"];
    assert_eq!(composed.diagnostics, diagnostics);
    // Whoever says that it is there, or not, is not believed.
    let forged = json!([
        {"type": "mention", "target": {"kind": "skill", "name": "known", "unresolved": true}},
        {"type": "mention", "target": {"kind": "skill", "name": "nope"}},
    ]);
    let composed = world.parts(forged);
    assert_eq!(values(&composed)[0]["target"], json!({"kind": "skill", "name": "known"}));
    assert_eq!(values(&composed)[1]["target"], target);
    assert_eq!(composed.diagnostics, diagnostics);
}

#[test]
fn c_063_an_entity_stays_a_mention() {
    check(
        "move @node:n42.",
        json!([
            {"type": "text", "text": "move "},
            {"type": "mention", "target": {"kind": "node", "id": "n42"}},
            {"type": "text", "text": "."},
        ]),
    );
}

#[test]
fn c_065_a_context_is_captured_at_submission() {
    let mut world = World::new();
    let tab = json!({"type": "editor-context", "kind": "open", "payload": {"path": "a"}, "emitted_at": 5});
    let tabs = vec![Part::from_value(tab.clone()).unwrap(), Part::from_value(tab).unwrap()];
    world.contexts.insert("open".to_owned(), tabs);
    world.contexts.insert("history".to_owned(), vec![]);
    let composed = world.typed("fix @open and @selection");
    let context = |kind: &str, payload: Value, origin: usize, at: i64| {
        json!({"type": "editor-context", "kind": kind, "payload": payload, "emitted_at": at,
            "derived_from": {"part": origin}})
    };
    assert_eq!(
        values(&composed),
        json!([
            {"type": "text", "text": "fix "},
            {"type": "mention", "target": {"kind": "context", "name": "open"}},
            context("open", json!({"path": "a"}), 1, 5),
            context("open", json!({"path": "a"}), 1, 5),
            {"type": "text", "text": " and "},
            {"type": "mention", "target": {"kind": "context", "name": "selection"}},
            context("selection", json!({"n": 1}), 5, NOW_MS),
        ])
    );
    assert!(composed.diagnostics.is_empty());
    // It is not sampled again.
    let again = values(&composed);
    world.contexts.clear();
    assert_eq!(values(&world.parts(again.clone())), again);

    let composed = world.typed("and @cursor");
    let target = json!({"kind": "context", "name": "cursor"});
    assert_eq!(values(&composed)[1], json!({"type": "mention", "target": target}));
    let diagnostics = ["mention: context 'cursor' does not resolve (dropped)"];
    assert_eq!(composed.diagnostics, diagnostics);
}

#[test]
fn c_065_a_context_that_came_with_the_message_is_not_missed() {
    let mut world = World::new();
    world.contexts.clear();
    let composed = world.parts(json!([
        {"type": "mention", "target": {"kind": "context", "name": "selection"}},
        {"type": "editor-context", "kind": "selection", "payload": {}, "emitted_at": 1},
    ]));
    assert_eq!(composed.parts.len(), 2);
    assert!(composed.diagnostics.is_empty());
}

#[test]
fn c_070_to_c_073_context_is_separate_whole_and_in_order() {
    let parts = json!([
        {"type": "editor-context", "kind": "anything at all", "source": "panel", "emitted_at": 1,
            "payload": {"deep": [[[{"a": null}]]], "text": 5}},
        {"type": "text", "text": "make this red"},
        {"type": "editor-context", "kind": "ref", "payload": {"id": "n1"}, "emitted_at": 2},
        {"type": "editor-context", "kind": "ref", "payload": {"id": "n1"}, "emitted_at": 2},
    ]);
    assert_eq!(values(&World::new().parts(parts.clone())), parts);
}

#[test]
fn c_072_a_missing_time_is_filled_in() {
    let composed = World::new().parts(json!([
        {"type": "text", "text": "x"},
        {"type": "editor-context", "kind": "selection", "payload": {}},
    ]));
    assert_eq!(values(&composed)[1]["emitted_at"], NOW_MS);
}

#[test]
fn c_076_a_pasted_entity_is_a_reference_not_its_body() {
    let paste = json!([
        {"type": "text", "text": "like this"},
        {"type": "editor-context", "kind": "ref", "source": "canvas", "payload": {"id": "n42"}, "emitted_at": 3},
    ]);
    let composed = World::new().parts(paste.clone());
    assert_eq!(values(&composed), paste);
    assert_eq!(composed.inline_bytes, 0);
}

#[test]
fn c_071_only_the_presence_of_a_payload_is_checked() {
    for bad in [json!(null), json!("text"), json!([1])] {
        let parts = json!([
            {"type": "text", "text": "x"},
            {"type": "editor-context", "kind": "k", "payload": bad, "emitted_at": 1},
        ]);
        let composed = World::new().parts(parts.clone());
        assert_eq!(values(&composed), parts, "stored unchanged");
        assert_eq!(composed.diagnostics.len(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// What a completion inserts is read as what it was completed to.
    #[test]
    fn the_inserted_text_of_a_path_names_that_path(path in "([a-z]|[./ :#L0-9-]|\\PC){1,12}") {
        prop_assume!(!path.contains('"'));
        let target = json!({"kind": "file", "path": path});
        let part = Part::from_value(json!({"type": "mention", "target": target})).unwrap();
        let typed = insert_text(&part).unwrap();
        let composed = World::new().typed(&format!("see {typed} now"));
        prop_assert_eq!(&values(&composed)[1]["target"], &target, "{}", typed);
    }
}

#[test]
fn c_065_files_that_an_editor_attaches_are_the_open_file_and_the_selection() {
    let mut world = World::new();
    world.contexts.clear();
    let selection = json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}});
    let open =
        json!({"type": "resource", "uri": "file:///ws/a", "label": "a", "displayKind": "document"});
    let lines = json!({"type": "resource", "uri": "file:///ws/a", "label": "a", "displayKind": "selection",
        "selection": selection});
    let diagnostics = |text: &str, attachments: Value| {
        let message = json!({"text": text, "origin": {"kind": "user"}, "attachments": attachments});
        world.message(message).diagnostics
    };
    assert!(diagnostics("see @open", json!([open])).is_empty());
    assert!(diagnostics("see @selection", json!([lines])).is_empty());
    let missing = |name: &str| [format!("mention: context '{name}' does not resolve (dropped)")];
    assert_eq!(diagnostics("see @open", json!([lines])), missing("open"));
    assert_eq!(diagnostics("see @cursor", json!([open])), missing("cursor"));
}

#[test]
fn c_066_an_attachment_is_found_by_either_sigil() {
    let world = World::new();
    let open = json!({"type": "resource", "uri": "file:///ws/a.ts", "label": "a.ts"});
    for sigil in ["@", "#"] {
        let text = format!("see {sigil}file:a.ts.");
        let message = json!({"text": text, "origin": {"kind": "user"}, "attachments": [open]});
        let composed = world.message(message);
        let anchor = format!("{sigil}file:a.ts");
        assert_eq!(
            values(&composed),
            json!([
                {"type": "text", "text": "see "},
                {"type": "file-ref", "ref": {"kind": "path", "path": "a.ts", "name": "a.ts"}, "anchor": anchor},
                {"type": "text", "text": "."},
            ])
        );
    }
    assert!(!compositor::is_plain(json!({"text": "see #file:a"}).as_object().unwrap()));
}
