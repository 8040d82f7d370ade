//! `file-ref` and mentions of files: C-010 to C-021, C-062.

use std::collections::BTreeMap;

use compositor::Part;
use compositor::lower::{Capabilities, Target, lower};
use compositor::resolve::{InlineLimits, Resolved, WhyOmitted, resolve, resolve_all};
use serde_json::{Value, json};

use crate::vectors::{Lies, Memory, parts};
use crate::{chat, lower_for};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn path_ref(path: &str, range: Option<Value>) -> Value {
    let mut part = json!({"type": "file-ref", "ref": {"kind": "path", "path": path}});
    if let Some(range) = range {
        part["ref"]["range"] = range;
    }
    part
}

/// What is sent to Chat Completions of one file.
fn of_file(content: &[u8], range: Value) -> String {
    let mut sources = Memory::default().with_file("a", content);
    let range = Some(range).filter(|range| !range.is_null());
    chat(&json!([path_ref("a", range)]), &mut sources).remove(0)
}

fn lines(start: i64, end: i64) -> Value {
    json!({"start": start, "end": end})
}

fn bytes(start: i64, end: i64) -> Value {
    json!({"unit": "byte", "start": start, "end": end})
}

#[test]
fn c010_lowering_leaves_the_part_without_a_body() {
    let parts = parts(&json!([path_ref("a", None)]));
    let before = parts.clone();
    let mut sources = Memory::default().with_file("a", "text");
    let capabilities = Capabilities::built_in(Target::Anthropic);
    lower(&parts, &BTreeMap::new(), Target::Anthropic, &capabilities, &mut sources);
    assert_eq!(parts, before);
    assert!(!parts[0].to_value().to_string().contains("text"));
}

#[test]
fn c011_c012_c013_lines_count_from_one_and_bytes_from_zero() {
    let file = b"one\ntwo\nthree\n";
    assert_eq!(of_file(file, lines(1, 1)), "a:1-1\n```\none\n```");
    assert_eq!(of_file(file, lines(2, 3)), "a:2-3\n```\ntwo\nthree\n```");
    let explicit = json!({"unit": "line", "start": 2, "end": 2});
    assert_eq!(of_file(file, explicit), "a:2-2\n```\ntwo\n```");
    assert_eq!(of_file(file, bytes(0, 3)), "a:bytes=0-3\n```\none\n```");
    assert_eq!(of_file(file, bytes(4, 8)), "a:bytes=4-8\n```\ntwo\n```");
    assert_eq!(of_file(file, bytes(4, 4)), "a:bytes=4-4\n```\n\n```");
}

#[test]
fn c014_three_ways_to_end_a_line_and_the_last_one_begins_none() {
    let file = b"a\rb\r\nc\nd\r\re";
    for (line, text) in [(1, "a\r"), (2, "b\r\n"), (3, "c\n"), (4, "d\r"), (5, "\r"), (6, "e\n")] {
        let expected = format!("a:{line}-{line}\n```\n{text}```");
        assert_eq!(of_file(file, lines(line, line)), expected);
    }
    let beyond = "<file_ref path=\"a\" lines=\"6\" unavailable=\"range_out_of_bounds\"/>";
    assert_eq!(of_file(file, lines(7, 7)), beyond);
    for ending in ["\n", "\r", "\r\n"] {
        let file = format!("x{ending}");
        let beyond = "<file_ref path=\"a\" lines=\"1\" unavailable=\"range_out_of_bounds\"/>";
        assert_eq!(of_file(file.as_bytes(), lines(2, 2)), beyond);
    }
    let nothing = "<file_ref path=\"a\" lines=\"0\" unavailable=\"range_out_of_bounds\"/>";
    assert_eq!(of_file(b"", lines(1, 1)), nothing);
}

#[test]
fn c015_an_end_past_the_file_is_clamped_and_reported() {
    let mut sources = Memory::default().with_file("a", "x\ny\n");
    let part = json!([path_ref("a", Some(lines(2, 99)))]);
    let lowered = lower_for(Target::OpenaiChat, &part, &mut sources);
    assert_eq!(lowered.blocks[0]["text"], "a:2-2\n```\ny\n```");
    assert_eq!(lowered.diagnostics, ["file: 'a': only lines 2-2 exist (clamped)"]);
    assert_eq!(of_file(b"abc", bytes(1, 99)), "a:bytes=1-3\n```\nbc\n```");
}

#[test]
fn c015_ranges_without_sense_are_descriptors() {
    let invalid = "<file_ref path=\"a\" unavailable=\"invalid_range\"/>";
    for range in [lines(0, 1), lines(-4, 1), lines(3, 2), bytes(2, 1)] {
        assert_eq!(of_file(b"a\nb\nc\n", range), invalid);
    }
    let beyond = "<file_ref path=\"a\" unavailable=\"range_out_of_bounds\"/>";
    for range in [bytes(3, 4), bytes(9, 12)] {
        assert_eq!(of_file(b"abc", range), beyond);
    }
    let largest = json!({"start": u64::MAX, "end": u64::MAX});
    let beyond = "<file_ref path=\"a\" lines=\"1\" unavailable=\"range_out_of_bounds\"/>";
    assert_eq!(of_file(b"abc", largest), beyond);
}

#[test]
fn c015_a_range_of_bytes_shrinks_to_whole_characters() {
    let file = "aé👍b".as_bytes();
    for (start, end, expected) in [
        (2, 8, "a:bytes=3-8\n```\n👍b\n```"),
        (0, 2, "a:bytes=0-1\n```\na\n```"),
        (4, 6, "a:bytes=6-6\n```\n\n```"),
        (3, 7, "a:bytes=3-7\n```\n👍\n```"),
    ] {
        assert_eq!(of_file(file, bytes(start, end)), expected);
    }
}

#[test]
fn c016_a_whole_file_has_no_range_in_its_name_and_no_at_sign() {
    assert_eq!(of_file(b"x", Value::Null), "a\n```\nx\n```");
    assert_eq!(of_file(b"x\n", Value::Null), "a\n```\nx\n```");
    assert_eq!(of_file(b"", Value::Null), "a\n```\n\n```");
    let mention =
        json!([{"type": "mention", "anchor": "@file:a", "target": {"kind": "file", "path": "a"}}]);
    let mut sources = Memory::default().with_file("a", "x");
    assert_eq!(chat(&mention, &mut sources), ["a\n```\nx\n```"]);
}

#[test]
fn c016_a_range_of_a_picture_is_ignored_and_reported() {
    let mut sources = Memory::default().with_file("a", PNG);
    let part = json!([path_ref("a", Some(lines(1, 2)))]);
    let lowered = lower_for(Target::Anthropic, &part, &mut sources);
    assert_eq!(lowered.blocks[0]["type"], "image");
    assert_eq!(lowered.diagnostics, ["file: 'a': an image has no ranges (sent whole)"]);
}

#[test]
fn c017_whole_files_up_to_64_kib_and_ranges_up_to_200_kb() {
    let whole = vec![b'x'; 64 * 1_024];
    assert!(of_file(&whole, Value::Null).len() > whole.len());
    let more = vec![b'x'; 64 * 1_024 + 1];
    let omitted = "<file_ref path=\"a\" size=\"65537\" omitted=\"too_large\"/>";
    assert_eq!(of_file(&more, Value::Null), omitted);

    let long = "0123456789\n".repeat(40_000);
    let slice = of_file(long.as_bytes(), lines(20_001, 20_002));
    assert_eq!(slice, "a:20001-20002\n```\n0123456789\n0123456789\n```");
    assert!(of_file(long.as_bytes(), bytes(100, 200_100)).len() > 200_000);
    let omitted = "<file_ref path=\"a\" size=\"440000\" omitted=\"too_large\"/>";
    assert_eq!(of_file(long.as_bytes(), bytes(100, 200_101)), omitted);
    assert_eq!(of_file(long.as_bytes(), lines(1, 40_000)), omitted);
    let beyond = "<file_ref path=\"a\" lines=\"40000\" unavailable=\"range_out_of_bounds\"/>";
    assert_eq!(of_file(long.as_bytes(), lines(40_001, 40_001)), beyond);
}

#[test]
fn c018_text_is_recognised_by_its_bytes() {
    assert_eq!(of_file(b"\xef\xbb\xbfx", Value::Null), "a\n```\nx\n```");
    assert_eq!(of_file(b"\xef\xbb\xbfx\ny", lines(1, 1)), "a:1-1\n```\nx\n```");
    assert_eq!(of_file(b"\xef\xbb\xbfxy", bytes(0, 4)), "a:bytes=3-4\n```\nx\n```");
    for binary in [&b"x\0"[..], b"x\xff", b"\xff\xfe", b"\xc3"] {
        let size = binary.len();
        let omitted = format!("<file_ref path=\"a\" size=\"{size}\" omitted=\"binary\"/>");
        assert_eq!(of_file(binary, Value::Null), omitted);
        assert_eq!(of_file(binary, lines(1, 1)), omitted);
    }
    let mut large = vec![b'x'; 100_000];
    large[10] = 0;
    let omitted = "<file_ref path=\"a\" size=\"100000\" omitted=\"binary\"/>";
    assert_eq!(of_file(&large, Value::Null), omitted);
    assert_eq!(of_file(&large, lines(1, 1)), omitted);
    // A character that the look at the beginning cuts in two is text all the same.
    let cut = "é".repeat(50_000);
    assert!(of_file(format!("x{cut}").as_bytes(), Value::Null).contains("too_large"));
}

#[test]
fn c018_a_picture_is_known_whatever_it_is_called() {
    let mut sources = Memory::default().with_file("notes.txt", PNG).with_file("p.png", "words");
    let both = json!([path_ref("notes.txt", None), path_ref("p.png", None)]);
    assert_eq!(chat(&both, &mut sources), ["(image_url)", "p.png\n```\nwords\n```"]);
}

#[test]
fn c019_an_unreachable_file_is_reported_and_its_part_stays() {
    let mut sources = Memory::default();
    sources.files.insert("link".to_owned(), Lies::Symlink("/etc/shadow".to_owned()));
    for (path, why) in [
        ("../secret", "outside_workspace"),
        ("/etc/passwd", "outside_workspace"),
        ("link", "outside_workspace"),
        ("gone", "not_found"),
        ("a\0b", "invalid_path"),
        ("", "invalid_path"),
    ] {
        let expected = format!("<file_ref path=\"{path}\" unavailable=\"{why}\"/>");
        assert_eq!(chat(&json!([path_ref(path, None)]), &mut sources), [expected]);
    }
    let diagnostics =
        lower_for(Target::Gemini, &json!([path_ref("gone", None)]), &mut sources).diagnostics;
    assert_eq!(diagnostics, ["file: 'gone': not_found"]);
}

#[test]
fn c020_urls_are_not_fetched_and_content_ids_are_looked_up() {
    let mut sources = Memory::default();
    sources.bodies.insert("sha256:aa".to_owned(), b"kept\n".to_vec());
    let parts = json!([
        {"type": "file-ref", "ref": {"kind": "url", "url": "https://example.org/?a=1&b=\"2\""}},
        {"type": "file-ref", "ref": {"kind": "content-id", "content_id": "sha256:aa"}},
        {"type": "file-ref", "ref": {"kind": "content-id", "content_id": "sha256:aa", "name": "n.md"}},
        {"type": "file-ref", "ref": {"kind": "content-id", "content_id": "sha256:bb"}},
    ]);
    assert_eq!(
        chat(&parts, &mut sources),
        [
            "<file_ref url=\"https://example.org/?a=1&amp;b=&quot;2&quot;\"/>",
            "sha256:aa\n```\nkept\n```",
            "n.md\n```\nkept\n```",
            "<file_ref content_id=\"sha256:bb\" unavailable=\"not_found\"/>",
        ]
    );
    assert!(sources.opened.is_empty());
}

#[test]
fn c021_a_frozen_reference_is_sent_again_whatever_the_file_holds() {
    let part = Part::from_value(path_ref("a", Some(lines(1, 1)))).unwrap();
    let mut sources = Memory::default().with_file("a", "first\n");
    let limits = InlineLimits::default();
    let resolved = resolve(&part, &mut sources, &limits).unwrap();
    let stored = resolved.to_stored();
    let about = Value::Object(stored.about.clone()).to_string();
    assert!(!about.contains("first"), "the body is stored separately: {about}");
    assert_eq!(Resolved::from_stored(stored.clone()).as_ref(), Some(&resolved));

    let mut sources = Memory::default().with_file("a", "second\n");
    let stored = BTreeMap::from([(0, Resolved::from_stored(stored).unwrap())]);
    let capabilities = Capabilities::built_in(Target::OpenaiChat);
    let parts = [part];
    let again = lower(&parts, &stored, Target::OpenaiChat, &capabilities, &mut sources);
    assert_eq!(again.blocks[0]["text"], "a:1-1\n```\nfirst\n```");
    assert!(sources.opened.is_empty());
}

#[test]
fn c021_every_outcome_can_be_frozen() {
    let mut sources = Memory::default()
        .with_file("text", "x")
        .with_file("picture", PNG)
        .with_file("binary", "\0");
    for (path, range) in [
        ("text", None),
        ("text", Some(bytes(0, 1))),
        ("text", Some(lines(5, 6))),
        ("picture", None),
        ("binary", None),
        ("gone", None),
    ] {
        let part = Part::from_value(path_ref(path, range)).unwrap();
        let resolved = resolve(&part, &mut sources, &InlineLimits::default()).unwrap();
        assert_eq!(Resolved::from_stored(resolved.to_stored()), Some(resolved));
    }
    let nothing = compositor::resolve::StoredResolution { about: wire::Object::new(), body: None };
    assert_eq!(Resolved::from_stored(nothing), None);
}

#[test]
fn c062_a_mention_of_a_file_is_a_reference_to_it() {
    let mention =
        json!([{"type": "mention", "target": {"kind": "file", "path": "a", "range": lines(2, 2)}}]);
    let reference = json!([path_ref("a", Some(lines(2, 2)))]);
    for target in Target::ALL {
        let mut sources = Memory::default().with_file("a", "x\ny\n");
        let one = lower_for(target, &mention, &mut sources);
        assert_eq!(one, lower_for(target, &reference, &mut sources));
    }
}

#[test]
fn a_picture_larger_than_is_read_is_left_to_the_tools() {
    let mut huge = PNG.to_vec();
    huge.resize(200_000, 0);
    let mut sources = Memory::default().with_file("a", huge);
    let part = Part::from_value(path_ref("a", None)).unwrap();
    let limits = InlineLimits { media_bytes: 100_000, ..InlineLimits::default() };
    let expected = Resolved::Omitted {
        why: WhyOmitted::TooLarge,
        size: 200_000,
        mime: "image/png".to_owned(),
    };
    assert_eq!(resolve(&part, &mut sources, &limits), Some(expected));
}

#[test]
fn c016_a_pdf_goes_as_itself_like_an_attached_one() {
    let parts = parts(&json!([path_ref("d/a.pdf", Some(lines(1, 2)))]));
    let mut sources = Memory::default().with_file("d/a.pdf", "%PDF-1.7");
    let lowered = |target: Target, sources: &mut Memory| {
        let capabilities = Capabilities::built_in(target);
        lower(&parts, &BTreeMap::new(), target, &capabilities, sources)
    };
    let sent = lowered(Target::Anthropic, &mut sources);
    assert_eq!(sent.blocks[0]["type"], "document", "{:?}", sent.blocks);
    assert_eq!(sent.blocks[0]["title"], "a.pdf");
    let mut blind = Capabilities::built_in(Target::Anthropic);
    blind.pdf = None;
    let target = Target::Anthropic;
    let described = lower(&parts, &BTreeMap::new(), target, &blind, &mut sources);
    let text = described.blocks[0]["text"].as_str().unwrap();
    assert_eq!(text, "<file_ref path=\"d/a.pdf\" size=\"8\" omitted=\"binary\"/>");
}

#[test]
fn a_message_refers_to_so_many_pictures_and_no_more() {
    let mut picture = PNG.to_vec();
    picture.resize(1_000, 0);
    let mut sources = Memory::default().with_file("a", picture).with_file("b", "text");
    let parts = parts(&json!([
        {"type": "text", "text": "see"},
        path_ref("a", None),
        path_ref("a", None),
        path_ref("a", None),
        path_ref("b", None),
    ]));
    let limits = InlineLimits { message_media_bytes: 2_500, ..InlineLimits::default() };
    let resolved = resolve_all(&parts, &mut sources, &limits);
    let is_media = |at: usize| matches!(resolved[&at], Resolved::Media { .. });
    assert_eq!(resolved.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(is_media(1) && is_media(2));
    assert!(matches!(resolved[&3], Resolved::Omitted { why: WhyOmitted::TooLarge, .. }));
    assert!(matches!(resolved[&4], Resolved::Text { .. }));
}

#[test]
fn a_slice_is_not_looked_for_without_an_end() {
    let mut sources = Memory::default().with_file("a", "x\n".repeat(100_000));
    let part = Part::from_value(path_ref("a", Some(lines(90_000, 90_000)))).unwrap();
    let limits = InlineLimits { scan_bytes: 150_000, ..InlineLimits::default() };
    let resolved = resolve(&part, &mut sources, &limits);
    assert!(matches!(resolved, Some(Resolved::Omitted { why: WhyOmitted::TooLarge, .. })));
}

#[test]
fn an_agent_is_given_links_to_whole_files_and_the_lines_of_slices() {
    let mut sources =
        Memory::default().with_file("src/a b.ts", "x\ny\nz\n").with_file("blob", "\0\0");
    sources.files.insert("big.log".to_owned(), Lies::Zeros(1_000_000));
    let parts = json!([
        path_ref("src/a b.ts", None),
        path_ref("src/a b.ts", Some(lines(2, 3))),
        path_ref("src/a b.ts", Some(bytes(0, 1))),
        path_ref("/ws/blob", None),
        path_ref("big.log", None),
        path_ref("gone", None),
    ]);
    let link = |uri: &str, name: &str, mime: &str, size: u64| json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime, "size": size});
    let lines =
        json!({"uri": "file:///ws/src/a%20b.ts#L2:3", "mimeType": "text/plain", "text": "y\nz\n"});
    let blocks = lower_for(Target::Acp, &parts, &mut sources).blocks;
    assert_eq!(
        blocks,
        [
            link("file:///ws/src/a%20b.ts", "a b.ts", "text/plain", 6),
            json!({"type": "resource", "resource": lines}),
            json!({"type": "text", "text": "src/a b.ts:bytes=0-1\n```\nx\n```"}),
            link("file:///ws/blob", "blob", "application/octet-stream", 2),
            link("file:///ws/big.log", "big.log", "text/plain", 1_000_000),
            json!({"type": "text", "text": "<file_ref path=\"gone\" unavailable=\"not_found\"/>"}),
        ]
    );
}

#[test]
fn a_directory_is_named_and_never_looked_into() {
    let part = json!([{"type": "directory-ref", "ref": {"kind": "path", "path": "src"}}]);
    let mut sources = Memory::default().with_file("src/a", "x");
    assert_eq!(chat(&part, &mut sources), ["<directory_ref path=\"src\"/>"]);
    assert!(sources.opened.is_empty());
}

#[test]
fn names_are_escaped() {
    let mut sources = Memory::default().with_file("a\n```\nevil", "x");
    let text = chat(&json!([path_ref("a\n```\nevil", None)]), &mut sources);
    assert_eq!(text, ["a ``` evil\n```\nx\n```"]);
}
