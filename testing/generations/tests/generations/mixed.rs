//! One client of each version in one session: all see the same conversation, also after the host was killed.

use serde_json::json;

use crate::host::Host;
use crate::{v0_4, v0_5_2, v0_6, v0_7, v0_8, v0_9, v1_0};

/// The same lines for every client; each has types of its own.
macro_rules! for_each {
    ($($client:ident),+ => |$each:ident| $body:block) => {
        $({
            let $each = &mut $client;
            $body
        })+
    };
}

#[tokio::test]
async fn all_versions_share_one_session() {
    let script = json!({"scenes": [
        {"when": "^may", "steps": [{"tool": {"name": "rm", "confirm": "ask"}}, {"say": ["done: {{text}}"]}]},
        {"when": "^fail", "steps": [{"say": ["begun"]}, {"fail": {"type": "x", "message": "m", "resumable": true}}, {"say": ["resumed"]}]},
        {"steps": [{"think": ["hm"]}, {"say": ["heard: ", "{{text}}"]}]},
    ]});
    let mut host = Host::start(&script);
    let mut a = v0_4::shared::Follower::joins(&host, "a").await;
    let mut b = v0_5_2::shared::Follower::joins(&host, "b").await;
    let mut c = v0_6::shared::Follower::joins(&host, "c").await;
    let mut d = v0_7::shared::Follower::joins(&host, "d").await;
    let mut e = v0_8::shared::Follower::joins(&host, "e").await;
    let mut f = v0_9::shared::Follower::joins(&host, "f").await;
    let mut g = v1_0::shared::Follower::joins(&host, "g").await;
    let mut turns = 0;
    for_each!(a, b, c, d, e, f, g => |each| {
        turns += 1;
        each.sends_message(&format!("t{turns}"), "hello").await;
        each.until("it is done", |me| me.turns().len() == turns).await;
    });
    // The oldest asks, the newest approves, and everyone sees both.
    a.sends_message("t1x", "may I").await;
    let call = g.until_waiting("pending-confirmation").await;
    let mut yes = v1_0::shared::about(
        "chat/toolCallConfirmed",
        &call,
        json!({"approved": true, "confirmed": "user-action"}),
    );
    yes["turnId"] = json!("t1x");
    let chat = g.first();
    g.does(&chat, yes).await;
    turns += 1;
    for_each!(a, b, c, d, e, f, g => |each| {
        each.until("it is done", |me| me.turns().len() == turns).await;
    });
    // One that can be resumed, by one who can.
    c.sends_message("t2x", "fail").await;
    turns += 1;
    for_each!(a, b, c, d, e, f, g => |each| {
        each.until("it failed", |me| me.last_turn()["state"] == "error").await;
    });
    g.does(&chat, json!({"type": "chat/turnResume", "turnId": "t2x"}))
        .await;
    for_each!(a, b, c, d, e, f, g => |each| {
        each.until("it is done", |me| me.last_turn()["state"] == "complete").await;
        each.agrees(&host, "the resume").await;
        each.goes().await;
    });
    host.is_killed_and_starts_again();
    let mut conversations = Vec::new();
    for_each!(a, b, c, d, e, f, g => |each| {
        each.comes_back(&host).await;
        each.agrees(&host, "the kill").await;
        conversations.push(each.conversation());
    });
    let last = conversations.last().cloned().unwrap_or_default();
    assert_eq!(last.len(), turns, "{last:?}");
    assert!(
        last.iter().any(|turn| turn == "fail -> begunresumed"),
        "{last:?}"
    );
    for conversation in conversations {
        assert_eq!(conversation, last);
    }
}
