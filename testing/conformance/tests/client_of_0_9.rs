//! The published 0.9.0 client and a 1.0 host: nothing newer than it knows reaches it, and its mirror is right.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::time::Duration;

use ahp_09::reducers::{apply_action_to_chat, apply_action_to_session};
use ahp_09::{Client, ClientConfig, SubscriptionEvent};
use ahp_types_09::actions::StateAction;
use ahp_types_09::state::SnapshotState;
use ahp_ws_09::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

const SESSION: &str = "scripted:/older";

async fn ready(host: &TestHost, name: &str) -> Client {
    let transport = WebSocketTransport::connect(&host.url).await.unwrap();
    let config = ClientConfig {
        subscription_buffer: 65_536,
        ..ClientConfig::default()
    };
    let client = Client::connect(transport, config).await.unwrap();
    let offered = ahp_types_09::version::SUPPORTED_PROTOCOL_VERSIONS
        .iter()
        .map(|v| (*v).to_owned())
        .collect();
    let init = client
        .initialize(name.to_owned(), offered, vec!["ahp-root://".to_owned()])
        .await
        .unwrap();
    assert_eq!(init.protocol_version, "0.9.0");
    client
}

#[tokio::test]
async fn an_older_client_lists_creates_streams_and_its_mirror_equals_a_fresh_snapshot() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"think": ["a", "b"]}, {"stream": {"chunks": 200, "size": 20}}, {"title": "T"}]}]});
    let host = TestHost::start(data.path(), &script).await;
    let ann = ready(&host, "ann").await;
    // The customization has no `type`: 0.9.0 clients never sent one.
    let params = json!({"channel": SESSION, "activeClient": {"clientId": "ann", "tools": [],
        "customizations": [{"id": "c", "uri": "file:///c", "name": "C"}]}});
    let _: Value = ann.request("createSession", params).await.unwrap();
    let (result, _) = ann.subscribe(SESSION.to_owned()).await.unwrap();
    let SnapshotState::Session(mut session) = result.snapshot.unwrap().state else {
        panic!("a session")
    };
    let chat = session.default_chat.clone().unwrap();
    let (result, _) = ann.subscribe(chat.clone()).await.unwrap();
    let SnapshotState::Chat(mut mirror) = result.snapshot.unwrap().state else {
        panic!("a chat")
    };
    let mut events = ann.events();
    let start = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    ann.dispatch(chat.clone(), serde_json::from_value(start).unwrap())
        .await
        .unwrap();
    let done = async {
        while mirror.turns.is_empty() || session.chats[0].status & 1 == 0 {
            match events.recv().await.unwrap().event {
                SubscriptionEvent::Action(envelope) => {
                    assert!(
                        !matches!(envelope.action, StateAction::Unknown(_)),
                        "{:?}",
                        envelope.action
                    );
                    if envelope.channel == SESSION {
                        apply_action_to_session(&mut session, &envelope.action);
                    } else if envelope.channel == chat {
                        apply_action_to_chat(&mut mirror, &envelope.action);
                    }
                }
                _ => continue,
            }
        }
    };
    timeout(Duration::from_secs(20), done)
        .await
        .expect("the turn ends");
    let fresh = ready(&host, "fresh").await;
    let (result, _) = fresh.subscribe(chat.clone()).await.unwrap();
    let SnapshotState::Chat(mut now) = result.snapshot.unwrap().state else {
        panic!("a chat")
    };
    now.title.clone_from(&mirror.title); // no chat action carries it (H-150)
    assert_eq!(now, mirror);
    let (result, _) = fresh.subscribe(SESSION.to_owned()).await.unwrap();
    let SnapshotState::Session(now) = result.snapshot.unwrap().state else {
        panic!("a session")
    };
    assert_eq!(now, session);
    assert_eq!(now.active_clients.len(), 1);
    let list: Value = ann
        .request("listSessions", json!({"channel": "ahp-root://"}))
        .await
        .unwrap();
    assert_eq!(list["items"][0]["title"], "T");
    assert!(
        list["items"][0].get("chats").is_none(),
        "a field of 1.0 does not reach 0.9"
    );
    host.stop().await;
}
