//! What VS Code really sends (protocol 0.9.0), frame by frame, to a real host: its stops, its typing over a question, its
//! repeated and unknown settings, its way back after a lost connection.

use conformance::TestHost;
use conformance::vscode::{Code, ROOT};
use serde_json::{Value, json};

const OLD: &str = "scripted:/11111111-0000-4000-8000-000000000000";
const SESSION: &str = "scripted:/22222222-0000-4000-8000-000000000000";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^work", "steps": [
            {"say": ["about to "]},
            {"tool": {"name": "rm", "input": {"path": "all"}, "confirm": "ask", "title": "Remove",
                "options": [
                    {"id": "allow", "label": "Allow", "kind": "approve"},
                    {"id": "skip", "label": "Skip", "kind": "deny"}],
                "updates": [[{"type": "text", "text": "REMOVED"}]],
                "result": {"content": [{"type": "text", "text": "REMOVED"}]}}},
            {"say": ["AFTER"]}]},
        {"when": "^ask", "steps": [
            {"ask": {"message": "numbers", "questions": [
                {"kind": "integer", "id": "i", "message": "how many?", "required": true, "min": 1},
                {"kind": "number", "id": "n", "message": "how much?"},
                {"kind": "boolean", "id": "b", "message": "sure?"}]}},
            {"say": ["{{last}}"]}]},
        {"steps": [{"say": ["hello from the agent"]}]},
    ]})
}

/// Everything up to the first message of a new chat (2 to 9); the chat.
async fn first_message(code: &mut Code, host: &TestHost) -> String {
    let directory = format!("file://{}", host.data().display());
    let result = code.initializes(&[ROOT]).await;
    assert_eq!(result["snapshots"].as_array().map(Vec::len), Some(1));
    // 3: settings, many of them numbered 0 and with unknown keys
    for n in 0..8_u64 {
        let config = json!({"vscode.setting": n, "telemetry": {"level": "off"}});
        let action = json!({"type": "root/configChanged", "config": config});
        code.dispatches_as(ROOT, n % 2, action).await;
    }
    // 4
    code.sends(json!({"jsonrpc": "2.0", "method": "setClientManagedSettingsPermissions", "params": {"allow": []}}))
        .await;
    for _ in 0..2 {
        let list = code.asks("listSessions", json!({"channel": ROOT})).await;
        assert_eq!(list.expect("listed")["items"], json!([]));
    }
    // 5
    assert_eq!(code.asks("ping", json!({"channel": ROOT})).await, Ok(Value::Null));
    let refused = |frame: &Value| frame["params"].get("rejectionReason").is_some();
    assert!(!code.inbox.iter().any(refused), "{:?}", code.inbox);
    // 6: an agent is picked
    for _ in 0..5 {
        let params = json!({"channel": ROOT, "provider": "scripted", "workingDirectory": directory, "config": {}});
        let resolved = code.asks("resolveSessionConfig", params).await.expect("a schema");
        assert!(resolved["schema"].is_object(), "{resolved}");
    }
    let create = |session: &str| {
        json!({"channel": session, "provider": "scripted", "workingDirectories": [directory],
            "config": {"isolation": "none", "autoApprove": false, "mode": "agent"}, "progressToken": session})
    };
    assert_eq!(code.asks("createSession", create(OLD)).await, Ok(Value::Null));
    // 7: before it subscribes
    code.offers_tools(OLD).await;
    // 8: Enter
    assert_eq!(code.asks("createSession", create(SESSION)).await, Ok(Value::Null));
    code.offers_tools(SESSION).await;
    assert_eq!(code.asks("disposeSession", json!({"channel": OLD})).await, Ok(Value::Null));
    let session = code.state(SESSION).await;
    assert_eq!(session["activeClients"][0]["tools"].as_array().map(Vec::len), Some(7));
    let chat = session["defaultChat"].as_str().expect("a default chat").to_owned();
    // One tick: subscribe and the first turn.
    let subscribe = code.requests("subscribe", json!({"channel": chat})).await;
    let turn = "request_33333333-0000-4000-8000-000000000000";
    code.dispatches(&chat, Code::turn_started(turn, "hello")).await;
    let snapshot = code.answer(subscribe).await.expect("subscribed");
    // 9: echoed, or in the snapshot's active turn
    if snapshot["snapshot"]["state"]["activeTurn"]["id"] != turn {
        let echo = code.receive_action("chat/turnStarted").await;
        assert_eq!(echo["action"]["turnId"], turn);
    }
    // 13
    code.dispatches(SESSION, json!({"type": "session/isReadChanged", "isRead": true})).await;
    code.receive_action("chat/turnComplete").await;
    chat
}

fn text_of(turn: &Value) -> String {
    let parts = turn["responseParts"].as_array().cloned().unwrap_or_default();
    let texts = parts.iter().filter(|part| part["kind"] == "markdown");
    texts.filter_map(|part| part["content"].as_str()).collect()
}

// 1 to 10, 13, 15
#[tokio::test]
async fn a_window_opens_a_chat_and_allows_and_denies_a_tool() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Code::opens(&host).await;
    let chat = first_message(&mut code, &host).await;
    // 10
    let call = code.works(&chat, "request_1").await;
    let allow = json!({"approved": true, "confirmed": "user-action", "selectedOptionId": "allow"});
    let seq = code.dispatches(&chat, Code::confirmed(&call, allow)).await;
    assert!(code.outcome(seq).await.get("rejectionReason").is_none());
    code.receive_action("chat/turnComplete").await;
    let call = code.works(&chat, "request_2").await;
    let deny = json!({"approved": false, "reason": "denied"});
    code.dispatches(&chat, Code::confirmed(&call, deny)).await;
    code.receive_action("chat/turnComplete").await;
    let turns = code.state(&chat).await["turns"].clone();
    assert_eq!(text_of(&turns[0]), "hello from the agent");
    assert_eq!(turns[1]["responseParts"][1]["toolCall"]["status"], "completed");
    assert_eq!(turns[2]["responseParts"][1]["toolCall"]["status"], "cancelled");
    assert_eq!(text_of(&turns[2]), "about to AFTER");
    // 13, 15: another window opens what is there, and clears a draft it does not have
    let mut other = Code::opens(&host).await;
    other.name = "window-2";
    other.initializes(&[ROOT]).await;
    let list = other.asks("listSessions", json!({"channel": ROOT})).await.expect("listed");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["items"][0]["resource"], SESSION);
    assert_eq!(other.state(SESSION).await["defaultChat"], chat.as_str());
    assert_eq!(other.state(&chat).await["turns"].as_array().map(Vec::len), Some(3));
    let empty =
        json!({"type": "chat/draftChanged", "draft": {"text": "", "origin": {"kind": "user"}}});
    let seq = other.dispatches(&chat, empty).await;
    assert!(other.outcome(seq).await.get("rejectionReason").is_none());
    host.stop().await;
}

// 11: stop while a confirmation is pending
#[tokio::test]
async fn a_stop_while_a_tool_waits_runs_nothing() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Code::opens(&host).await;
    let chat = first_message(&mut code, &host).await;
    let call = code.works(&chat, "request_1").await;
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "request_1", "duration": 1_234});
    let cancel = code.dispatches(&chat, cancel).await;
    let approve = json!({"approved": true, "confirmed": "user-action"});
    let approve = code.dispatches(&chat, Code::confirmed(&call, approve)).await;
    assert!(code.outcome(cancel).await.get("rejectionReason").is_none());
    assert!(code.outcome(approve).await.get("rejectionReason").is_some());
    // The chat is idle and takes the next message, so nothing of the old turn can come any more.
    code.dispatches(&chat, Code::turn_started("request_2", "hello")).await;
    code.receive_action("chat/turnComplete").await;
    let state = code.state(&chat).await;
    let stopped = &state["turns"][1];
    assert_eq!(stopped["state"], "cancelled");
    let call = &stopped["responseParts"][1]["toolCall"];
    assert_eq!((&call["status"], &call["reason"]), (&json!("cancelled"), &json!("skipped")));
    assert!(!stopped.to_string().contains("REMOVED") && !stopped.to_string().contains("AFTER"));
    let ran = |frame: &Value| frame["params"]["action"]["type"] == "chat/toolCallComplete";
    assert!(!code.inbox.iter().any(ran));
    assert!(code.state(SESSION).await.get("inputNeeded").is_none_or(|all| all == &json!([])));
    host.stop().await;
}

// 12: a message typed while a confirmation is pending
#[tokio::test]
async fn a_message_typed_over_a_question_is_sent_and_the_tool_does_not_run() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Code::opens(&host).await;
    let chat = first_message(&mut code, &host).await;
    let call = code.works(&chat, "request_1").await;
    let cancel = json!({"type": "chat/turnCancelled", "turnId": "request_1", "duration": 1_234});
    code.dispatches(&chat, cancel).await;
    let approve = json!({"approved": true, "confirmed": "user-action"});
    let approve = code.dispatches(&chat, Code::confirmed(&call, approve)).await;
    let message = json!({"text": "rather hello", "origin": {"kind": "user"}});
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "request_2", "message": message});
    code.dispatches(&chat, queued).await;
    assert!(code.outcome(approve).await.get("rejectionReason").is_some());
    let is_it = |frame: &Value| frame["params"]["action"]["queuedMessageId"] == "request_2";
    let started = code.receive("the queued message's turn", is_it).await;
    assert_eq!(started["params"]["action"]["message"]["text"], "rather hello");
    code.receive_action("chat/turnComplete").await;
    let state = code.state(&chat).await;
    assert!(state.get("queuedMessages").is_none_or(|queue| queue == &json!([])));
    assert_eq!(text_of(&state["turns"][2]), "hello from the agent");
    assert!(!state["turns"][1].to_string().contains("REMOVED"));
    host.stop().await;
}

// 16: lost, found; forgotten, begun again on the same socket
#[tokio::test]
async fn a_window_comes_back_without_naming_a_channel() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Code::opens(&host).await;
    let chat = first_message(&mut code, &host).await;
    code.works(&chat, "request_1").await;
    let (last_seen, seq) = (code.last_seen, code.next_seq);
    drop(code);
    let back = |client: &str| json!({"clientId": client, "lastSeenServerSeq": last_seen, "subscriptions": [ROOT, SESSION, chat]});
    // One that the host does not know begins again on the same socket, with all it watched.
    let mut other = Code::opens(&host).await;
    other.name = "window-0";
    let forgotten = other.asks("reconnect", back("window-0")).await.expect_err("it is unknown");
    assert_eq!(forgotten["code"], -32008);
    let result = other.initializes(&[ROOT, SESSION, &chat]).await;
    assert_eq!(result["snapshots"].as_array().map(Vec::len), Some(3));
    let mut code = Code::opens(&host).await;
    let answer = code.asks("reconnect", back("window-1")).await.expect("reconnect");
    assert_eq!((&answer["type"], &answer["missing"]), (&json!("replay"), &json!([])));
    code.next_seq = seq;
    let state = code.state(&chat).await;
    let call = state["activeTurn"]["responseParts"][1]["toolCall"].clone();
    assert_eq!(call["status"], "pending-confirmation");
    let named = json!({"turnId": "request_1", "toolCallId": call["toolCallId"]});
    let allow = json!({"approved": true, "confirmed": "user-action", "selectedOptionId": "allow"});
    code.dispatches(&chat, Code::confirmed(&named, allow)).await;
    code.receive_action("chat/turnComplete").await;
    // Over a restart of the host as well; the turn that ran is over, and says so.
    code.works(&chat, "request_2").await;
    let last_seen = code.last_seen;
    drop(code);
    let port = host.url.clone();
    host.stop().await;
    let host = TestHost::start(data.path(), &script()).await;
    assert_ne!(host.url, port);
    let mut code = Code::opens(&host).await;
    let params = json!({"clientId": "window-1", "lastSeenServerSeq": last_seen, "subscriptions": [ROOT, SESSION, chat]});
    let answer = code.asks("reconnect", params).await.expect("reconnect");
    assert_eq!(answer["type"], "replay");
    let ended = answer["actions"].as_array().is_some_and(|actions| {
        actions.iter().any(|envelope| envelope["action"]["type"] == "chat/error")
    });
    assert!(ended, "{answer}");
    host.stop().await;
}

// 19: whole numbers and numbers come as texts
#[tokio::test]
async fn numbers_that_come_as_texts_are_taken_as_numbers() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Code::opens(&host).await;
    let chat = first_message(&mut code, &host).await;
    code.dispatches(&chat, Code::turn_started("request_1", "ask")).await;
    let asked = code.receive_action("chat/inputRequested").await["action"].clone();
    let completed = |i: &str| {
        let value = |kind: &str, value: Value| json!({"state": "submitted", "value": {"kind": kind, "value": value}});
        json!({"type": "chat/inputCompleted", "requestId": asked["request"]["id"], "response": "accept",
            "answers": {"i": value("text", json!(i)), "n": value("text", json!("2.5")), "b": value("boolean", json!(true))}})
    };
    let wrong = code.dispatches(&chat, completed("three")).await;
    let refused = code.outcome(wrong).await["rejectionReason"].clone();
    let refused = refused.as_str().unwrap_or("");
    assert!(refused.contains("`i`") && refused.contains("whole number"), "{refused}");
    let right = code.dispatches(&chat, completed("3")).await;
    let echo = code.outcome(right).await["action"].clone();
    assert_eq!(echo["answers"]["i"]["value"], json!({"kind": "number", "value": 3}));
    assert_eq!(echo["answers"]["n"]["value"], json!({"kind": "number", "value": 2.5}));
    code.receive_action("chat/turnComplete").await;
    let state = code.state(&chat).await;
    let said = text_of(&state["turns"][1]);
    assert!(said.contains(r#""value":3"#), "{said}");
    host.stop().await;
}
