//! One client of each of the nine versions in one session: all see the same conversation and the same annotations, also after the
//! host was killed; and each reads every notification that there is.

use laws::wire::methods::HostNotification;
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::host::Host;
use crate::remote::Remote;
use crate::{v0_4, v0_5_2, v0_6, v0_7, v0_8, v0_9, v1_0};

const ANNOTATIONS: &str = "scripted:/generations/annotations";

/// One client of each version, oldest first.
struct Everyone {
    v0_4: v0_4::shared::Follower,
    v0_5_0: Remote,
    v0_5_1: Remote,
    v0_5_2: v0_5_2::shared::Follower,
    v0_6: v0_6::shared::Follower,
    v0_7: v0_7::shared::Follower,
    v0_8: v0_8::shared::Follower,
    v0_9: v0_9::shared::Follower,
    v1_0: v1_0::shared::Follower,
}

impl Everyone {
    async fn joins(url: &str) -> Self {
        Self {
            v0_4: v0_4::shared::Follower::joins(url, "a").await,
            v0_5_0: Remote::joins("generations_0_5_0", url, "b").await,
            v0_5_1: Remote::joins("generations_0_5_1", url, "c").await,
            v0_5_2: v0_5_2::shared::Follower::joins(url, "d").await,
            v0_6: v0_6::shared::Follower::joins(url, "e").await,
            v0_7: v0_7::shared::Follower::joins(url, "f").await,
            v0_8: v0_8::shared::Follower::joins(url, "g").await,
            v0_9: v0_9::shared::Follower::joins(url, "h").await,
            v1_0: v1_0::shared::Follower::joins(url, "i").await,
        }
    }
}

/// The same lines for every client, with its version; each has types of its own.
macro_rules! for_each {
    ($all:ident => |$each:ident, $version:ident| $body:block) => {
        for_each!(@ $all, $each, $version, $body,
            v0_4 "0.4.0", v0_5_0 "0.5.0", v0_5_1 "0.5.1", v0_5_2 "0.5.2", v0_6 "0.6.0", v0_7 "0.7.0", v0_8 "0.8.0", v0_9 "0.9.0",
            v1_0 "1.0.0")
    };
    (@ $all:ident, $each:ident, $version:ident, $body:block, $($client:ident $name:literal),+) => {
        $({
            let ($each, $version) = (&mut $all.$client, $name);
            let _ = $version; // not everything depends on it
            $body
        })+
    };
}

/// An annotation in the words of a version: it named a turn up to 0.8.
fn annotation(version: &str) -> Value {
    let mut annotation = json!({"id": version, "resource": "file:///a.rs", "resolved": false, "entries": [{"id": "e", "text": "why?"}]});
    if version < "0.9" { annotation["turnId"] = json!("t1") } else { annotation["origin"] = json!({"session": "scripted:/generations", "turnId": "t1"}) }
    json!({"type": "annotations/set", "annotation": annotation})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_versions_share_one_session() {
    let script = json!({"scenes": [
        {"when": "^may", "steps": [{"tool": {"name": "rm", "confirm": "ask"}}, {"say": ["done: {{text}}"]}]},
        {"when": "^fail", "steps": [{"say": ["begun"]}, {"fail": {"type": "x", "message": "m", "resumable": true}}, {"say": ["resumed"]}]},
        {"steps": [{"think": ["hm"]}, {"say": ["heard: ", "{{text}}"]}]},
    ]});
    let mut host = Host::start(&script);
    let mut all = Everyone::joins(&host.url).await;
    let mut turns = 0;
    for_each!(all => |each, version| {
        each.follows(ANNOTATIONS).await;
        each.does(ANNOTATIONS, annotation(version)).await;
        turns += 1;
        each.sends_message(&format!("t{turns}"), "hello").await;
        each.until("it is done", |me| me.turns().len() == turns).await;
    });
    // The oldest asks, the newest approves, and everyone sees both.
    all.v0_4.sends_message("t1x", "may I").await;
    let call = all.v1_0.until_waiting("pending-confirmation").await;
    let mut yes = v1_0::shared::about(
        "chat/toolCallConfirmed",
        &call,
        json!({"approved": true, "confirmed": "user-action"}),
    );
    yes["turnId"] = json!("t1x");
    let chat = all.v1_0.first();
    all.v1_0.does(&chat, yes).await;
    turns += 1;
    for_each!(all => |each, version| {
        each.until("it is done", |me| me.turns().len() == turns).await;
    });
    // One that can be resumed, by one who can.
    all.v0_6.sends_message("t2x", "fail").await;
    turns += 1;
    for_each!(all => |each, version| {
        each.until("it failed", |me| me.last_turn()["state"] == "error").await;
    });
    let resume = json!({"type": "chat/turnResume", "turnId": "t2x"});
    all.v1_0.does(&chat, resume).await;
    for_each!(all => |each, version| {
        each.until("it is done", |me| me.last_turn()["state"] == "complete").await;
        each.agrees("the resume").await;
        each.goes().await;
    });
    host.is_killed_and_starts_again();
    let mut conversations = Vec::new();
    for_each!(all => |each, version| {
        each.comes_back(&host.url).await;
    });
    // All of them are there, and the session goes on.
    all.v0_5_0.sends_message("t3x", "after all").await;
    turns += 1;
    for_each!(all => |each, version| {
        each.until("it goes on", |me| me.turns().len() == turns).await;
        each.agrees("the kill").await;
        conversations.push(each.conversation());
    });
    let last = conversations.last().cloned().unwrap_or_default();
    assert_eq!(last.len(), turns, "{last:?}");
    assert!(last.iter().any(|turn| turn == "fail -> begunresumed"), "{last:?}");
    assert_eq!(conversations.len(), 9);
    for conversation in conversations {
        assert_eq!(conversation, last);
    }
    let annotations = Driver::joins(&host, "j").await.snapshot_of(ANNOTATIONS).await;
    let annotations = annotations["annotations"].as_array().map(Vec::len);
    assert_eq!(annotations, Some(9));
}

/// What every version is told, beside actions; `root/progress` came with 0.5.
const TOLD: [&str; 7] = [
    "root/sessionAdded",
    "root/sessionSummaryChanged",
    "root/sessionRemoved",
    "auth/required",
    "otlp/exportLogs",
    "otlp/exportTraces",
    "otlp/exportMetrics",
];

/// Every notification reaches every version, in the words of its types: they judge each when it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_reads_every_notification() {
    let script = json!({"scenes": [{"steps": [{"tool": {"name": "look"}}, {"say": ["ok"]}]}]});
    let host = Host::start_with_agent(&script);
    let mut all = Everyone::joins(&host.url).await;
    let mut newest = Driver::joins(&host, "newest").await;
    for_each!(all => |each, version| {
        for signal in ["logs/debug", "traces", "metrics"] {
            each.follows(&format!("ahp-otlp://host/{signal}")).await;
        }
    });
    let verbose = json!({"type": "root/configChanged", "config": {"logLevel": "debug"}});
    newest.does("ahp-root://", verbose).await;
    // A token that runs out.
    let token = json!({"channel": "ahp-root://", "resource": "https://api.example", "token": "x", "expiresIn": 1});
    newest.asks("authenticate", token).await;
    // A session whose creation takes steps, of each client its own; with a turn it is listed, and then it goes.
    let mut made = 0;
    for_each!(all => |each, version| {
        made += 1;
        let session = format!("other:/w{made}");
        let params = json!({"channel": session, "provider": "other", "progressToken": "p",
            "config": {"isolation": "worktree"}});
        each.asks("createSession", params).await;
    });
    all.v0_4.sends_message("t1", "hello").await;
    let extra = json!({"channel": "scripted:/short", "provider": "scripted"});
    newest.asks("createSession", extra).await;
    let chat = newest.snapshot_of("scripted:/short").await["defaultChat"].clone();
    let chat = chat.as_str().expect("a chat").to_owned();
    let started = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "hello", "origin": {"kind": "user"}}});
    newest.does(&chat, started).await;
    newest.until_turn_ends(&chat, "t").await;
    newest.asks("disposeSession", json!({"channel": "scripted:/short"})).await;
    for_each!(all => |each, version| {
        for method in TOLD {
            each.until_told(method, |_| true).await;
        }
        let told = each.until_told("auth/required", |_| true).await;
        let name = if version < "0.8" { &told["resource"] } else { &told["resource"]["resource"] };
        assert_eq!(name, "https://api.example", "{version}");
        if version > "0.4.0" {
            each.until_told("root/progress", |told| told["progressToken"] == "p").await;
        }
        each.agrees("the notifications").await;
        assert_eq!(each.was_told("root/progress"), version > "0.4.0", "{version}");
    });
    for notification in HostNotification::ALL {
        let name = notification.name();
        let others = ["action", "root/progress"];
        assert!(TOLD.contains(&name) || others.contains(&name), "{name}");
    }
}
