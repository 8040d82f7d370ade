//! Bodies that are too large for state: moved out of what clients send before it is recorded (G-32, C-033).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

const MIB: usize = 1_024 * 1_024;

fn embedded(body: &[u8]) -> Value {
    json!({
        "type": "embeddedResource", "label": "a file", "contentType": "application/x-own",
        "data": STANDARD.encode(body), "displayKind": "document", "_meta": {"own": [1]},
        "range": {"start": 0, "end": 1},
    })
}

fn message_with(attachments: &[Value]) -> Value {
    json!({"text": "look", "origin": {"kind": "user"}, "attachments": attachments})
}

fn turn_with(client: &ScenarioClient, turn: &str, attachments: &[Value]) -> Value {
    let mut action = client.turn_started(turn, "");
    action["message"] = message_with(attachments);
    action
}

/// The attachments of the latest turn, by what they are and what they hold.
fn attachments(client: &ScenarioClient) -> Vec<(String, usize)> {
    let turn = client.latest_turn();
    let all = turn["message"]["attachments"].as_array().cloned();
    let describe = |attachment: &Value| match attachment["data"].as_str() {
        Some(data) => ("embedded".to_owned(), STANDARD.decode(data).unwrap().len()),
        None => {
            let read = client.reads_resource(attachment["uri"].as_str().unwrap()).unwrap();
            let data = read["data"].as_str().unwrap();
            let data = match read["encoding"].as_str() {
                Some("base64") => STANDARD.decode(data).unwrap(),
                _ => data.as_bytes().to_vec(),
            };
            assert_eq!(attachment["sizeHint"], data.len());
            (attachment["type"].as_str().unwrap().to_owned(), data.len())
        }
    };
    all.unwrap_or_default().iter().map(describe).collect()
}

/// A turn's first attachment as it goes back to its sender.
fn without_bodies(start: &Value) -> Value {
    let mut start = start.clone();
    start["message"]["attachments"][0]["data"] = json!("");
    start
}

fn is(kind: &str, bytes: usize) -> (String, usize) {
    (kind.to_owned(), bytes)
}

// G-32
#[test]
fn a_large_attachment_is_a_resource_in_the_echo_the_state_and_the_journal() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let body: Vec<u8> = (0..MIB + 1).map(|n| (n % 251) as u8).collect();
    let start = turn_with(&ann, "t1", &[embedded(&body)]);
    ann.tries(&ann.chat(), start).unwrap();
    let digest = host::blobs::digest_of(&body);
    let expected = json!({
        "type": "resource", "label": "a file", "contentType": "application/x-own",
        "displayKind": "document", "_meta": {"own": [1]}, "range": {"start": 0, "end": 1},
        "uri": digest.uri(), "sizeHint": MIB + 1,
    });
    let echoed = ann.with(|client| client.envelopes.clone());
    let echoed = echoed.iter().find(|envelope| envelope["action"]["type"] == "chat/turnStarted");
    assert_eq!(echoed.unwrap()["action"]["message"]["attachments"][0], expected);
    assert_eq!(bob.latest_turn()["message"]["attachments"][0], expected);
    assert_eq!(s.look().models.asked[0].message["attachments"][0], expected);
    let read = bob.reads_resource(&digest.uri()).unwrap();
    assert_eq!(read["contentType"], "application/x-own");
    assert_eq!(STANDARD.decode(read["data"].as_str().unwrap()).unwrap(), body);
    s.host_restarts_for([&ann, &bob]);
    assert_eq!(bob.reads_resource(&digest.uri()).unwrap()["encoding"], "base64");
}

// C-033
#[test]
fn bodies_stay_embedded_up_to_their_bounds_and_the_one_that_overflows_goes() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.inline_body_bytes = 300;
        limits.inline_session_bytes = 900;
    })
    .and_chat();
    let of = |bytes: usize| {
        let mut text = embedded(&vec![b'7'; bytes]);
        text["contentType"] = json!("text/plain");
        text
    };
    ann.tries(&ann.chat(), turn_with(&ann, "t1", &[of(300), of(301), of(299)])).unwrap();
    assert_eq!(attachments(&ann), [is("embedded", 300), is("resource", 301), is("embedded", 299)]);
    // 301 are left for the session, over restarts too.
    s.host_restarts_for([&ann]);
    ann.tries(&ann.chat(), turn_with(&ann, "t2", &[of(300), of(2), of(1)])).unwrap();
    assert_eq!(attachments(&ann), [is("embedded", 300), is("resource", 2), is("embedded", 1)]);
    let bob = s.client("bob").opens_chat();
    bob.tries(&bob.chat(), turn_with(&bob, "t1", &[of(300)])).unwrap();
    assert_eq!(attachments(&bob), [is("embedded", 300)]);
}

// G-32
#[test]
fn drafts_and_waiting_messages_are_moved_out_likewise() {
    let mut s = Scenario::with(|limits| limits.inline_body_bytes = 10);
    s.model().hangs();
    let ann = s.client("ann").opens_chat();
    ann.starts("busy");
    s.settles();
    let message = message_with(&[embedded(b"more than ten")]);
    let draft = json!({"type": "chat/draftChanged", "draft": message});
    ann.tries(&ann.chat(), draft).unwrap();
    for kind in ["queued", "steering"] {
        let set = json!({
            "type": "chat/pendingMessageSet", "kind": kind, "id": kind, "message": message,
        });
        ann.tries(&ann.chat(), set).unwrap();
    }
    let uri = host::blobs::digest_of(b"more than ten").uri();
    let chat = ann.sees(&ann.chat());
    for message in
        [&chat["draft"], &chat["queuedMessages"][0]["message"], &chat["steeringMessage"]["message"]]
    {
        assert_eq!(message["attachments"][0]["uri"], uri, "{chat}");
    }
    assert_eq!(s.look().blobs.digests().len(), 1);
}

// H-147, G-32
#[test]
fn the_first_message_of_a_chat_is_moved_out_likewise() {
    let (_s, ann) = Scenario::with(|limits| limits.inline_body_bytes = 10).and_chat();
    let create = json!({
        "channel": ann.session(), "chat": "ahp-chat:/other",
        "initialMessage": message_with(&[embedded(b"more than ten")]),
    });
    ann.asks("createChat", create).unwrap();
    let other = ann.in_chat("ahp-chat:/other");
    other.watches("ahp-chat:/other");
    assert_eq!(attachments(&other), [is("resource", 13)]);
}

#[test]
fn while_bodies_are_stored_only_their_sender_waits_and_in_order() {
    let (mut s, ann, bob) =
        Scenario::with(|limits| limits.inline_body_bytes = 10).and_shared_chat();
    s.reads_take_ms(1_000);
    let body = embedded(b"more than ten");
    let draft = json!({"type": "chat/draftChanged", "draft": message_with(&[body])});
    ann.dispatches(&ann.chat(), draft);
    let empty = ann.dispatches(&ann.chat(), json!({"type": "chat/draftChanged"}));
    let rename = json!({"type": "session/titleChanged", "title": "meanwhile"});
    bob.dispatches(&bob.session(), rename);
    s.settles();
    assert!(ann.refusal(empty).is_none());
    let actions = bob.received_actions();
    let order: Vec<&String> = actions
        .iter()
        .filter(|name| *name == "session/titleChanged" || *name == "chat/draftChanged")
        .collect();
    assert_eq!(order, ["session/titleChanged", "chat/draftChanged", "chat/draftChanged"]);
}

#[test]
fn bodies_of_a_refused_action_are_not_stored_and_not_sent_back() {
    let mut s = Scenario::with(|limits| limits.inline_body_bytes = 10);
    s.model().hangs();
    let ann = s.client("ann").opens_chat();
    ann.starts("busy");
    s.settles();
    let start = turn_with(&ann, "t2", &[embedded(b"more than ten")]);
    assert!(ann.tries(&ann.chat(), start.clone()).is_err());
    assert_eq!(s.look().blobs.digests(), []);
    let refused = ann.with(|client| client.refusals[0]["action"].clone());
    assert_eq!(refused, without_bodies(&start));
}

// A turn that another client started while the bodies were stored: checked again, refused, an orphan is left.
#[test]
fn an_action_is_checked_again_when_its_bodies_are_stored() {
    let mut s = Scenario::with(|limits| limits.inline_body_bytes = 10);
    s.model().hangs();
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    s.reads_take_ms(1_000);
    let late = ann.dispatches(&ann.chat(), turn_with(&ann, "t1", &[embedded(b"more than ten")]));
    bob.starts("quicker");
    s.settles();
    let reason = ann.refusal(late).unwrap();
    assert!(reason.contains("already running"), "{reason}");
    assert_eq!(s.look().blobs.digests().len(), 1);
}

// C-035
#[test]
fn invalid_base64_is_refused_with_a_message() {
    let (_s, ann) = Scenario::with(|limits| limits.inline_body_bytes = 10).and_chat();
    for data in ["AAAAAAAAAAAAAAAAAAA", "AAAA AAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAA%"] {
        let mut attachment = embedded(b"");
        attachment["data"] = json!(data);
        let draft = json!({"type": "chat/draftChanged", "draft": message_with(&[attachment])});
        let reason = ann.tries(&ann.chat(), draft).unwrap_err();
        assert!(reason.contains("base64"), "{reason}");
    }
}

// G-15
#[test]
fn a_body_that_cannot_be_stored_is_refused_and_accepted_later() {
    let (s, ann) = Scenario::with(|limits| limits.inline_body_bytes = 10).and_chat();
    s.look().blobs.break_disk();
    let start = turn_with(&ann, "t1", &[embedded(b"more than ten")]);
    let reason = ann.tries(&ann.chat(), start.clone()).unwrap_err();
    assert!(reason.contains("full"), "{reason}");
    // What need not be stored continues.
    ann.sends_message("small");
    s.look().blobs.mend_disk();
    ann.tries(&ann.chat(), start).unwrap();
    assert_eq!(attachments(&ann), [is("resource", 13)]);
}

// ADR 0009: bodies are stored before the record
#[test]
fn a_host_that_dies_between_keeping_and_recording_leaves_only_an_orphan() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let body = vec![7; MIB + 1];
    s.host_dies_at(Kill::AfterCompose);
    ann.dispatches(&ann.chat(), turn_with(&ann, "t1", &[embedded(&body)]));
    s.settles();
    let uri = host::blobs::digest_of(&body).uri();
    assert!(!s.look().is_up() && s.has_body(&uri));
    s.host_restarts_for([&ann]);
    assert_eq!(ann.sees(&ann.chat())["turns"], json!([]));
    s.collects_bodies(&ann);
    assert!(!s.has_body(&uri));
    // And once recorded it stays, however the host dies.
    for (turn, point) in [("t2", Kill::BeforeSend), ("t3", Kill::BeforeAct)] {
        s.host_dies_at(point);
        ann.dispatches(&ann.chat(), turn_with(&ann, turn, &[embedded(&body)]));
        s.settles();
        s.host_restarts_for([&ann]);
        s.collects_bodies(&ann);
        assert!(s.has_body(&uri), "{point:?}");
    }
}

// G-15
#[test]
fn a_batch_that_fails_after_bodies_were_stored_returns_the_action_without_them() {
    let (mut s, ann) = Scenario::with(|limits| limits.inline_body_bytes = 10).and_chat();
    s.faults().then(host::journal::Fault::Refuse);
    let start = turn_with(&ann, "t1", &[embedded(b"more than ten")]);
    ann.tries(&ann.chat(), start.clone()).unwrap_err();
    let refused = ann.with(|client| client.refusals[0]["action"].clone());
    assert_eq!(refused, without_bodies(&start));
    s.advances_ms(2_000);
    ann.tries(&ann.chat(), start).unwrap();
}

// G-32, H-197
#[test]
fn a_client_s_large_result_becomes_a_preview_and_a_resource() {
    let (mut s, ann) = Scenario::with_chat();
    let tool = json!({"name": "look", "inputSchema": {"type": "object"}});
    let entry = json!({"clientId": "ann", "tools": [tool]});
    let active = json!({"type": "session/activeClientSet", "activeClient": entry});
    ann.tries(&ann.session(), active).unwrap();
    s.model().calls_client("look");
    let turn = ann.sends_message("go");
    let call = ann.latest_turn()["responseParts"][0]["toolCall"]["toolCallId"].clone();
    let long = "line\n".repeat(40_000);
    let content = json!({
        "type": "chat/toolCallContentChanged", "turnId": turn, "toolCallId": call,
        "content": [{"type": "text", "text": long}],
    });
    for _ in 0..3 {
        ann.tries(&ann.chat(), content.clone()).unwrap();
    }
    assert_eq!(s.look().blobs.digests(), [], "nothing is stored while it runs");
    let content = ann.latest_turn()["responseParts"][0]["toolCall"]["content"].to_string();
    assert!(content.len() < 65_536 && content.contains("bytes, kept when the tool is done"));
    let complete = json!({
        "type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call,
        "result": {"success": true, "pastTenseMessage": "Looked",
            "content": [{"type": "text", "text": long}]},
    });
    ann.tries(&ann.chat(), complete).unwrap();
    let content = ann.latest_turn()["responseParts"][0]["toolCall"]["content"].clone();
    assert_eq!(content[0]["text"].as_str().unwrap(), &long[..4_096]);
    assert_eq!(content[1]["type"], "resource");
    assert_eq!(
        (&content[1]["contentType"], &content[1]["sizeHint"]),
        (&json!("text/plain"), &json!(200_000))
    );
    let read = ann.reads_resource(content[1]["uri"].as_str().unwrap()).unwrap();
    assert_eq!((read["data"].as_str(), &read["encoding"]), (Some(long.as_str()), &json!("utf-8")));
}

// G-32
#[test]
fn a_large_result_of_an_agent_is_stored_outside_of_state_and_is_readable() {
    let (mut s, ann) = Scenario::that_collects_soon().and_chat();
    let long = "line\n".repeat(40_000);
    let result = json!({"success": true, "pastTenseMessage": "Ran",
        "content": [{"type": "text", "text": long}]});
    s.model()
        .announces(1, "shell")
        .readies(1, json!({"invocationMessage": "Running", "confirmed": "not-needed"}))
        .reports(1, result);
    ann.sends_message("go");
    s.collects_bodies(&ann);
    s.host_restarts_for([&ann]);
    s.collects_bodies(&ann);
    let turn = ann.latest_turn();
    assert!(turn.to_string().len() < 10_000);
    let content = &turn["responseParts"][0]["toolCall"]["content"];
    assert_eq!(content[0]["text"], &long[..4_096]);
    let read = ann.reads_resource(content[1]["uri"].as_str().unwrap()).unwrap();
    assert_eq!(read["data"], long);
}
