//! What holds for every message (docs/rules/compositor.md, Fixed texts), over the vectors and over whatever can be made up.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::lower::{Capabilities, Lowered, Target, lower};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::vectors::{self, Memory};

fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if key == "text" => into.push(text.clone()),
                    value => texts(value, into),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, into)),
        _ => {}
    }
}

fn texts_of(lowered: &Lowered) -> Vec<String> {
    let mut all = Vec::new();
    texts(&Value::Array(lowered.blocks.clone()), &mut all);
    all
}

#[test]
fn no_vector_shows_a_token_or_a_body_as_text() {
    let commands = vectors::file()["commands"].take();
    for vector in vectors::vectors() {
        let id = vector["id"].as_str().unwrap();
        let parts = vectors::parts(&vector["persisted"]);
        for target in Target::ALL {
            let capabilities = Capabilities::built_in(target);
            let mut sources = Memory::of(&vector);
            let lowered = lower(&parts, &BTreeMap::new(), target, &capabilities, &mut sources);
            for text in texts_of(&lowered) {
                let is_command = |(name, _): (&String, &Value)| text.starts_with(name.as_str());
                let escaped = id == "V28";
                assert!(
                    escaped || !commands.as_object().unwrap().iter().any(is_command),
                    "{id}: {text}"
                );
                assert!(!text.contains("@skill:"), "{id}: {text}");
                for part in &parts {
                    let data = part.object().get("data").and_then(Value::as_str);
                    assert!(data.is_none_or(|data| !text.contains(data)), "{id}: {text}");
                }
            }
        }
    }
}

/// Something like JSON, not too large.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("path")),
        Just(json!("image/png")),
        Just(json!("iVBORw0KGgo=")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "text",
        "ref",
        "kind",
        "path",
        "url",
        "content_id",
        "range",
        "start",
        "end",
        "unit",
        "mime",
        "name",
        "data",
        "size",
        "target",
        "id",
        "args",
        "payload",
        "source",
        "intent",
        "selection",
        "derived_from",
        "part",
        "sniffed_mime",
        "line",
        "character",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn any_part() -> impl Strategy<Value = Part> {
    let types = prop::sample::select(vec![
        "text",
        "file-ref",
        "file-attachment",
        "command",
        "mention",
        "editor-context",
        "directory-ref",
        "x",
    ]);
    let fields = prop::collection::btree_map(any_key(), any_value(), 0..8);
    (types, fields).prop_map(|(kind, fields)| {
        let mut object: wire::Object = fields.into_iter().collect();
        object.insert("type".to_owned(), json!(kind));
        Part::from_value(Value::Object(object)).unwrap()
    })
}

/// Parts that can be read, each with its number in the lowered text.
fn numbered_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "text"})),
        Just(json!({"type": "editor-context"})),
        Just(json!({"type": "poll"})),
        Just(json!({"type": "file-ref"})),
        Just(json!({"type": "file-attachment"})),
        Just(json!({"type": "command", "id": "/n", "args": {}})),
        Just(json!({"type": "mention", "target": {"kind": "skill", "name": "n"}})),
    ]
}

fn number(part: &mut Value, at: usize) -> bool {
    let marked = format!("[{at}]");
    match part["type"].as_str().unwrap() {
        "text" | "poll" => part["text"] = json!(marked),
        "editor-context" => {
            part["kind"] = json!("k");
            part["payload"] = json!({"n": marked});
        }
        "file-ref" => part["ref"] = json!({"kind": "path", "path": marked}),
        "file-attachment" => {
            part["name"] = json!(marked);
            part["mime"] = json!("application/zip");
        }
        _ => return false,
    }
    true
}

proptest! {
    #[test]
    fn nothing_panics_and_every_part_is_decided(parts in prop::collection::vec(any_part(), 0..8)) {
        for target in Target::ALL {
            let capabilities = Capabilities::built_in(target);
            let mut sources = Memory::default().with_file("path", "x\ny");
            let lowered = lower(&parts, &BTreeMap::new(), target, &capabilities, &mut sources);
            let decided: Vec<usize> = lowered.decisions.iter().map(|it| it.part).collect();
            let all: Vec<usize> = (0..parts.len()).collect();
            prop_assert_eq!(&decided[..parts.len()], &all[..]);
            prop_assert!(decided.len() <= parts.len() + 1);
            if target == Target::Anthropic {
                for text in texts_of(&lowered) {
                    prop_assert!(!text.trim().is_empty(), "an empty text is refused by Anthropic");
                }
            }
        }
    }

    #[test]
    fn c002_c003_parts_are_lowered_in_order(parts in prop::collection::vec(numbered_part(), 1..20)) {
        let mut expected = Vec::new();
        let mut numbered = Vec::new();
        for (at, mut part) in parts.into_iter().enumerate() {
            if number(&mut part, at) {
                expected.push(format!("[{at}]"));
            }
            numbered.push(Part::from_value(part).unwrap());
        }
        for target in Target::ALL {
            let capabilities = Capabilities::built_in(target);
            let lowered = lower(&numbered, &BTreeMap::new(), target, &capabilities, &mut Memory::default());
            let texts = texts_of(&lowered);
            let marked: Vec<&String> = texts.iter().filter(|text| text.contains('[')).collect();
            prop_assert_eq!(marked.len(), expected.len());
            for (text, mark) in marked.iter().zip(&expected) {
                prop_assert!(text.contains(mark.as_str()), "{} is not in {}", mark, text);
            }
        }
    }

    #[test]
    fn no_body_is_ever_in_a_text(body in prop::collection::vec(any::<u8>(), 9..200), mime in prop::sample::select(vec!["image/png", "text/plain", "application/zip", "video/mp4", "audio/wav", "application/octet-stream"])) {
        let data = STANDARD.encode(&body);
        let part = json!({"type": "file-attachment", "name": "n", "mime": mime, "data": data});
        let parts = [Part::from_value(part).unwrap()];
        for target in Target::ALL {
            let capabilities = Capabilities::built_in(target);
            let lowered = lower(&parts, &BTreeMap::new(), target, &capabilities, &mut Memory::default());
            for text in texts_of(&lowered) {
                prop_assert!(!text.contains(&data));
            }
        }
    }

    #[test]
    fn a_text_closes_its_fence_once(text in "[`a\r\n]{0,40}") {
        let mut sources = Memory::default().with_file("a", text.clone());
        let part = json!({"type": "file-ref", "ref": {"kind": "path", "path": "a"}});
        let parts = [Part::from_value(part).unwrap()];
        let capabilities = Capabilities::built_in(Target::OpenaiChat);
        let lowered = lower(&parts, &BTreeMap::new(), Target::OpenaiChat, &capabilities, &mut sources);
        let block = lowered.blocks[0]["text"].as_str().unwrap();
        let fence = block.lines().nth(1).unwrap();
        prop_assert!(fence.len() >= 3 && fence.bytes().all(|byte| byte == b'`'));
        prop_assert!(!text.contains(fence), "the fence is longer than any run inside");
        let inside = &block[2 + fence.len() + 1..block.len() - fence.len()];
        prop_assert!(inside == text || inside.strip_suffix('\n') == Some(text.as_str()));
    }

    #[test]
    fn a_slice_holds_the_lines_of_its_range(text in "[ab\r\né]{0,40}", start in 1_u64..8, length in 0_u64..8, piece in 1_usize..5) {
        use compositor::resolve::{FileRead, Scanned, Sources};
        // A source that hands out small pieces, against one that hands out all at once.
        struct Pieces(Memory, usize);
        impl Sources for Pieces {
            fn file(&mut self, path: &str, limit: u64) -> FileRead {
                match self.0.file(path, limit) {
                    FileRead::Bytes { bytes } => FileRead::TooLarge { size: bytes.len() as u64, head: b"x".to_vec() },
                    other => other,
                }
            }
            fn scan(&mut self, path: &str, each: &mut dyn FnMut(&[u8]) -> std::ops::ControlFlow<()>) -> Scanned {
                let FileRead::Bytes { bytes } = self.0.file(path, u64::MAX) else { unreachable!() };
                for piece in bytes.chunks(self.1) {
                    if each(piece).is_break() { break; }
                }
                Scanned::Complete { size: bytes.len() as u64 }
            }
            fn body(&mut self, _: &str) -> Option<Vec<u8>> { None }
            fn entity(&mut self, _: &str, _: &wire::Object) -> bool { false }
            fn find_staged_copy(&mut self, _: &Part) -> Option<String> { None }
            fn fit_image(&mut self, _: &str, _: &[u8], _: &compositor::resolve::ImageLimits) -> Option<(String, Vec<u8>)> { None }
            fn absolute(&self, path: &str) -> String { path.to_owned() }
        }
        let part = json!({"type": "file-ref", "ref": {"kind": "path", "path": "a", "range": {"start": start, "end": start + length}}});
        let part = Part::from_value(part).unwrap();
        let limits = compositor::resolve::InlineLimits::default();
        let mut whole = Memory::default().with_file("a", text.clone());
        let mut pieces = Pieces(whole.clone(), piece);
        let at_once = compositor::resolve::resolve(&part, &mut whole, &limits);
        prop_assert_eq!(&at_once, &compositor::resolve::resolve(&part, &mut pieces, &limits));

        let lines = lines_of(&text);
        let expected = lines.iter().skip(start as usize - 1).take(length as usize + 1);
        let expected: String = expected.copied().collect();
        match at_once {
            Some(compositor::resolve::Resolved::Text { text, .. }) => prop_assert_eq!(text, expected),
            _ => prop_assert!(start as usize > lines.len()),
        }
    }
}

/// Lines with what ends them, the slow way.
fn lines_of(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(['\r', '\n'])
            .map_or(rest.len(), |at| at + if rest[at..].starts_with("\r\n") { 2 } else { 1 });
        lines.push(&rest[..end]);
        rest = &rest[end..];
    }
    lines
}
