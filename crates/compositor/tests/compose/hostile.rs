//! Hostile input ends in a diagnostic and a turn that goes on (G-38), and costs no more than its size.

use compositor::Part;
use compositor::ahp::{MESSAGE_KEY, to_ahp};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wire::Object;

use crate::environment::{World, values};
use crate::fuzzed;

fn digest(text: &str) -> String {
    wire::Digest::new(Sha256::digest(text.as_bytes()).into()).to_hex()
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// A message whose skeleton fits its text.
fn forged(text: &str, attachments: Value, parts: Value) -> Value {
    let skeleton = json!({"schema_version": 1, "text_sha256": digest(text), "parts": parts});
    json!({"text": text, "attachments": attachments, "_meta": { MESSAGE_KEY: skeleton }})
}

const EMBEDDED: &str = "YQ==";

fn embedded() -> Value {
    json!([{"type": "embeddedResource", "label": "n", "contentType": "text/plain", "data": EMBEDDED}])
}

#[test]
fn a_skeleton_that_fits_is_read_and_its_parts_are_checked_like_any() {
    let composed = World::new().message(forged(
        "use it 👍",
        embedded(),
        json!([
            {"$text": [0, 4]},
            {"$part": {"type": "mention", "target": {"kind": "skill", "name": "gone"}}},
            {"$attachment": 0},
            {"$part": {"type": "command", "id": "/rm", "args": {}}},
            {"$text": [4, 9]},
        ]),
    ));
    assert_eq!(
        values(&composed),
        json!([
            {"type": "text", "text": "use "},
            {"type": "mention", "target": {"kind": "skill", "name": "gone", "unresolved": true}},
            {"type": "file-attachment", "name": "n", "mime": "text/plain", "data": "YQ==", "size": 1},
            {"type": "command", "id": "/rm", "args": {}},
            {"type": "text", "text": "/rm", "derived_from": {"part": 3}},
            {"type": "text", "text": "it 👍"},
        ])
    );
    assert_eq!(composed.diagnostics.len(), 2);
}

#[test]
fn a_skeleton_that_does_not_fit_is_not_read() {
    let text = "a👍";
    let fits = |parts: Value| forged(text, embedded(), parts);
    let whole = || json!([{"$text": [0, 3]}, {"$attachment": 0}]);
    let mut edited = fits(whole());
    edited["text"] = json!("a👍!");
    let mut newer = fits(whole());
    newer["_meta"][MESSAGE_KEY]["schema_version"] = json!(2);
    let bomb: Vec<Value> = (0..9).map(|_| json!({"$attachment": 0})).collect();
    let echo: Vec<Value> = (0..9).map(|_| json!({"$text": [0, 3]})).collect();
    let hidden = json!({"type": "file-attachment", "name": "n", "mime": "m", "data": EMBEDDED});
    let reads = [
        edited,
        newer,
        fits(json!([])),
        fits(json!({})),
        fits(Value::Null),
        fits(json!(bomb)),
        fits(json!(echo)),
        fits(json!([{"$text": [0, 2]}, {"$attachment": 0}])),
        fits(json!([{"$text": [0, 4]}, {"$attachment": 0}])),
        fits(json!([{"$text": [3, 0]}, {"$attachment": 0}])),
        fits(json!([{"$text": [-1, 0]}, {"$attachment": 0}])),
        fits(json!([{"$text": [0]}, {"$attachment": 0}])),
        fits(json!([{"$attachment": 1}])),
        fits(json!([{"$attachment": -1}])),
        fits(json!([{"$attachment": 0}, {"$part": hidden}])),
        fits(json!([{"$attachment": 0}, {"$part": {"kind": "no type"}}])),
        fits(json!([{"$attachment": 0}, 5])),
    ];
    let world = World::new();
    for message in reads {
        let composed = world.message(message.clone());
        assert_eq!(composed.parts.len(), 2, "{message}");
        assert_eq!(composed.parts[1].object()["data"], EMBEDDED);
        assert_eq!(composed.diagnostics.len(), 1, "{message}");
        assert!(composed.diagnostics[0].starts_with("message: "), "{message}");
        assert_eq!(Value::Object(composed.message.unwrap()), message, "to the letter");
    }
}

#[test]
fn a_body_that_parts_claim_to_hold_is_returned_once() {
    let body = "QUFB".repeat(10_000);
    let parts =
        [Part::from_value(json!({"type": "file-attachment", "name": "n", "mime": "text/plain",
        "data": body}))
        .unwrap()];
    let placeholder = json!({"type": "embeddedResource", "data": {"$part": 0}});
    let attachments: Vec<Value> = (0..1_000).map(|_| placeholder.clone()).collect();
    let metadata = object(json!({"ahp": {"text": "", "attachments": attachments}}));
    let message = to_ahp(&parts, &metadata, &[]);
    assert_eq!(message["attachments"][0]["data"], json!(body));
    assert_eq!(message["attachments"][1], placeholder);
    assert!(serde_json::to_string(&message).unwrap().len() < 200_000);
}

#[test]
fn thousands_of_attachments_are_thousands_of_parts() {
    let count = 5_000;
    let text = "@x ".repeat(count);
    let attachment = |index: usize| {
        json!({"type": "simple", "label": "x", "modelRepresentation": "x", "range": {
            "start": {"line": 0, "character": index * 3}, "end": {"line": 0, "character": index * 3 + 2}}})
    };
    let attachments: Vec<Value> = (0..count).map(attachment).collect();
    let composed = World::new().message(json!({"text": text, "attachments": attachments}));
    assert_eq!(composed.parts.len(), 2 * count);
    assert_eq!(composed.parts[2].object()["anchor"], "@x");
}

#[test]
fn thousands_of_attachments_at_one_position_read_the_text_once() {
    let text = format!("/{}", "a".repeat(1_000_000));
    let nowhere = json!({"line": 0, "character": 0});
    let attachment = json!({"type": "simple", "label": "x", "modelRepresentation": "x",
        "range": {"start": nowhere, "end": nowhere}});
    let attachments: Vec<Value> = (0..5_000).map(|_| attachment.clone()).collect();
    let composed = World::new().message(json!({"text": text, "attachments": attachments}));
    assert_eq!(composed.parts.len(), 5_001);
    assert_eq!(composed.parts[5_000].object()["text"], json!(text));
}

#[test]
fn diagnostics_of_thousands_of_bad_attachments_are_short() {
    let bad = json!({"type": "embeddedResource", "label": "x".repeat(10_000), "contentType": "text/plain",
        "data": "!", "range": {"start": {"line": 99, "character": 0}, "end": {"line": 99, "character": 0}}});
    let attachments: Vec<Value> = (0..5_000).map(|_| bad.clone()).collect();
    let composed = World::new().message(json!({"text": "x", "attachments": attachments}));
    let diagnostic_bytes: usize = composed.diagnostics.iter().map(String::len).sum();
    assert!(diagnostic_bytes < 20_000, "{diagnostic_bytes} bytes of diagnostics");
    assert_eq!(composed.parts.len(), 5_001);
}

#[test]
fn a_text_of_a_million_tokens_is_not_a_million_parts() {
    let composed = World::new().typed(&"@skill:x ".repeat(200_000));
    assert!(composed.parts.len() <= 2_001, "{} parts", composed.parts.len());
    let composed = World::new().typed(&format!("/echo {}", "@skill:x ".repeat(200_000)));
    assert!(composed.parts.len() <= 300, "{} parts", composed.parts.len());
}

#[test]
fn unanchored_chips_in_a_large_text_take_linear_time() {
    let chip = json!({"type": "simple", "label": "/review",
        "_meta": {"compositor/part": {"type": "command", "id": "/review"}}});
    let attachments: Vec<Value> = (0..5_000).map(|_| chip.clone()).collect();
    let text = "/revie w".repeat(500_000);
    let composed = World::new().message(json!({"text": text, "attachments": attachments}));
    assert_eq!(composed.parts.len(), 10_001);
}

#[test]
fn deeply_nested_values_are_stored_unchanged() {
    let mut payload = json!({});
    for _ in 0..120 {
        payload = json!({ "p": [payload] });
    }
    let part = json!({"type": "editor-context", "kind": "k", "payload": payload, "emitted_at": 1});
    let parts = json!([{"type": "text", "text": "x"}, part]);
    let world = World::new();
    let composed = world.parts(parts.clone());
    assert_eq!(values(&composed), parts);
    let message = to_ahp(&composed.parts, &Object::new(), &world.roots);
    assert_eq!(values(&world.message(Value::Object(message))), parts);
}

#[test]
fn an_invalid_part_does_not_affect_its_siblings() {
    let composed = World::new().parts(json!([5, {"type": "text", "text": "x"}, {"type": 7}, null]));
    let kinds: Vec<&str> = composed.parts.iter().map(Part::kind).collect();
    assert_eq!(kinds, ["unreadable", "text", "unreadable", "unreadable"]);
    assert_eq!(composed.diagnostics.len(), 3);
    assert_eq!(composed.parts[0].object()["value"], 5);
}

#[test]
fn an_endless_expansion_is_cut_and_reported() {
    let mut world = World::new();
    let body = "$@".repeat(50_000);
    let mentions = compositor::command::Mentions::Literal;
    world.command("/bomb", compositor::command::CommandEffect::Template { body, mentions });
    let composed = world.typed(&format!("/bomb {}", "x".repeat(50_000)));
    assert_eq!(composed.diagnostics, ["command: '/bomb' expands to too much text (cut)"]);
    assert!(composed.parts[1].object()["text"].as_str().unwrap().len() < 1_300_000);
}

#[test]
fn the_total_cost_of_small_chips_is_bounded() {
    let mut world = World::new();
    let body = "x".repeat(100_000);
    let mentions = compositor::command::Mentions::Literal;
    world.command("/long", compositor::command::CommandEffect::Template { body, mentions });
    let large =
        json!({"type": "editor-context", "kind": "open", "payload": {"text": "x".repeat(100_000)}});
    world.contexts.insert("open".to_owned(), vec![Part::from_value(large).unwrap()]);

    let commands: Vec<Value> =
        (0..1_000).map(|_| json!({"type": "command", "id": "/long"})).collect();
    let composed = world.parts(json!(commands));
    assert_eq!(composed.parts.len(), 2_000);
    let written = values(&composed).to_string().len();
    assert!(written < 5_000_000, "{written} bytes");
    assert!(composed.diagnostics[0].contains("too much text"));
    let expanded = composed.parts.iter().filter(|part| {
        let text = part.object().get("text").and_then(Value::as_str);
        text.is_some_and(|text| text.len() == 100_000)
    });
    assert_eq!(expanded.count(), 41, "as many as fit, whole");

    let composed = world.typed(&"@open ".repeat(900));
    let contexts = composed.parts.iter().filter(|part| part.kind() == "editor-context");
    assert_eq!(contexts.count(), 1, "it is included once");
    assert!(composed.diagnostics.is_empty());
    let again = world.parts(values(&composed));
    assert_eq!(again.parts, composed.parts);

    let branches: Vec<Value> =
        (0..1_000).map(|_| json!({"type": "command", "id": "/branch"})).collect();
    let composed = world.parts(json!(branches));
    assert_eq!(composed.actions.len(), 16);
    assert_eq!(composed.diagnostics, ["command: only the first 16 of 1000 actions are done"]);
    assert!(!composed.reaches_model);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// The fuzz target `compose_text`.
    #[test]
    fn any_text_is_composed_and_written_back_unchanged(
        text in "(\\PC|/[a-z]{1,6}|/review |/look |@(skill|file|node):?|@selection|\"|:1-2|[ \n.\\\\]){0,40}",
    ) {
        fuzzed::text(&text);
    }

    /// The fuzz target `template`.
    #[test]
    fn any_template_expands(
        template in "(\\PC|\\$[0-9]{0,3}|\\$\\{1\\}|\\$@|\\\\|ARGUMENTS){0,30}",
        raw in "(\\PC|['\"\\\\ ]){0,30}",
    ) {
        fuzzed::template(&template, &raw);
    }

    /// The fuzz target `ahp_mapping`.
    #[test]
    fn any_object_is_a_message(text in ".{0,20}", value in "[\\[\\]{}\":,0-9a-z ]{0,40}") {
        let value = serde_json::from_str(&value).unwrap_or(Value::Null);
        let message = json!({"text": text, "attachments": [value], "_meta": value});
        fuzzed::message(object(message));
        fuzzed::parts(vec![value, json!({"type": "text", "text": text})]);
    }
}
