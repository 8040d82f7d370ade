//! Content that lies outside of state: how clients read it, and how long it is stored (G-32, H-252).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host::blobs::Blobs;
use kernel::{FileRefusal, FileRefusalReason, ResourceOperand, WantedAccess};
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

/// Puts a body into the host's store behind its back.
fn find_stored(s: &Scenario, body: &[u8]) -> String {
    let world = s.look();
    world.blobs.put(body, world.now).unwrap().uri()
}

// H-252
#[test]
fn content_is_read_as_text_if_it_is_text_and_as_asked_if_possible() {
    let (s, ann) = Scenario::with_client();
    let (text, bytes) = (find_stored(&s, b"some \"text\""), find_stored(&s, b"\xff\x00"));
    let read = ann.reads_resource(&text).unwrap();
    assert_eq!(read, json!({"encoding": "utf-8", "data": "some \"text\""}));
    let read = ann.reads_resource(&bytes).unwrap();
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
fn missing_content_and_foreign_schemes_have_different_errors() {
    let (s, ann) = Scenario::with_client();
    let unknown = wire::Digest::new([7; 32]).uri();
    for (uri, code) in [
        (unknown.as_str(), -32008),
        ("ahp-content:/sha256/abc", -32008),
        ("ahp-content:/md5/abc", -32008),
        ("virtual://x/y", -32008),
        ("no uri", -32008),
    ] {
        assert_eq!(ann.reads_resource(uri).unwrap_err()["code"], code, "{uri}");
    }
    let first = WantedAccess { of: ResourceOperand::First, write: false };
    s.world().files.answers.push_back(Err(FileRefusal {
        why: FileRefusalReason::Denied(Some(first)),
        message: "it lies outside".to_owned(),
    }));
    let denied = ann.reads_resource("file:///etc/passwd").unwrap_err();
    let request = json!({"channel": ROOT, "uri": "file:///etc/passwd", "read": true});
    assert_eq!((&denied["code"], &denied["data"]), (&json!(-32009), &json!({"request": request})));
    assert_eq!(ann.is_denied("resourceDelete", json!({"uri": unknown})), -32009);
    assert_eq!(
        ann.is_denied(
            "resourceWrite",
            json!({"uri": "virtual://x/y", "data": "", "encoding": "utf-8"})
        ),
        -32008
    );
    assert_eq!(ann.is_denied("resourceRead", json!({"channel": ROOT})), -32602);
    let strange = json!({"channel": ROOT, "uri": unknown, "encoding": "latin-1"});
    assert_eq!(ann.is_denied("resourceRead", strange), -32602);
}

#[test]
fn content_over_one_message_is_refused_with_a_message() {
    let (s, ann) = Scenario::with(|limits| limits.message_out_bytes = 66_560).and_client();
    let fits = find_stored(&s, &vec![b'x'; 65_000]);
    let large = find_stored(&s, &vec![b'x'; 66_000]);
    let escaped = find_stored(&s, &vec![b'"'; 40_000]);
    assert!(ann.reads_resource(&fits).is_ok());
    for uri in [large, escaped] {
        let error = ann.reads_resource(&uri).unwrap_err();
        assert_eq!(error["code"], -32603);
        assert!(error["message"].as_str().unwrap().contains("does not fit"));
    }
}

#[test]
fn a_slow_read_makes_only_its_own_sender_wait_and_answers_in_order() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let uri = find_stored(&s, b"body");
    s.reads_take_ms(100);
    ann.received_frames();
    let slow = ann.requests("resourceRead", json!({"channel": ROOT, "uri": uri}));
    ann.dispatches(&ann.session(), json!({"type": "session/titleChanged", "title": "after"}));
    bob.dispatches(&bob.session(), json!({"type": "session/titleChanged", "title": "before"}));
    s.settles();
    assert_eq!(ann.answer(slow).unwrap().unwrap()["data"], "body");
    let frames = ann.received_frames();
    let responses: Vec<_> = frames
        .iter()
        .filter(|name| *name == "=" || *name == "session/titleChanged")
        .rev()
        .take(3)
        .collect();
    assert_eq!(responses, ["session/titleChanged", "=", "session/titleChanged"], "{frames:?}");
    assert_eq!(ann.sees(&ann.session())["title"], "after");
}

#[test]
fn content_can_be_read_while_nothing_can_be_written() {
    let (s, ann) = Scenario::with_chat();
    let uri = find_stored(&s, b"body");
    s.look().faults.break_disk();
    ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": "no"})).unwrap_err();
    assert_eq!(ann.reads_resource(&uri).unwrap()["data"], "body");
}

fn message(uri: &str) -> Value {
    let attachment =
        json!({"type": "resource", "uri": uri, "label": "a file", "contentType": "text/x-own"});
    json!({"text": "look", "origin": {"kind": "user"}, "attachments": [attachment]})
}

fn turn_about(client: &ScenarioClient, turn: &str, uri: &str) -> Value {
    let mut action = client.turn_started(turn, "");
    action["message"] = message(uri);
    action
}

// G-32
#[test]
fn unreferenced_content_is_removed_after_its_grace() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let orphan = find_stored(&s, b"orphan");
    s.advances_in_steps(50_000, 1_000);
    assert!(s.has_body(&orphan), "it may be on its way into a message");
    s.collects_bodies(&ann);
    assert!(!s.has_body(&orphan));
    assert_eq!(ann.reads_resource(&orphan).unwrap_err()["code"], -32008);
}

#[test]
fn content_that_a_killed_host_had_not_recorded_is_removed() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let orphan = find_stored(&s, b"orphan");
    s.host_restarts_for([&ann]);
    s.collects_bodies(&ann);
    assert!(!s.has_body(&orphan));
}

// G-32
#[test]
fn turns_drafts_and_pending_messages_hold_their_content() {
    let mut s = Scenario::that_collects_soon();
    s.model().hangs();
    let ann = s.client("ann").opens_chat();
    let uris = ["turn", "draft", "queued", "steering"].map(|body| find_stored(&s, body.as_bytes()));
    let unused = find_stored(&s, b"unused");
    ann.tries(&ann.chat(), turn_about(&ann, "t1", &uris[0])).unwrap();
    let draft = json!({"type": "chat/draftChanged", "draft": message(&uris[1])});
    ann.tries(&ann.chat(), draft).unwrap();
    for (kind, uri) in [("queued", &uris[2]), ("steering", &uris[3])] {
        let set = json!({
            "type": "chat/pendingMessageSet", "kind": kind, "id": kind, "message": message(uri),
        });
        ann.tries(&ann.chat(), set).unwrap();
    }
    s.collects_bodies(&ann);
    s.host_restarts_for([&ann]);
    s.collects_bodies(&ann);
    assert!(!s.has_body(&unused));
    for uri in &uris {
        let read = ann.reads_resource(uri).unwrap();
        assert_eq!(read["contentType"], "text/x-own");
        assert_eq!(read["encoding"], "utf-8");
    }
}

// G-28, G-32
#[test]
fn content_of_a_disposed_session_lives_as_long_as_its_turns() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let bob = s.client("bob").opens_chat();
    let (own, shared) = (find_stored(&s, b"own"), find_stored(&s, b"shared"));
    ann.tries(&ann.chat(), turn_about(&ann, "t1", &own)).unwrap();
    ann.tries(&ann.chat(), turn_about(&ann, "t2", &shared)).unwrap();
    bob.tries(&bob.chat(), turn_about(&bob, "t1", &shared)).unwrap();
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    s.collects_bodies(&bob);
    assert!(s.has_body(&own), "its retention is not over");
    s.collects_bodies(&bob);
    s.collects_bodies(&bob);
    assert!(!s.has_body(&own));
    assert!(s.has_body(&shared));
}

// G-32
#[test]
fn a_fork_holds_the_content_of_its_turns() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let (seen, unseen) = (find_stored(&s, b"seen"), find_stored(&s, b"unseen"));
    ann.tries(&ann.chat(), turn_about(&ann, "t1", &seen)).unwrap();
    ann.tries(&ann.chat(), turn_about(&ann, "t2", &unseen)).unwrap();
    let fork = json!({
        "channel": ann.session(), "chat": "ahp-chat:/fork",
        "source": {"kind": "fork", "chat": ann.chat(), "turnId": "t1"},
    });
    ann.asks("createChat", fork).unwrap();
    ann.asks("disposeChat", json!({"channel": ann.chat()})).unwrap();
    for _ in 0..4 {
        s.collects_bodies(&ann);
    }
    assert!(!s.has_body(&unseen));
    let read = ann.reads_resource(&seen).unwrap();
    assert_eq!(read["data"], "seen");
    assert_eq!(read["contentType"], "text/x-own", "its type is known as long as it is");
}

// G-52
#[test]
fn a_fork_holds_an_attachment_that_was_sent_with_it_and_goes_on() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let data = STANDARD.encode(vec![7_u8; 2 * 1_024 * 1_024]);
    let attachment = json!({
        "type": "embeddedResource", "label": "a.bin", "data": data,
        "contentType": "application/octet-stream",
    });
    let mut action = ann.turn_started("t1", "look");
    action["message"]["attachments"] = json!([attachment]);
    ann.tries(&ann.chat(), action).unwrap();
    let turns = ann.sees(&ann.chat())["turns"].clone();
    let uri = turns[0]["message"]["attachments"][0]["uri"].clone();
    let uri = uri.as_str().unwrap();
    let original = ann.reads_resource(uri).unwrap();
    let fork = ann.forks("ahp-chat:/fork", "t1");
    ann.asks("disposeChat", json!({"channel": ann.chat()})).unwrap();
    for _ in 0..4 {
        s.collects_bodies(&ann);
    }
    fork.sends_message("go on");
    assert_eq!(fork.turns().len(), 2);
    assert_eq!(fork.reads_resource(uri).unwrap(), original);
    s.host_restarts_for([&ann]);
    assert_eq!(ann.reads_resource(uri).unwrap(), original);
}

#[test]
fn a_failed_batch_holds_no_content() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let uri = find_stored(&s, b"body");
    s.faults().then(host::journal::Fault::Refuse);
    let draft = json!({"type": "chat/draftChanged", "draft": message(&uri)});
    ann.tries(&ann.chat(), draft).unwrap_err();
    s.advances_ms(2_000);
    s.collects_bodies(&ann);
    assert!(!s.has_body(&uri));
}
