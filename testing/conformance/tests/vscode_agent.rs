//! VS Code and the native agent (protocol 0.9.0), frame by frame, with a real host and a model server: the chip for
//! approvals, the editor's own tools, what is drawn of tool calls, usage and notices.

use std::time::Duration;

use ahp_types_09::actions::StateAction;
use ahp_types_09::commands::ResolveSessionConfigResult;
use ahp_types_09::state::UsageInfo;
use conformance::native::{NativeHarness, bash, ends};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const DEADLINE: Duration = Duration::from_secs(60);
const SESSION: &str = "native:/33333333-0000-4000-8000-000000000000";
const CLIENT: &str = "window-of-vscode";

/// Keys for which VS Code draws no chip, or one of its own.
const KEYS_WITHOUT_CHIP: [&str; 6] =
    ["mode", "autoApprove", "isolation", "branch", "permissions", "permissionMode"];

/// One window of the editor.
struct Window {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next: u64,
    /// Actions of the host that were read, oldest first.
    actions: Vec<Value>,
    chat: String,
}

impl Window {
    /// Connects, picks the agent and creates a session with the editor's tools, as it does when a chat is opened.
    async fn opens(harness: &NativeHarness) -> Self {
        let (socket, _) = connect_async(&harness.host().url).await.expect("a socket");
        let mut window = Self { socket, next: 0, actions: Vec::new(), chat: String::new() };
        let versions = ["0.9.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1"];
        window
            .asks(
                "initialize",
                json!({
                    "channel": "ahp-root://", "clientId": CLIENT, "protocolVersions": versions,
                    "clientInfo": {"name": "vscode-editor-window", "version": "1.139.0"},
                    "initialSubscriptions": ["ahp-root://"],
                }),
            )
            .await;
        let work = format!("file://{}", harness.work().display());
        window
            .asks(
                "createSession",
                json!({
                    "channel": SESSION, "provider": "native", "workingDirectories": [work],
                    "config": {"isolation": "folder", "autoApprove": "default", "mode": "interactive"},
                }),
            )
            .await;
        // Twice, and before it subscribes: tools register in a burst.
        for tools in [json!([]), editor_tools()] {
            let entry = json!({"clientId": CLIENT, "displayName": "VS Code", "tools": tools});
            let set = json!({"type": "session/activeClientSet", "activeClient": entry});
            window.dispatches(SESSION, set).await;
        }
        let session = window.asks("subscribe", json!({"channel": SESSION})).await;
        let chat = &session["snapshot"]["state"]["defaultChat"];
        window.chat = chat.as_str().expect("a chat").to_owned();
        window
    }

    async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.expect("it can be sent");
    }

    async fn asks(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let frame = self.receives().await;
            if frame["id"] == id {
                assert!(frame.get("error").is_none(), "{method}: {frame}");
                return frame["result"].clone();
            }
        }
    }

    async fn dispatches(&mut self, channel: &str, action: Value) {
        self.next += 1;
        let params = json!({"channel": channel, "clientSeq": self.next, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
    }

    /// The next frame. Everything that is an action must be one that it knows.
    async fn receives(&mut self) -> Value {
        loop {
            let message = timeout(DEADLINE, self.socket.next())
                .await
                .expect("something comes")
                .expect("it goes on");
            let Message::Text(text) = message.expect("a frame") else { continue };
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            if frame["method"] == "action" {
                let envelope = &frame["params"];
                let rejection = &envelope["rejectionReason"];
                assert!(rejection.is_null(), "{envelope}");
                let action = serde_json::from_value(envelope["action"].clone());
                let action: StateAction = action.expect("an action");
                assert!(!matches!(action, StateAction::Unknown(_)), "{envelope}");
                self.actions.push(envelope["action"].clone());
            }
            return frame;
        }
    }

    /// The first action since `from` that is the one.
    async fn until(&mut self, from: usize, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.actions[from..].iter().find(|action| is_it(action));
            if let Some(found) = found {
                return found.clone();
            }
            self.receives().await;
        }
    }

    /// Subscribes to the chat and starts a turn in one tick.
    async fn submits(&mut self, text: &str) {
        let chat = self.chat.clone();
        self.next += 1;
        let (id, params) = (self.next, json!({"channel": chat}));
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": "subscribe", "params": params}))
            .await;
        let turn = format!("request_{id}");
        let message = json!({"text": text, "origin": {"kind": "user"}});
        let started = json!({
            "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00Z", "message": message,
        });
        self.dispatches(&chat, started).await;
    }

    /// What was read since then, by its type.
    fn of_type(&self, from: usize, name: &str) -> Vec<Value> {
        let actions = self.actions[from..].iter();
        actions.filter(|action| action["type"] == name).cloned().collect()
    }

    async fn presses(&mut self, ready: &Value, option: &str) {
        let chat = self.chat.clone();
        let confirmed = json!({
            "type": "chat/toolCallConfirmed", "turnId": ready["turnId"], "toolCallId": ready["toolCallId"],
            "approved": true, "confirmed": "user-action", "selectedOptionId": option,
        });
        self.dispatches(&chat, confirmed).await;
    }
}

fn editor_tools() -> Value {
    let schema = json!({"type": "object", "properties": {"symbol": {"type": "string"}}});
    let names = [
        "listCodeUsages",
        "rename",
        "runTask",
        "getTaskOutput",
        "problems",
        "vscode.api/search",
        "bash",
    ];
    let tools = names.map(|name| {
        json!({"name": name, "title": name, "description": "Of the editor.", "inputSchema": schema})
    });
    json!(tools)
}

fn is_end(action: &Value) -> bool {
    action["type"] == "chat/turnComplete"
}

#[tokio::test]
async fn approvals_are_a_chip_with_labels_and_count_from_the_next_call() {
    let harness = NativeHarness::start().await;
    let mut window = Window::opens(&harness).await;
    let work = format!("file://{}", harness.work().display());
    let params = json!({
        "channel": "ahp-root://", "provider": "native", "workingDirectory": work,
        "config": {"isolation": "folder", "autoApprove": "default", "mode": "interactive"},
    });
    let resolved = window.asks("resolveSessionConfig", params).await;
    let typed: ResolveSessionConfigResult = serde_json::from_value(resolved.clone()).unwrap();
    drop(typed);
    let values = json!({"isolation": "folder", "approvals": "ask"});
    assert_eq!(resolved["values"], values);
    let properties = resolved["schema"]["properties"].as_object().unwrap();
    // These two have pickers of their own.
    let chips =
        properties.iter().filter(|(key, _)| !matches!(key.as_str(), "isolation" | "branch"));
    for (key, property) in chips {
        assert!(!KEYS_WITHOUT_CHIP.contains(&key.as_str()), "{key}");
        // It draws no chip for a number, and leaves it as it is.
        let values = property["enum"].as_array().map(Vec::len);
        assert!(values.is_some() || property["type"] == "number", "{key}");
        for texts in ["enumLabels", "enumDescriptions"] {
            assert_eq!(property[texts].as_array().map(Vec::len), values);
        }
        assert_eq!(property["sessionMutable"], true);
    }
    harness.model.answers([
        Answer::calls([bash("touch asked.txt")]),
        Answer::calls([bash("touch planned.txt")]),
        ends(),
    ]);
    window.submits("go on").await;
    let asks = |action: &Value| {
        action["type"] == "chat/toolCallReady" && action.get("confirmed").is_none()
    };
    let ready = window.until(0, asks).await;
    let planning = json!({"type": "session/configChanged", "config": {"approvals": "plan"}});
    window.dispatches(SESSION, planning).await;
    window.until(0, |action| action["type"] == "session/configChanged").await;
    window.presses(&ready, "approve").await;
    window.until(0, is_end).await;
    for name in ["asked.txt", "planned.txt"] {
        assert!(!harness.work().join(name).exists(), "{name}");
    }
    let results = harness.last_results();
    assert!(results.iter().all(|text| text.contains("only reads")), "{results:?}");
}

#[tokio::test]
async fn the_editors_tools_are_offered_asked_about_and_carried_out_by_it() {
    let harness = NativeHarness::start().await;
    let mut window = Window::opens(&harness).await;
    let input = json!({"symbol": "main"});
    harness.model.answers([
        Answer::calls([Call::new("u", "listCodeUsages", &input)]).with_usage(100, 20),
        ends().with_usage(150, 7),
    ]);
    window.submits("who uses main?").await;
    let start = window.until(0, |action| action["type"] == "chat/toolCallStart").await;
    assert_eq!(start["toolName"], "listCodeUsages");
    assert_eq!(start["contributor"], json!({"kind": "client", "clientId": CLIENT}));
    let ready = window.until(0, |action| action["type"] == "chat/toolCallReady").await;
    assert!(ready.get("confirmed").is_none(), "{ready}");
    let labels = ready["options"].as_array().unwrap().iter();
    assert!(labels.clone().all(|option| option["label"].is_string()));
    window.presses(&ready, "approve").await;
    let running = window
        .until(0, |action| {
            action["type"] == "session/inputNeededSet"
                && action["request"]["kind"] == "toolClientExecution"
        })
        .await;
    assert_eq!(running["request"]["toolCall"]["status"], "running");
    let chat = window.chat.clone();
    let complete = json!({
        "type": "chat/toolCallComplete", "turnId": ready["turnId"], "toolCallId": ready["toolCallId"],
        "result": {"success": true, "pastTenseMessage": "Found 2 usages",
            "content": [{"type": "text", "text": "a.rs:1, b.rs:2"}]},
    });
    window.dispatches(&chat, complete).await;
    window.until(0, is_end).await;
    assert_eq!(harness.last_results(), ["a.rs:1, b.rs:2"]);
    let request = harness.model.requests()[0].json();
    let tools = request["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    let own = [
        "read",
        "view_image",
        "list",
        "glob",
        "grep",
        "write",
        "edit",
        "bash",
        "bash_output",
        "bash_kill",
        "web_fetch",
        "todo",
        "ask_user",
        "task",
    ];
    assert_eq!(names[..own.len()], own);
    assert_eq!(names.len(), own.len() + 6, "its `bash` is not offered: {names:?}");
    // Usage: the last call is what is shown as the context in use.
    let usage = window.of_type(0, "chat/usage").pop().unwrap()["usage"].clone();
    let typed: UsageInfo = serde_json::from_value(usage.clone()).unwrap();
    assert_eq!((typed.input_tokens, typed.output_tokens), (Some(150), Some(7)));
    assert_eq!(usage["_meta"]["turn"], json!({"inputTokens": 250, "outputTokens": 27}));
    assert_eq!(usage["_meta"]["contextUsed"], 157);
}

#[tokio::test]
async fn calls_say_what_kind_they_are_and_notices_do_not_fold() {
    let harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let mut window = Window::opens(&harness).await;
    let full = json!({"type": "session/configChanged", "config": {"approvals": "full-access"}});
    window.dispatches(SESSION, full).await;
    harness.model.answers([
        Answer::streams(["First."]).then_calls([
            Call::new("r", "read", &json!({"path": "a.txt"})),
            Call::new("g", "grep", &json!({"pattern": "one"})),
        ]),
        Answer::calls([bash("echo x")]),
        Answer::streams(["Then."]),
    ]);
    window.submits("look").await;
    window.until(0, is_end).await;
    for name in ["chat/toolCallStart", "chat/toolCallReady"] {
        let actions = window.of_type(0, name);
        let kinds: Vec<&Value> =
            actions.iter().map(|action| &action["_meta"]["toolKind"]).collect();
        let mut kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str().unwrap()).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, ["read", "search", "terminal"], "{name}");
    }
    // No two parts of Markdown stand side by side: they would be glued.
    let parts: Vec<&str> = window
        .actions
        .iter()
        .filter_map(|action| match action["type"].as_str().unwrap_or("") {
            "chat/responsePart" => action["part"]["kind"].as_str(),
            "chat/toolCallStart" => Some("toolCall"),
            _ => None,
        })
        .collect();
    assert!(!parts.windows(2).any(|pair| pair == ["markdown", "markdown"]), "{parts:?}");
    let from = window.actions.len();
    window.submits("/help").await;
    window.until(from, is_end).await;
    let part = window.of_type(from, "chat/responsePart").pop().unwrap();
    assert_eq!(part["part"]["kind"], "systemNotification");
    let text = part["part"]["content"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        let folds = !pair[0].is_empty() && !pair[1].is_empty() && !pair[1].starts_with("- ");
        assert!(!folds, "{pair:?}");
    }
}
