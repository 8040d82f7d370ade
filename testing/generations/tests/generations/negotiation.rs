//! Which version is spoken, that it is remembered, and what those of other versions are told.

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::host::Host;

const SESSION: &str = "scripted:/negotiation";

fn host() -> Host {
    Host::start(&json!({"scenes": [{"steps": [{"say": ["ok"]}]}]}))
}

async fn greets(host: &Host, offered: Value) -> Result<Value, Value> {
    let mut client = Driver::connects(host).await;
    let params = json!({"channel": "ahp-root://", "clientId": "c", "protocolVersions": offered});
    let greeted = client.tries("initialize", params).await;
    if greeted.is_err() {
        assert!(client.is_closed().await, "nothing more can be said");
    }
    greeted
}

#[tokio::test]
async fn the_highest_version_that_is_served_is_spoken() {
    let host = host();
    for (offered, spoken) in [
        (json!(["0.4.0", "0.3.0"]), "0.4.0"),
        (json!(["0.5.0"]), "0.5.0"),
        (json!(["0.5.2", "0.5.1"]), "0.5.2"),
        (json!(["0.5.1", "0.8.0", "0.7.0"]), "0.8.0"),
        // What VS Code offers.
        (json!(["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"]), "0.9.0"),
        (json!(["1.0.0", "0.9.0"]), "1.0.0"),
        (json!(["2.0.0", "0.6.0", "0.3.0"]), "0.6.0"),
    ] {
        let greeted = greets(&host, offered.clone()).await.expect("a version");
        assert_eq!(greeted["protocolVersion"], spoken, "{offered}");
    }
    for offered in [json!(["0.3.0"]), json!(["2.0.0", "0.1.0"]), json!([])] {
        let error = greets(&host, offered.clone()).await.expect_err("an error");
        assert_eq!(error["code"], -32005, "{offered}");
        let served = ["^1.0.0", "^0.9.0", "^0.8.0", "^0.7.0", "^0.6.0", "^0.5.0", "^0.4.0"];
        assert_eq!(error["data"]["supportedVersions"], json!(served));
    }
}

/// `reconnect` says no version: the host remembers it, also after it was killed.
#[tokio::test]
async fn a_version_is_remembered() {
    let mut host = host();
    let mut clients = Vec::new();
    for version in ["0.4.0", "0.6.0", "0.8.0", "1.0.0"] {
        let mut client = Driver::joins_as(&host, version, version).await;
        // The first one makes it.
        let _ = client.tries("createSession", json!({"channel": SESSION})).await;
        client.snapshot_of(SESSION).await;
        clients.push(version);
    }
    for killed in [false, true] {
        if killed {
            host.is_killed_and_starts_again();
        }
        for version in &clients {
            let mut client = Driver::connects(&host).await;
            let params = json!({"channel": "ahp-root://", "clientId": version, "lastSeenServerSeq": 0, "subscriptions": [SESSION]});
            client.asks("reconnect", params).await;
            let state = client.snapshot_of(SESSION).await;
            let shape = (
                state["summary"].is_object(),
                state["workingDirectory"].is_string(),
                state["workingDirectories"].is_array(),
            );
            let expected = match *version {
                "0.4.0" => (true, false, false),
                "0.6.0" => (false, true, false),
                _ => (false, false, true),
            };
            assert_eq!(shape, expected, "{version} {state}");
        }
    }
}

/// What came with 1.0 is told to older clients by what they know: never the action itself.
#[tokio::test]
async fn what_came_later_is_told_in_its_older_form() {
    let host = host();
    let mut ann = Driver::joins(&host, "ann").await;
    ann.asks("createSession", json!({"channel": SESSION})).await;
    let chat = ann.snapshot_of(SESSION).await["defaultChat"].clone();
    let chat = chat.as_str().expect("a chat").to_owned();
    let started = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "hello", "origin": {"kind": "user"}}});
    ann.does(&chat, started).await;
    ann.until_turn_ends(&chat, "t").await;
    for version in ["0.4.0", "0.6.0", "0.9.0"] {
        let mut old = Driver::joins_as(&host, version, version).await;
        old.snapshot_of(SESSION).await;
        old.snapshot_of(&chat).await;
        for is_read in [true, false] {
            let read = json!({"type": "chat/isReadChanged", "isRead": is_read});
            ann.does(&chat, read).await;
        }
        let archived = json!({"type": "chat/isArchivedChanged", "isArchived": version != "0.6.0"});
        ann.does(&chat, archived).await;
        let updated = old.until_action("session/chatUpdated").await;
        assert_eq!(updated["action"]["chat"], chat.as_str(), "{version}");
        assert!(updated["action"]["changes"]["status"].is_u64(), "{version} {updated}");
        let newer = old.heard.iter().find(|heard| {
            let kind = heard["params"]["action"]["type"].as_str();
            kind.is_some_and(|kind| kind.starts_with("chat/is"))
        });
        assert_eq!(newer, None, "{version}");
    }
}
