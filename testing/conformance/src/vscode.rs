//! One window of VS Code: the frames it sends in its own protocol version, and what it must never get.

use std::collections::VecDeque;
use std::time::Duration;

use ahp_types_09::actions::StateAction;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::TestHost;

const DEADLINE: Duration = Duration::from_secs(60);
pub const ROOT: &str = "ahp-root://";

/// One window of the editor: a socket, and frames that were not read yet.
#[derive(Debug)]
pub struct Code {
    pub name: &'static str,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub inbox: VecDeque<Value>,
    next_id: u64,
    pub next_seq: u64,
    pub last_seen: u64,
}

impl Code {
    pub async fn opens(host: &TestHost) -> Self {
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

    pub async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.expect("it can be sent");
    }

    pub async fn asks(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.requests(method, params).await;
        self.answer(id).await
    }

    pub async fn requests(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let frame = self.receive("an answer", |frame| frame["id"] == id).await;
        match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        }
    }

    pub async fn dispatches(&mut self, channel: &str, action: Value) -> u64 {
        self.next_seq += 1;
        let seq = self.next_seq;
        self.dispatches_as(channel, seq, action).await;
        seq
    }

    pub async fn dispatches_as(&mut self, channel: &str, seq: u64, action: Value) {
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
    }

    /// The next frame that is the one; others stay for later.
    pub async fn receive(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.inbox.iter().position(&is_it) {
            return self.inbox.remove(index).expect("it is there");
        }
        let wait = async {
            loop {
                let message =
                    self.socket.next().await.expect("the socket stays").expect("a message");
                let Message::Text(text) = message else { continue };
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
        let Some("action") = frame["method"].as_str() else { return };
        let envelope = &frame["params"];
        if envelope.get("rejectionReason").is_none() {
            self.last_seen = self.last_seen.max(envelope["serverSeq"].as_u64().unwrap_or(0));
        }
        let action: StateAction =
            serde_json::from_value(envelope["action"].clone()).expect("an action");
        assert!(!matches!(action, StateAction::Unknown(_)), "not of 0.9: {envelope}");
    }

    pub async fn receive_action(&mut self, kind: &str) -> Value {
        let is_it = |frame: &Value| frame["params"]["action"]["type"] == kind;
        self.receive(kind, is_it).await["params"].clone()
    }

    /// The echo or the refusal of its own action.
    pub async fn outcome(&mut self, seq: u64) -> Value {
        let name = self.name;
        let is_it = |frame: &Value| {
            let origin = &frame["params"]["origin"];
            origin["clientId"] == name && origin["clientSeq"] == seq
        };
        self.receive("an outcome", is_it).await["params"].clone()
    }

    pub async fn state(&mut self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result.expect("subscribed")["snapshot"]["state"].clone()
    }

    // 2: the first message
    pub async fn initializes(&mut self, subscriptions: &[&str]) -> Value {
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
    pub async fn offers_tools(&mut self, session: &str) {
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

    pub fn turn_started(turn: &str, text: &str) -> Value {
        json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}, "attachments": []}})
    }

    /// Starts a turn that asks for leave; the call that waits.
    pub async fn works(&mut self, chat: &str, turn: &str) -> Value {
        self.dispatches(chat, Self::turn_started(turn, "work")).await;
        let start = self.receive_action("chat/toolCallStart").await;
        let ready = self.receive_action("chat/toolCallReady").await["action"].clone();
        assert_eq!(ready["options"][0]["label"], "Allow", "labels become buttons");
        assert!(ready.get("confirmed").is_none());
        start["action"].clone()
    }

    pub fn confirmed(call: &Value, more: Value) -> Value {
        let mut action = json!({"type": "chat/toolCallConfirmed", "turnId": call["turnId"],
            "toolCallId": call["toolCallId"]});
        for (field, value) in more.as_object().into_iter().flatten() {
            action[field] = value.clone();
        }
        action
    }
}
