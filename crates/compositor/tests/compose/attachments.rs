//! Bodies of attachments: checked, classed and moved (C-030 to C-039, G-32, G-38).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::ahp::to_ahp;
use compositor::compose::AttachmentBudget;
use serde_json::{Value, json};

use crate::environment::{World, values};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn attached(mime: &str, bytes: &[u8]) -> Value {
    json!({"type": "file-attachment", "name": "n", "mime": mime, "data": STANDARD.encode(bytes)})
}

fn world_with_budget(each_bytes: u64, left_bytes: u64) -> World {
    let mut world = World::new();
    world.inline = AttachmentBudget { each_bytes, left_bytes };
    world
}

#[test]
fn c_033_bodies_over_the_limit_or_the_budget_are_detached() {
    let is_inline = |world: &World, sizes: &[usize]| -> Vec<bool> {
        let parts = sizes.iter().map(|size| attached("text/plain", &vec![b'a'; *size]));
        let composed = world.parts(parts.collect());
        let inline: Vec<bool> =
            composed.parts.iter().map(|part| part.object().contains_key("data")).collect();
        let stay: usize =
            sizes.iter().zip(&inline).filter(|(_, stays)| **stays).map(|(size, _)| size).sum();
        assert_eq!(composed.inline_bytes, stay as u64);
        inline
    };
    assert_eq!(is_inline(&world_with_budget(10, 100), &[10, 11, 0]), [true, false, true]);
    // Only what would overflow is split: what comes after it and fits stays.
    assert_eq!(
        is_inline(&world_with_budget(10, 20), &[8, 8, 8, 4, 1]),
        [true, true, false, true, false]
    );
    assert_eq!(is_inline(&world_with_budget(10, 0), &[0, 1]), [true, false]);
    let defaults = AttachmentBudget::default();
    assert_eq!((defaults.each_bytes, defaults.left_bytes), (1_048_576, 20_971_520));
    let world = World::new();
    assert_eq!(is_inline(&world, &[1_048_576, 1_048_577]), [true, false]);
}

#[test]
fn c_033_bodies_that_no_model_reads_are_always_detached() {
    let world = World::new();
    for (mime, bytes) in [
        ("application/zip", &b"PK\x03\x04\0"[..]),
        ("image/vnd.adobe.photoshop", b"8BPS\0\x01"),
        ("text/plain", b"\0\x01\x02\xff"),
        ("application/pdf", b"PK\x03\x04\0"),
        ("image/png", b"\0\0\0"),
    ] {
        let composed = world.parts(json!([attached(mime, bytes)]));
        assert!(!composed.parts[0].object().contains_key("data"), "{mime}");
        assert_eq!(composed.bodies[0].bytes, bytes);
        assert_eq!(composed.inline_bytes, 0);
    }
    let composed = world.parts(json!([attached("image/png", PNG), attached("text/plain", b"a")]));
    assert!(composed.bodies.is_empty());
    assert_eq!(composed.inline_bytes, 9);
}

#[test]
fn c_034_content_is_named_by_the_digest_of_its_bytes() {
    let composed = world_with_budget(0, 0).parts(json!([attached("text/plain", b"abc")]));
    let id = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(
        values(&composed),
        json!([{"type": "file-attachment", "name": "n", "mime": "text/plain", "size": 3, "content_id": id}])
    );
    assert_eq!(
        (composed.bodies[0].content_id.as_str(), &composed.bodies[0].mime[..]),
        (id, "text/plain")
    );
}

#[test]
fn c_035_base64_is_strict_and_sizes_are_counted() {
    let world = World::new();
    let part = |data: &str| {
        json!([{"type": "file-attachment", "name": "n", "mime": "text/plain",
        "data": data, "size": 999, "content_id": "sha256:forged"}])
    };
    let good = values(&world.parts(part("YWJj")));
    assert_eq!(good[0]["size"], 3);
    assert_eq!(good[0]["data"], "YWJj");
    assert_eq!(good[0].get("content_id"), None);
    for bad in ["YWJ", "YW Jj", "YWJj\n", "YW-_", "YQ", "YQ=", "YQ===", "====", "é", "Y\u{0}=="] {
        let composed = world.parts(part(bad));
        let descriptor = json!([{"type": "file-attachment", "name": "n", "mime": "text/plain"}]);
        assert_eq!(values(&composed), descriptor, "{bad:?}");
        assert_eq!(
            composed.diagnostics,
            ["attachment: the body of 'n' is not base64 (described only)"]
        );
        assert!(composed.bodies.is_empty() && composed.reaches_model);
    }
    // Without a body, the claimed type is all there is.
    let descriptor =
        json!([{"type": "file-attachment", "name": "n", "mime": "m", "size": 12_000_000}]);
    assert_eq!(values(&world.parts(descriptor.clone())), descriptor);
}

#[test]
fn c_036_a_mislabelled_body_is_flagged_and_reported() {
    let composed = World::new().parts(json!([
        attached("text/plain", b"\0\x01\x02\xff"),
        attached("application/pdf", b"PK\x03\x04\0"),
        attached("text/csv", b"a,b"),
    ]));
    let sniffed = |index: usize| composed.parts[index].object().get("sniffed_mime");
    let binary = json!("application/octet-stream");
    assert_eq!((sniffed(0), sniffed(1), sniffed(2)), (Some(&binary), Some(&binary), None));
    assert_eq!(composed.diagnostics.len(), 2);
    // Whoever says so himself is not believed.
    let mut forged = attached("text/csv", b"a,b");
    forged["sniffed_mime"] = binary;
    let composed = World::new().parts(json!([forged]));
    assert_eq!(composed.parts[0].object().get("sniffed_mime"), None);
}

#[test]
fn c_038_duplicates_are_separate_parts_and_one_body() {
    let composed = world_with_budget(0, 0)
        .parts(json!([attached("image/png", PNG), attached("image/png", PNG)]));
    assert_eq!(composed.parts.len(), 2);
    assert_eq!(composed.parts[0], composed.parts[1]);
    assert_eq!(composed.bodies.len(), 1);
}

#[test]
fn c_039_the_same_file_may_come_as_a_reference_or_attached() {
    let composed = World::new().message(json!({"text": "", "attachments": [
        {"type": "resource", "label": "a.txt", "uri": "file:///ws/a.txt"},
        {"type": "embeddedResource", "label": "a.txt", "contentType": "text/plain", "data": "YQ=="},
    ]}));
    let kinds: Vec<&str> = composed.parts.iter().map(|part| part.kind()).collect();
    assert_eq!(kinds, ["file-ref", "file-attachment"]);
}

#[test]
fn g_32_bodies_that_move_are_references_in_the_message_and_all_else_stays() {
    let mut world = world_with_budget(8, 100);
    world.roots.clear();
    let message = json!({"text": "see x", "origin": {"kind": "user"}, "own": 1, "attachments": [
        {"type": "embeddedResource", "x": 1, "label": "big", "data": STANDARD.encode(b"123456789"),
            "contentType": "text/plain", "displayKind": "document", "_meta": {"theirs": [1]},
            "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}},
        {"type": "embeddedResource", "label": "small", "data": "YQ==", "contentType": "text/plain"},
        {"type": "embeddedResource", "label": "bad", "data": "???", "contentType": "text/plain"},
        {"type": "embeddedResource", "label": "bad and big", "data": "????????????", "contentType": "text/plain"},
    ]});
    let composed = world.message(message.clone());
    let mut expected = message;
    let uri = |hex: &str| format!("ahp-content:/sha256/{hex}");
    let big = uri("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
    expected["attachments"][0] = json!({"type": "resource", "x": 1, "label": "big",
        "contentType": "text/plain", "displayKind": "document", "_meta": {"theirs": [1]},
        "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}},
        "uri": big, "sizeHint": 9});
    let recorded = Value::Object(composed.message.clone().unwrap());
    let hex = composed.bodies[1].content_id.strip_prefix("sha256:").unwrap();
    expected["attachments"][3] = json!({"type": "resource", "label": "bad and big",
        "contentType": "text/plain", "uri": uri(hex), "sizeHint": 12});
    assert_eq!(recorded.to_string(), expected.to_string());
    assert_eq!(composed.bodies[1].bytes[..], *b"????????????");
    let attachments = &composed.metadata["ahp"]["attachments"];
    assert_eq!(attachments[1]["data"], json!({"$part": 2}), "a body is not stored twice");
    assert_eq!(composed.parts[2].object()["data"], "YQ==");
    let given_back = to_ahp(&composed.parts, &composed.metadata, &[]);
    assert_eq!(Value::Object(given_back).to_string(), expected.to_string());
}

#[test]
fn bodies_are_counted_in_the_order_of_the_text() {
    let at = |character: u64| json!({"start": {"line": 0, "character": character}, "end": {"line": 0, "character": character}});
    let embedded = |range: Value| {
        json!({"type": "embeddedResource", "label": "l", "contentType": "text/plain",
        "data": STANDARD.encode(b"12345"), "range": range})
    };
    let composed = world_with_budget(5, 5)
        .message(json!({"text": "ab", "attachments": [embedded(at(2)), embedded(at(1))]}));
    let message = composed.message.unwrap();
    assert_eq!(message["attachments"][0]["type"], "resource");
    assert_eq!(message["attachments"][1]["type"], "embeddedResource");
}
