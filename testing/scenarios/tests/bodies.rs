//! Bodies: content that lies outside of state, and how clients read it (G-32, H-252).

use host::blobs::Blobs;
use serde_json::{Value, json};
use testkit::{Person, ROOT, Scenario};

/// Puts a body into the host's store behind its back.
fn kept(s: &Scenario, body: &[u8]) -> String {
    let world = s.look();
    world.blobs.put(body, world.now).unwrap().uri()
}

fn reads(person: &Person, uri: &str) -> Result<Value, Value> {
    person.asks("resourceRead", json!({"channel": ROOT, "uri": uri}))
}

// H-252
#[test]
fn content_is_read_as_text_if_it_is_text_and_as_asked_if_possible() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives();
    let (text, bytes) = (kept(&s, b"some \"text\""), kept(&s, b"\xff\x00"));
    let read = reads(&ann, &text).unwrap();
    assert_eq!(read, json!({"encoding": "utf-8", "data": "some \"text\""}));
    let read = reads(&ann, &bytes).unwrap();
    assert_eq!(read, json!({"encoding": "base64", "data": "/wA="}));
    let asks = |uri: &str, encoding: &str| {
        let params = json!({"channel": ROOT, "uri": uri, "encoding": encoding});
        ann.asks("resourceRead", params).unwrap()["encoding"].clone()
    };
    assert_eq!(asks(&text, "base64"), "base64");
    assert_eq!(asks(&text, "utf-8"), "utf-8");
    assert_eq!(asks(&bytes, "utf-8"), "base64");
    let without_channel = ann.asks("resourceRead", json!({"uri": text}));
    assert_eq!(without_channel.unwrap()["data"], "some \"text\"");
}

// H-250, H-252
#[test]
fn what_is_not_there_or_not_ours_is_told_apart() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives();
    let unknown = wire::Digest::new([7; 32]).uri();
    for (uri, code) in [
        (unknown.as_str(), -32008),
        ("ahp-content:/sha256/abc", -32008),
        ("ahp-content:/md5/abc", -32008),
        ("virtual://x/y", -32008),
        ("no uri", -32008),
        ("file:///etc/passwd", -32009),
        ("FILE:///etc/passwd", -32009),
    ] {
        assert_eq!(reads(&ann, uri).unwrap_err()["code"], code, "{uri}");
    }
    assert_eq!(
        ann.is_denied("resourceRead", json!({"channel": ROOT})),
        -32602
    );
    let strange = json!({"channel": ROOT, "uri": unknown, "encoding": "latin-1"});
    assert_eq!(ann.is_denied("resourceRead", strange), -32602);
}

#[test]
fn content_over_one_message_is_refused_with_words() {
    let mut s = Scenario::with(|limits| limits.message_out_bytes = 66_560);
    let ann = s.client("ann").arrives();
    let fits = kept(&s, &vec![b'x'; 65_000]);
    let large = kept(&s, &vec![b'x'; 66_000]);
    let escaped = kept(&s, &vec![b'"'; 40_000]);
    assert!(reads(&ann, &fits).is_ok());
    for uri in [large, escaped] {
        let error = reads(&ann, &uri).unwrap_err();
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains("does not fit"));
    }
}

#[test]
fn a_slow_read_makes_only_its_own_sender_wait_and_answers_in_order() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    let uri = kept(&s, b"body");
    s.reads_take_ms(100);
    ann.heard_frames();
    let slow = ann.requests("resourceRead", json!({"channel": ROOT, "uri": uri}));
    ann.dispatches(
        &ann.session(),
        json!({"type": "session/titleChanged", "title": "after"}),
    );
    bob.dispatches(
        &bob.session(),
        json!({"type": "session/titleChanged", "title": "before"}),
    );
    s.settles();
    assert_eq!(ann.answer(slow).unwrap().unwrap()["data"], "body");
    let frames = ann.heard_frames();
    let told: Vec<_> = frames
        .iter()
        .filter(|name| *name == "=" || *name == "session/titleChanged")
        .rev()
        .take(3)
        .collect();
    assert_eq!(
        told,
        ["session/titleChanged", "=", "session/titleChanged"],
        "{frames:?}"
    );
    assert_eq!(ann.sees(&ann.session())["title"], "after");
    s.all_agree();
}

#[test]
fn content_can_be_read_while_nothing_can_be_written() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    let uri = kept(&s, b"body");
    s.look().faults.break_disk();
    ann.tries(
        &ann.session(),
        json!({"type": "session/titleChanged", "title": "no"}),
    )
    .unwrap_err();
    assert_eq!(reads(&ann, &uri).unwrap()["data"], "body");
}
