//! What a published client of one version does and sees, the same for every version. Whoever includes this names the version's
//! crates `ahp`, `ahp_types` and `ahp_ws`, and its `VERSION`; `host` and `driver` are modules of the test itself.

mod beside;
mod follower;
mod judge;
mod law;
mod mirror;
pub mod view;

use serde_json::{Value, json};

pub use follower::{Follower, about};

use super::VERSION;
use crate::driver::Driver;
use crate::host::Host;

const SESSION: &str = "scripted:/generations";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^tools", "steps": [
            {"tool": {"name": "rm", "input_chunks": ["r", "m"], "confirm": "ask", "editable": true,
                "updates": [[{"type": "text", "text": "a"}]], "reconfirm": "really?"}},
            {"tool": {"name": "cat", "confirm_result": true}},
            {"ask": {"message": "who?", "questions": [{"kind": "text", "id": "name", "message": "name?", "required": true}]}},
            {"client_tool": {"name": "open", "input": {}}},
            {"steer": true}, {"notify": "noted"}, {"usage": {"inputTokens": 1}}, {"activity": "busy"},
            {"spawn": {"title": "W", "agent": "w", "steps": [{"think": ["hm"]}, {"tool": {"name": "ls"}}, {"say": ["done"]}]}},
            {"say": ["end"]}]},
        {"when": "^fail", "steps": [{"say": ["begun"]}, {"usage": {"inputTokens": 2}},
            {"fail": {"type": "oops", "message": "it broke", "resumable": true}}, {"say": ["and done"]}]},
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"when": "^ask", "steps": [{"ask": {"message": "who?", "questions": [{"kind": "text", "id": "name", "message": "name?"}]}}]},
        {"steps": [{"say": ["ok"]}]},
    ]})
}

/// A plugin as a client of this version says it: no type up to 0.9, one flag up to 0.7.
fn plugin() -> Value {
    let mut plugin = json!({"id": "c", "uri": "file:///c", "name": "C"});
    if VERSION < "0.8" {
        plugin["enabled"] = json!(true);
    }
    if VERSION >= "1.0" {
        plugin["type"] = json!("plugin");
    }
    plugin
}

#[tokio::test]
async fn every_step_of_a_turn_is_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    let client =
        json!({"clientId": "ann", "tools": [{"name": "open"}], "customizations": [plugin()]});
    ann.becomes_active(client).await;
    ann.sends_message("t1", "tools").await;
    let call = ann.until_waiting("pending-confirmation").await;
    ann.agrees("the question").await;
    let edited = json!({"approved": true, "confirmed": "user-action", "editedToolInput": "edited"});
    ann.does(&chat, about("chat/toolCallConfirmed", &call, edited))
        .await;
    let again = |ann: &Follower| {
        let call = ann.waiting("pending-confirmation");
        call.is_some_and(|call| call["toolCall"]["invocationMessage"] == "really?")
    };
    ann.until("it asks again", again).await;
    ann.agrees("the second question").await;
    let yes = json!({"approved": true, "confirmed": "user-action"});
    ann.does(&chat, about("chat/toolCallConfirmed", &call, yes))
        .await;
    let call = ann.until_waiting("pending-result-confirmation").await;
    ann.agrees("the result").await;
    let no = json!({"approved": false});
    ann.does(&chat, about("chat/toolCallResultConfirmed", &call, no))
        .await;
    let request = ann.until_asked().await;
    ann.agrees("the input request").await;
    let steering = json!({"type": "chat/pendingMessageSet", "kind": "steering", "id": "s",
        "message": {"text": "left", "origin": {"kind": "user"}}});
    ann.does(&chat, steering).await;
    let answer = json!({"state": "submitted", "value": {"kind": "text", "value": "ann"}});
    let complete = json!({"type": "chat/inputCompleted", "requestId": request["id"], "response": "accept", "answers": {"name": answer}});
    ann.does(&chat, complete).await;
    let call = ann.until_waiting("running").await;
    ann.agrees("the client's tool").await;
    let result = json!({"success": true, "pastTenseMessage": "opened"});
    ann.does(
        &chat,
        about("chat/toolCallComplete", &call, json!({"result": result})),
    )
    .await;
    ann.until("it is done", |ann| {
        ann.turns().len() == 1 && ann.chat().get("activeTurn").is_none()
    })
    .await;
    ann.agrees("the end").await;
    assert_eq!(ann.chats().len(), 2, "the worker's chat is there");
}

#[tokio::test]
async fn queues_cuts_and_forks_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    for turn in ["t1", "t2", "t3"] {
        ann.sends_message(turn, "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == turn)
            .await;
    }
    ann.sends_message("t4", "hang").await;
    for id in ["z", "y", "a"] {
        let set = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id,
            "message": {"text": id, "origin": {"kind": "user"}}});
        ann.does(&chat, set).await;
    }
    ann.does(
        &chat,
        json!({"type": "chat/queuedMessagesReordered", "order": ["a"]}),
    )
    .await;
    let queue = |ann: &Follower| -> Vec<String> {
        let waiting = ann.chat()["queuedMessages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        waiting
            .iter()
            .map(|waiting| waiting["id"].as_str().unwrap_or("").to_owned())
            .collect()
    };
    ann.until("the queue is in order", |ann| queue(ann) == ["a", "z", "y"])
        .await;
    ann.agrees("the queue").await;
    ann.does(&chat, json!({"type": "chat/truncated", "turnId": "t2"}))
        .await;
    ann.until("it is cut", |ann| {
        ann.turns().len() == 2 && ann.chat().get("activeTurn").is_none()
    })
    .await;
    ann.agrees("the cut").await;
    // Before 0.7 a source had no kind.
    let mut source = json!({"chat": chat, "turnId": "t1"});
    if !VERSION.starts_with("0.4") && !VERSION.starts_with("0.5") && !VERSION.starts_with("0.6") {
        source["kind"] = json!("fork");
    }
    let params = json!({"channel": SESSION, "chat": "ahp-chat:/fork", "source": source});
    ann.asks("createChat", params).await;
    ann.until("it is listed", |ann| ann.chats().len() == 2)
        .await;
    ann.agrees("the fork").await;
    assert_eq!(
        ann.at("ahp-chat:/fork")["turns"].as_array().map(Vec::len),
        Some(1)
    );
    ann.asks("disposeChat", json!({"channel": "ahp-chat:/fork"}))
        .await;
    ann.leaves("ahp-chat:/fork");
    ann.until("it is gone", |ann| ann.chats().len() == 1).await;
    ann.agrees("its end").await;
}

/// Somebody else resumes a failed turn and cancels another; a client that has no word for it sees the same turns.
#[tokio::test]
async fn errors_resumes_and_cancels_of_others_are_followed() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    ann.sends_message("t0", "hello").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    ann.sends_message("t1", "fail").await;
    ann.until("it failed", |ann| ann.last_turn()["state"] == "error")
        .await;
    ann.agrees("the error").await;
    let mut bea = Driver::joins(&host, "bea").await;
    bea.does(&chat, json!({"type": "chat/turnResume", "turnId": "t1"}))
        .await;
    ann.until("it is done after all", |ann| {
        ann.last_turn()["state"] == "complete"
    })
    .await;
    ann.agrees("the resumed turn").await;
    let said = ann.last_turn()["responseParts"].to_string();
    assert!(
        said.contains("begun") && said.contains("and done"),
        "{said}"
    );
    ann.sends_message("t2", "ask").await;
    ann.until_asked().await;
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "t2", "duration": 5});
    ann.does(&chat, cancel).await;
    ann.until("it is cancelled", |ann| {
        ann.last_turn()["state"] == "cancelled"
    })
    .await;
    ann.agrees("the cancel").await;
}

/// A client that comes back is told what it missed, also by a host that was killed meanwhile.
#[tokio::test]
async fn a_client_that_comes_back_sees_what_it_missed() {
    let mut host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    ann.sends_message("t1", "hello").await;
    ann.until("it is done", |ann| ann.turns().len() == 1).await;
    ann.goes().await;
    let mut bea = Driver::joins(&host, "bea").await;
    for (turn, text) in [("t2", "hello"), ("t3", "fail")] {
        bea.does(&chat, json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}}}))
            .await;
        bea.until_turn_ends(&chat, turn).await;
    }
    ann.comes_back(&host.url).await;
    ann.until("it has missed nothing", |ann| ann.turns().len() == 3)
        .await;
    ann.agrees("the return").await;
    ann.goes().await;
    host.is_killed_and_starts_again();
    ann.comes_back(&host.url).await;
    ann.agrees("the kill").await;
    ann.sends_message("t4", "hello").await;
    ann.until("it goes on", |ann| ann.turns().len() == 4).await;
    ann.agrees("going on").await;
}

/// What is not on a channel: the list of sessions, pages of turns, and the words of versions before 0.9.
#[tokio::test]
async fn lists_pages_and_older_words_are_answered() {
    let host = Host::start(&script());
    let mut ann = Follower::joins(&host.url, "ann").await;
    let chat = ann.first();
    for turn in ["t1", "t2", "t3"] {
        ann.sends_message(turn, "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == turn)
            .await;
    }
    let list = ann.lists_sessions().await;
    assert_eq!(list[0]["resource"], SESSION);
    assert_eq!(list[0]["modifiedAt"].is_i64(), VERSION == "0.4.0");
    assert_eq!(list[0].get("chats").is_some(), VERSION == "1.0.0");
    if matches!(VERSION, "0.4.0" | "0.5.0") {
        let page = ann
            .asks(
                "fetchTurns",
                json!({"channel": chat, "before": "t3", "limit": 1}),
            )
            .await;
        assert_eq!(
            (&page["turns"][0]["id"], &page["hasMore"]),
            (&json!("t2"), &json!(true))
        );
        assert_eq!(page["turns"].as_array().map(Vec::len), Some(1));
    } else {
        let page = ann
            .asks(
                "fetchTurns",
                json!({"channel": chat, "cursor": "before:t3"}),
            )
            .await;
        assert_eq!(page, json!({}));
    }
    if matches!(VERSION, "0.9.0" | "1.0.0") {
        return;
    }
    let fork = json!({"channel": "scripted:/forked", "fork": {"session": SESSION, "turnId": "t2"}});
    ann.asks("createSession", fork).await;
    let copy = ann.snapshot_of("scripted:/forked").await;
    let of_copy = copy["defaultChat"].as_str().unwrap_or("").to_owned();
    let turns = ann.snapshot_of(&of_copy).await["turns"].clone();
    let ids: Vec<&str> = turns
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|turn| turn["id"].as_str())
        .collect();
    assert_eq!(ids, ["t1", "t2"]);
    if VERSION == "0.4.0" {
        ann.does(
            SESSION,
            json!({"type": "session/modelChanged", "model": {"id": "scripted-1"}}),
        )
        .await;
        ann.until("the model is chosen", |ann| {
            ann.session()["summary"]["model"]["id"] == "scripted-1"
        })
        .await;
        ann.agrees("the chosen model").await;
        ann.sends_message("t5", "hello").await;
        ann.until("it is done", |ann| ann.last_turn()["id"] == "t5")
            .await;
        let bea = Driver::joins(&host, "bea").await.snapshot_of(&chat).await;
        let last = bea["turns"]
            .as_array()
            .and_then(|turns| turns.last())
            .cloned()
            .unwrap_or_default();
        assert_eq!(last["message"]["model"]["id"], "scripted-1");
    }
}
