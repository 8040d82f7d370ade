//! Working directories and chats beside others: a client uses them in the words of its version; one that has none sees the nearest it
//! knows.

use serde_json::{Value, json};

use super::super::VERSION;
use super::{Follower, SESSION, script};
use crate::driver::Driver;
use crate::host::Host;

const NATIVE: &str = "native:/several";
const SIDE: &str = "ahp-chat:/side";

fn directory_action(kind: &str, directory: &str) -> Value {
    json!({"type": kind, "directory": directory})
}

pub async fn working_directories_are_followed() {
    let host = Host::start_with_agent(&script());
    for name in ["a", "b"] {
        std::fs::create_dir(host.work().join(name)).expect("a directory");
    }
    let (first, added, replacing) =
        (host.work_uri(), format!("{}/a", host.work_uri()), format!("{}/b", host.work_uri()));
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let mut made = json!({"channel": NATIVE, "provider": "native"});
    if VERSION < "0.7" { made["workingDirectory"] = json!(first) } else { made["workingDirectories"] = json!([first]) }
    ann.makes("createSession", made, NATIVE).await;
    let chat = ann.at(NATIVE)["chats"][0]["resource"].clone();
    let chat = chat.as_str().expect("a chat").to_owned();
    ann.follows(&chat).await;
    // A session with a draft is in the list.
    let draft = json!({"type": "chat/draftChanged", "draft": {"text": "so far", "origin": {"kind": "user"}}});
    bea.does(&chat, draft).await;
    let steps = [
        (NATIVE, "session/workingDirectorySet", json!([first, added])),
        (chat.as_str(), "chat/workingDirectorySet", json!([added])),
        (chat.as_str(), "chat/workingDirectoryRemoved", Value::Null),
        (NATIVE, "session/workingDirectoryRemoved", json!([first])),
    ];
    for (channel, kind, expected) in steps {
        let action = directory_action(kind, &added);
        if VERSION < "0.7" { bea.does(channel, action).await } else { ann.does(channel, action).await }
        if VERSION >= "0.7" {
            ann.until(kind, |ann| is_empty_or(&ann.at(channel), &expected)).await;
        }
        ann.agrees(kind).await;
    }
    let mut replaced = directory_action("session/workingDirectoryReplaced", &first);
    replaced["replacement"] = json!(replacing);
    if VERSION < "0.8" { bea.does(NATIVE, replaced).await } else { ann.does(NATIVE, replaced).await }
    if VERSION >= "0.7" {
        ann.until("it is replaced", |ann| {
            ann.at(NATIVE)["workingDirectories"] == json!([replacing])
        })
        .await;
    } else {
        // No action of theirs tells it: the list of sessions does.
        ann.until_told("root/sessionSummaryChanged", |told| {
            told["session"] == NATIVE && told["changes"]["workingDirectory"] == replacing.as_str()
        })
        .await;
    }
    ann.agrees("the replacement").await;
}

/// Whether a state has these directories; one without any may have an empty list.
fn is_empty_or(state: &Value, expected: &Value) -> bool {
    let now = &state["workingDirectories"];
    if expected.is_null() { now.as_array().is_none_or(Vec::is_empty) } else { now == expected }
}

pub async fn chats_beside_others_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let mut bea = Driver::joins(&host, "bea").await;
    let chat = ann.first();
    ann.sends_message("t1", "hello").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    let source =
        json!({"kind": "sideChat", "chat": chat, "turnId": "t1", "selection": {"text": "ok"}});
    let params = json!({"channel": SESSION, "chat": SIDE, "source": source});
    if VERSION < "0.7" { bea.asks("createChat", params).await } else { ann.asks("createChat", params).await };
    ann.until("it is listed", |ann| ann.chats().len() == 2).await;
    ann.follows(SIDE).await;
    let kind = if VERSION < "0.7" { "user" } else { "sideChat" };
    assert_eq!(ann.at(SIDE)["origin"]["kind"], kind);
    assert_eq!(ann.at(SIDE)["turns"], json!([]), "none of the other's turns");
    // A message that another chat is attached to.
    let attached = json!({"type": "chat", "label": "that one", "resource": chat});
    let message = json!({"text": "hello", "origin": {"kind": "user"}, "attachments": [attached]});
    let started = json!({"type": "chat/turnStarted", "turnId": "s1", "startedAt": "2026-11-15T08:00:00.000Z", "message": message});
    if VERSION < "0.7" { bea.does(SIDE, started).await } else { ann.does(SIDE, started).await }
    ann.until("it is answered", |ann| ann.at(SIDE)["turns"].as_array().map(Vec::len) == Some(1))
        .await;
    let told = ann.at(SIDE)["turns"][0]["message"]["attachments"][0].clone();
    let kind = if VERSION < "0.7" { "simple" } else { "chat" };
    assert_eq!((&told["type"], &told["label"]), (&json!(kind), &json!("that one")));
    ann.agrees("the side chat").await;
    if VERSION >= "1.0" {
        let destination = json!({"kind": "session", "session": SESSION});
        let params = json!({"channel": SIDE, "destination": destination});
        ann.asks("moveChat", params).await;
        ann.until("it is the first", |ann| ann.chats()[0] == SIDE).await;
        for action in [
            json!({"type": "chat/isReadChanged", "isRead": false}),
            json!({"type": "chat/isArchivedChanged", "isArchived": true}),
        ] {
            ann.does(SIDE, action).await;
        }
        ann.until("it is archived", |ann| ann.at(SIDE)["status"].as_u64().unwrap_or(0) & 64 != 0)
            .await;
        ann.agrees("the move").await;
    }
}
