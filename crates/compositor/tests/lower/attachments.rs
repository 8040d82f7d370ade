//! `file-attachment`: C-030 to C-039, and what is done so that one body cannot spoil a request.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::lower::{Capabilities, CapabilityMap, Room, Target, lower, lower_into};
use compositor::resolve::Animation;
use serde_json::{Value, json};

use crate::vectors::{Memory, parts};
use crate::{chat, shown};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const PDF: &[u8] = b"%PDF-1.7";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";
const MP4: &[u8] = b"\0\0\0\x18ftypisom";

fn attached(name: &str, mime: &str, body: &[u8]) -> Value {
    json!({"type": "file-attachment", "name": name, "mime": mime, "data": STANDARD.encode(body), "size": body.len()})
}

/// A PNG that says it is so large.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut png = PNG.to_vec();
    png.extend([0, 0, 0, 13]);
    png.extend(b"IHDR");
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png
}

fn described(name: &str, mime: &str, size: usize) -> String {
    format!("<file_attachment name=\"{name}\" mime=\"{mime}\" size=\"{size}\"/>")
}

/// The types of the blocks that a target is shown, descriptors as they are.
fn by_type(target: Target, part: &Value) -> String {
    let block = shown(target, &json!([part]), &mut Memory::default())
        .blocks
        .remove(0);
    let text = block["text"].as_str().map(str::to_owned);
    let native = || match block["type"].as_str() {
        Some(kind) => kind.to_owned(),
        None => "inlineData".to_owned(),
    };
    text.unwrap_or_else(native)
}

#[test]
fn c030_each_class_goes_natively_where_it_is_taken_and_is_described_elsewhere() {
    use Target::{Acp, Anthropic, Gemini, OpenaiChat, OpenaiResponses};
    let image = attached("i.png", "image/png", PNG);
    let pdf = attached("d.pdf", "application/pdf", PDF);
    let audio = attached("a.wav", "audio/wav", WAV);
    let video = attached("v.mp4", "video/mp4", MP4);
    let zip = attached("z.zip", "application/zip", b"PK\x03\x04");
    let of = |name, mime, size| described(name, mime, size);
    let table: [(&Value, [(Target, String); 5]); 5] = [
        (
            &image,
            [
                (Anthropic, "image".into()),
                (OpenaiResponses, "input_image".into()),
                (OpenaiChat, "image_url".into()),
                (Gemini, "inlineData".into()),
                (Acp, "image".into()),
            ],
        ),
        (
            &pdf,
            [
                (Anthropic, "document".into()),
                (OpenaiResponses, "input_file".into()),
                (OpenaiChat, "file".into()),
                (Gemini, "inlineData".into()),
                (Acp, "resource".into()),
            ],
        ),
        (
            &audio,
            [
                (Anthropic, of("a.wav", "audio/wav", 16)),
                (OpenaiResponses, of("a.wav", "audio/wav", 16)),
                (OpenaiChat, "input_audio".into()),
                (Gemini, "inlineData".into()),
                (Acp, "audio".into()),
            ],
        ),
        (
            &video,
            [
                (Anthropic, of("v.mp4", "video/mp4", 12)),
                (OpenaiResponses, of("v.mp4", "video/mp4", 12)),
                (OpenaiChat, of("v.mp4", "video/mp4", 12)),
                (Gemini, "inlineData".into()),
                (Acp, "resource".into()),
            ],
        ),
        (
            &zip,
            [
                (Anthropic, of("z.zip", "application/zip", 4)),
                (OpenaiResponses, of("z.zip", "application/zip", 4)),
                (OpenaiChat, of("z.zip", "application/zip", 4)),
                (Gemini, of("z.zip", "application/zip", 4)),
                (Acp, "resource".into()),
            ],
        ),
    ];
    for (part, expected) in &table {
        for (target, expected) in expected {
            assert_eq!(
                &by_type(*target, part),
                expected,
                "{} of {part}",
                target.name()
            );
        }
    }
}

#[test]
fn documents_in_the_shapes_of_each_target() {
    let part = json!([attached("d.pdf", "application/pdf", PDF)]);
    let data = STANDARD.encode(PDF);
    let url = format!("data:application/pdf;base64,{data}");
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
    let of = |target| {
        shown(target, &part, &mut Memory::default())
            .blocks
            .remove(0)
    };
    let expected = json!({"type": "document", "source": source, "title": "d.pdf"});
    assert_eq!(of(Target::Anthropic), expected);
    let expected = json!({"type": "input_file", "filename": "d.pdf", "file_data": url});
    assert_eq!(of(Target::OpenaiResponses), expected);
    let expected = json!({"type": "file", "file": {"filename": "d.pdf", "file_data": url}});
    assert_eq!(of(Target::OpenaiChat), expected);
    let expected = json!({"inlineData": {"mimeType": "application/pdf", "data": data}});
    assert_eq!(of(Target::Gemini), expected);
    let resource = of(Target::Acp)["resource"].take();
    assert_eq!(resource["blob"], data);
    assert_eq!(resource["mimeType"], "application/pdf");
    let uri = resource["uri"].as_str().unwrap();
    assert!(wire::Digest::from_uri(uri).is_some(), "{uri}");
}

#[test]
fn c030_a_small_text_is_shown_and_a_long_one_described() {
    let small = attached("n.md", "text/markdown", "a `b`\n".as_bytes());
    let code = attached("c.json", "application/json", b"{}");
    let long = attached("l.txt", "text/plain", &vec![b'x'; 64 * 1_024 + 1]);
    assert_eq!(
        chat(&json!([small, code, long]), &mut Memory::default()),
        [
            "n.md\n```\na `b`\n```",
            "c.json\n```\n{}\n```",
            "<file_attachment name=\"l.txt\" mime=\"text/plain\" size=\"65537\" omitted=\"too_large\"/>",
        ]
    );
}

#[test]
fn only_what_is_selected_of_a_text_is_shown() {
    let select = |start: u64, end: u64, column: u64| {
        let mut part = attached("a.txt", "text/plain", b"1\n2\n3\n");
        part["selection"] = json!({"range": {"start": {"line": start, "character": 0}, "end": {"line": end, "character": column}}});
        shown(Target::OpenaiChat, &json!([part]), &mut Memory::default())
    };
    assert_eq!(select(1, 1, 1).blocks[0]["text"], "a.txt:2-2\n```\n2\n```");
    assert_eq!(
        select(0, 2, 0).blocks[0]["text"],
        "a.txt:1-2\n```\n1\n2\n```"
    );
    let nowhere = select(7, 8, 1);
    assert_eq!(nowhere.blocks[0]["text"], "a.txt\n```\n1\n2\n3\n```");
    assert_eq!(
        nowhere.diagnostics,
        ["attachment: 'a.txt': the selection is not in it (shown whole)"]
    );
    let endless = select(u64::MAX, u64::MAX, 0);
    assert_eq!(
        endless.blocks, nowhere.blocks,
        "it selects nothing that can be"
    );
}

#[test]
fn c031_bytes_that_a_model_cannot_use_are_described() {
    let psd = json!({"type": "file-attachment", "name": "design.psd", "mime": "image/vnd.adobe.photoshop", "size": 12_000_000});
    let lowered = shown(Target::Anthropic, &json!([psd]), &mut Memory::default());
    let expected = described("design.psd", "image/vnd.adobe.photoshop", 12_000_000);
    assert_eq!(lowered.blocks[0]["text"], expected);
    assert!(lowered.diagnostics.is_empty(), "nothing was lost");

    let called = attached("<a>&\"b\"", "image/x-xcf", b"gimp\0");
    let text = chat(&json!([called]), &mut Memory::default());
    assert_eq!(
        text,
        [described("&lt;a&gt;&amp;&quot;b&quot;", "image/x-xcf", 5)]
    );
    let unknown = json!({"type": "file-attachment", "name": "x", "mime": ""});
    assert_eq!(
        chat(&json!([unknown]), &mut Memory::default()),
        ["<file_attachment name=\"x\"/>"]
    );
}

#[test]
fn c032_what_is_described_can_be_reached() {
    let mut sources = Memory::default();
    sources
        .staged
        .insert("z.zip".to_owned(), "attachments/z.zip".to_owned());
    let zip = attached("z.zip", "application/zip", b"PK\x03\x04");
    let lowered = shown(Target::OpenaiChat, &json!([zip]), &mut sources);
    let expected = "<file_attachment name=\"z.zip\" mime=\"application/zip\" size=\"4\" path=\"attachments/z.zip\"/>";
    assert_eq!(lowered.blocks[0]["text"], expected);
    let told = "attachment: 'z.zip': openai_chat takes no binary (described instead)";
    assert_eq!(lowered.diagnostics, [told]);
}

#[test]
fn c035_a_body_that_is_no_base64_or_is_gone_is_described() {
    let bad = json!({"type": "file-attachment", "name": "a.png", "mime": "image/png", "data": "iVBO Rw0=", "size": 4});
    let gone = json!({"type": "file-attachment", "name": "b.png", "mime": "image/png", "content_id": "sha256:00", "size": 8});
    let lowered = shown(
        Target::OpenaiChat,
        &json!([bad, gone]),
        &mut Memory::default(),
    );
    assert_eq!(
        lowered.blocks[0]["text"],
        described("a.png", "image/png", 4)
    );
    assert_eq!(
        lowered.blocks[1]["text"],
        described("b.png", "image/png", 8)
    );
    assert_eq!(
        lowered.diagnostics,
        [
            "attachment: 'a.png': its body is no base64 (described instead)",
            "attachment: 'b.png': its body is not there any more (described instead)",
        ]
    );
}

#[test]
fn c036_a_body_is_what_its_bytes_are() {
    let jpeg = attached("a.png", "image/png", b"\xff\xd8\xff\xe0");
    let block = shown(Target::Anthropic, &json!([jpeg]), &mut Memory::default())
        .blocks
        .remove(0);
    assert_eq!(block["source"]["media_type"], "image/jpeg");
    for (mime, body, expected) in [
        ("image/png", &b"just words"[..], "a\n```\njust words\n```"),
        (
            "image/png",
            b"\0\x01",
            "<file_attachment name=\"a\" mime=\"image/png\" size=\"2\"/>",
        ),
        (
            "text/plain",
            b"\0\x01",
            "<file_attachment name=\"a\" mime=\"text/plain\" size=\"2\"/>",
        ),
        ("image/svg+xml", b"<svg/>", "a\n```\n<svg/>\n```"),
        (
            "application/octet-stream",
            b"all: test\n",
            "a\n```\nall: test\n```",
        ),
        ("text/plain; charset=utf-8", b"x", "a\n```\nx\n```"),
    ] {
        assert_eq!(
            by_type(Target::OpenaiChat, &attached("a", mime, body)),
            expected
        );
    }
}

#[test]
fn c037_the_same_part_is_shown_to_each_model_as_it_takes_it() {
    let over = json!({"openai_chat": {"models": {"blind-*": {"image": null}}}});
    let map = CapabilityMap::built_in().with(&over).unwrap();
    let parts = parts(&json!([attached("i.png", "image/png", PNG)]));
    let before = parts.clone();
    let of = |model: &str| {
        let capabilities = map.of(Target::OpenaiChat, Some(model));
        let target = Target::OpenaiChat;
        lower(
            &parts,
            &BTreeMap::new(),
            target,
            &capabilities,
            &mut Memory::default(),
        )
    };
    assert_eq!(of("seeing-1").blocks[0]["type"], "image_url");
    assert_eq!(
        of("blind-1").blocks[0]["text"],
        described("i.png", "image/png", 8)
    );
    assert_eq!(parts, before);
}

#[test]
fn c038_duplicates_are_two_blocks() {
    let one = attached("i.png", "image/png", PNG);
    let text = chat(&json!([one, one]), &mut Memory::default());
    assert_eq!(text, ["(image_url)", "(image_url)"]);
}

#[test]
fn c084_without_native_media_there_are_descriptors_joined_into_one_text() {
    let over = json!({"openai_chat": {"default": {"text_only": true}}});
    let map = CapabilityMap::built_in().with(&over).unwrap();
    let parts = parts(&json!([
        {"type": "text", "text": "look"},
        attached("i.png", "image/png", PNG),
        {"type": "text", "text": "and tell"},
    ]));
    let target = Target::OpenaiChat;
    let capabilities = map.of(target, Some("any"));
    let lowered = lower(
        &parts,
        &BTreeMap::new(),
        target,
        &capabilities,
        &mut Memory::default(),
    );
    let text = format!("look\n{}\nand tell", described("i.png", "image/png", 8));
    assert_eq!(lowered.blocks, [json!({"type": "text", "text": text})]);
    assert_eq!(compositor::lower::chat_content(&lowered), json!(text));
    assert_eq!(compositor::lower::text_of(&lowered), text);
}

#[test]
fn a_picture_that_is_too_large_is_scaled_if_it_can_be() {
    let wide = attached("w.png", "image/png", &png(9_000, 10));
    let mut sources = Memory {
        fits: Some(("image/png".to_owned(), png(8_000, 9))),
        ..Memory::default()
    };
    let lowered = shown(Target::Anthropic, &json!([wide]), &mut sources);
    assert_eq!(
        lowered.blocks[0]["source"]["data"],
        STANDARD.encode(png(8_000, 9))
    );
    assert_eq!(
        lowered.diagnostics,
        ["attachment: 'w.png': the picture was scaled down for anthropic"]
    );
    assert_eq!(lowered.decisions[0].became, "image");
    assert!(lowered.decisions[0].why.is_some());
    assert_eq!(sources.fit_asked[0].side_px_max, Some(8_000));
    assert_eq!(sources.fit_asked[0].bytes_max, Some(3_932_160));

    // What comes back is not believed: still too wide, or of a type that is not taken.
    for bad in [("image/png", png(8_001, 9)), ("image/bmp", png(1, 1))] {
        sources.fits = Some((bad.0.to_owned(), bad.1));
        let lowered = shown(Target::Anthropic, &json!([wide]), &mut sources);
        let text = lowered.blocks[0]["text"].as_str().unwrap();
        assert!(text.contains("omitted=\"too_large\""), "{text}");
    }
}

#[test]
fn where_there_are_many_pictures_each_must_be_smaller() {
    let many = |count: usize| {
        let mut sources = Memory::default();
        let all = vec![attached("i.png", "image/png", &png(3_000, 10)); count];
        let lowered = shown(Target::Anthropic, &json!(all), &mut sources);
        let natives = lowered
            .blocks
            .iter()
            .filter(|block| block["type"] == "image");
        (
            natives.count(),
            sources
                .fit_asked
                .first()
                .and_then(|limits| limits.side_px_max),
        )
    };
    assert_eq!(many(20), (20, None));
    assert_eq!(many(21), (0, Some(2_000)));
}

#[test]
fn a_gif_is_transcoded_where_none_is_taken_and_stilled_where_none_may_move() {
    let gif = attached("g.gif", "image/gif", b"GIF89a");
    let mut sources = Memory {
        fits: Some(("image/png".to_owned(), PNG.to_vec())),
        ..Memory::default()
    };
    let block = shown(Target::Gemini, &json!([gif]), &mut sources)
        .blocks
        .remove(0);
    assert_eq!(block["inlineData"]["mimeType"], "image/png");
    assert_eq!(sources.fit_asked[0].mimes[0], "image/png");
    let lowered = shown(Target::Gemini, &json!([gif]), &mut Memory::default());
    assert_eq!(
        lowered.blocks[0]["text"],
        described("g.gif", "image/gif", 6)
    );
    assert_eq!(
        lowered.diagnostics,
        ["attachment: 'g.gif': gemini takes no image/gif (described instead)"]
    );

    let frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x01\x00\x00";
    let mut moving = b"GIF89a\x01\0\x01\0\0\0\0".to_vec();
    moving.extend(frame);
    let still = attached("s.gif", "image/gif", &moving);
    assert_eq!(by_type(Target::OpenaiChat, &still), "image_url");
    moving.extend(frame);
    let moving = attached("m.gif", "image/gif", &moving);
    let block = shown(Target::OpenaiChat, &json!([moving]), &mut sources)
        .blocks
        .remove(0);
    assert!(
        block["image_url"]["url"]
            .as_str()
            .unwrap()
            .starts_with("data:image/png;")
    );
    assert_eq!(
        sources.fit_asked.last().unwrap().animation,
        Animation::Refused
    );
    assert_eq!(by_type(Target::Anthropic, &moving), "image");
}

#[test]
fn a_request_has_room_for_so_many_pictures_and_bytes_in_all_its_messages() {
    let capabilities = Capabilities::built_in(Target::Anthropic);
    let mut room = Room::of(&capabilities);
    room.images_left = Some(3);
    let two = parts(&json!([
        attached("a.png", "image/png", PNG),
        attached("b.png", "image/png", PNG)
    ]));
    let native = |room: &mut Room| {
        let target = Target::Anthropic;
        let mut sources = Memory::default();
        let lowered = lower_into(
            room,
            &two,
            &BTreeMap::new(),
            target,
            &capabilities,
            &mut sources,
        );
        let natives = lowered
            .blocks
            .iter()
            .filter(|block| block["type"] == "image");
        (natives.count(), lowered)
    };
    assert_eq!(native(&mut room).0, 2);
    let (count, lowered) = native(&mut room);
    assert_eq!(count, 1);
    let told = "attachment: 'b.png': anthropic takes no more pictures (described instead)";
    assert_eq!(lowered.diagnostics, [told]);

    room.images_left = None;
    room.bytes_left = Some(20);
    let (count, lowered) = native(&mut room);
    assert_eq!((count, room.bytes_left), (1, Some(0)));
    assert!(
        lowered.blocks[1]["text"]
            .as_str()
            .unwrap()
            .contains("omitted=\"too_large\"")
    );
}

#[test]
fn texts_that_have_no_room_left_are_described_but_not_what_the_user_said() {
    let capabilities = Capabilities::built_in(Target::OpenaiChat);
    let mut room = Room::of(&capabilities);
    room.bytes_left = Some(10);
    let parts = parts(&json!([
        {"type": "text", "text": "more than there is room for"},
        attached("n.md", "text/markdown", b"x"),
        {"type": "file-ref", "ref": {"kind": "path", "path": "a"}},
    ]));
    let mut sources = Memory::default().with_file("a", "text");
    let target = Target::OpenaiChat;
    let lowered = lower_into(
        &mut room,
        &parts,
        &BTreeMap::new(),
        target,
        &capabilities,
        &mut sources,
    );
    let texts: Vec<&str> = lowered
        .blocks
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "more than there is room for",
            "<file_attachment name=\"n.md\" mime=\"text/markdown\" size=\"1\" omitted=\"too_large\"/>",
            "<file_ref path=\"a\" size=\"4\" omitted=\"too_large\"/>",
        ]
    );
    assert_eq!(lowered.diagnostics.len(), 2);
}

#[test]
fn the_user_is_told_little_whatever_was_sent() {
    let bad = json!({"type": "file-attachment", "name": "n".repeat(10_000), "mime": "image/png", "data": "?"});
    let lowered = shown(
        Target::Anthropic,
        &json!(vec![bad; 500]),
        &mut Memory::default(),
    );
    assert_eq!(lowered.blocks.len(), 500);
    assert!(lowered.diagnostics.len() < 100);
    assert!(
        lowered
            .diagnostics
            .iter()
            .all(|sentence| sentence.len() < 300)
    );
}

#[test]
fn what_a_provider_refused_is_described_the_next_time() {
    let capabilities = Capabilities::built_in(Target::Gemini);
    let mut room = Room::of(&capabilities);
    let parts = parts(&json!([
        attached("a.png", "image/png", PNG),
        attached("b.wav", "audio/wav", WAV)
    ]));
    let target = Target::Gemini;
    let mut sources = Memory::default();
    let first = lower_into(
        &mut room,
        &parts,
        &BTreeMap::new(),
        target,
        &capabilities,
        &mut sources,
    );
    let largest = first
        .decisions
        .iter()
        .max_by_key(|decision| decision.bytes)
        .unwrap();
    assert_eq!(largest.part, 1);
    room.described = BTreeSet::from([largest.part]);
    let second = lower_into(
        &mut room,
        &parts,
        &BTreeMap::new(),
        target,
        &capabilities,
        &mut sources,
    );
    assert_eq!(second.blocks[0], first.blocks[0]);
    let text =
        "<file_attachment name=\"b.wav\" mime=\"audio/wav\" size=\"16\" omitted=\"too_large\"/>";
    assert_eq!(second.blocks[1]["text"], text);
}

#[test]
fn sounds_have_names_for_two_formats() {
    let of = |mime: &str, body: &[u8]| {
        let part = json!([attached("a", mime, body)]);
        shown(Target::OpenaiChat, &part, &mut Memory::default())
            .blocks
            .remove(0)
    };
    assert_eq!(of("audio/x-wav", WAV)["input_audio"]["format"], "wav");
    assert_eq!(of("audio/mpeg", b"ID3\x04")["input_audio"]["format"], "mp3");
    assert_eq!(
        of("audio/ogg", b"OggS\0")["text"],
        described("a", "audio/ogg", 5)
    );
}
