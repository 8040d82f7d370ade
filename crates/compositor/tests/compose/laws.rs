//! The two laws of messages and parts (docs/rules/compositor.md): a message that was received is given back as it was, and parts
//! are found again in the message that is made from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::ahp::{from_ahp, to_ahp};
use compositor::compose::AttachmentBudget;
use compositor::media_type::{Class, classify};
use compositor::{Part, SubmittedMessage, compose};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::{Digest, Object};

use crate::environment::{ROOT, World};
use crate::fuzzed::{self, all_written, written};

// Each strategy is boxed: what proptest keeps of one holds all that its parts are made of, and a thread's stack is not made for
// hundreds of kilobytes of it at every level.

/// Any Unicode, and more of what means something.
fn text() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        3 => any::<String>(),
        2 => "[ -~]{0,12}",
        1 => prop::sample::select(vec![
            "/review ", "/compact", "/search", "\\/", "/", "@skill:known", "@skill:nope ",
            "@file:a.ts:1-2", "@file:\"a b\" ", "@selection", "@node:n42", "@", "👍", "\r\n", "\r",
            "\n", "e\u{301}", "\u{feff}", "\0", "é", "\u{2028}", "$1", "`",
        ]).prop_map(str::to_owned),
    ];
    vec(piece, 0..5).prop_map(|pieces| pieces.concat()).boxed()
}

fn json_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((text(), inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Unknown fields.
fn extra() -> BoxedStrategy<Vec<(String, Value)>> {
    prop_oneof![3 => Just(vec![]), 1 => vec(("x-[a-z]{0,3}", json_value()), 0..3)].boxed()
}

fn body() -> BoxedStrategy<String> {
    let bytes = prop_oneof![
        vec(any::<u8>(), 0..40),
        text().prop_map(String::into_bytes),
        Just(b"\x89PNG\r\n\x1a\n12345678901234567890".to_vec()),
        Just(b"\x89PNG\r\n\x1a\n".to_vec()),
    ];
    prop_oneof![
        8 => bytes.prop_map(|bytes| STANDARD.encode(bytes)),
        1 => text(),
        1 => Just("AAAA\n".to_owned()),
        1 => Just("AAE".to_owned()),
    ]
    .boxed()
}

fn mime() -> BoxedStrategy<String> {
    prop_oneof![
        prop::sample::select(vec![
            "text/plain",
            "image/png",
            "application/pdf",
            "application/zip",
            "audio/wav",
            "application/octet-stream",
            "image/svg+xml",
            "",
        ])
        .prop_map(str::to_owned),
        text(),
    ]
    .boxed()
}

fn position() -> BoxedStrategy<Value> {
    let number = || prop_oneof![8 => 0..12_i64, 1 => any::<i64>()];
    (0..4_i64, number())
        .prop_map(|(line, character)| json!({"line": line, "character": character}))
        .boxed()
}

fn range() -> BoxedStrategy<Value> {
    (position(), position()).prop_map(|(start, end)| json!({"start": start, "end": end})).boxed()
}

fn selection() -> BoxedStrategy<Value> {
    range().prop_map(|range| json!({ "range": range })).boxed()
}

fn uri() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z./ ]{0,8}".prop_map(|path| format!("file://{ROOT}/{path}")),
        text().prop_map(|path| format!("file:///{path}")),
        Just("https://x.example/a?b#c".to_owned()),
        Just(Digest::new([7; 32]).uri()),
        text(),
    ]
    .boxed()
}

/// Values that a client puts under our own key of an attachment.
fn carried() -> BoxedStrategy<Value> {
    prop_oneof![
        part(),
        json_value(),
        Just(json!({"type": "command", "id": "/review"})),
        Just(json!({"type": "command", "id": "/nope", "args": {"raw": "x"}})),
        Just(json!({"type": "mention", "target": {"kind": "skill", "name": "known"}})),
        Just(json!({"type": "mention", "target": {"kind": "context", "name": "selection"}})),
    ]
    .boxed()
}

fn attachment() -> BoxedStrategy<Value> {
    let simple = option::of(text()).prop_map(|representation| match representation {
        Some(representation) => json!({"type": "simple", "modelRepresentation": representation}),
        None => json!({"type": "simple"}),
    });
    let embedded = (mime(), body(), option::of(selection())).prop_map(|(mime, data, selection)| {
        let mut it = json!({"type": "embeddedResource", "contentType": mime, "data": data});
        if let Some(selection) = selection {
            it["selection"] = selection;
        }
        it
    });
    let resource = (uri(), option::of(selection()), option::of(any::<i64>())).prop_map(
        |(uri, selection, size)| {
            let mut it = json!({"type": "resource", "uri": uri});
            if let Some(selection) = selection {
                it["selection"] = selection;
            }
            if let Some(size) = size {
                it["sizeHint"] = json!(size);
            }
            it
        },
    );
    let other = prop_oneof![
        Just(json!({"type": "annotations", "resource": "ahp-session:/s/annotations"})),
        Just(json!({"type": "chat", "resource": "ahp-chat:/c", "endTurn": "t"})),
        text().prop_map(|kind| json!({ "type": kind })),
    ];
    let kind = prop_oneof![simple, embedded, resource, other];
    let display = prop::sample::select(vec!["image", "directory", "selection", "skill", "é"]);
    let common_fields =
        (text(), option::of(range()), option::of(display), option::of(carried()), extra());
    (kind, common_fields)
        .prop_map(|(mut it, (label, range, display, carried, extra))| {
            it["label"] = json!(label);
            if let Some(range) = range {
                it["range"] = range;
            }
            if let Some(display) = display {
                it["displayKind"] = json!(display);
            }
            if let Some(carried) = carried {
                it["_meta"] = json!({"theirs": 1, "compositor/part": carried});
            }
            for (key, value) in extra {
                it[key] = value;
            }
            it
        })
        .boxed()
}

fn message() -> BoxedStrategy<Object> {
    let meta = option::of(prop_oneof![
        Just(json!({"theirs": [1, 2]})),
        json_value().prop_map(|forged| json!({"compositor/message": forged})),
    ]);
    let model = option::of(Just(json!({"id": "a/b", "config": {"effort": "high"}})));
    (text(), option::of(vec(attachment(), 0..5)), meta, model, extra())
        .prop_map(|(text, attachments, meta, model, extra)| {
            let mut message = json!({"text": text, "origin": {"kind": "user"}});
            if let Some(attachments) = attachments {
                message["attachments"] = json!(attachments);
            }
            if let Some(model) = model {
                message["model"] = model;
            }
            if let Some(meta) = meta {
                message["_meta"] = meta;
            }
            for (key, value) in extra {
                message[key] = value;
            }
            object(message)
        })
        .boxed()
}

/// A part that nobody should send.
fn odd_part() -> BoxedStrategy<Value> {
    prop_oneof![
        (text(), json_value()).prop_map(|(kind, value)| json!({"type": kind, "value": value})),
        json_value().prop_map(|value| json!({"type": "file-ref", "ref": value})),
        json_value().prop_map(|value| json!({"type": "mention", "target": value})),
        json_value().prop_map(|value| json!({"type": "text", "text": value})),
        json_value().prop_map(|value| json!({"type": "file-attachment", "data": value})),
        body().prop_map(|data| json!({"data": data, "type": "file-attachment"})),
        (text(), text()).prop_map(|(label, text)| json!({"type": "text", "text": text,
            "ahp": {"type": "simple", "label": label}})),
        json_value().prop_map(|it| json!({"type": "ahp-attachment", "attachment": it})),
        Just(json!({"type": "directory-ref", "ref": {"kind": "path", "path": "d", "name": "d"}})),
    ]
    .boxed()
}

fn part() -> BoxedStrategy<Value> {
    let line_range = (0..20_u64, 0..20_u64, option::of(selection()));
    let line_range = line_range.prop_map(|(start, end, selection)| match selection {
        Some(selection) => {
            json!({"unit": "line", "start": start, "end": end, "selection": selection})
        }
        None => json!({"start": start, "end": end}),
    });
    let file_ref =
        (prop_oneof![text(), "[a-z/.]{1,8}"], option::of(line_range)).prop_map(|(path, range)| {
            let mut it =
                json!({"type": "file-ref", "ref": {"kind": "path", "path": path, "name": "n"}});
            if let Some(range) = range {
                it["ref"]["range"] = range;
            }
            it
        });
    let attached = (text(), mime(), body(), any::<bool>()).prop_map(|(name, mime, data, sized)| {
        let mut it = json!({"type": "file-attachment", "name": name, "mime": mime, "data": data});
        if sized {
            it["size"] = json!(8);
        }
        it
    });
    let stored = (text(), option::of(any::<u64>())).prop_map(|(name, size)| {
        let id = format!("sha256:{}", Digest::new([3; 32]));
        let mut it = json!({"type": "file-attachment", "name": name, "mime": "image/png"});
        if let Some(size) = size {
            it["size"] = json!(size);
        }
        it["content_id"] = json!(id);
        it
    });
    let command = (prop::sample::select(vec!["/review", "/compact", "/nope", ""]), text())
        .prop_map(
            |(id, raw)| json!({"type": "command", "id": id, "args": {"raw": raw, "argv": []}}),
        );
    let mention = prop_oneof![
        text().prop_map(|name| json!({"kind": "skill", "name": name})),
        text().prop_map(|path| json!({"kind": "file", "path": path})),
        text().prop_map(|name| json!({"kind": "context", "name": name})),
        text().prop_map(|id| json!({"kind": "node", "id": id})),
    ];
    let mention = mention.prop_map(|target| json!({"type": "mention", "target": target}));
    let context = (text(), json_value()).prop_map(|(kind, payload)| {
        json!({"type": "editor-context", "kind": kind, "payload": {"p": payload}, "emitted_at": 5})
    });
    let kind = prop_oneof![
        3 => text().prop_map(|text| json!({"type": "text", "text": text})),
        1 => file_ref, 1 => attached, 1 => stored, 1 => command, 1 => mention, 1 => context, 1 => odd_part()
    ];
    let common_fields = (option::of(text()), option::weighted(0.2, 0..9_u64), extra());
    (kind, common_fields)
        .prop_map(|(mut it, (anchor, derived_from, extra))| {
            if let (Some(anchor), true) = (anchor, it["type"] != "text") {
                it["anchor"] = json!(anchor);
            }
            if let Some(origin) = derived_from {
                it["derived_from"] = json!({"part": origin});
            }
            for (key, value) in extra {
                it[key] = value;
            }
            it
        })
        .boxed()
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

/// G-32 once more: bodies over the budget, and those that are not what they claim, are references.
fn externalised(message: &Object, mut budget: AttachmentBudget) -> Object {
    let mut message = message.clone();
    let attachments = message.get_mut("attachments");
    for it in attachments.and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(data) = it["data"].as_str().filter(|_| it["type"] == "embeddedResource") else {
            continue;
        };
        let decoded = STANDARD.decode(data);
        let is_known = decoded.as_ref().map_or(true, |bytes| {
            let carried = it
                .get("_meta")
                .and_then(|meta| meta["compositor/part"].as_object())
                .filter(|part| part.get("type") == Some(&json!("file-attachment")));
            let mime = match carried {
                Some(part) => part.get("mime").and_then(Value::as_str).unwrap_or(""),
                None => it["contentType"].as_str().unwrap_or("application/octet-stream"),
            };
            classify(mime, bytes).class != Class::Unknown
        });
        let bytes = decoded.unwrap_or_else(|_| data.as_bytes().to_vec());
        let size = bytes.len() as u64;
        if is_known && size <= budget.each_bytes && size <= budget.left_bytes {
            budget.left_bytes -= size;
            continue;
        }
        use sha2::{Digest as _, Sha256};
        let digest = Digest::new(Sha256::digest(&bytes).into());
        let it = it.as_object_mut().unwrap();
        it.insert("type".to_owned(), json!("resource"));
        it.shift_remove("data");
        it.insert("uri".to_owned(), json!(digest.uri()));
        it.insert("sizeHint".to_owned(), json!(size));
    }
    message
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// `to_ahp(parts, metadata.ahp) == externalised(m)`
    #[test]
    fn a_message_that_was_received_is_given_back_as_it_was(message in message()) {
        let world = World::new();
        let mut environment = world.environment();
        environment.inline = AttachmentBudget { each_bytes: 24, left_bytes: 60 };
        let Ok(composed) = compose(SubmittedMessage::Ahp(message.clone()), &environment) else {
            return Ok(());
        };
        let given_back = to_ahp(&composed.parts, &composed.metadata, environment.roots);
        prop_assert_eq!(written(&given_back), written(composed.message.as_ref().unwrap()));
        // Bodies are counted in the order of the parts, which may not be that of the attachments.
        let attachments = message.get("attachments").and_then(Value::as_array);
        let bodies = attachments.into_iter().flatten().filter(|it| it["type"] == "embeddedResource");
        if bodies.count() < 2 {
            prop_assert_eq!(written(&given_back), written(&externalised(&message, environment.inline)));
        }
        let kept = composed.bodies.iter().map(|body| body.content_id.clone());
        let kept: std::collections::BTreeSet<_> = kept.collect();
        prop_assert_eq!(kept.len(), composed.bodies.len(), "stored twice");
        let inline = composed.parts.iter().filter(|part| part.kind() == "file-attachment");
        let inline = inline.filter_map(|part| part.object().get("data")?.as_str());
        let inline: usize = inline.map(|data| STANDARD.decode(data).map_or(0, |it| it.len())).sum();
        prop_assert!(inline as u64 <= composed.inline_bytes);
        prop_assert!(composed.inline_bytes <= environment.inline.left_bytes);
    }

    /// `from_ahp(to_ahp(p)) == p`
    #[test]
    fn parts_survive_a_round_trip_through_a_message(values in vec(part(), 0..6)) {
        let world = World::new();
        let environment = world.environment();
        let parts: Vec<Part> = values.into_iter().map(|it| Part::from_value(it).unwrap()).collect();
        let message = to_ahp(&parts, &Object::new(), environment.roots);
        let (again, diagnostics) = from_ahp(message, &environment);
        prop_assert_eq!(all_written(&again), all_written(&parts));
        prop_assert_eq!(diagnostics, Vec::<String>::new());
    }

    /// What is settled stays as it is, on whatever way it comes back.
    #[test]
    fn composed_parts_compose_to_themselves(message in message(), parts in vec(part(), 0..6)) {
        fuzzed::message(message);
        fuzzed::parts(parts);
    }
}
