//! What VS Code really sends (protocol 0.9.0), frame by frame, to a real host: its stops, its typing over a question, its
//! repeated and unknown settings, its way back after a lost connection.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use std::collections::VecDeque;
use std::time::Duration;

use ahp_types_09::actions::StateAction;
use conformance::TestHost;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const DEADLINE: Duration = Duration::from_secs(60);
const ROOT: &str = "ahp-root://";
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
        {"steps": [{"say": ["hello from the agent"]}]},
    ]})
}

/// One window of the editor: a socket, and frames that were not read yet.
struct Code {
    name: &'static str,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    inbox: VecDeque<Value>,
    next_id: u64,
    next_seq: u64,
    last_seen: u64,
}

impl Code {
    async fn opens(host: &TestHost) -> Self {
        let mut request = host.url.as_str().into_client_request().expect("a URL");
        let offer = "permessage-deflate; client_max_window_bits";
        let headers = request.headers_mut();
        headers.insert("Sec-WebSocket-Extensions", HeaderValue::from_static(offer));
        let (socket, response) = connect_async(request).await.expect("the socket opens");
        let taken = response.headers().get("Sec-WebSocket-Extensions");
        assert!(taken.is_none(), "compression is declined (G-25)");
        Self {
            name: "window-1",
            socket,
            inbox: VecDeque::new(),
            next_id: 0,
            next_seq: 0,
            last_seen: 0,
        }
    }

    async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.expect("it can be sent");
    }

    async fn asks(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.requests(method, params).await;
        self.answer(id).await
    }

    async fn requests(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let frame = self.receive("an answer", |frame| frame["id"] == id).await;
        match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        }
    }

    async fn dispatches(&mut self, channel: &str, action: Value) -> u64 {
        self.next_seq += 1;
        let seq = self.next_seq;
        self.dispatches_as(channel, seq, action).await;
        seq
    }

    async fn dispatches_as(&mut self, channel: &str, seq: u64, action: Value) {
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
            .await;
    }

    /// The next frame that is the one; others stay for later.
    async fn receive(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.inbox.iter().position(&is_it) {
            return self.inbox.remove(index).expect("it is there");
        }
        let wait = async {
            loop {
                let message = self
                    .socket
                    .next()
                    .await
                    .expect("the socket stays")
                    .expect("a message");
                let Message::Text(text) = message else {
                    continue;
                };
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                self.notes(&frame);
                if is_it(&frame) {
                    return frame;
                }
                self.inbox.push_back(frame);
            }
        };
        match timeout(DEADLINE, wait).await {
            Ok(frame) => frame,
            Err(_) => panic!("waited in vain for {what}"),
        }
    }

    /// What an older client must never get, and where it stands.
    fn notes(&mut self, frame: &Value) {
        let Some("action") = frame["method"].as_str() else {
            return;
        };
        let envelope = &frame["params"];
        if envelope.get("rejectionReason").is_none() {
            self.last_seen = self
                .last_seen
                .max(envelope["serverSeq"].as_u64().unwrap_or(0));
        }
        let action: StateAction =
            serde_json::from_value(envelope["action"].clone()).expect("an action");
        assert!(
            !matches!(action, StateAction::Unknown(_)),
            "not of 0.9: {envelope}"
        );
    }

    async fn receive_action(&mut self, kind: &str) -> Value {
        let is_it = |frame: &Value| frame["params"]["action"]["type"] == kind;
        self.receive(kind, is_it).await["params"].clone()
    }

    /// The echo or the refusal of its own action.
    async fn outcome(&mut self, seq: u64) -> Value {
        let name = self.name;
        let is_it = |frame: &Value| {
            let origin = &frame["params"]["origin"];
            origin["clientId"] == name && origin["clientSeq"] == seq
        };
        self.receive("an outcome", is_it).await["params"].clone()
    }

    async fn state(&mut self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result.expect("subscribed")["snapshot"]["state"].clone()
    }

    // 2: the first message
    async fn initializes(&mut self, subscriptions: &[&str]) -> Value {
        let params = json!({
            "channel": ROOT,
            "protocolVersions": ["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"],
            "clientId": self.name,
            "clientInfo": {"name": "vscode-editor-window", "version": "1.139.0"},
            "initialSubscriptions": subscriptions,
            "_meta": {"vscode.windowId": 1, "vscode.machine": {"os": "linux"}},
        });
        let result = self.asks("initialize", params).await.expect("initialize");
        assert_eq!(result["protocolVersion"], "0.9.0");
        result
    }

    // 7: what the window can do
    async fn offers_tools(&mut self, session: &str) {
        let tools: Vec<Value> = (0..7)
            .map(|n| {
                let schema = json!({"type": "object", "description": "x".repeat(1_000)});
                json!({"name": format!("vscode_tool_{n}"), "description": "a tool", "inputSchema": schema})
            })
            .collect();
        for known in [2, 5, 7] {
            let entry = json!({"clientId": self.name, "displayName": "VS Code", "tools": tools[..known],
                "customizations": []});
            let action = json!({"type": "session/activeClientSet", "activeClient": entry});
            self.dispatches(session, action).await;
        }
    }

    fn turn_started(turn: &str, text: &str) -> Value {
        json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}, "attachments": []}})
    }

    /// Starts a turn that asks for leave; the call that waits.
    async fn works(&mut self, chat: &str, turn: &str) -> Value {
        self.dispatches(chat, Self::turn_started(turn, "work"))
            .await;
        let start = self.receive_action("chat/toolCallStart").await;
        let ready = self.receive_action("chat/toolCallReady").await["action"].clone();
        assert_eq!(
            ready["options"][0]["label"], "Allow",
            "labels become buttons"
        );
        assert!(ready.get("confirmed").is_none());
        start["action"].clone()
    }

    fn confirmed(call: &Value, more: Value) -> Value {
        let mut action = json!({"type": "chat/toolCallConfirmed", "turnId": call["turnId"],
            "toolCallId": call["toolCallId"]});
        for (field, value) in more.as_object().into_iter().flatten() {
            action[field] = value.clone();
        }
        action
    }
}

/// Everything up to the first message of a new chat (2 to 9); the chat.
#[expect(clippy::too_many_lines, reason = "one story, in its order")]
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
    assert_eq!(
        code.asks("ping", json!({"channel": ROOT})).await,
        Ok(Value::Null)
    );
    let refused = |frame: &Value| frame["params"].get("rejectionReason").is_some();
    assert!(!code.inbox.iter().any(refused), "{:?}", code.inbox);
    // 6: an agent is picked
    for _ in 0..5 {
        let params = json!({"channel": ROOT, "provider": "scripted", "workingDirectory": directory, "config": {}});
        let resolved = code
            .asks("resolveSessionConfig", params)
            .await
            .expect("a schema");
        assert!(resolved["schema"].is_object(), "{resolved}");
    }
    let create = |session: &str| {
        json!({"channel": session, "provider": "scripted", "workingDirectories": [directory],
            "config": {"isolation": "none", "autoApprove": false, "mode": "agent"}, "progressToken": session})
    };
    assert_eq!(
        code.asks("createSession", create(OLD)).await,
        Ok(Value::Null)
    );
    // 7: before it subscribes
    code.offers_tools(OLD).await;
    // 8: Enter
    assert_eq!(
        code.asks("createSession", create(SESSION)).await,
        Ok(Value::Null)
    );
    code.offers_tools(SESSION).await;
    assert_eq!(
        code.asks("disposeSession", json!({"channel": OLD})).await,
        Ok(Value::Null)
    );
    let session = code.state(SESSION).await;
    assert_eq!(
        session["activeClients"][0]["tools"]
            .as_array()
            .map(Vec::len),
        Some(7)
    );
    let chat = session["defaultChat"]
        .as_str()
        .expect("a default chat")
        .to_owned();
    // One tick: subscribe and the first turn.
    let subscribe = code.requests("subscribe", json!({"channel": chat})).await;
    let turn = "request_33333333-0000-4000-8000-000000000000";
    code.dispatches(&chat, Code::turn_started(turn, "hello"))
        .await;
    let snapshot = code.answer(subscribe).await.expect("subscribed");
    // 9: echoed, or in the snapshot's active turn
    if snapshot["snapshot"]["state"]["activeTurn"]["id"] != turn {
        let echo = code.receive_action("chat/turnStarted").await;
        assert_eq!(echo["action"]["turnId"], turn);
    }
    // 13
    code.dispatches(
        SESSION,
        json!({"type": "session/isReadChanged", "isRead": true}),
    )
    .await;
    code.receive_action("chat/turnComplete").await;
    chat
}

fn text_of(turn: &Value) -> String {
    let parts = turn["responseParts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
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
    assert_eq!(
        turns[1]["responseParts"][1]["toolCall"]["status"],
        "completed"
    );
    assert_eq!(
        turns[2]["responseParts"][1]["toolCall"]["status"],
        "cancelled"
    );
    assert_eq!(text_of(&turns[2]), "about to AFTER");
    // 13, 15: another window opens what is there, and clears a draft it does not have
    let mut other = Code::opens(&host).await;
    other.name = "window-2";
    other.initializes(&[ROOT]).await;
    let list = other
        .asks("listSessions", json!({"channel": ROOT}))
        .await
        .expect("listed");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["items"][0]["resource"], SESSION);
    assert_eq!(other.state(SESSION).await["defaultChat"], chat.as_str());
    assert_eq!(
        other.state(&chat).await["turns"].as_array().map(Vec::len),
        Some(3)
    );
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
    let approve = code
        .dispatches(&chat, Code::confirmed(&call, approve))
        .await;
    assert!(code.outcome(cancel).await.get("rejectionReason").is_none());
    assert!(code.outcome(approve).await.get("rejectionReason").is_some());
    // The chat is idle and takes the next message, so nothing of the old turn can come any more.
    code.dispatches(&chat, Code::turn_started("request_2", "hello"))
        .await;
    code.receive_action("chat/turnComplete").await;
    let state = code.state(&chat).await;
    let stopped = &state["turns"][1];
    assert_eq!(stopped["state"], "cancelled");
    let call = &stopped["responseParts"][1]["toolCall"];
    assert_eq!(
        (&call["status"], &call["reason"]),
        (&json!("cancelled"), &json!("skipped"))
    );
    assert!(!stopped.to_string().contains("REMOVED") && !stopped.to_string().contains("AFTER"));
    let ran = |frame: &Value| frame["params"]["action"]["type"] == "chat/toolCallComplete";
    assert!(!code.inbox.iter().any(ran));
    assert!(
        code.state(SESSION)
            .await
            .get("inputNeeded")
            .is_none_or(|all| all == &json!([]))
    );
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
    let approve = code
        .dispatches(&chat, Code::confirmed(&call, approve))
        .await;
    let message = json!({"text": "rather hello", "origin": {"kind": "user"}});
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "request_2", "message": message});
    code.dispatches(&chat, queued).await;
    assert!(code.outcome(approve).await.get("rejectionReason").is_some());
    let is_it = |frame: &Value| frame["params"]["action"]["queuedMessageId"] == "request_2";
    let started = code.receive("the queued message's turn", is_it).await;
    assert_eq!(
        started["params"]["action"]["message"]["text"],
        "rather hello"
    );
    code.receive_action("chat/turnComplete").await;
    let state = code.state(&chat).await;
    assert!(
        state
            .get("queuedMessages")
            .is_none_or(|queue| queue == &json!([]))
    );
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
    let forgotten = other
        .asks("reconnect", back("window-0"))
        .await
        .expect_err("it is unknown");
    assert_eq!(forgotten["code"], -32008);
    let result = other.initializes(&[ROOT, SESSION, &chat]).await;
    assert_eq!(result["snapshots"].as_array().map(Vec::len), Some(3));
    let mut code = Code::opens(&host).await;
    let answer = code
        .asks("reconnect", back("window-1"))
        .await
        .expect("reconnect");
    assert_eq!(
        (&answer["type"], &answer["missing"]),
        (&json!("replay"), &json!([]))
    );
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
        actions
            .iter()
            .any(|envelope| envelope["action"]["type"] == "chat/error")
    });
    assert!(ended, "{answer}");
    host.stop().await;
}
