//! `file-attachment`: C-030 to C-039.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::lower::{CapabilityMap, Target, lower};
use serde_json::{Value, json};

use crate::bodies::{MP4, PDF, PNG, WAV, attached, by_type, described};
use crate::vectors::{Memory, parts};
use crate::{chat, lower_for};

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
            assert_eq!(&by_type(*target, part), expected, "{} of {part}", target.name());
        }
    }
}

#[test]
fn documents_in_the_shapes_of_each_target() {
    let part = json!([attached("d.pdf", "application/pdf", PDF)]);
    let data = STANDARD.encode(PDF);
    let url = format!("data:application/pdf;base64,{data}");
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
    let of = |target| lower_for(target, &part, &mut Memory::default()).blocks.remove(0);
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
fn c030_a_small_text_is_sent_and_a_long_one_described() {
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
fn only_the_selection_of_a_text_is_sent() {
    let select = |start: u64, end: u64, column: u64| {
        let mut part = attached("a.txt", "text/plain", b"1\n2\n3\n");
        part["selection"] = json!({"range": {"start": {"line": start, "character": 0}, "end": {"line": end, "character": column}}});
        lower_for(Target::OpenaiChat, &json!([part]), &mut Memory::default())
    };
    assert_eq!(select(1, 1, 1).blocks[0]["text"], "a.txt:2-2\n```\n2\n```");
    assert_eq!(select(0, 2, 0).blocks[0]["text"], "a.txt:1-2\n```\n1\n2\n```");
    let nowhere = select(7, 8, 1);
    assert_eq!(nowhere.blocks[0]["text"], "a.txt\n```\n1\n2\n3\n```");
    assert_eq!(
        nowhere.diagnostics,
        ["attachment: 'a.txt': the selection is not in it (sent whole)"]
    );
    let endless = select(u64::MAX, u64::MAX, 0);
    assert_eq!(endless.blocks, nowhere.blocks, "it selects nothing that can be");
}

#[test]
fn c031_bytes_that_a_model_cannot_use_are_described() {
    let psd = json!({"type": "file-attachment", "name": "design.psd", "mime": "image/vnd.adobe.photoshop", "size": 12_000_000});
    let lowered = lower_for(Target::Anthropic, &json!([psd]), &mut Memory::default());
    let expected = described("design.psd", "image/vnd.adobe.photoshop", 12_000_000);
    assert_eq!(lowered.blocks[0]["text"], expected);
    assert!(lowered.diagnostics.is_empty(), "nothing was lost");

    let called = attached("<a>&\"b\"", "image/x-xcf", b"gimp\0");
    let text = chat(&json!([called]), &mut Memory::default());
    assert_eq!(text, [described("&lt;a&gt;&amp;&quot;b&quot;", "image/x-xcf", 5)]);
    let unknown = json!({"type": "file-attachment", "name": "x", "mime": ""});
    assert_eq!(chat(&json!([unknown]), &mut Memory::default()), ["<file_attachment name=\"x\"/>"]);
}

#[test]
fn c032_described_attachments_can_be_read() {
    let mut sources = Memory::default();
    sources.staged.insert("z.zip".to_owned(), "attachments/z.zip".to_owned());
    let zip = attached("z.zip", "application/zip", b"PK\x03\x04");
    let lowered = lower_for(Target::OpenaiChat, &json!([zip]), &mut sources);
    let expected = "<file_attachment name=\"z.zip\" mime=\"application/zip\" size=\"4\" path=\"attachments/z.zip\"/>";
    assert_eq!(lowered.blocks[0]["text"], expected);
    let diagnostic = "attachment: 'z.zip': openai_chat does not accept binary (described instead)";
    assert_eq!(lowered.diagnostics, [diagnostic]);
}

#[test]
fn c035_a_body_that_is_no_base64_or_is_gone_is_described() {
    let bad = json!({"type": "file-attachment", "name": "a.png", "mime": "image/png", "data": "iVBO Rw0=", "size": 4});
    let gone = json!({"type": "file-attachment", "name": "b.png", "mime": "image/png", "content_id": "sha256:00", "size": 8});
    let lowered = lower_for(Target::OpenaiChat, &json!([bad, gone]), &mut Memory::default());
    assert_eq!(lowered.blocks[0]["text"], described("a.png", "image/png", 4));
    assert_eq!(lowered.blocks[1]["text"], described("b.png", "image/png", 8));
    assert_eq!(
        lowered.diagnostics,
        [
            "attachment: 'a.png': its body is not base64 (described instead)",
            "attachment: 'b.png': its body is no longer available (described instead)",
        ]
    );
}

#[test]
fn c036_the_type_of_a_body_is_decided_by_its_bytes() {
    let jpeg = attached("a.png", "image/png", b"\xff\xd8\xff\xe0");
    let block =
        lower_for(Target::Anthropic, &json!([jpeg]), &mut Memory::default()).blocks.remove(0);
    assert_eq!(block["source"]["media_type"], "image/jpeg");
    for (mime, body, expected) in [
        ("image/png", &b"just words"[..], "a\n```\njust words\n```"),
        ("image/png", b"\0\x01", "<file_attachment name=\"a\" mime=\"image/png\" size=\"2\"/>"),
        ("text/plain", b"\0\x01", "<file_attachment name=\"a\" mime=\"text/plain\" size=\"2\"/>"),
        ("image/svg+xml", b"<svg/>", "a\n```\n<svg/>\n```"),
        ("application/octet-stream", b"all: test\n", "a\n```\nall: test\n```"),
        ("text/plain; charset=utf-8", b"x", "a\n```\nx\n```"),
    ] {
        assert_eq!(by_type(Target::OpenaiChat, &attached("a", mime, body)), expected);
    }
}

#[test]
fn c037_the_same_part_is_lowered_for_each_model_as_it_accepts_it() {
    let over = json!({"openai_chat": {"models": {"blind-*": {"image": null}}}});
    let map = CapabilityMap::built_in().with(&over).unwrap();
    let parts = parts(&json!([attached("i.png", "image/png", PNG)]));
    let before = parts.clone();
    let of = |model: &str| {
        let capabilities = map.of(Target::OpenaiChat, Some(model));
        let target = Target::OpenaiChat;
        lower(&parts, &BTreeMap::new(), target, &capabilities, &mut Memory::default())
    };
    assert_eq!(of("seeing-1").blocks[0]["type"], "image_url");
    assert_eq!(of("blind-1").blocks[0]["text"], described("i.png", "image/png", 8));
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
    let lowered = lower(&parts, &BTreeMap::new(), target, &capabilities, &mut Memory::default());
    let text = format!("look\n{}\nand tell", described("i.png", "image/png", 8));
    assert_eq!(lowered.blocks, [json!({"type": "text", "text": text})]);
    assert_eq!(compositor::lower::chat_content(&lowered), json!(text));
    assert_eq!(compositor::lower::text_of(&lowered), text);
}

#[test]
fn sounds_have_names_for_two_formats() {
    let of = |mime: &str, body: &[u8]| {
        let part = json!([attached("a", mime, body)]);
        lower_for(Target::OpenaiChat, &part, &mut Memory::default()).blocks.remove(0)
    };
    assert_eq!(of("audio/x-wav", WAV)["input_audio"]["format"], "wav");
    assert_eq!(of("audio/mpeg", b"ID3\x04")["input_audio"]["format"], "mp3");
    assert_eq!(of("audio/ogg", b"OggS\0")["text"], described("a", "audio/ogg", 5));
}
