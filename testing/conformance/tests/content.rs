//! Bodies through a real host on a real disk, read by the published 1.0.0 client: what a user attached and what a tool
//! printed, before and after a restart.

use std::time::Duration;

use ahp::{Client, ClientConfig};
use ahp_types::commands::{ContentEncoding, ResourceReadParams, ResourceReadResult};
use ahp_ws::WebSocketTransport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

const SESSION: &str = "ahp-session:/content";
const ROOT: &str = "ahp-root://";

async fn ready(host: &TestHost) -> Client {
    let transport = WebSocketTransport::connect(&host.url).await.unwrap();
    let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
    let versions = vec!["1.0.0".to_owned()];
    client.initialize("content".to_owned(), versions, vec![ROOT.to_owned()]).await.unwrap();
    client
}

async fn read(client: &Client, uri: &Value) -> ResourceReadResult {
    let params = ResourceReadParams {
        channel: ROOT.to_owned(),
        meta: None,
        uri: uri.as_str().unwrap().to_owned(),
        encoding: None,
    };
    client.resource_read(params).await.unwrap()
}

/// The chat's turn once it is complete.
async fn turn(client: &Client, chat: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let asked = client.request("subscribe", json!({"channel": chat}));
        let answer: Value = timeout_at(deadline, asked).await.expect("in time").unwrap();
        let turn = &answer["snapshot"]["state"]["turns"][0];
        if turn.is_object() {
            return turn.clone();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_published_client_reads_detached_content_before_and_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let long = "0123456789".repeat(20_000);
    let content = json!([{"type": "text", "text": long}]);
    let script = json!({"scenes": [{"steps": [
        {"tool": {"name": "print", "result": {"content": content}}},
        {"content_ref": {"text": "by reference", "type": "text/x-own"}},
    ]}]});
    let host = TestHost::start(data.path(), &script).await;
    let client = ready(&host).await;
    let _: Value = client.request("createSession", json!({"channel": SESSION})).await.unwrap();
    let answer: Value = client.request("subscribe", json!({"channel": SESSION})).await.unwrap();
    let chat = answer["snapshot"]["state"]["defaultChat"].as_str().unwrap();
    let body: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 251) as u8).collect();
    let attachment = json!({
        "type": "embeddedResource", "label": "a picture", "contentType": "image/x-own",
        "data": STANDARD.encode(&body),
    });
    let start = serde_json::from_value(json!({
        "type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}, "attachments": [attachment]},
    }));
    client.dispatch(chat.to_owned(), start.unwrap()).await.unwrap();
    let before = turn(&client, chat).await;
    client.shutdown().await;
    host.stop().await;

    let host = TestHost::start(data.path(), &script).await;
    let client = ready(&host).await;
    let after = turn(&client, chat).await;
    assert_eq!(before, after);
    assert!(after.to_string().len() < 10_000);
    let picture = &after["message"]["attachments"][0];
    assert_eq!((&picture["type"], &picture["sizeHint"]), (&json!("resource"), &json!(2_000_000)));
    let content = read(&client, &picture["uri"]).await;
    assert_eq!(content.encoding, ContentEncoding::Base64);
    assert_eq!(content.content_type.as_deref(), Some("image/x-own"));
    assert_eq!(STANDARD.decode(&content.data).unwrap(), body);
    let printed = &after["responseParts"][0]["toolCall"]["content"];
    assert_eq!(printed[0]["text"].as_str(), Some(&long[..4_096]));
    let content = read(&client, &printed[1]["uri"]).await;
    assert_eq!((content.encoding, content.data), (ContentEncoding::Utf8, long));
    let reference = &after["responseParts"][1];
    assert_eq!(reference["kind"], "contentRef");
    let content = read(&client, &reference["uri"]).await;
    assert_eq!(
        (content.data.as_str(), content.content_type.as_deref()),
        ("by reference", Some("text/x-own"))
    );
    client.shutdown().await;
    host.stop().await;
}
