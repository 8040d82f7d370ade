//! What is done so that one body cannot spoil a request: made to fit, or described.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::lower::{
    Capabilities, CapabilityMap, RequestBudget, ResolvedMessage, Target, lower_all, lower_into,
};
use compositor::resolve::{Animation, InlineLimits};
use serde_json::{Value, json};

use crate::bodies::{PNG, WAV, attached, by_type, described, png};
use crate::lower_for;
use crate::vectors::{Memory, parts};

#[test]
fn a_picture_that_is_too_large_is_scaled_if_it_can_be() {
    let wide = attached("w.png", "image/png", &png(9_000, 10));
    let mut sources =
        Memory { fits: Some(("image/png".to_owned(), png(8_000, 9))), ..Memory::default() };
    let lowered = lower_for(Target::Anthropic, &json!([wide]), &mut sources);
    assert_eq!(lowered.blocks[0]["source"]["data"], STANDARD.encode(png(8_000, 9)));
    assert_eq!(
        lowered.diagnostics,
        ["attachment: 'w.png': the image was scaled down for anthropic"]
    );
    assert_eq!(lowered.decisions[0].became, "image");
    assert!(lowered.decisions[0].why.is_some());
    assert_eq!(sources.fit_asked[0].side_px_max, Some(8_000));
    assert_eq!(sources.fit_asked[0].bytes_max, Some(3_932_160));

    // What comes back is not believed: still too wide, or of a type that is not taken.
    for bad in [("image/png", png(8_001, 9)), ("image/bmp", png(1, 1))] {
        sources.fits = Some((bad.0.to_owned(), bad.1));
        let lowered = lower_for(Target::Anthropic, &json!([wide]), &mut sources);
        let text = lowered.blocks[0]["text"].as_str().unwrap();
        assert!(text.contains("omitted=\"too_large\""), "{text}");
    }
}

#[test]
fn where_there_are_many_pictures_each_must_be_smaller() {
    let many = |count: usize| {
        let mut sources = Memory::default();
        let all = vec![attached("i.png", "image/png", &png(3_000, 10)); count];
        let lowered = lower_for(Target::Anthropic, &json!(all), &mut sources);
        let natives = lowered.blocks.iter().filter(|block| block["type"] == "image");
        (natives.count(), sources.fit_asked.first().and_then(|limits| limits.side_px_max))
    };
    assert_eq!(many(20), (20, None));
    assert_eq!(many(21), (0, Some(2_000)));
}

#[test]
fn a_gif_is_transcoded_where_none_is_taken_and_stilled_where_none_may_move() {
    let gif = attached("g.gif", "image/gif", b"GIF89a");
    let mut sources =
        Memory { fits: Some(("image/png".to_owned(), PNG.to_vec())), ..Memory::default() };
    let block = lower_for(Target::Gemini, &json!([gif]), &mut sources).blocks.remove(0);
    assert_eq!(block["inlineData"]["mimeType"], "image/png");
    assert_eq!(sources.fit_asked[0].mimes[0], "image/png");
    let lowered = lower_for(Target::Gemini, &json!([gif]), &mut Memory::default());
    assert_eq!(lowered.blocks[0]["text"], described("g.gif", "image/gif", 6));
    assert_eq!(
        lowered.diagnostics,
        ["attachment: 'g.gif': gemini does not accept image/gif (described instead)"]
    );

    let frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x01\x00\x00";
    let mut moving = b"GIF89a\x01\0\x01\0\0\0\0".to_vec();
    moving.extend(frame);
    let still = attached("s.gif", "image/gif", &moving);
    assert_eq!(by_type(Target::OpenaiChat, &still), "image_url");
    moving.extend(frame);
    let moving = attached("m.gif", "image/gif", &moving);
    let block = lower_for(Target::OpenaiChat, &json!([moving]), &mut sources).blocks.remove(0);
    assert!(block["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;"));
    assert_eq!(sources.fit_asked.last().unwrap().animation, Animation::Refused);
    assert_eq!(by_type(Target::Anthropic, &moving), "image");
}

#[test]
fn limits_on_pictures_and_bytes_apply_to_the_whole_request() {
    let capabilities = Capabilities::built_in(Target::Anthropic);
    let mut budget = RequestBudget::new(&capabilities);
    budget.images_left = Some(3);
    let two =
        parts(&json!([attached("a.png", "image/png", PNG), attached("b.png", "image/png", PNG)]));
    let native = |budget: &mut RequestBudget| {
        let target = Target::Anthropic;
        let mut sources = Memory::default();
        let lowered =
            lower_into(budget, &two, &BTreeMap::new(), target, &capabilities, &mut sources);
        let natives = lowered.blocks.iter().filter(|block| block["type"] == "image");
        (natives.count(), lowered)
    };
    assert_eq!(native(&mut budget).0, 2);
    let (count, lowered) = native(&mut budget);
    assert_eq!(count, 1);
    let diagnostic = "attachment: 'b.png': anthropic accepts no more images (described instead)";
    assert_eq!(lowered.diagnostics, [diagnostic]);

    budget.images_left = None;
    budget.bytes_left = Some(20);
    let (count, lowered) = native(&mut budget);
    assert_eq!((count, budget.bytes_left), (1, Some(0)));
    assert!(lowered.blocks[1]["text"].as_str().unwrap().contains("omitted=\"too_large\""));
}

#[test]
fn the_newest_message_draws_on_the_budget_first() {
    let over = json!({"anthropic": {"default": {"image": {"count": 3, "crowded": {"above": 3, "side_px": 50}}}}});
    let map = CapabilityMap::built_in().with(&over).unwrap();
    let capabilities = map.of(Target::Anthropic, None);
    let two = parts(&json!([
        attached("a.png", "image/png", &png(40, 40)),
        attached("b.png", "image/png", &png(60, 60)),
    ]));
    let (none, nothing, second) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::from([1]));
    let of = |described| ResolvedMessage { parts: &two, resolved: &none, described };
    let natives = |messages: &[ResolvedMessage<'_>]| -> Vec<Vec<bool>> {
        let limits = InlineLimits::default();
        let mut sources = Memory::default();
        let all = lower_all(messages, limits, Target::Anthropic, &capabilities, &mut sources);
        let is_native = |block: &Value| block["type"] == "image";
        all.iter().map(|it| it.blocks.iter().map(is_native).collect()).collect()
    };
    assert_eq!(natives(&[of(&nothing)]), [[true, true]]);
    assert_eq!(natives(&[of(&second)]), [[true, false]]);
    // Four pictures are a crowd: the larger ones do not fit, nor does the fourth of those that do.
    let crowd = [of(&nothing), of(&nothing)];
    assert_eq!(natives(&crowd), [[true, false], [true, false]]);
    let crowd = [of(&nothing); 4];
    assert_eq!(natives(&crowd), [[false, false], [true, false], [true, false], [true, false]]);
}

#[test]
fn texts_beyond_the_budget_are_described_except_user_text() {
    let capabilities = Capabilities::built_in(Target::OpenaiChat);
    let mut budget = RequestBudget::new(&capabilities);
    budget.bytes_left = Some(10);
    let parts = parts(&json!([
        {"type": "text", "text": "more than there is room for"},
        attached("n.md", "text/markdown", b"x"),
        {"type": "file-ref", "ref": {"kind": "path", "path": "a"}},
    ]));
    let mut sources = Memory::default().with_file("a", "text");
    let target = Target::OpenaiChat;
    let lowered =
        lower_into(&mut budget, &parts, &BTreeMap::new(), target, &capabilities, &mut sources);
    let texts: Vec<&str> =
        lowered.blocks.iter().filter_map(|block| block["text"].as_str()).collect();
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
fn diagnostics_are_short_whatever_was_sent() {
    let bad = json!({"type": "file-attachment", "name": "n".repeat(10_000), "mime": "image/png", "data": "?"});
    let lowered = lower_for(Target::Anthropic, &json!(vec![bad; 500]), &mut Memory::default());
    assert_eq!(lowered.blocks.len(), 500);
    assert!(lowered.diagnostics.len() < 100);
    assert!(lowered.diagnostics.iter().all(|sentence| sentence.len() < 300));
}

#[test]
fn rejected_media_are_described_in_the_next_request() {
    let capabilities = Capabilities::built_in(Target::Gemini);
    let mut budget = RequestBudget::new(&capabilities);
    let parts =
        parts(&json!([attached("a.png", "image/png", PNG), attached("b.wav", "audio/wav", WAV)]));
    let target = Target::Gemini;
    let mut sources = Memory::default();
    let first =
        lower_into(&mut budget, &parts, &BTreeMap::new(), target, &capabilities, &mut sources);
    let largest = first.decisions.iter().max_by_key(|decision| decision.bytes).unwrap();
    assert_eq!(largest.part, 1);
    budget.described = BTreeSet::from([largest.part]);
    let second =
        lower_into(&mut budget, &parts, &BTreeMap::new(), target, &capabilities, &mut sources);
    assert_eq!(second.blocks[0], first.blocks[0]);
    let text =
        "<file_attachment name=\"b.wav\" mime=\"audio/wav\" size=\"16\" omitted=\"too_large\"/>";
    assert_eq!(second.blocks[1]["text"], text);
}

#[test]
fn a_stored_body_beyond_the_budget_is_not_read() {
    let stored = |mime: &str| json!([{"type": "file-attachment", "name": "n", "mime": mime, "content_id": "sha256:00", "size": 90_000_000}]);
    for (target, mime, omitted, why) in [
        (Target::Anthropic, "image/png", true, "it does not fit in the request"),
        (Target::Anthropic, "video/mp4", false, "anthropic does not accept video"),
        (Target::Gemini, "video/mp4", true, "it does not fit in the request"),
        (Target::OpenaiChat, "text/plain", true, "it does not fit in the request"),
        (Target::OpenaiChat, "application/zip", false, "openai_chat does not accept binary"),
    ] {
        let lowered = lower_for(target, &stored(mime), &mut Memory::default());
        let text = compositor::lower::text_of(&lowered);
        assert_eq!(text.contains("omitted=\"too_large\""), omitted, "{text}");
        assert_eq!(lowered.diagnostics, [format!("attachment: 'n': {why} (described instead)")]);
    }
}
