//! Hashing is most of the work with a large body: how often it is done on the way through a real host.
//! Builds without debug assertions do not count.

#![cfg(debug_assertions)]

use std::time::Duration;

use ahp::{Client, ClientConfig};
use ahp_ws::WebSocketTransport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conformance::TestHost;
use conformance::native::{NativeHarness, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;
use wire::content::HashCount;

const SESSION: &str = "ahp-session:/hashed";
const ATTACHED_BYTES: u32 = 2 << 20;

/// How often each side of an edit may be hashed: when it is shown, and right before it is made.
const HASHES_OF_A_SIDE_MAX: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attachment_is_hashed_once_on_its_way_to_the_disk() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"say": ["seen"]}]}]});
    let host = TestHost::start(data.path(), &script).await;
    let transport = WebSocketTransport::connect(&host.url).await.unwrap();
    let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
    let versions = vec!["1.0.0".to_owned()];
    let root = vec!["ahp-root://".to_owned()];
    let id = "hashed".to_owned();
    client.initialize(id, versions, root).await.unwrap();
    let channel = json!({"channel": SESSION});
    let _: Value = client.request("createSession", channel.clone()).await.unwrap();
    let answer: Value = client.request("subscribe", channel).await.unwrap();
    let chat = answer["snapshot"]["state"]["defaultChat"].as_str().unwrap();
    let body: Vec<u8> = (0..ATTACHED_BYTES).map(|n| (n % 241) as u8).collect();
    let attachment = json!({
        "type": "embeddedResource", "label": "a file", "contentType": "image/x-own",
        "data": STANDARD.encode(&body),
    });
    let start = json!({
        "type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}, "attachments": [attachment]},
    });
    let count = HashCount::watch(&body);
    let start = serde_json::from_value(start).unwrap();
    client.dispatch(chat.to_owned(), start).await.unwrap();
    let ended = async {
        loop {
            let asked = client.request("subscribe", json!({"channel": chat}));
            let answer: Value = asked.await.unwrap();
            let turn = &answer["snapshot"]["state"]["turns"][0];
            if turn.is_object() {
                break turn.clone();
            }
        }
    };
    let turn = timeout(Duration::from_secs(30), ended).await.expect("in time");
    assert_eq!(turn["message"]["attachments"][0]["type"], "resource");
    assert_eq!(count.get(), 1);
    client.shutdown().await;
    host.stop().await;
}

#[tokio::test]
async fn an_edit_that_is_asked_about_is_hashed_twice_a_side() {
    let mut harness = NativeHarness::start().await;
    let (before, after) = ("one is here\n".repeat(999), "two is here\n".repeat(999));
    harness.write("a.txt", &before);
    let edits = json!([{"old_text": "one", "new_text": "two", "all": true}]);
    let call = Call::new("call_edit", "edit", &json!({"path": "a.txt", "edits": edits}));
    let counts = [&before, &after].map(|side| HashCount::watch(side.as_bytes()));
    harness.model.answers([Answer::calls([call]), ends()]);
    harness.ann.sends_message("change it").await;
    harness.ann.decides(json!({"selectedOptionId": "approve"})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), after);
    for count in &counts {
        assert!((1..=HASHES_OF_A_SIDE_MAX).contains(&count.get()), "{counts:?}: {}", count.get());
    }
}
