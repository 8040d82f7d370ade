//! Tables and properties of the frame decoder.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// A client's frame, masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, Opcode::Text, Fin::Last, payload.len());
    out[0] = first;
    out[1] |= 0x80;
    let mask = [0x37, 0xFA, 0x21, 0x3D];
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key));
    out
}

/// Feeds a stream in chunks of the given sizes, the last one repeated.
fn run(stream: &[u8], chunks: &[usize], bound: usize) -> (Vec<WsEvent>, Option<WsFault>) {
    let mut decoder = FrameDecoder::new(bound);
    let mut events = Vec::new();
    let mut rest = stream;
    let mut sizes = chunks.iter().chain(std::iter::repeat(chunks.last().unwrap_or(&usize::MAX)));
    while !rest.is_empty() {
        let size = sizes.next().map_or(1, |&size| size.max(1)).min(rest.len());
        let (mut chunk, after) = rest.split_at(size);
        rest = after;
        loop {
            let before = chunk.len();
            match decoder.next(&mut chunk) {
                Ok(Some(event)) => {
                    assert!(chunk.len() < before, "an event takes bytes");
                    events.push(event);
                }
                Ok(None) => break,
                Err(fault) => return (events, Some(fault)),
            }
        }
        assert!(chunk.is_empty(), "all is taken when more is needed");
        assert!(decoder.held_bytes() <= bound + 2 * CONTROL_BYTES_MAX);
    }
    (events, None)
}

fn check(stream: Vec<u8>, expected: Expect) {
    let whole = run(&stream, &[], 64);
    assert_eq!(whole, run(&stream, &[1], 64), "byte by byte");
    let mut actual = String::new();
    for event in &whole.0 {
        actual += &format!("{event:?}\n");
    }
    if let Some(fault) = whole.1 {
        actual += &format!("{fault}\n");
    }
    expected.assert_eq(&actual);
}

#[test]
fn messages_come_whole_fragmented_and_with_control_frames_between() {
    check(
        frame(0x81, b"hello"),
        expect![[r#"
        Message("hello")
    "#]],
    );
    check(
        frame(0x82, b"{}"),
        expect![[r#"
        Message("{}")
    "#]],
    );
    check(
        frame(0x81, b""),
        expect![[r#"
        Message("")
    "#]],
    );
    let parts = [
        frame(0x01, "h\u{e4}".as_bytes()[..2].as_ref()),
        frame(0x89, b"are you there"),
        frame(0x00, b"\xA4ll"),
        frame(0x8A, b""),
        frame(0x80, b"o"),
        frame(0x81, b"next"),
    ];
    check(
        parts.concat(),
        expect![[r#"
        Ping([97, 114, 101, 32, 121, 111, 117, 32, 116, 104, 101, 114, 101])
        Pong
        Message("hällo")
        Message("next")
    "#]],
    );
}

#[test]
fn a_close_frame_ends_the_stream() {
    check(
        [frame(0x88, b""), frame(0x81, b"late")].concat(),
        expect![[r#"
        Close(None)
    "#]],
    );
    check(
        frame(0x88, b"\x03\xE8bye"),
        expect![[r#"
        Close(Some(1000))
    "#]],
    );
    check(
        frame(0x88, b"\x0F\xA0"),
        expect![[r#"
        Close(Some(4000))
    "#]],
    );
    check(
        frame(0x88, b"\x03"),
        expect![[r#"
        a close code has two bytes (1002)
    "#]],
    );
    for code in [0u16, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
        check(
            frame(0x88, &code.to_be_bytes()),
            expect![[r#"
            a close code that may not be sent (1002)
        "#]],
        );
    }
    check(
        frame(0x88, b"\x03\xE8\xFF"),
        expect![[r#"
        the close reason is not UTF-8 (1007)
    "#]],
    );
}

#[test]
fn protocol_violations_are_named() {
    check(
        vec![0x81, 0x01, b'x'],
        expect![[r#"
        a client's frame must be masked (1002)
    "#]],
    );
    for first in [0xC1, 0xA1, 0x91] {
        check(
            frame(first, b"x"),
            expect![[r#"
            reserved bits are set and no extension was agreed on (1002)
        "#]],
        );
    }
    for opcode in [0x3, 0x7, 0xB, 0xF] {
        check(
            frame(0x80 | opcode, b"x"),
            expect![[r#"
            unknown opcode (1002)
        "#]],
        );
    }
    check(
        frame(0x09, b""),
        expect![[r#"
        a control frame cannot be fragmented (1002)
    "#]],
    );
    check(
        frame(0x89, &[0; 126]),
        expect![[r#"
        a control frame holds at most 125 bytes (1002)
    "#]],
    );
    check(
        frame(0x80, b"x"),
        expect![[r#"
        nothing to continue (1002)
    "#]],
    );
    check(
        [frame(0x01, b"x"), frame(0x81, b"y")].concat(),
        expect![[r#"
        a new message began inside another (1002)
    "#]],
    );
    check(
        vec![0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
        expect![[r#"
        a length has its highest bit clear (1002)
    "#]],
    );
    check(
        frame(0x81, b"\xFF"),
        expect![[r#"
        the message is not UTF-8 (1007)
    "#]],
    );
    check(
        frame(0x82, b"\xFF"),
        expect![[r#"
        the message is not UTF-8 (1007)
    "#]],
    );
}

#[test]
fn a_message_over_the_bound_is_refused_by_its_head() {
    check(frame(0x81, &[b'x'; 64])[..6].to_vec(), expect![""]);
    let too_big = || {
        expect![[r#"
            the message is larger than frame_in_bytes allows (1009)
        "#]]
    };
    check(frame(0x81, &[b'x'; 65])[..6].to_vec(), too_big());
    check([frame(0x01, &[b'x'; 40]), frame(0x80, &[b'x'; 25])].concat(), too_big());
    check(vec![0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4], too_big());
}

#[test]
fn memory_follows_the_bytes_that_came_and_nothing_is_held_between_messages() {
    let bound = 2 * 1_024 * 1_024;
    let mut decoder = FrameDecoder::new(bound);
    let stream = frame(0x81, &vec![b'x'; bound]);
    let mut first = &stream[..1_000];
    let large = WsEvent::Large { bytes_max: bound };
    assert_eq!(decoder.next(&mut first), Ok(Some(large)));
    assert_eq!(decoder.held_bytes(), 0, "room is found first");
    assert_eq!(decoder.next(&mut first), Ok(None));
    assert!(decoder.held_bytes() <= TRUSTED_BYTES);
    for chunk in stream[1_000..].chunks(16_384) {
        let mut chunk = chunk;
        let _ = decoder.next(&mut chunk).unwrap();
        assert!(decoder.held_bytes() <= bound);
    }
    assert_eq!(decoder.held_bytes(), 0);
}

#[test]
fn a_large_message_is_announced_once_before_what_makes_it_large() {
    let half = vec![b'x'; LARGE_MESSAGE_BYTES / 2 + 1];
    let bound = 10 * LARGE_MESSAGE_BYTES;
    let fragments = [frame(0x01, &half), frame(0x00, &half), frame(0x80, &half)].concat();
    let after = frame(0x81, &half);
    let (events, fault) = run(&[fragments, after].concat(), &[7_000], bound);
    assert_eq!(fault, None);
    let lengths: Vec<_> = events
        .iter()
        .map(|event| match event {
            WsEvent::Large { bytes_max } => ("large", *bytes_max),
            WsEvent::Message(text) => ("message", text.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    // How much comes after a fragment is not known.
    let expected = [("large", bound), ("message", 3 * half.len()), ("message", half.len())];
    assert_eq!(lengths, expected);
}

#[test]
fn server_heads_use_the_shortest_length() {
    let head = |len| {
        let mut out = Vec::new();
        put_head(&mut out, Opcode::Text, Fin::Last, len);
        out
    };
    assert_eq!(head(125), [0x81, 125]);
    assert_eq!(head(126), [0x81, 126, 0, 126]);
    assert_eq!(head(255), [0x81, 126, 0, 255]);
    assert_eq!(head(65_535), [0x81, 126, 0xFF, 0xFF]);
    assert_eq!(head(65_536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn a_long_close_reason_is_cut_at_a_character() {
    let mut out = Vec::new();
    put_close(&mut out, close::POLICY, &"\u{e4}".repeat(100));
    assert_eq!(usize::from(out[1]), 2 + 122);
    assert_eq!(out.len(), 2 + 2 + 122);
}

fn any_frames() -> impl Strategy<Value = Vec<u8>> {
    let control =
        (prop_oneof![Just(0x89u8), Just(0x8A)], prop::collection::vec(any::<u8>(), 0..126));
    let control = control.prop_map(|(first, payload)| frame(first, &payload));
    let message =
        (prop::collection::vec(".{0,400}", 1..4), any::<bool>()).prop_map(|(parts, text)| {
            let last = parts.len() - 1;
            let frames = parts.iter().enumerate().map(|(index, part)| {
                let opcode = if index > 0 { 0 } else { 2 - u8::from(text) };
                let fin = if index == last { 0x80 } else { 0 };
                [frame(fin | opcode, part.as_bytes()), frame(0x89, b"between")].concat()
            });
            frames.collect::<Vec<_>>().concat()
        });
    prop::collection::vec(prop_oneof![control, message], 0..8).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn any_cutting_of_a_stream_gives_the_same_events(
        stream in any_frames(),
        chunks in prop::collection::vec(1usize..300, 1..20),
    ) {
        let whole = run(&stream, &[], 1 << 20);
        prop_assert_eq!(whole.1, None);
        prop_assert_eq!(whole, run(&stream, &chunks, 1 << 20));
    }

    #[test]
    fn random_bytes_never_panic_nor_grow_past_the_bound(
        stream in prop::collection::vec(any::<u8>(), 0..2_000),
        chunks in prop::collection::vec(1usize..64, 1..10),
    ) {
        run(&stream, &chunks, 512);
    }

    #[test]
    fn a_damaged_stream_never_panics(
        mut stream in any_frames(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        for (index, value) in flips {
            if !stream.is_empty() {
                let at = index.index(stream.len());
                stream[at] = value;
            }
        }
        run(&stream, &[97], 512);
    }
}
