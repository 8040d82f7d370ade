//! What the tests of all wire formats share: streams read whole and in all pieces, and a conversation with everything.

use std::fmt::Write;
use std::sync::Arc;

use agent_api::Section;
use expect_test::Expect;
use proptest::prelude::{Strategy, any};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{
    Decode, ModelEvent, ModelMessage, ModelRequest, ProviderError, StreamFlow, ToolSpec, ToolUse,
};

/// All events, one a line, and how it ended.
pub(super) fn decode<'a, D: Decode>(
    mut decoder: D,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> String {
    let mut events = Vec::new();
    let ended = read_all(&mut decoder, pieces, &mut events);
    let mut lines = String::new();
    for event in &events {
        match event {
            ModelEvent::Items(items) => {
                for item in items {
                    writeln!(lines, "item {item}").unwrap();
                }
            }
            event => writeln!(lines, "{event:?}").unwrap(),
        }
    }
    if let Err(error) = ended {
        writeln!(lines, "{:?}: {}", error.kind, error.message).unwrap();
    }
    lines
}

fn read_all<'a>(
    decoder: &mut impl Decode,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    events: &mut Vec<ModelEvent>,
) -> Result<(), ProviderError> {
    for piece in pieces {
        if decoder.read(piece, events)? == StreamFlow::Done {
            return Ok(());
        }
    }
    decoder.end(events)
}

/// Reads a stream whole, byte by byte, and split at every byte: all the same.
#[track_caller]
pub(super) fn check<D: Decode>(decoder: impl Fn() -> D, stream: &str, expected: &Expect) {
    let stream = stream.as_bytes();
    let whole = decode(decoder(), [stream]);
    expected.assert_eq(&whole);
    assert_eq!(decode(decoder(), stream.chunks(1)), whole, "byte by byte");
    for offset in 0..stream.len() {
        let (first, second) = stream.split_at(offset);
        let read = decode(decoder(), [first, second]);
        assert_eq!(read, whole, "split at {offset}");
    }
}

/// What is read of a stream with some bytes replaced: whole, and in pieces of a size. Both must be the same, and neither may panic.
pub(super) fn decode_damaged<D: Decode>(
    decoder: impl Fn() -> D,
    recorded: &str,
    damage: &[(Index, u8)],
    size: usize,
) -> (String, String) {
    let mut stream = recorded.as_bytes().to_vec();
    for (offset, byte) in damage {
        let offset = offset.index(stream.len());
        stream[offset] = *byte;
    }
    let whole = decode(decoder(), [stream.as_slice()]);
    (whole, decode(decoder(), stream.chunks(size)))
}

/// Tests the recorded streams of a wire: each is read as expected, and damaged bytes never panic.
macro_rules! recorded {
    ($decoder:expr; $($test:ident: $file:literal => $expected:expr;)*) => {
        $(#[test]
        fn $test() {
            let stream = include_str!(concat!("streams/", $file));
            $crate::provider::stream_tests::check($decoder, stream, &$expected);
        })*

        const RECORDED: &[&str] = &[$(include_str!(concat!("streams/", $file))),*];

        proptest::proptest! {
            #[test]
            fn damaged_bytes_never_panic(
                recorded in proptest::sample::select(RECORDED),
                damage in $crate::provider::stream_tests::any_damage(),
                size in 1_usize..64,
            ) {
                let (whole, pieces) = $crate::provider::stream_tests::decode_damaged(
                    $decoder, recorded, &damage, size,
                );
                proptest::prop_assert_eq!(pieces, whole);
            }
        }
    };
}
pub(super) use recorded;

/// Up to five bytes, and where in a stream they are put.
pub(super) fn any_damage() -> impl Strategy<Value = Vec<(Index, u8)>> {
    proptest::collection::vec((any::<Index>(), any::<u8>()), 1..6)
}

/// The request for a shorter conversation is a prefix of that for a longer one, up to `end`: servers cache by prefix.
#[track_caller]
pub(super) fn check_prefixes(
    longer: &ModelRequest,
    encode: impl Fn(&ModelRequest) -> Vec<u8>,
    end: &str,
) {
    let whole = String::from_utf8(encode(longer)).unwrap();
    for messages in [1, 3, 5, 7] {
        let shorter = String::from_utf8(encode(&shortened(longer, messages))).unwrap();
        let (prefix, _) = shorter.split_once(end).unwrap();
        assert!(whole.starts_with(prefix), "{messages}: {prefix}");
    }
}

/// A stream of these events.
pub(super) fn stream_of(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A conversation with everything: sections, attachments as `blocks`, an answer as its server wants it back, an older one
/// that another server made, results, steering, tools, settings.
pub(super) fn long_request(blocks: Value, items: Value, settings: Value) -> ModelRequest {
    let used = |id: &str, name: &str, input: &str| ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: input.to_owned(),
    };
    let result = |id: &str, text: &str| ModelMessage::ToolResult {
        id: id.to_owned(),
        text: text.to_owned(),
        blocks: Vec::new(),
    };
    ModelRequest {
        model: "m-1".to_owned(),
        system: vec![
            Section::new("identity", "You are one.\n"),
            Section::new("tone", ""),
            Section::new("environment_context", "It is Monday."),
            Section::new("guidelines", "Be brief."),
        ],
        messages: vec![
            ModelMessage::User(json!("first")),
            ModelMessage::Assistant {
                text: "Told.".to_owned(),
                calls: vec![used("old", "list", "")],
                items: None,
            },
            result("old", "a.rs"),
            ModelMessage::User(blocks),
            ModelMessage::Assistant {
                text: "Reading.".to_owned(),
                calls: vec![
                    used("c1", "read", "{\"path\": \"a\"}"),
                    used("c2", "read", "{\"path\": \"b\"}"),
                ],
                items: items.as_array().cloned().map(Arc::new),
            },
            result("c1", "A"),
            result("c2", "B"),
            ModelMessage::User(json!("and hurry")),
        ],
        tools: vec![ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }],
        max_output_tokens: Some(4_096),
        settings: settings.as_object().cloned().unwrap_or_default(),
        ..ModelRequest::default()
    }
}

/// The first messages of a request: what an earlier request was.
pub(super) fn shortened(request: &ModelRequest, messages: usize) -> ModelRequest {
    let mut shorter = request.clone();
    shorter.messages.truncate(messages);
    shorter
}
