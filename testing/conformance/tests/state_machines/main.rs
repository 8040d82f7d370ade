//! The published 1.0.0 client drives every state machine of a chat over a real socket: what its own reducers make of the
//! stream equals a fresh snapshot, while something waits and when it is over.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod follow;

use ahp_types::state::SnapshotState;
use conformance::TestHost;
use follow::{Follower, SESSION};
use serde_json::{Value, json};

fn script() -> Value {
    json!({"scenes": [
        {"when": "^run", "steps": [
            {"tool": {"name": "ls", "input": {"path": "."}, "updates": [[{"type": "text", "text": "a"}]]}},
            {"say": ["ran"]}]},
        {"when": "^ask tool", "steps": [
            {"tool": {"name": "rm", "input_chunks": ["r", "m"], "input": {"path": "a"}, "confirm": "ask", "title": "Remove",
                "editable": true, "options": [
                    {"id": "once", "label": "Once", "kind": "approve"},
                    {"id": "no", "label": "No", "kind": "deny"}]}},
            {"say": ["told {{last}}"]}]},
        {"when": "^again", "steps": [
            {"tool": {"name": "rm", "confirm": "ask", "reconfirm": "really?"}}, {"say": ["end"]}]},
        {"when": "^review", "steps": [
            {"tool": {"name": "cat", "confirm_result": true, "result": {"content": [{"type": "text", "text": "secret"}]}}},
            {"say": ["end"]}]},
        {"when": "^client", "steps": [
            {"client_tool": {"name": "open", "input": {"path": "a"}}}, {"say": ["told {{last}}"]}]},
        {"when": "^question", "steps": [
            {"ask": {"message": "who?", "questions": [
                {"kind": "text", "id": "name", "message": "name?", "required": true},
                {"kind": "boolean", "id": "sure", "message": "sure?"}]}},
            {"say": ["told {{last}}"]}]},
        {"when": "^steer", "steps": [
            {"say": ["go"]}, {"ask": {"message": "now?"}}, {"steer": true}, {"say": ["steered {{steering}}"]}]},
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"when": "^spawn", "steps": [
            {"spawn": {"title": "Worker", "steps": [{"say": ["working"]},
                {"tool": {"name": "rm", "confirm": "ask"}}, {"say": ["done"]}]}},
            {"say": ["told {{last}}"]}]},
        {"steps": [{"say": ["ok"]}]},
    ]})
}

async fn host(data: &tempfile::TempDir) -> TestHost {
    TestHost::start(data.path(), &script()).await
}

/// An action about a call that waits in the running turn.
fn about(kind: &str, turn: &str, part: &Value, more: Value) -> Value {
    let mut action =
        json!({"type": kind, "turnId": turn, "toolCallId": part["toolCall"]["toolCallId"]});
    for (field, value) in more.as_object().into_iter().flatten() {
        action[field] = value.clone();
    }
    action
}

fn text_of(follower: &Follower) -> String {
    let turn = follower.chat().turns.last().expect("a turn");
    let parts = turn.response_parts.iter();
    let parts = parts.map(|part| serde_json::to_value(part).expect("parts are JSON"));
    let texts = parts.filter(|part| part["kind"] == "markdown");
    texts.map(|part| part["content"].as_str().unwrap_or("").to_owned()).collect()
}

/// A tool that asks again after the first approval.
async fn approve_twice(ann: &mut Follower, host: &TestHost, chat: &str) {
    ann.sends_message("t4", "again").await;
    for _ in 0..2 {
        let call = ann.until_waiting(chat, "pending-confirmation").await;
        ann.agrees_with_a_newcomer(host, "being asked again").await;
        let yes = json!({"approved": true, "confirmed": "user-action"});
        let asked = call["toolCall"]["invocationMessage"].clone();
        ann.does(chat, about("chat/toolCallConfirmed", "t4", &call, yes)).await;
        ann.until("the decision is heard", |ann| {
            let now = ann.waiting(chat, "pending-confirmation");
            now.is_none_or(|now| now["toolCall"]["invocationMessage"] != asked)
        })
        .await;
    }
    ann.until_done("t4").await;
}

// docs/rules/protocol.md, Tool calls: confirmed, denied, edited, with options, asked again
#[tokio::test]
async fn tool_calls_are_confirmed_denied_and_edited() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let mut bob = Follower::joins(&host, "bob").await;
    let chat = ann.first();
    ann.sends_message("t0", "run").await;
    ann.until_done("t0").await;
    ann.agrees_with_a_newcomer(&host, "a tool that needs no leave").await;
    let decisions = [
        ("t1", json!({"approved": true, "confirmed": "user-action", "selectedOptionId": "once"})),
        (
            "t2",
            json!({"approved": true, "confirmed": "user-action", "editedToolInput": "{\"path\":\"b\"}"}),
        ),
        (
            "t3",
            json!({"approved": false, "reason": "denied", "selectedOptionId": "no", "reasonMessage": "never",
            "userSuggestion": {"text": "list", "origin": {"kind": "user"}}}),
        ),
    ];
    for (turn, decision) in decisions {
        ann.sends_message(turn, "ask tool").await;
        let call = ann.until_waiting(&chat, "pending-confirmation").await;
        bob.until_waiting(&chat, "pending-confirmation").await;
        ann.agrees_with_a_newcomer(&host, "the question").await;
        bob.agrees_with_a_newcomer(&host, "the question").await;
        bob.does(&chat, about("chat/toolCallConfirmed", turn, &call, decision.clone())).await;
        ann.until_done(turn).await;
        bob.until_done(turn).await;
        ann.agrees_with_a_newcomer(&host, "the decision").await;
        bob.agrees_with_a_newcomer(&host, "the decision").await;
        // Too late: refused, to its sender alone, and nothing changes.
        ann.does(&chat, about("chat/toolCallConfirmed", turn, &call, decision)).await;
        let refused = ann.refused.len() + 1;
        ann.until("the late one is refused", |ann| ann.refused.len() == refused).await;
    }
    assert!(bob.refused.is_empty());
    assert!(text_of(&ann).contains("\"approved\":false"), "{}", text_of(&ann));
    approve_twice(&mut ann, &host, &chat).await;
    assert_eq!(text_of(&ann), "end");
    host.stop().await;
}

// H-200
#[tokio::test]
async fn results_are_reviewed() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let chat = ann.first();
    for (turn, approved) in [("t1", true), ("t2", false)] {
        ann.sends_message(turn, "review").await;
        let call = ann.until_waiting(&chat, "pending-result-confirmation").await;
        ann.agrees_with_a_newcomer(&host, "the result").await;
        let review = json!({"approved": approved});
        ann.does(&chat, about("chat/toolCallResultConfirmed", turn, &call, review)).await;
        ann.until_done(turn).await;
        ann.agrees_with_a_newcomer(&host, "the review").await;
    }
    host.stop().await;
}

// H-196, H-197, H-221
#[tokio::test]
async fn clients_run_their_own_tools() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let mut bob = Follower::joins(&host, "bob").await;
    let chat = ann.first();
    let tools = json!([{"name": "open", "title": "Open", "inputSchema": {"type": "object"}}]);
    let entry = json!({"clientId": "bob", "displayName": "Bob", "tools": tools});
    bob.does(SESSION, json!({"type": "session/activeClientSet", "activeClient": entry})).await;
    bob.until("bob is active", |bob| bob.session.active_clients.len() == 1).await;
    ann.sends_message("t1", "client").await;
    let call = bob.until_waiting(&chat, "running").await;
    bob.until("the session says so", |bob| {
        bob.session.input_needed.as_ref().is_some_and(|needed| needed.len() == 1)
    })
    .await;
    bob.agrees_with_a_newcomer(&host, "the call").await;
    let content = json!({"content": [{"type": "text", "text": "opening"}]});
    bob.does(&chat, about("chat/toolCallContentChanged", "t1", &call, content)).await;
    let result = json!({"success": true, "pastTenseMessage": "Opened a",
        "content": [{"type": "text", "text": "it is open"}], "structuredContent": {"ok": true}});
    let report = about("chat/toolCallComplete", "t1", &call, json!({"result": result}));
    ann.does(&chat, report.clone()).await;
    ann.until("the forger is refused", |ann| ann.refused.len() == 1).await;
    bob.does(&chat, report).await;
    bob.until_done("t1").await;
    ann.until_done("t1").await;
    assert!(text_of(&ann).contains("it is open"), "{}", text_of(&ann));
    ann.agrees_with_a_newcomer(&host, "the result").await;
    bob.agrees_with_a_newcomer(&host, "the result").await;
    host.stop().await;
}

// docs/rules/protocol.md, Input requests
#[tokio::test]
async fn questions_are_drafted_answered_and_declined() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let mut bob = Follower::joins(&host, "bob").await;
    let chat = ann.first();
    let text =
        |state: &str, text: &str| json!({"state": state, "value": {"kind": "text", "value": text}});
    for (turn, response) in [("t1", "accept"), ("t2", "decline"), ("t3", "cancel")] {
        ann.sends_message(turn, "question").await;
        let id = ann.until_waiting(&chat, "asked").await["request"]["id"].clone();
        bob.until_waiting(&chat, "asked").await;
        let draft = json!({"type": "chat/inputAnswerChanged", "requestId": id, "questionId": "name",
            "answer": text("draft", "gre")});
        bob.does(&chat, draft).await;
        ann.until("the draft is there", |ann| {
            ann.waiting(&chat, "asked").is_some_and(|part| part["request"].get("answers").is_some())
        })
        .await;
        ann.agrees_with_a_newcomer(&host, "a draft").await;
        let early = json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept"});
        let refused = ann.refused.len() + 1;
        ann.does(&chat, early).await;
        ann.until("a draft is no answer", |ann| ann.refused.len() == refused).await;
        let mut complete =
            json!({"type": "chat/inputCompleted", "requestId": id, "response": response});
        if response == "accept" {
            complete["answers"] = json!({"name": text("submitted", "greenroom"),
                "sure": {"state": "submitted", "value": {"kind": "boolean", "value": true}}});
        }
        ann.does(&chat, complete).await;
        ann.until_done(turn).await;
        bob.until_done(turn).await;
        assert!(text_of(&bob).contains(response), "{}", text_of(&bob));
        ann.agrees_with_a_newcomer(&host, response).await;
        bob.agrees_with_a_newcomer(&host, response).await;
    }
    host.stop().await;
}

// H-230 to H-234, G-08; the published reducer sorts what a reorder does not name
#[tokio::test]
async fn messages_wait_in_one_order_for_everybody() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let mut bob = Follower::joins(&host, "bob").await;
    let chat = ann.first();
    ann.sends_message("t1", "hang").await;
    let set = |id: &str, text: &str| {
        let message = json!({"text": text, "origin": {"kind": "user"}});
        json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message})
    };
    for id in ["z", "y", "a", "m"] {
        bob.does(&chat, set(id, id)).await;
    }
    bob.does(&chat, json!({"type": "chat/queuedMessagesReordered", "order": ["a", "nobody"]}))
        .await;
    bob.does(&chat, json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "y"}))
        .await;
    bob.does(&chat, set("m", "last")).await;
    let queue = |follower: &Follower| -> Vec<String> {
        let waiting = follower.chat().queued_messages.clone().unwrap_or_default();
        waiting.into_iter().map(|waiting| waiting.message.text).collect()
    };
    for follower in [&mut ann, &mut bob] {
        follower.until("the queue is in order", |me| queue(me) == ["a", "z", "last"]).await;
        follower.agrees_with_a_newcomer(&host, "the queue").await;
    }
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 5});
    ann.does(&chat, cancel).await;
    ann.until_done("t1").await;
    assert_eq!(queue(&ann).len(), 3, "a cancel holds it");
    bob.does(&chat, set("m", "last")).await; // the same once more lets it go
    for follower in [&mut ann, &mut bob] {
        follower
            .until("all is sent", |me| {
                me.chat().turns.len() == 4 && me.chat().active_turn.is_none()
            })
            .await;
        let texts: Vec<&str> =
            follower.chat().turns.iter().map(|turn| turn.message.text.as_str()).collect();
        assert_eq!(texts, ["hang", "a", "z", "last"]);
        follower.agrees_with_a_newcomer(&host, "all was sent").await;
    }
    host.stop().await;
}

// H-232
#[tokio::test]
async fn a_turn_is_steered() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let chat = ann.first();
    ann.sends_message("t1", "steer").await;
    let id = ann.until_waiting(&chat, "asked").await["request"]["id"].clone();
    for (id, text) in [("s1", "left"), ("s2", "right")] {
        let message = json!({"text": text, "origin": {"kind": "user"}});
        let action = json!({"type": "chat/pendingMessageSet", "kind": "steering", "id": id, "message": message});
        ann.does(&chat, action).await;
    }
    ann.until("it waits", |ann| {
        ann.chat().steering_message.as_ref().is_some_and(|waiting| waiting.id == "s2")
    })
    .await;
    ann.agrees_with_a_newcomer(&host, "it waits").await;
    ann.does(&chat, json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept"}))
        .await;
    ann.until_done("t1").await;
    assert_eq!(text_of(&ann), "gosteered right");
    assert!(ann.chat().steering_message.is_none());
    ann.agrees_with_a_newcomer(&host, "it was taken").await;
    host.stop().await;
}

// H-237, G-18
#[tokio::test]
async fn a_truncate_reaches_every_window() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let chat = ann.first();
    for n in 0..8 {
        let turn = format!("t{n}");
        ann.sends_message(&turn, "hello").await;
        ann.until_done(&turn).await;
    }
    let mut bob = Follower::joins(&host, "bob").await;
    bob.opens_with(&chat, Some(2)).await;
    assert_eq!(bob.chat().turns.len(), 2);
    ann.sends_message("busy", "hang").await;
    ann.until("it runs", |ann| ann.chat().active_turn.is_some()).await;
    ann.does(&chat, json!({"type": "chat/truncated", "turnId": "t3"})).await;
    for follower in [&mut ann, &mut bob] {
        follower
            .until("it is cut", |me| {
                let chat = me.chat();
                chat.active_turn.is_none() && chat.turns.last().is_some_and(|turn| turn.id == "t3")
            })
            .await;
        follower.agrees_with_a_newcomer(&host, "the cut").await;
    }
    ann.does(&chat, json!({"type": "chat/truncated"})).await;
    bob.until("nothing is left", |bob| bob.chat().turns.is_empty()).await;
    ann.sends_message("anew", "hello").await;
    bob.until_done("anew").await;
    bob.agrees_with_a_newcomer(&host, "a new beginning").await;
    host.stop().await;
}

// H-140 to H-155
#[tokio::test]
async fn chats_are_created_forked_opened_aside_and_disposed_of() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let mut bob = Follower::joins(&host, "bob").await;
    let first = ann.first();
    for turn in ["t0", "t1", "t2"] {
        ann.sends_message(turn, "hello").await;
        ann.until_done(turn).await;
    }
    let source = |kind: &str| json!({"kind": kind, "chat": first, "turnId": "t1"});
    let message = json!({"text": "hello", "origin": {"kind": "user"}});
    let created = [
        ("ahp-chat:/plain", json!({"initialMessage": message})),
        ("ahp-chat:/fork", json!({"source": source("fork")})),
        ("ahp-chat:/aside", json!({"source": source("sideChat")})),
    ];
    for (chat, more) in created {
        let mut params = more;
        params["channel"] = json!(SESSION);
        params["chat"] = json!(chat);
        assert_eq!(ann.asks("createChat", params).await, Value::Null);
        ann.opens(chat).await;
        bob.until("it is listed", |bob| {
            bob.session.chats.iter().any(|known| known.resource == chat)
        })
        .await;
        bob.opens(chat).await;
    }
    let turns = |follower: &Follower, chat: &str| -> Vec<String> {
        follower.chats[chat].turns.iter().map(|turn| turn.id.clone()).collect()
    };
    assert_eq!(turns(&ann, "ahp-chat:/fork"), ["t0", "t1"]);
    assert!(turns(&ann, "ahp-chat:/aside").is_empty());
    let start = |turn: &str| {
        json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": "hello", "origin": {"kind": "user"}}})
    };
    ann.does("ahp-chat:/fork", start("f")).await;
    ann.does("ahp-chat:/aside", start("s")).await;
    for follower in [&mut ann, &mut bob] {
        follower
            .until("all have answered", |me| {
                let last = |chat: &str| me.chats[chat].turns.last().map(|turn| turn.id.clone());
                last("ahp-chat:/fork").as_deref() == Some("f")
                    && last("ahp-chat:/aside").as_deref() == Some("s")
                    && last("ahp-chat:/plain").is_some()
            })
            .await;
        follower.agrees_with_a_newcomer(&host, "all have answered").await;
    }
    assert_eq!(ann.asks("disposeChat", json!({"channel": first})).await, Value::Null);
    for follower in [&mut ann, &mut bob] {
        follower.chats.remove(&first);
        follower.until("it is gone", |me| me.session.chats.len() == 3).await;
        assert_eq!(follower.session.default_chat.as_deref(), Some("ahp-chat:/plain"));
        follower.agrees_with_a_newcomer(&host, "it is gone").await;
    }
    let gone = ann.client.subscribe(first).await;
    assert!(gone.is_err(), "H-054");
    host.stop().await;
}

// H-152, H-220
#[tokio::test]
async fn a_worker_is_watched_and_asked() {
    let data = tempfile::tempdir().unwrap();
    let host = host(&data).await;
    let mut ann = Follower::creates(&host, "ann").await;
    let chat = ann.first();
    ann.sends_message("t1", "spawn").await;
    ann.until("the worker asks", |ann| {
        ann.session.input_needed.as_ref().is_some_and(|needed| needed.len() == 1)
    })
    .await;
    let worker = ann.session.chats[1].resource.clone();
    ann.opens(&worker).await;
    ann.agrees_with_a_newcomer(&host, "the worker's question").await;
    let call = ann.until_waiting(&worker, "pending-confirmation").await;
    let turn = ann.chats[&worker].active_turn.as_ref().expect("it runs").id.clone();
    let yes = json!({"approved": true, "confirmed": "user-action"});
    ann.does(&worker, about("chat/toolCallConfirmed", &turn, &call, yes)).await;
    ann.until_done("t1").await;
    ann.agrees_with_a_newcomer(&host, "the worker's end").await;
    let turn = serde_json::to_value(&ann.chats[&chat].turns[0]).unwrap();
    let call = &turn["responseParts"][0]["toolCall"];
    assert_eq!(call["content"][0]["resource"], worker.as_str());
    let origin = serde_json::to_value(&ann.session.chats[1].origin).unwrap();
    assert_eq!(origin, json!({"kind": "tool", "chat": chat, "toolCallId": call["toolCallId"]}));
    let start = json!({"type": "chat/turnStarted", "turnId": "mine", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "hello", "origin": {"kind": "user"}}});
    ann.does(&worker, start).await;
    ann.until("a message to a worker is refused", |ann| ann.refused.len() == 1).await; // H-151
    let (result, _) = ann.client.subscribe(worker).await.expect("subscribe");
    assert!(matches!(result.snapshot.expect("a snapshot").state, SnapshotState::Chat(_)));
    host.stop().await;
}
