//! Files that only the client which sends a message can read: it is asked before the message is recorded, what it answers is
//! kept with the message, and whatever goes wrong costs the file and never the message.

use kernel::Limits;
use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

use crate::commands::rows;

const OPEN_FILE: &str = "vscode-remote://localhost/ws/a.txt";

/// What an editor attaches to every message.
fn open_file(uri: &str) -> Value {
    json!({"type": "resource", "uri": uri, "label": "file:a.txt", "displayKind": "document"})
}

fn message(text: &str, uris: &[&str]) -> Value {
    let attachments: Vec<Value> = uris.iter().map(|uri| open_file(uri)).collect();
    json!({"text": text, "origin": {"kind": "user"}, "attachments": attachments})
}

fn starts(client: &ScenarioClient, turn: &str, uris: &[&str]) {
    let mut action = client.turn_started(turn, "");
    action["message"] = message("look", uris);
    client.dispatches(&client.chat(), action);
    client.settles();
}

fn queues(client: &ScenarioClient, kind: &str, id: &str) {
    let action = json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id,
        "message": message(id, &[OPEN_FILE])});
    client.dispatches(&client.chat(), action);
    client.settles();
}

fn answers(client: &ScenarioClient, text: &str) {
    client.replies("result", json!({"data": text, "encoding": "utf-8"}));
}

/// What the references of a turn's message were resolved to when it was recorded.
fn frozen(s: &Scenario, chat: &str, turn: &str) -> Vec<Value> {
    let messages = rows(s, chat, &[turn]);
    let parts = messages.into_iter().flat_map(|message| message.parts);
    let frozen = parts.filter_map(|(_, frozen)| frozen);
    frozen.map(|json| serde_json::from_slice(&json).unwrap()).collect()
}

fn body_of(s: &Scenario, frozen: &Value) -> String {
    use host::blobs::{Blobs as _, Found};
    let digest = wire::Digest::from_uri(frozen["body"].as_str().unwrap()).unwrap();
    match s.look().blobs.read(&digest, 1_000).unwrap() {
        Found::Body(body) => String::from_utf8(body).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_open_file_is_read_from_its_client_before_the_message_is_recorded() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    starts(&ann, "t", &[OPEN_FILE]);
    assert_eq!(s.asked(), Vec::<String>::new(), "nothing is recorded before it is read");
    let asked = ann.is_asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["method"], "resourceRead");
    assert_eq!(asked[0]["params"], json!({"channel": "ahp-root://", "uri": OPEN_FILE}));
    assert!(bob.is_asked().is_empty(), "only the sender is asked");
    ann.replies("result", json!({"data": "aGk=", "encoding": "base64"}));
    assert_eq!(s.asked(), ["look"]);
    assert_eq!(bob.latest_turn()["message"], message_with_model(&s, &[OPEN_FILE]));
    let kept = frozen(&s, &ann.chat(), "t");
    assert_eq!((kept[0]["is"].clone(), body_of(&s, &kept[0])), (json!("text"), "hi".to_owned()));
    s.host_restarts();
    assert_eq!(frozen(&s, &ann.chat(), "t"), kept, "kept when the host restarts");
}

/// The message as it is recorded: with the model that was used, otherwise as it was sent.
fn message_with_model(s: &Scenario, uris: &[&str]) -> Value {
    let mut message = message("look", uris);
    message["model"] = s.look().models.asked[0].message["model"].clone();
    message
}

#[test]
fn whatever_goes_wrong_costs_the_file_and_not_the_message() {
    type Fails = fn(&mut Scenario, &ScenarioClient);
    let too_large = "x".repeat(Limits::default().client_file_bytes_max + 1);
    let cases: [(&str, Fails); 6] = [
        ("in time", |s, _| s.advances_ms(30_000)),
        ("error -32601", |_, ann| {
            ann.replies("error", json!({"code": -32601, "message": "no such method"}));
        }),
        ("invalid response", |_, ann| ann.replies("result", json!({"data": "%%"}))),
        ("invalid response", |_, ann| ann.replies("result", json!([1]))),
        ("is gone", |_, ann| ann.loses_connection()),
        ("4194304 bytes", |_, ann| answers(ann, "large")),
    ];
    for (why, fails) in cases {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        starts(&ann, "t", &[OPEN_FILE]);
        assert_eq!(ann.is_asked().len(), 1, "{why}");
        match why {
            "4194304 bytes" => answers(&ann, &too_large),
            _ => fails(&mut s, &ann),
        }
        s.settles();
        assert_eq!(s.asked(), ["look"], "{why}: the turn goes on");
        assert_eq!(
            frozen(&s, &ann.chat(), "t"),
            [json!({"is": "unavailable", "why": "not_found", "lines": null})]
        );
        let notices = bob.latest_turn()["responseParts"].to_string();
        assert!(notices.contains(why), "{why}: {notices}");
    }
}

#[test]
fn pending_messages_are_read_while_their_client_is_there() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    queues(&ann, "queued", "q");
    answers(&ann, "at the time");
    queues(&ann, "steering", "s");
    answers(&ann, "for steering");
    ann.loses_connection();
    s.host_restarts_for([&ann]);
    ann.resumes(&turn).unwrap();
    s.settles();
    assert!(ann.is_asked().is_empty(), "nothing is asked again");
    let turns: Vec<String> = s.look().models.asked.iter().map(|run| run.turn_id.clone()).collect();
    let kept = turns.iter().flat_map(|turn| frozen(&s, &ann.chat(), turn));
    let read: Vec<String> = kept.map(|kept| body_of(&s, &kept)).collect();
    // The turn died before it was steered, so that message comes first (G-08).
    assert_eq!(read, ["for steering", "at the time"]);
}

#[test]
fn a_host_that_dies_meanwhile_records_nothing_and_asks_again() {
    let (mut s, ann) = Scenario::with_chat();
    starts(&ann, "t", &[OPEN_FILE]);
    s.host_restarts_for([&ann]);
    assert_eq!(s.asked(), Vec::<String>::new());
    starts(&ann, "t", &[OPEN_FILE]);
    s.host_dies_at(Kill::AfterCompose);
    answers(&ann, "first");
    s.host_restarts_for([&ann]);
    assert_eq!(s.asked(), Vec::<String>::new(), "it was never recorded");
    starts(&ann, "t", &[OPEN_FILE]);
    answers(&ann, "second");
    let kept = frozen(&s, &ann.chat(), "t");
    assert_eq!(body_of(&s, &kept[0]), "second");
}

#[test]
fn only_what_nobody_else_resolves_is_asked_for_and_only_so_much() {
    let (s, ann) = Scenario::with(|limits| limits.client_files_max = 2).and_chat();
    starts(
        &ann,
        "t",
        &[
            "file:///etc/hosts",
            "https://x.example/a",
            "untitled:1",
            "untitled:1",
            "untitled:2",
            "untitled:3",
        ],
    );
    let asked: Vec<Value> = ann.is_asked();
    let uris: Vec<&Value> = asked.iter().map(|asked| &asked["params"]["uri"]).collect();
    assert_eq!(uris, ["untitled:1", "untitled:2"]);
    answers(&ann, "one");
    assert_eq!(s.asked(), Vec::<String>::new(), "all are waited for");
    answers(&ann, "two");
    assert_eq!(s.asked(), ["look"]);
    let kept = frozen(&s, &ann.chat(), "t");
    let is: Vec<&Value> = kept.iter().map(|kept| &kept["is"]).collect();
    assert_eq!(is, ["text", "text", "text", "unavailable"]);
    let notices = ann.latest_turn()["responseParts"].to_string();
    assert!(notices.contains("no more than 2 files"), "{notices}");
}

#[test]
fn what_waits_behind_the_message_stays_in_order_and_is_not_lost() {
    let (_s, ann) = Scenario::with_chat();
    starts(&ann, "t", &[OPEN_FILE]);
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t", "duration": 1});
    let cancelled = ann.dispatches(&ann.chat(), cancel);
    ann.settles();
    answers(&ann, "late");
    assert_eq!(ann.refusal(cancelled), None);
    assert_eq!(ann.latest_turn()["state"], "cancelled");
}

#[test]
fn the_first_message_of_a_new_chat_is_read_too() {
    let (s, ann) = Scenario::with_chat();
    let params = json!({"channel": ann.session(), "chat": "ahp-chat:/b",
        "initialMessage": message("look", &[OPEN_FILE])});
    let sent = ann.requests("createChat", params);
    ann.settles();
    assert!(ann.answer(sent).is_none(), "it waits for the file");
    answers(&ann, "first");
    assert_eq!(s.asked(), ["look"]);
    let turn = s.look().models.asked[0].turn_id.clone();
    let kept = frozen(&s, "ahp-chat:/b", &turn);
    assert_eq!(body_of(&s, &kept[0]), "first");
}

// G-15: what waits for its file when the disk is full is refused when it goes on
#[test]
fn a_full_disk_refuses_the_message_when_its_file_is_there() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let mut action = ann.turn_started("t", "");
    action["message"] = message("look", &[OPEN_FILE]);
    let sent = ann.dispatches(&ann.chat(), action);
    ann.settles();
    s.faults().break_disk();
    let draft =
        json!({"type": "chat/draftChanged", "draft": {"text": "d", "origin": {"kind": "user"}}});
    bob.tries(&bob.chat(), draft).unwrap_err();
    answers(&ann, "hi");
    assert!(ann.refusal(sent).is_some());
    assert_eq!(s.asked(), Vec::<String>::new());
    s.faults().mend_disk();
    s.advances_ms(5_000);
}
