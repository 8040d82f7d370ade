//! A client written to the letter of the first public documents: the guide to the state model (0.5) and the reference of the chat
//! channel (0.4). It knows no library, only JSON, and goes from the handshake to a fork.
//!
//! Where those documents name an action `session/..` that the protocol of their day called `chat/..`, that protocol counts
//! (docs/protocol.md); the handshake itself is of that day, too.

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::host::Host;

const SESSION: &str = "ahp-session:/0a1b2c3d-0000-4000-8000-000000000001";
const FORK: &str = "ahp-session:/0a1b2c3d-0000-4000-8000-000000000002";
const FAILED: &str = "ahp-session:/0a1b2c3d-0000-4000-8000-000000000003";

fn host() -> Host {
    Host::start_with_agent(&json!({"scenes": [
        {"when": "^ask", "steps": [{"ask": {"message": "Which one?", "questions": [
            {"kind": "single-select", "id": "q", "message": "one of", "required": true, "options": [
                {"id": "a", "label": "A"}, {"id": "b", "label": "B"}]}]}}, {"say": ["chosen"]}]},
        {"when": "^work", "steps": [{"tool": {"name": "rm", "input": {"path": "x"}, "confirm": "ask", "editable": true,
            "options": [{"id": "yes", "label": "Approve", "kind": "approve"}, {"id": "no", "label": "Deny", "kind": "deny"}]}},
            {"say": ["worked"]}]},
        {"when": "^fail", "steps": [{"say": ["begun"]}, {"fail": {"type": "oops", "message": "it broke", "resumable": true}}]},
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"steps": [{"say": ["Hel", "lo"]}, {"usage": {"inputTokens": 3, "outputTokens": 2}}]},
    ]}))
}

fn message(text: &str) -> Value {
    json!({"text": text, "origin": {"kind": "user"}})
}

/// As the documents have it: a turn has an id and a message, and nothing else.
fn started(turn: &str, text: &str) -> Value {
    json!({"type": "chat/turnStarted", "turnId": turn, "message": message(text)})
}

/// Sends an action that is accepted.
async fn does(client: &mut Driver, channel: &str, action: Value) {
    let own = client.dispatches(channel, action.clone()).await;
    assert!(own.get("rejectionReason").is_none(), "{own}");
}

/// Creates a session and opens its first chat, the way the documents say: subscribe at once, the snapshot may still be `creating`.
async fn opens(client: &mut Driver, version: &str) -> String {
    let mut params = json!({"session": SESSION, "provider": "scripted"});
    if version == "0.4.0" {
        params["model"] = json!({"id": "scripted-1"});
    }
    assert_eq!(client.asks("createSession", params).await, Value::Null);
    let state = client.snapshot_of(SESSION).await;
    let lifecycle = state["lifecycle"].as_str().unwrap_or_default();
    assert!(["creating", "ready"].contains(&lifecycle), "{state}");
    if lifecycle == "creating" {
        client.until_action("session/ready").await;
    }
    // Metadata: inlined in the guide, in a summary in the reference before it.
    let inlined = if version == "0.4.0" { &state["summary"] } else { &state };
    assert_eq!(inlined["provider"], "scripted");
    assert_eq!(inlined["status"], 1, "idle");
    assert!(inlined["workingDirectory"].is_string(), "{state}");
    if version == "0.4.0" {
        assert_eq!(inlined["model"]["id"], "scripted-1");
        assert!(inlined["createdAt"].is_i64() && inlined["modifiedAt"].is_i64());
    } else {
        assert_eq!(state["activeClients"], json!([]));
    }
    let chat = state["chats"][0]["resource"].as_str().expect("a chat");
    assert_eq!(state["defaultChat"], chat);
    let chat = chat.to_owned();
    let state = client.snapshot_of(&chat).await;
    assert_eq!(state["turns"], json!([]));
    assert_eq!(state["status"], 1);
    chat
}

async fn a_turn_streams(client: &mut Driver, chat: &str, version: &str) {
    does(client, chat, started("t1", "hello")).await;
    // Create, then append.
    let part = client.until_action("chat/responsePart").await;
    assert_eq!(part["action"]["part"]["kind"], "markdown");
    let id = part["action"]["part"]["id"].clone();
    let mut text = String::new();
    for _ in 0..2 {
        let delta = client.until_action("chat/delta").await;
        assert_eq!(delta["action"]["partId"], id);
        text += delta["action"]["content"].as_str().unwrap_or_default();
    }
    assert_eq!(text, "Hello");
    client.until_action("chat/turnComplete").await;
    let turn = client.snapshot_of(chat).await["turns"][0].clone();
    assert_eq!((&turn["id"], &turn["state"]), (&json!("t1"), &json!("complete")));
    assert_eq!(turn["usage"]["inputTokens"], 3);
    assert_eq!(turn["responseParts"][0]["content"], "Hello");
    if version == "0.4.0" {
        // The chat's model, for the client could not say one.
        assert_eq!(turn["message"]["model"]["id"], "scripted-1");
    }
}

/// An input request stands at the top level of the state, and its drafts are shared.
async fn a_question_is_answered(client: &mut Driver, chat: &str) {
    does(client, chat, started("t2", "ask")).await;
    let asked = client.until_action("chat/inputRequested").await;
    let request = asked["action"]["request"]["id"].clone();
    let state = client.snapshot_of(chat).await;
    assert_eq!(state["inputRequests"][0]["id"], request);
    assert_eq!(state["inputRequests"][0]["questions"][0]["kind"], "single-select");
    assert_eq!(state["status"].as_u64().unwrap_or(0) & 31, 24, "input needed");
    let draft = json!({"state": "draft", "value": {"kind": "selected", "value": "a"}});
    let change = json!({"type": "chat/inputAnswerChanged", "requestId": request, "questionId": "q", "answer": draft});
    does(client, chat, change).await;
    let state = client.snapshot_of(chat).await;
    assert_eq!(state["inputRequests"][0]["answers"]["q"]["value"]["value"], "a");
    let answer = json!({"q": {"state": "submitted", "value": {"kind": "selected", "value": "b"}}});
    let complete = json!({"type": "chat/inputCompleted", "requestId": request, "response": "accept", "answers": answer});
    does(client, chat, complete).await;
    client.until_action("chat/turnComplete").await;
    let state = client.snapshot_of(chat).await;
    assert!(state.get("inputRequests").is_none(), "{state}");
}

async fn a_tool_is_confirmed(client: &mut Driver, chat: &str) {
    does(client, chat, started("t3", "work")).await;
    let ready = client.until_action("chat/toolCallReady").await;
    assert_eq!(ready["action"]["options"][0]["kind"], "approve");
    let call = ready["action"]["toolCallId"].clone();
    let confirm = json!({"type": "chat/toolCallConfirmed", "turnId": "t3", "toolCallId": call, "approved": true,
        "confirmed": "user-action", "selectedOptionId": "yes", "editedToolInput": "{\"path\":\"y\"}"});
    does(client, chat, confirm).await;
    let done = client.until_action("chat/toolCallComplete").await;
    assert_eq!(done["action"]["result"]["success"], true);
    client.until_action("chat/turnComplete").await;
    let turns = client.snapshot_of(chat).await["turns"].clone();
    let parts = turns[2]["responseParts"].as_array().cloned().unwrap_or_default();
    let part = parts.iter().find(|part| part["kind"] == "toolCall").expect("a call");
    assert_eq!(part["toolCall"]["status"], "completed");
    assert_eq!(part["toolCall"]["selectedOption"]["id"], "yes");
    assert_eq!(part["toolCall"]["toolInput"], "{\"path\":\"y\"}");
}

/// An error is beside the parts of its turn; a queue, a steering message, a cancel and a truncation as the guide has them.
async fn a_turn_fails_and_one_is_cancelled(client: &mut Driver, chat: &str) {
    does(client, chat, started("t4", "fail")).await;
    let failed = client.until_action("chat/error").await;
    assert_eq!(failed["action"]["error"]["message"], "it broke");
    assert!(failed["action"].get("part").is_none(), "{failed}");
    let state = client.snapshot_of(chat).await;
    let turn = state["turns"][3].clone();
    assert_eq!((&turn["state"], &turn["error"]["errorType"]), (&json!("error"), &json!("oops")));
    assert_eq!(turn["responseParts"].as_array().map(Vec::len), Some(1), "{turn}");
    assert_eq!(state["status"].as_u64().unwrap_or(0) & 31, 2, "error");
    does(client, chat, started("t5", "hang")).await;
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "m1", "message": message("hello")});
    does(client, chat, queued).await;
    let removed = json!({"type": "chat/pendingMessageRemoved", "kind": "queued", "id": "m1"});
    does(client, chat, removed).await;
    does(client, chat, json!({"type": "chat/turnCancelled", "turnId": "t5"})).await;
    let state = client.snapshot_of(chat).await;
    assert_eq!(state["turns"][4]["state"], "cancelled");
    does(client, chat, json!({"type": "chat/truncated", "turnId": "t3"})).await;
    let state = client.snapshot_of(chat).await;
    assert_eq!(state["turns"].as_array().map(Vec::len), Some(3));
}

/// A chat of its own model, forked inside the session; and a session forked from another.
async fn forks(client: &mut Driver, chat: &str, version: &str) {
    let source = json!({"chat": chat, "turnId": "t1"});
    let mut params = json!({"channel": SESSION, "chat": "ahp-chat:/of-its-own", "source": source});
    if version == "0.4.0" {
        params["model"] = json!({"id": "scripted-1"});
    }
    assert_eq!(client.asks("createChat", params).await, Value::Null);
    let added = client.until_action("session/chatAdded").await;
    assert_eq!(added["action"]["summary"]["origin"]["kind"], "fork");
    let state = client.snapshot_of("ahp-chat:/of-its-own").await;
    assert_eq!(state["turns"].as_array().map(Vec::len), Some(1));
    if version == "0.4.0" {
        assert_eq!(state["model"]["id"], "scripted-1", "{state}");
    }
    let fork = json!({"session": FORK, "provider": "scripted", "fork": {"session": SESSION, "turnId": "t2"}});
    assert_eq!(client.asks("createSession", fork).await, Value::Null);
    let told = client.until(|heard| {
        heard["method"] == "root/sessionAdded" && heard["params"]["summary"]["resource"] == FORK
    });
    let summary = told.await["params"]["summary"].clone();
    assert_eq!(summary["createdAt"].is_i64(), version == "0.4.0", "{summary}");
    let copy = client.snapshot_of(FORK).await["defaultChat"].clone().as_str().expect("a chat").to_owned();
    let turns = client.snapshot_of(&copy).await["turns"].clone();
    let ids: Vec<&Value> = turns.as_array().into_iter().flatten().map(|turn| &turn["id"]).collect();
    assert_eq!(ids, ["t1", "t2"]);
    // Independent of each other.
    does(client, &copy, started("t9", "hello")).await;
    client.until_action("chat/turnComplete").await;
    let source = client.snapshot_of(chat).await;
    assert_eq!(source["turns"].as_array().map(Vec::len), Some(3));
    let listed = client.asks("listSessions", json!({"channel": "ahp-root://"})).await;
    let listed = listed["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!(
        client.asks("disposeChat", json!({"channel": "ahp-chat:/of-its-own"})).await,
        Value::Null
    );
    client.until_action("session/chatRemoved").await;
}

/// A session that cannot be made: `creating`, then `session/creationFailed`, and the state says why.
async fn a_creation_fails(client: &mut Driver) {
    let config = json!({"isolation": "worktree", "branch": "no-such-branch"});
    let params = json!({"session": FAILED, "provider": "other", "config": config});
    assert_eq!(client.asks("createSession", params).await, Value::Null);
    let mut state = client.snapshot_of(FAILED).await;
    if state["lifecycle"] == "creating" {
        let failed = client.until_action("session/creationFailed").await;
        assert_eq!(failed["action"]["error"]["errorType"], "worktreeFailed");
        state = client.snapshot_of(FAILED).await;
    }
    assert_eq!(state["lifecycle"], "creationFailed", "{state}");
    let error = &state["creationError"];
    assert_eq!(error["errorType"], "worktreeFailed", "{state}");
    assert!(error["message"].is_string(), "{state}");
    let chat = state["defaultChat"].as_str().expect("a chat").to_owned();
    client.snapshot_of(&chat).await;
    let refused = client.dispatches(&chat, started("f1", "hello")).await;
    assert!(refused["rejectionReason"].is_string(), "{refused}");
}

#[tokio::test]
async fn the_documents_of_0_4_and_0_5_describe_a_client_that_works() {
    for version in ["0.4.0", "0.5.0"] {
        let host = host();
        let mut client = Driver::joins_as(&host, "by-the-book", version).await;
        let root = client.snapshot_of("ahp-root://").await;
        let mut agents = root["agents"].as_array().into_iter().flatten();
        let agent = agents.find(|agent| agent["provider"] == "scripted");
        let agent = agent.expect("the scripted agent");
        assert!(agent["models"][0]["id"].is_string(), "{agent}");
        let chat = opens(&mut client, version).await;
        a_turn_streams(&mut client, &chat, version).await;
        a_question_is_answered(&mut client, &chat).await;
        a_tool_is_confirmed(&mut client, &chat).await;
        a_turn_fails_and_one_is_cancelled(&mut client, &chat).await;
        forks(&mut client, &chat, version).await;
        a_creation_fails(&mut client).await;
    }
}

/// Names that the guide had not yet changed: the protocol of its day had them no more, and says so.
#[tokio::test]
async fn names_that_were_no_longer_true_are_refused() {
    let host = host();
    let mut client = Driver::joins_as(&host, "by-the-book", "0.5.0").await;
    opens(&mut client, "0.5.0").await;
    for stale in ["session/turnStarted", "session/truncated", "session/pendingMessageSet"] {
        let action = json!({"type": stale, "turnId": "t", "message": message("hello")});
        let refused = client.dispatches(SESSION, action.clone()).await;
        assert_eq!(refused["action"], action);
        let reason = refused["rejectionReason"].as_str().unwrap_or_default();
        assert!(reason.contains(stale), "{refused}");
    }
}
