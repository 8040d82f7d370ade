//! Parts as they are persisted: their names, their order, and unknown ones (C-001 to C-013, C-082 to C-088).

use compositor::ahp::to_ahp;
use compositor::{
    ComposeRefusal, Part, SubmittedMessage, View, compose, compose_plain, is_plain, version,
};
use serde_json::{Value, json};
use wire::Object;

use crate::environment::{World, values};

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// One of each.
fn all_kinds() -> Value {
    json!([
        {"type": "text", "text": "look at this"},
        {"type": "file-ref", "ref": {"kind": "path", "path": "designs/icon.svg"}},
        {"type": "file-ref", "ref": {"kind": "url", "url": "https://x.example/a"}},
        {"type": "file-ref", "ref": {"kind": "content-id", "content_id": "sha256:00"}},
        {"type": "file-attachment", "mime": "image/png", "name": "s.png", "data": "iVBORw0KGgo=", "size": 8},
        {"type": "file-attachment", "name": "design.psd", "mime": "image/vnd.adobe.photoshop", "size": 12000000},
        {"type": "command", "id": "/compact", "args": {}},
        {"type": "mention", "target": {"kind": "skill", "name": "known"}},
        {"type": "mention", "target": {"kind": "file", "path": "a.ts"}},
        {"type": "mention", "target": {"kind": "node", "id": "n42", "label": "Header"}},
        {"type": "editor-context", "kind": "selection", "payload": {}, "emitted_at": 1},
    ])
}

#[test]
fn c_001_a_message_is_parts_and_metadata_never_one_string() {
    let composed = World::new().typed("hello");
    assert_eq!(values(&composed), json!([{"type": "text", "text": "hello"}]));
    let metadata = json!({"schema_version": 1, "origin": {"kind": "user"}});
    assert_eq!(Value::Object(composed.metadata), metadata);
}

#[test]
fn c_002_and_c_003_any_parts_any_number_in_their_order() {
    let world = World::new();
    let Value::Array(mut parts) = all_kinds() else { unreachable!() };
    for _ in 0..parts.len() {
        parts.rotate_left(1);
        let twice = Value::Array([parts.clone(), parts.clone()].concat());
        assert_eq!(values(&world.parts(twice.clone())), twice);
    }
}

#[test]
fn c_004_c_005_and_c_083_type_names_are_stable() {
    let composed = World::new().parts(all_kinds());
    let kinds: Vec<&str> = composed.parts.iter().map(Part::kind).collect();
    let expected = [
        "text",
        "file-ref",
        "file-ref",
        "file-ref",
        "file-attachment",
        "file-attachment",
        "command",
        "mention",
        "mention",
        "mention",
        "editor-context",
    ];
    assert_eq!(kinds, expected);
    for part in &composed.parts {
        assert!(!matches!(part.view(), View::Unknown { .. }), "{part:?}");
        assert_eq!(Part::from_value(part.to_value()).as_ref(), Ok(part));
    }
}

#[test]
fn c_006_unknown_fields_survive_with_the_order_of_their_keys() {
    let parts = r#"[{"z":1,"type":"text","a":{"y":[1.50,-0.0,1e400],"b":null},"text":"t","é":"\u0000"},
        {"n":18446744073709551615,"type":"hologram","uri":"x:1"},
        {"type":"file-attachment","x":1,"data":"YQ==","mime":"text/plain","w":2,"name":"n","size":1,"v":3},
        {"type":"mention","q":1,"target":{"z":1,"kind":"skill","name":"known","a":2},"p":2},
        {"type":"editor-context","payload":{"b":1,"a":2},"kind":"k","emitted_at":7,"own":true}]"#;
    let parts = parts.replace("1e400", "1e40");
    let Value::Array(parts) = serde_json::from_str(&parts).unwrap() else { unreachable!() };
    let written: Vec<String> = parts.iter().map(Value::to_string).collect();
    let world = World::new();
    let composed = world.parts(Value::Array(parts));
    let again = |parts: &[Part]| -> Vec<String> {
        parts.iter().map(|part| part.to_value().to_string()).collect()
    };
    assert_eq!(again(&composed.parts), written);
    // Read from rows, sent as a message and read from that.
    let rows = composed.parts.iter().map(Part::to_value).collect();
    assert_eq!(again(&version::read(rows, 1)), written);
    let message = to_ahp(&composed.parts, &Object::new(), &world.roots);
    let message: Object = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
    let composed = compose(SubmittedMessage::Ahp(message), &world.environment()).unwrap();
    assert_eq!(again(&composed.parts), written);
}

#[test]
fn c_007_a_message_without_content_is_refused() {
    let world = World::new();
    let environment = world.environment();
    let context = json!({"type": "editor-context", "kind": "open", "payload": {}, "emitted_at": 1});
    let parts = |parts| SubmittedMessage::Parts { parts, metadata: Object::new() };
    let message = |value| SubmittedMessage::Ahp(object(value));
    for input in [
        SubmittedMessage::Text(String::new()),
        parts(vec![]),
        parts(vec![context.clone(), context.clone()]),
        message(json!({"text": "", "origin": {"kind": "user"}})),
        message(json!({"text": "", "attachments": []})),
        message(json!({"text": "", "attachments": [{"type": "simple", "label": "l",
            "_meta": {"compositor/part": context}}]})),
    ] {
        assert_eq!(
            compose(input.clone(), &environment),
            Err(ComposeRefusal::EmptyMessage),
            "{input:?}"
        );
    }
    let text = ComposeRefusal::EmptyMessage.to_string();
    assert!(text.starts_with("empty_message"), "{text}");
    assert!(compose(SubmittedMessage::Text(" ".to_owned()), &environment).is_ok());
}

#[test]
fn c_010_and_c_011_a_reference_has_its_range_and_no_body() {
    let world = World::new();
    let parts = json!([
        {"type": "file-ref", "ref": {"kind": "path", "path": "a", "range": {"start": 10, "end": 25}}},
        {"type": "file-ref", "ref": {"kind": "path", "path": "a",
            "range": {"start": 0, "end": 9, "unit": "byte"}}},
    ]);
    let composed = world.parts(parts.clone());
    assert_eq!(values(&composed), parts);
    assert_eq!((composed.bodies.len(), composed.inline_bytes), (0, 0));
}

#[test]
fn c_019_a_path_outside_of_the_workspace_is_persisted_unchanged() {
    let parts = json!([
        {"type": "file-ref", "ref": {"kind": "path", "path": "../../etc/shadow"}},
        {"type": "file-ref", "ref": {"kind": "path", "path": "a\u{0}b"}},
        {"type": "mention", "target": {"kind": "file", "path": "/etc/shadow"}},
    ]);
    assert_eq!(values(&World::new().parts(parts.clone())), parts);
}

#[test]
fn c_037_parts_do_not_depend_on_the_model() {
    let world = World::new();
    let message = |model: &str| {
        json!({"text": "look", "model": {"id": model, "config": {"effort": "low"}}, "attachments": [
            {"type": "embeddedResource", "label": "s.png", "contentType": "image/png", "data": "iVBORw0KGgo="}]})
    };
    let (one, other) = (world.message(message("a/b")), world.message(message("plain")));
    assert_eq!(one.parts, other.parts);
    let model = json!({"provider_id": "a", "model_id": "b", "config": {"effort": "low"}});
    assert_eq!(one.metadata["model"], model);
    assert_eq!(other.metadata["model"]["model_id"], "plain");
}

#[test]
fn c_082_composing_leaves_other_fields_unchanged() {
    let composed = World::new().parts(all_kinds());
    let parts = composed.parts.clone();
    let actions = compositor::host_actions(&composed.parts);
    to_ahp(&composed.parts, &composed.metadata, &[]);
    assert_eq!(composed.parts, parts);
    assert_eq!(actions, composed.actions);
}

#[test]
fn c_085_every_message_has_a_version_and_newer_ones_are_preserved() {
    let world = World::new();
    assert_eq!(world.typed("x").metadata["schema_version"], 1);
    assert_eq!(world.parts(json!([{"type": "text", "text": "x"}])).metadata["schema_version"], 1);
    let message = json!({"text": "x", "origin": {"kind": "user"}});
    assert_eq!(world.message(message.clone()).metadata["schema_version"], 1);
    assert_eq!(compose_plain(object(message)).metadata["schema_version"], 1);
    for (version, stored) in [(json!(2), 2), (json!("x"), 1), (json!(0), 1)] {
        let metadata = object(json!({"schema_version": version, "queued_at": 5}));
        let parts = vec![json!({"type": "text", "text": "x"})];
        let composed =
            compose(SubmittedMessage::Parts { parts, metadata }, &world.environment()).unwrap();
        assert_eq!(composed.metadata["schema_version"], stored);
        assert_eq!(composed.metadata["queued_at"], 5);
    }
}

#[test]
fn c_086_and_c_087_unknown_parts_are_additive() {
    let parts = json!([
        {"type": "poll", "text": "Which one?", "options": ["a", "b"]},
        {"type": "file-ref", "ref": {"kind": "path", "file_path": "a.ts"}},
    ]);
    let composed = World::new().parts(parts.clone());
    assert_eq!(values(&composed), parts);
    assert!(composed.reaches_model);
    let diagnostics = ["part: one of type 'file-ref' cannot be read (kept unchanged)"];
    assert_eq!(composed.diagnostics, diagnostics);
    let view = composed.parts[0].view();
    let text = Some("Which one?");
    assert_eq!(view, View::Unknown { kind: "poll", text });
}

#[test]
fn c_088_parts_that_are_not_sent_are_recorded() {
    let composed = World::new().typed("/svg cat @skill:known");
    let kinds: Vec<&str> = composed.parts.iter().map(Part::kind).collect();
    assert_eq!(kinds, ["command", "mention", "text", "mention"]);
}

#[test]
fn a_plain_message_equals_its_composed_form() {
    let world = World::new();
    let environment = world.environment();
    for message in [
        json!({"text": "hello\n/compact", "origin": {"kind": "user"}}),
        json!({"text": " /compact", "attachments": [], "agent": {"uri": "a:b"}, "_meta": {"x": 1}}),
        json!({"text": "é👍 $1 \\x", "model": {"id": "m"}, "own": [1]}),
    ] {
        let message = object(message);
        assert!(is_plain(&message));
        let composed = compose(SubmittedMessage::Ahp(message.clone()), &environment).unwrap();
        assert_eq!(compose_plain(message.clone()), composed);
        assert_eq!(composed.message.as_ref(), Some(&message));
        assert_eq!(to_ahp(&composed.parts, &composed.metadata, &[]), message);
    }
    for other in [
        json!({"text": ""}),
        json!({"text": "/compact"}),
        json!({"text": "\\/compact"}),
        json!({"text": "ask bob@example.org"}),
        json!({"text": "x", "attachments": [{}]}),
        json!({"text": "x", "attachments": {}}),
        json!({"text": "x", "_meta": {"compositor/message": {}}}),
        json!({"text": 5}),
    ] {
        assert!(!is_plain(&object(other.clone())), "{other}");
    }
}
