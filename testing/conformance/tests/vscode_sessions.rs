//! What VS Code does with sessions (protocol 0.9.0), frame by frame, to a real host: sessions made for empty chats, rows of
//! sessions that are gone, folders that the host may not work in.

use std::collections::VecDeque;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use ahp_types_09::actions::StateAction;
use conformance::TestHost;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const DEADLINE: Duration = Duration::from_secs(60);
const ROOT: &str = "ahp-root://";
const SESSION: &str = "scripted:/33333333-0000-4000-8000-000000000000";

fn script() -> Value {
    json!({"scenes": [{"steps": [{"say": ["hello from the agent"]}]}]})
}

/// One window of the editor: a socket, and frames that were not read yet.
struct Window {
    name: &'static str,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    inbox: VecDeque<Value>,
    sent: u64,
}

impl Window {
    async fn opens(host: &TestHost, name: &'static str) -> Self {
        let (socket, _) = connect_async(&host.url).await.unwrap();
        let mut window = Self { name, socket, inbox: VecDeque::new(), sent: 0 };
        let params = json!({
            "channel": ROOT, "protocolVersions": ["0.9.0", "0.7.0"], "clientId": name,
            "clientInfo": {"name": "vscode-editor-window"}, "initialSubscriptions": [ROOT],
        });
        window.asks("initialize", params).await.unwrap();
        window
    }

    async fn sends(&mut self, message: Value) {
        let text = Message::text(message.to_string());
        self.socket.send(text).await.unwrap();
    }

    async fn asks(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.sent += 1;
        let id = self.sent;
        self.sends(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let frame = self.receive(method, |frame| frame["id"] == id).await;
        match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        }
    }

    /// The next frame that is the one; others stay for later. Whatever comes is of 0.9.
    async fn receive(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.inbox.iter().position(&is_it) {
            return self.inbox.remove(index).unwrap();
        }
        let wait = async {
            loop {
                let Message::Text(text) = self.socket.next().await.unwrap().unwrap() else {
                    continue;
                };
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["method"] == "action" {
                    let action = frame["params"]["action"].clone();
                    let action: StateAction = serde_json::from_value(action).unwrap();
                    assert!(!matches!(action, StateAction::Unknown(_)), "{frame}");
                }
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

    /// Dispatches an action; its echo or its refusal.
    async fn does(&mut self, channel: &str, action: Value) -> Value {
        self.sent += 1;
        let (seq, name) = (self.sent, self.name);
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        self.sends(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})).await;
        let is_it = |frame: &Value| {
            let origin = &frame["params"]["origin"];
            origin["clientId"] == name && origin["clientSeq"] == seq
        };
        self.receive("an outcome", is_it).await["params"].clone()
    }

    async fn creates(&mut self, more: Value) -> Result<Value, Value> {
        let mut params = json!({"channel": SESSION, "provider": "scripted", "progressToken": "p",
            "config": {"isolation": "none", "autoApprove": "default", "mode": "interactive"}});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.asks("createSession", params).await
    }

    async fn state(&mut self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result.unwrap()["snapshot"]["state"].clone()
    }

    /// Starts a turn in the session's chat; how it ends.
    async fn talks(&mut self, turn: &str) -> Value {
        let chat = chat();
        self.state(&chat).await;
        let echo = self.does(&chat, turn_started(turn)).await;
        assert!(echo.get("rejectionReason").is_none(), "{echo}");
        let is_end = |frame: &Value| {
            let action = &frame["params"]["action"];
            let ends = ["chat/turnComplete", "chat/error", "chat/turnCancelled"];
            action["turnId"] == turn && ends.iter().any(|end| action["type"] == *end)
        };
        self.receive("the end of the turn", is_end).await["params"]["action"].clone()
    }

    /// Everything that came so far, and was not waited for.
    async fn others(&mut self) -> Vec<String> {
        self.asks("ping", json!({"channel": ROOT})).await.unwrap();
        let frames = self.inbox.drain(..);
        frames.map(|frame| frame["method"].as_str().unwrap_or("").to_owned()).collect()
    }

    async fn listed(&mut self) -> usize {
        let list = self.asks("listSessions", json!({"channel": ROOT})).await;
        list.unwrap()["items"].as_array().unwrap().len()
    }
}

fn chat() -> String {
    testkit::default_chat(SESSION)
}

fn turn_started(turn: &str) -> Value {
    json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "hi", "origin": {"kind": "user"}, "attachments": []}})
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

// 18: a session is made for every empty chat; nobody else is told before its first turn
#[tokio::test]
async fn a_session_made_for_an_empty_chat_is_announced_with_its_first_turn() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Window::opens(&host, "window-1").await;
    let mut other = Window::opens(&host, "window-2").await;
    let directories = json!({"workingDirectories": [uri(data.path())]});
    code.creates(directories).await.unwrap();
    code.state(SESSION).await;
    code.state(&chat()).await;
    let entry = json!({"clientId": "window-1", "tools": [], "customizations": []});
    let active = json!({"type": "session/activeClientSet", "activeClient": entry});
    code.does(SESSION, active).await;
    let empty =
        json!({"type": "chat/draftChanged", "draft": {"text": "", "origin": {"kind": "user"}}});
    code.does(&chat(), empty).await;
    assert_eq!(other.others().await, [""; 0], "nobody is told");
    assert_eq!((code.listed().await, other.listed().await), (0, 0));

    let end = code.talks("request_1").await;
    assert_eq!(end["type"], "chat/turnComplete", "{end}");
    let is_added = |frame: &Value| frame["method"] == "root/sessionAdded";
    let added = other.receive("the session", is_added).await;
    assert_eq!(added["params"]["summary"]["resource"], SESSION);
    assert_eq!(other.listed().await, 1);
    host.stop().await;
}

// 18: the row of an unused session is clicked
#[tokio::test]
async fn a_view_of_a_session_that_is_gone_is_told_so_and_can_make_it_again() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut code = Window::opens(&host, "window-1").await;
    let directories = json!({"workingDirectories": [uri(data.path())]});
    code.creates(directories).await.unwrap();
    let disposed = code.asks("disposeSession", json!({"channel": SESSION}));
    assert_eq!(disposed.await, Ok(Value::Null));
    for channel in [SESSION.to_owned(), chat()] {
        let gone = code.asks("subscribe", json!({"channel": channel})).await;
        let code = gone.unwrap_err()["code"].as_i64().unwrap();
        assert!(matches!(code, -32001 | -32008), "G-23: {code}");
    }
    let entry = json!({"clientId": "window-1", "tools": [], "customizations": []});
    for (channel, action) in [
        (SESSION, json!({"type": "session/activeClientSet", "activeClient": entry})),
        (&chat(), turn_started("request_1")),
        ("vscode-chat:/nobody", turn_started("request_1")),
        ("scripted:/never", json!({"type": "session/isReadChanged", "isRead": true})),
    ] {
        let refused = code.does(channel, action).await;
        let reason = refused["rejectionReason"].as_str().unwrap();
        assert!(reason.contains(channel), "{reason}");
        assert_eq!(refused["channel"], channel);
    }

    code.creates(json!({})).await.unwrap();
    let root = data.path().canonicalize().unwrap();
    let state = code.state(SESSION).await;
    assert_eq!(state["workingDirectories"], json!([uri(&root)]), "the first root, named");
    let end = code.talks("request_1").await;
    assert_eq!(end["type"], "chat/turnComplete", "{end}");
    let other = code.creates(json!({"channel": "ahp-chat:/mine"})).await;
    assert_eq!(other.unwrap_err()["code"], -32602);
    host.stop().await;
}

// 21: a folder outside the roots, by name, through a link, and later
#[tokio::test]
async fn a_folder_outside_the_roots_ends_every_turn_in_words() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let (data, outside) = (place.join("inside"), place.join("outside"));
    for directory in [&data, &outside, &data.join("later")] {
        std::fs::create_dir(directory).unwrap();
    }
    std::fs::write(outside.join("secret.txt"), "secret").unwrap();
    symlink(&outside, data.join("link")).unwrap();
    let host = TestHost::start(&data, &script()).await;
    let mut code = Window::opens(&host, "window-1").await;
    let own = data.join("data");
    for folder in [&outside, &data.join("link"), &place.join("nowhere"), &own] {
        code.creates(json!({"workingDirectories": [uri(folder)]})).await.unwrap();
        let state = code.state(SESSION).await;
        assert_eq!(state["workingDirectories"], json!([uri(folder)]));
        for turn in ["request_1", "request_2"] {
            let end = code.talks(turn).await;
            assert_not_allowed(&end, &data);
        }
        let typed = json!({"kind": "userMessage", "channel": chat(), "text": "@", "offset": 1});
        let items = code.asks("completions", typed).await.unwrap()["items"].clone();
        assert!(!items.to_string().contains("secret"), "{items}");
        let disposed = code.asks("disposeSession", json!({"channel": SESSION}));
        disposed.await.unwrap();
    }

    let later = data.join("later");
    code.creates(json!({"workingDirectories": [uri(&later)]})).await.unwrap();
    assert_eq!(code.talks("request_1").await["type"], "chat/turnComplete");
    std::fs::remove_dir(&later).unwrap();
    symlink(&outside, &later).unwrap();
    assert_not_allowed(&code.talks("request_2").await, &data);
    std::fs::remove_file(&later).unwrap();
    std::fs::create_dir(&later).unwrap();
    assert_eq!(code.talks("request_3").await["type"], "chat/turnComplete");
    host.stop().await;
}

/// The turn's end says what the user must know.
fn assert_not_allowed(end: &Value, root: &Path) {
    assert_eq!(end["type"], "chat/error", "{end}");
    let error = &end["part"]["error"];
    assert_eq!(error["errorType"], "workingDirectoryNotAllowed", "{end}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(root.to_str().unwrap()), "{message}");
    assert!(message.contains("`workspaces`"), "{message}");
}
