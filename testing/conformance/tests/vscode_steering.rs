//! Messages that VS Code's user types while a turn runs, frame by frame: Enter steers, Alt+Enter queues. Whatever becomes of the
//! turn, its view must end without a message left standing, or it asks about pending requests before every later one.

use ahp_09::reducers::apply_action_to_chat;
use ahp_types_09::state::ChatState;
use conformance::TestHost;
use conformance::vscode::{Code, ROOT};
use serde_json::{Value, json};

const SESSION: &str = "scripted:/44444444-0000-4000-8000-000000000000";

fn script() -> Value {
    json!({"scenes": [
        {"when": "^work", "steps": [
            {"tool": {"name": "rm", "input": {}, "confirm": "ask", "options": [
                {"id": "allow", "label": "Allow", "kind": "approve"},
                {"id": "skip", "label": "Skip", "kind": "deny"}]}},
            {"say": ["done"]}]},
        {"when": "^fail", "steps": [
            {"tool": {"name": "rm", "input": {}, "confirm": "ask", "options": [
                {"id": "allow", "label": "Allow", "kind": "approve"}]}},
            {"fail": {"type": "broken", "message": "it broke"}}]},
        {"steps": [{"say": ["hello"]}]},
    ]})
}

/// A window with one chat open, mirrored by the reducers it is built with.
struct Window {
    code: Code,
    chat: String,
    mirror: ChatState,
}

impl Window {
    async fn opens(host: &TestHost) -> Self {
        let mut code = Code::opens(host).await;
        code.initializes(&[ROOT]).await;
        let directory = format!("file://{}", host.data().display());
        let params =
            json!({"channel": SESSION, "provider": "scripted", "workingDirectories": [directory]});
        code.asks("createSession", params).await.expect("created");
        let session = code.state(SESSION).await;
        let chat = session["defaultChat"].as_str().expect("a chat").to_owned();
        let state = code.state(&chat).await;
        let mirror = serde_json::from_value(state).expect("a chat state");
        Self { code, chat, mirror }
    }

    async fn dispatches(&mut self, action: Value) -> u64 {
        let chat = self.chat.clone();
        self.code.dispatches(&chat, action).await
    }

    /// Enter, or with Alt: a message for the running turn, or for after it.
    async fn types(&mut self, kind: &str, id: &str, text: &str) {
        let message = json!({"text": text, "origin": {"kind": "user"}, "attachments": []});
        let action =
            json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message});
        self.dispatches(action).await;
    }

    /// Follows the chat until an action of this kind, which is returned.
    async fn follows_to(&mut self, kind: &str) -> Value {
        let chat = self.chat.clone();
        loop {
            let of_chat = |frame: &Value| frame["params"]["channel"] == chat.as_str();
            let frame = self.code.receive(kind, of_chat).await;
            let envelope = &frame["params"];
            if envelope.get("rejectionReason").is_some() {
                continue;
            }
            let action = serde_json::from_value(envelope["action"].clone()).expect("an action");
            apply_action_to_chat(&mut self.mirror, &action);
            if envelope["action"]["type"] == kind {
                return envelope["action"].clone();
            }
        }
    }

    /// Starts a turn that waits for leave; the call.
    async fn works(&mut self, turn: &str, text: &str) -> Value {
        self.dispatches(Code::turn_started(turn, text)).await;
        let call = self.follows_to("chat/toolCallStart").await;
        self.follows_to("chat/toolCallReady").await;
        call
    }

    async fn allows(&mut self, call: &Value) {
        let more =
            json!({"approved": true, "confirmed": "user-action", "selectedOptionId": "allow"});
        self.dispatches(Code::confirmed(call, more)).await;
    }

    async fn cancels(&mut self, turn: &str) {
        let action = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
        self.dispatches(action).await;
        self.follows_to("chat/turnCancelled").await;
    }

    fn queue(&self) -> Vec<&str> {
        let queue = self.mirror.queued_messages.iter().flatten();
        queue.map(|message| message.id.as_str()).collect()
    }

    /// What it shows is what a window that opens now is shown.
    async fn sees_what_is_there(&mut self) {
        let chat = self.chat.clone();
        let state = self.code.state(&chat).await;
        let fresh: ChatState = serde_json::from_value(state).expect("a chat state");
        assert_eq!(fresh.steering_message, self.mirror.steering_message);
        assert_eq!(fresh.queued_messages, self.mirror.queued_messages);
        assert_eq!(fresh.turns, self.mirror.turns);
        assert_eq!(fresh.active_turn, self.mirror.active_turn);
    }
}

// 17: the turn ends without having taken it
#[tokio::test]
async fn steering_that_the_turn_did_not_take_is_sent_before_what_is_queued() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut window = Window::opens(&host).await;
    let call = window.works("request_1", "work").await;
    window.types("queued", "request_3", "after that").await;
    window.types("steering", "request_2", "rather this").await;
    window.follows_to("chat/pendingMessageSet").await;
    window.follows_to("chat/pendingMessageSet").await;
    assert!(window.mirror.steering_message.is_some());
    window.allows(&call).await;
    window.follows_to("chat/turnComplete").await;
    let started = window.follows_to("chat/turnStarted").await;
    assert_eq!(started["queuedMessageId"], "request_2");
    assert_eq!(started["message"]["text"], "rather this");
    assert!(window.mirror.steering_message.is_none(), "its id clears it");
    assert_eq!(window.queue(), ["request_3"]);
    window.follows_to("chat/turnComplete").await;
    let started = window.follows_to("chat/turnStarted").await;
    assert_eq!(started["queuedMessageId"], "request_3");
    window.follows_to("chat/turnComplete").await;
    assert!(window.queue().is_empty());
    window.sees_what_is_there().await;
    // The next message opens no question about pending requests.
    window.dispatches(Code::turn_started("request_4", "hello")).await;
    window.follows_to("chat/turnComplete").await;
    window.sees_what_is_there().await;
    host.stop().await;
}

// 17: the turn is stopped, or breaks
#[tokio::test]
async fn steering_of_a_turn_that_was_stopped_or_broke_waits_at_the_head_of_the_queue() {
    for ends in ["chat/turnCancelled", "chat/error"] {
        let data = tempfile::tempdir().unwrap();
        let host = TestHost::start(data.path(), &script()).await;
        let mut window = Window::opens(&host).await;
        let call = window.works("request_1", "fail").await;
        window.types("queued", "request_3", "after that").await;
        window.types("steering", "request_2", "rather this").await;
        match ends {
            "chat/error" => {
                window.allows(&call).await;
                window.follows_to("chat/error").await;
            }
            _ => window.cancels("request_1").await,
        }
        let removed = window.follows_to("chat/pendingMessageRemoved").await;
        assert_eq!(
            removed,
            json!({"type": "chat/pendingMessageRemoved", "kind": "steering", "id": "request_2"})
        );
        let set = window.follows_to("chat/pendingMessageSet").await;
        assert_eq!((&set["kind"], &set["id"]), (&json!("queued"), &json!("request_2")));
        window.follows_to("chat/queuedMessagesReordered").await;
        assert_eq!(window.queue(), ["request_2", "request_3"]);
        window.sees_what_is_there().await;
        // 12: what is typed next starts what waits, in its order.
        window.types("queued", "request_4", "and now").await;
        for id in ["request_2", "request_3", "request_4"] {
            let started = window.follows_to("chat/turnStarted").await;
            assert_eq!(started["queuedMessageId"], id);
        }
        window.follows_to("chat/turnComplete").await;
        window.sees_what_is_there().await;
        host.stop().await;
    }
}

// 17: the turn ended while the message was on its way
#[tokio::test]
async fn steering_that_comes_when_the_turn_is_over_is_sent_at_once() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut window = Window::opens(&host).await;
    window.dispatches(Code::turn_started("request_1", "hello")).await;
    window.follows_to("chat/turnComplete").await;
    window.types("steering", "request_2", "one more thing").await;
    let started = window.follows_to("chat/turnStarted").await;
    assert_eq!(started["queuedMessageId"], "request_2");
    assert!(window.mirror.steering_message.is_none());
    window.follows_to("chat/turnComplete").await;
    window.sees_what_is_there().await;
    host.stop().await;
}
