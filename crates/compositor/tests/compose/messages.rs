//! Messages of the protocol: anchors, attachments, chips (docs/rules/compositor.md, Protocol messages and parts).

use serde_json::{Value, json};

use crate::environment::{NOW_MS, World, values};

fn at(line: u64, character: u64) -> Value {
    json!({"line": line, "character": character})
}

fn range(start: Value, end: Value) -> Value {
    json!({"start": start, "end": end})
}

fn simple(label: &str, representation: &str, range: Value) -> Value {
    let mut it = json!({"type": "simple", "label": label, "modelRepresentation": representation});
    if !range.is_null() {
        it["range"] = range;
    }
    it
}

fn parts(text: &str, attachments: Value) -> Value {
    values(&World::new().message(json!({"text": text, "attachments": attachments})))
}

fn only(attachment: Value) -> Value {
    parts("", json!([attachment]))[0].take()
}

/// What stands where: texts as they are, attachments as what they cover.
fn order(text: &str, attachments: Value) -> Vec<String> {
    let parts = parts(text, attachments);
    let describe = |part: &Value| match (&part["anchor"], &part["ahp"]["label"]) {
        (Value::String(anchor), label) => format!("[{}={anchor}]", label.as_str().unwrap_or("")),
        (_, Value::String(label)) => format!("[{label}]"),
        _ => part["text"].as_str().unwrap_or("?").to_owned(),
    };
    parts.as_array().unwrap().iter().map(describe).collect()
}

#[test]
fn attachments_are_placed_by_their_range_and_cover_text() {
    let attachments = json!([
        simple("b", "x", range(at(1, 0), at(1, 2))),
        simple("loose", "x", Value::Null),
        simple("a", "x", range(at(0, 4), at(0, 6))),
    ]);
    assert_eq!(
        order("see @a\r\n@b now", attachments),
        ["see ", "[a=@a]", "\r\n", "[b=@b]", " now", "[loose]"]
    );
}

#[test]
fn overlapping_and_impossible_ranges_are_unanchored_and_reported() {
    let composed = World::new().message(json!({"text": "abcdef", "attachments": [
        simple("late", "x", range(at(0, 2), at(0, 5))),
        simple("first", "x", range(at(0, 0), at(0, 3))),
        simple("beyond", "x", range(at(7, 0), at(7, 1))),
        simple("backwards", "x", range(at(0, 3), at(0, 1))),
        {"type": "simple", "label": "odd", "modelRepresentation": "x", "range": {"start": -1}},
        simple("null", "x", Value::Null),
    ]}));
    let labels: Vec<&str> = composed.parts[2..]
        .iter()
        .map(|part| part.object()["ahp"]["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["late", "beyond", "backwards", "odd", "null"]);
    assert_eq!(composed.parts[0].object()["anchor"], "abc");
    assert_eq!(
        composed.diagnostics,
        [
            "attachment: 'beyond' is outside of the text (unanchored)",
            "attachment: 'backwards' is outside of the text (unanchored)",
            "attachment: 'odd' is outside of the text (unanchored)",
            "attachment: 'late' overlaps another one in the text (unanchored)",
        ]
    );
}

#[test]
fn ranges_are_sorted_by_start_end_and_index() {
    let attachments = json!([
        simple("wide", "x", range(at(0, 1), at(0, 2))),
        simple("two", "x", range(at(0, 1), at(0, 1))),
        simple("three", "x", range(at(0, 1), at(0, 1))),
    ]);
    assert_eq!(order("ab", attachments), ["a", "[two=]", "[three=]", "[wide=b]"]);
}

#[test]
fn g_39_the_empty_line_after_a_final_newline_is_a_valid_position() {
    let composed = World::new().message(json!({"text": "a\n", "attachments": [
        simple("end", "x", range(at(1, 0), at(1, 0)))]}));
    assert_eq!(values(&composed)[1]["anchor"], "");
    assert!(composed.diagnostics.is_empty());
}

#[test]
fn a_range_inside_of_a_surrogate_pair_snaps_outward() {
    let attachments = json!([simple("p", "x", range(at(0, 1), at(0, 1)))]);
    assert_eq!(order("👍x", attachments), ["[p=👍]", "x"]);
}

#[test]
fn simple_attachments_use_their_model_representation() {
    assert_eq!(
        only(
            json!({"type": "simple", "label": "l", "displayKind": "symbol", "modelRepresentation": "shown"})
        ),
        json!({"type": "text", "text": "shown", "ahp": {"type": "simple", "label": "l", "displayKind": "symbol"}})
    );
    assert_eq!(
        only(json!({"type": "simple", "label": "l", "modelRepresentation": ""})),
        json!({"type": "text", "text": "", "ahp": {"type": "simple", "label": "l"}})
    );
    let mention = |target: Value| json!({"type": "mention", "target": target});
    assert_eq!(
        only(json!({"type": "simple", "label": "Header", "displayKind": "node"})),
        mention(json!({"kind": "node", "label": "Header"}))
    );
    for attachment in [
        json!({"type": "simple", "label": "l", "displayKind": "skill"}),
        json!({"type": "simple", "label": "l", "modelRepresentation": null}),
    ] {
        assert_eq!(only(attachment), mention(json!({"kind": "unknown", "label": "l"})));
    }
}

#[test]
fn embedded_resources_are_attachments_with_their_selection() {
    let selection = json!({"range": range(at(0, 0), at(1, 0))});
    assert_eq!(
        only(json!({"type": "embeddedResource", "label": "n.txt", "contentType": "text/plain",
            "data": "YQpiCg==", "selection": selection})),
        json!({"type": "file-attachment", "name": "n.txt", "mime": "text/plain", "data": "YQpiCg==",
            "selection": selection, "size": 4})
    );
}

#[test]
fn c_012_and_c_020_resources_are_references() {
    let reference = |reference: Value| json!({"type": "file-ref", "ref": reference});
    assert_eq!(
        only(json!({"type": "resource", "label": "a b", "uri": "file:///ws/src/a%20b.ts",
            "sizeHint": 5, "contentType": "text/plain", "nonce": "v1"})),
        reference(
            json!({"kind": "path", "path": "src/a b.ts", "name": "a b", "mime": "text/plain",
            "nonce": "v1", "size": 5})
        )
    );
    assert_eq!(
        only(json!({"type": "resource", "label": "l", "uri": "file:///etc/hosts"})),
        reference(json!({"kind": "path", "path": "/etc/hosts", "name": "l"}))
    );
    assert_eq!(
        only(json!({"type": "resource", "label": "l", "uri": "https://x.example"})),
        reference(json!({"kind": "url", "url": "https://x.example", "name": "l"}))
    );
    assert_eq!(
        only(json!({"type": "resource", "label": "l", "uri": "git:/x"})),
        reference(json!({"kind": "url", "url": "git:/x", "name": "l"}))
    );
    let hex = "ab".repeat(32);
    assert_eq!(
        only(
            json!({"type": "resource", "label": "l", "uri": format!("ahp-content:/sha256/{hex}")})
        ),
        reference(
            json!({"kind": "content-id", "content_id": format!("sha256:{hex}"), "name": "l"})
        )
    );
    assert_eq!(
        only(
            json!({"type": "resource", "label": "src", "uri": "file:///ws/src/", "displayKind": "directory"})
        ),
        json!({"type": "directory-ref", "ref": {"kind": "path", "path": "src", "name": "src"}})
    );
    let selection = json!({"range": range(at(9, 3), at(12, 1))});
    assert_eq!(
        only(
            json!({"type": "resource", "label": "a", "uri": "file:///ws/a", "selection": selection})
        ),
        reference(json!({"kind": "path", "path": "a", "name": "a",
            "range": {"unit": "line", "start": 10, "end": 13, "selection": selection}}))
    );
}

#[test]
fn annotations_are_editor_context() {
    let part = parts(
        "look",
        json!([{"type": "annotations", "label": "l",
        "resource": "ahp-session:/s/annotations", "annotationIds": ["a1"]}]),
    );
    assert_eq!(
        part[1],
        json!({"type": "editor-context", "kind": "annotations", "source": "ahp-session:/s/annotations",
            "payload": {"annotationIds": ["a1"], "annotations": []}, "emitted_at": NOW_MS})
    );
}

#[test]
fn unknown_attachments_are_stored_whole_with_their_label() {
    for attachment in [
        json!({"type": "chat", "label": "Yesterday", "resource": "ahp-chat:/c", "endTurn": "t1"}),
        json!({"type": "hologram", "label": "Yesterday", "range": {"start": 1}}),
        json!({"type": "resource", "label": "Yesterday"}),
        json!({"type": "embeddedResource", "label": "Yesterday", "data": 5}),
        json!({"label": "Yesterday"}),
    ] {
        assert_eq!(
            only(attachment.clone()),
            json!({"type": "ahp-attachment", "attachment": attachment, "text": "Yesterday"})
        );
    }
    for attachment in [json!(5), json!(null), json!([]), json!({})] {
        let expected = json!({"type": "ahp-attachment", "attachment": attachment});
        assert_eq!(only(attachment), expected);
    }
}

fn chip(label: &str, part: Value, range: Value) -> Value {
    let mut it =
        json!({"type": "simple", "label": label, "_meta": {"compositor/part": part, "theirs": 1}});
    if !range.is_null() {
        it["range"] = range;
    }
    it
}

fn command(id: &str) -> Value {
    json!({"type": "command", "id": id})
}

#[test]
fn c_045_a_command_chip_is_one_anywhere_and_owns_the_text_to_the_next_anchor() {
    let parts = parts(
        "please /review a.ts high then @x",
        json!([
            chip("/review", command("/review"), range(at(0, 7), at(0, 14))),
            simple("x", "X", range(at(0, 30), at(0, 32))),
        ]),
    );
    assert_eq!(
        parts,
        json!([
            {"type": "text", "text": "please "},
            {"type": "command", "id": "/review", "anchor": "/review",
                "args": {"raw": "a.ts high then ", "argv": ["a.ts", "high", "then"]}},
            {"type": "text", "text": "Review a.ts with severity high.", "derived_from": {"part": 1}},
            {"type": "text", "text": "X", "ahp": {"type": "simple", "label": "x"}, "anchor": "@x"},
        ])
    );
}

#[test]
fn a_typed_command_owns_the_text_up_to_the_first_anchor() {
    let parts = parts("/review a @x b", json!([simple("x", "X", range(at(0, 10), at(0, 12)))]));
    assert_eq!(parts[0]["args"]["raw"], "a ");
    assert_eq!(parts[2]["text"], "X");
    assert_eq!(parts[3], json!({"type": "text", "text": " b"}));
}

#[test]
fn an_anchor_inside_of_a_command_makes_it_prose() {
    let order = order("/review a", json!([simple("x", "X", range(at(0, 3), at(0, 7)))]));
    assert_eq!(order, ["/re", "[x=view]", " a"]);
    let escaped = json!([simple("x", "X", range(at(0, 1), at(0, 2)))]);
    assert_eq!(self::order("\\/a", escaped), ["\\", "[x=/]", "a"]);
}

#[test]
fn completed_attachments_without_a_range_are_located_by_their_inserted_text() {
    let located = |text: &str, attachment: Value| parts(text, json!([attachment]));
    let part = located("/review a.ts low", chip("/review", command("/review"), Value::Null));
    assert_eq!(part[0]["anchor"], "/review");
    assert_eq!(part[0]["args"]["raw"], "a.ts low");
    let skill = json!({"type": "mention", "target": {"kind": "skill", "name": "known"}});
    let part = located("use @skill:known, now", chip("known", skill.clone(), Value::Null));
    assert_eq!(part[1]["anchor"], "@skill:known");
    let file = json!({"type": "resource", "label": "a b", "uri": "file:///ws/a%20b.ts"});
    let part = located("see @file:\"a b.ts\".", file);
    assert_eq!(
        part[1],
        json!({"type": "file-ref", "anchor": "@file:\"a b.ts\"",
        "ref": {"kind": "path", "path": "a b.ts", "name": "a b"}})
    );
    // Not exactly once: unanchored.
    let twice = located("x @skill:known @skill:known", chip("known", skill.clone(), Value::Null));
    assert_eq!(twice.as_array().unwrap().len(), 5);
    assert_eq!(twice[4].get("anchor"), None);
    let never = located("use it", chip("known", skill.clone(), Value::Null));
    assert_eq!(never[1].get("anchor"), None);
    let longer = located("use @skill:known-too", chip("known", skill, Value::Null));
    assert_eq!(longer[2].get("anchor"), None);
}

#[test]
fn chips_are_checked_against_the_catalogue() {
    let composed = World::new().message(json!({"text": "/nope a", "attachments": [
        chip("/nope", command("/nope"), range(at(0, 0), at(0, 5))),
        chip("s", json!({"type": "mention", "target": {"kind": "skill", "name": "gone"}}), Value::Null),
        chip("known type", json!({"type": "file-ref", "ref": {"kind": "path"}}), Value::Null),
        chip("no part", json!("x"), Value::Null),
        chip("body", json!({"type": "file-attachment", "name": "n", "mime": "text/plain", "data": "YQ=="}), Value::Null),
        chip("liar", json!({"type": "text", "text": "t", "anchor": "forged", "derived_from": {"part": 0}}), Value::Null),
    ]}));
    assert_eq!(
        values(&composed),
        json!([
            {"type": "command", "id": "/nope", "args": {"raw": "a", "argv": ["a"]}, "anchor": "/nope"},
            {"type": "text", "text": "/nope a", "derived_from": {"part": 0}},
            {"type": "mention", "target": {"kind": "skill", "name": "gone", "unresolved": true}},
            {"type": "mention", "target": {"kind": "unknown", "label": "known type"}},
            {"type": "mention", "target": {"kind": "unknown", "label": "no part"}},
            {"type": "mention", "target": {"kind": "unknown", "label": "body"}},
            {"type": "text", "text": "t"},
        ])
    );
    assert_eq!(composed.diagnostics.len(), 5, "{:?}", composed.diagnostics);
}

#[test]
fn metadata_holds_origin_and_model() {
    let message = json!({"text": "x", "origin": {"kind": "user"}, "agent": {"uri": "agent:/a"},
        "model": {"id": "p/m", "config": {"n": 1}}, "_meta": {"theirs": {"b": 1, "a": 2}}, "new": []});
    let composed = World::new().message(message.clone());
    let metadata = Value::Object(composed.metadata);
    assert_eq!(
        metadata,
        json!({"schema_version": 1, "origin": {"kind": "user"}, "agent": "agent:/a", "ahp": message,
            "model": {"provider_id": "p", "model_id": "m", "config": {"n": 1}}})
    );
    assert_eq!(metadata["ahp"].to_string(), message.to_string());
}
