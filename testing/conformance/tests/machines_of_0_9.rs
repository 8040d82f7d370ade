//! The published 0.9.0 client follows every state machine of a chat that others drive: what its own reducers make of the
//! stream equals a fresh snapshot of its own kind. It is the generation that VS Code speaks.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use ahp_09::reducers::{apply_action_to_chat, apply_action_to_session};
use ahp_09::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use ahp_types_09::actions::StateAction;
use ahp_types_09::state::{ChatState, SessionState, SnapshotState};
use ahp_ws_09::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

const SESSION: &str = "scripted:/machines";
const DEADLINE: Duration = Duration::from_secs(60);

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
        {"when": "^hang", "steps": [{"say": ["start"]}, {"hang": true}]},
        {"steps": [{"say": ["ok"]}]},
    ]})
}

struct Follower {
    client: Client,
    events: ClientEventStream,
    session: SessionState,
    chats: BTreeMap<String, ChatState>,
}

impl Follower {
    async fn joins(host: &TestHost, name: &str) -> Self {
        let transport = WebSocketTransport::connect(&host.url).await.unwrap();
        let config = ClientConfig {
            subscription_buffer: 65_536,
            ..ClientConfig::default()
        };
        let client = Client::connect(transport, config).await.unwrap();
        let offered = vec!["0.9.0".to_owned()];
        client
            .initialize(name.to_owned(), offered, vec!["ahp-root://".to_owned()])
            .await
            .unwrap();
        let events = client.events();
        let created: Result<Value, _> = client
            .request("createSession", json!({"channel": SESSION}))
            .await;
        let _ = created; // the first one makes it
        let (result, _) = client.subscribe(SESSION.to_owned()).await.unwrap();
        let SnapshotState::Session(session) = result.snapshot.unwrap().state else {
            panic!("a session")
        };
        let mut follower = Self {
            client,
            events,
            session: *session,
            chats: BTreeMap::new(),
        };
        follower.opens_all().await;
        follower
    }

    /// Follows every chat that is listed and not followed yet.
    async fn opens_all(&mut self) {
        for chat in self
            .session
            .chats
            .iter()
            .map(|chat| chat.resource.clone())
            .collect::<Vec<_>>()
        {
            if self.chats.contains_key(&chat) {
                continue;
            }
            let (result, _) = self.client.subscribe(chat.clone()).await.unwrap();
            let SnapshotState::Chat(state) = result.snapshot.unwrap().state else {
                panic!("a chat")
            };
            self.chats.insert(chat, *state);
        }
    }

    fn first(&self) -> String {
        self.session.chats[0].resource.clone()
    }

    fn chat(&self) -> &ChatState {
        &self.chats[&self.first()]
    }

    async fn does(&self, channel: &str, action: Value) {
        let action: StateAction = serde_json::from_value(action).unwrap();
        assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
        self.client
            .dispatch(channel.to_owned(), action)
            .await
            .unwrap();
    }

    async fn sends_message(&self, turn: &str, text: &str) {
        let action = json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}}});
        self.does(&self.first(), action).await;
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is_so(self) {
                let event = self.events.recv().await.expect("the stream goes on");
                let SubscriptionEvent::Action(envelope) = event.event else {
                    continue;
                };
                assert!(
                    !matches!(envelope.action, StateAction::Unknown(_)),
                    "{:?}",
                    envelope.action
                );
                assert!(
                    envelope.rejection_reason.is_none(),
                    "{:?}",
                    envelope.rejection_reason
                );
                if envelope.channel == SESSION {
                    apply_action_to_session(&mut self.session, &envelope.action);
                } else if let Some(chat) = self.chats.get_mut(&envelope.channel) {
                    apply_action_to_chat(chat, &envelope.action);
                }
            }
        };
        if timeout(DEADLINE, wait).await.is_err() {
            panic!(
                "waited in vain until {what}: {:?} {:?}",
                self.session, self.chats
            );
        }
    }

    /// The part of the active turn that is in this state, as JSON.
    fn waiting(&self, status: &str) -> Option<Value> {
        let turn = self.chat().active_turn.as_ref()?;
        let parts = turn.response_parts.iter();
        let parts = parts.map(|part| serde_json::to_value(part).expect("parts are JSON"));
        let waits = |part: &Value| match part["kind"].as_str() {
            Some("toolCall") => part["toolCall"]["status"] == status,
            Some("inputRequest") => status == "asked" && part.get("response").is_none(),
            _ => false,
        };
        parts.into_iter().find(waits)
    }

    async fn until_waiting(&mut self, status: &str) -> Value {
        let what = format!("something is {status}");
        self.until(&what, |me| me.waiting(status).is_some()).await;
        self.waiting(status).expect("it waits")
    }

    async fn agrees(&mut self, host: &TestHost, after: &str) {
        self.opens_all().await;
        let fresh = Self::joins(host, "newcomer").await;
        fresh.client.shutdown().await;
        let comparable = |mut chat: ChatState| {
            chat.title.clear(); // H-150
            chat.status &= 31; // a chat's flags are not sent to this generation (G-23)
            chat
        };
        let same = |me: &Self| {
            let chats = |of: &Self| -> Vec<ChatState> {
                of.chats.values().cloned().map(comparable).collect()
            };
            me.session == fresh.session && chats(me) == chats(&fresh)
        };
        let what = format!(
            "all agree after {after}: {:?} {:?}",
            fresh.session, fresh.chats
        );
        self.until(&what, same).await;
    }
}

fn about(kind: &str, part: &Value, more: Value) -> Value {
    let mut action =
        json!({"type": kind, "turnId": "t1", "toolCallId": part["toolCall"]["toolCallId"]});
    for (field, value) in more.as_object().into_iter().flatten() {
        action[field] = value.clone();
    }
    action
}

#[tokio::test]
async fn every_step_of_a_turn_is_followed() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut ann = Follower::joins(&host, "ann").await;
    let chat = ann.first();
    let entry = json!({"clientId": "ann", "tools": [{"name": "open"}]});
    ann.does(
        SESSION,
        json!({"type": "session/activeClientSet", "activeClient": entry}),
    )
    .await;
    ann.sends_message("t1", "tools").await;
    let call = ann.until_waiting("pending-confirmation").await;
    ann.agrees(&host, "the question").await;
    let edited = json!({"approved": true, "confirmed": "user-action", "editedToolInput": "edited"});
    ann.does(&chat, about("chat/toolCallConfirmed", &call, edited))
        .await;
    let again = |ann: &Follower| {
        let call = ann.waiting("pending-confirmation");
        call.is_some_and(|call| call["toolCall"]["invocationMessage"] == "really?")
    };
    ann.until("it asks again", again).await;
    ann.agrees(&host, "the second question").await;
    let yes = json!({"approved": true, "confirmed": "user-action"});
    ann.does(&chat, about("chat/toolCallConfirmed", &call, yes))
        .await;
    let call = ann.until_waiting("pending-result-confirmation").await;
    ann.agrees(&host, "the result").await;
    ann.does(
        &chat,
        about(
            "chat/toolCallResultConfirmed",
            &call,
            json!({"approved": false}),
        ),
    )
    .await;
    let id = ann.until_waiting("asked").await["request"]["id"].clone();
    ann.agrees(&host, "the input request").await;
    let steering = json!({"type": "chat/pendingMessageSet", "kind": "steering", "id": "s",
        "message": {"text": "left", "origin": {"kind": "user"}}});
    ann.does(&chat, steering).await;
    let answer = json!({"state": "submitted", "value": {"kind": "text", "value": "ann"}});
    let complete = json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept", "answers": {"name": answer}});
    ann.does(&chat, complete).await;
    let call = ann.until_waiting("running").await;
    ann.agrees(&host, "the client's tool").await;
    let result = json!({"success": true, "pastTenseMessage": "opened"});
    ann.does(
        &chat,
        about("chat/toolCallComplete", &call, json!({"result": result})),
    )
    .await;
    ann.until("it is done", |ann| {
        ann.chat().turns.len() == 1 && ann.chat().active_turn.is_none()
    })
    .await;
    ann.agrees(&host, "the end").await;
    assert_eq!(ann.session.chats.len(), 2, "the worker's chat is there");
    host.stop().await;
}

#[tokio::test]
async fn queues_cuts_and_forks_are_followed() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start(data.path(), &script()).await;
    let mut ann = Follower::joins(&host, "ann").await;
    let chat = ann.first();
    for turn in ["t1", "t2", "t3"] {
        ann.sends_message(turn, "hello").await;
        ann.until("it is done", |ann| {
            ann.chat().turns.last().is_some_and(|last| last.id == turn)
        })
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
        let waiting = ann.chat().queued_messages.clone().unwrap_or_default();
        waiting.into_iter().map(|waiting| waiting.id).collect()
    };
    ann.until("the queue is in order", |ann| queue(ann) == ["a", "z", "y"])
        .await;
    ann.agrees(&host, "the queue").await;
    ann.does(&chat, json!({"type": "chat/truncated", "turnId": "t2"}))
        .await;
    ann.until("it is cut", |ann| {
        ann.chat().turns.len() == 2 && ann.chat().active_turn.is_none()
    })
    .await;
    ann.agrees(&host, "the cut").await;
    let source = json!({"kind": "fork", "chat": chat, "turnId": "t1"});
    let params = json!({"channel": SESSION, "chat": "ahp-chat:/fork", "source": source});
    let created: Value = ann.client.request("createChat", params).await.unwrap();
    assert_eq!(created, Value::Null);
    ann.until("it is listed", |ann| ann.session.chats.len() == 2)
        .await;
    ann.agrees(&host, "the fork").await;
    assert_eq!(ann.chats["ahp-chat:/fork"].turns.len(), 1);
    let disposed: Value = ann
        .client
        .request("disposeChat", json!({"channel": "ahp-chat:/fork"}))
        .await
        .unwrap();
    assert_eq!(disposed, Value::Null);
    ann.chats.remove("ahp-chat:/fork");
    ann.until("it is gone", |ann| ann.session.chats.len() == 1)
        .await;
    ann.agrees(&host, "its end").await;
    host.stop().await;
}
