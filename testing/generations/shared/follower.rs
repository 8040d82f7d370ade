//! The published client: its own types decode what it hears, its own reducers make the state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::VERSION;
use super::super::ahp::reducers::{apply_action_to_chat, apply_action_to_session};
use super::super::ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use super::super::ahp_types::actions::StateAction;
use super::super::ahp_types::commands::{ListSessionsResult, SubscribeResult};
use super::super::ahp_types::state::{ChatState, SessionState};
use super::super::ahp_ws::WebSocketTransport;
use super::SESSION;
use crate::host::Host;

const DEADLINE: Duration = Duration::from_secs(60);

pub struct Follower {
    name: String,
    client: Client,
    events: ClientEventStream,
    session: SessionState,
    chats: BTreeMap<String, ChatState>,
    seen: i64,
}

async fn connects(host: &Host) -> Client {
    let transport = WebSocketTransport::connect(&host.url)
        .await
        .expect("a socket");
    let config = ClientConfig {
        subscription_buffer: 65_536,
        ..ClientConfig::default()
    };
    Client::connect(transport, config).await.expect("a client")
}

/// A state as its own type reads it: what the type does not know is not in it.
fn state_in<T: serde::de::DeserializeOwned>(result: &Value) -> T {
    let typed: Result<SubscribeResult, _> = serde_json::from_value(result.clone());
    assert!(typed.is_ok(), "{:?}: {result}", typed.err());
    let state = result["snapshot"]["state"].clone();
    serde_json::from_value(state).expect("a state of this version")
}

impl Follower {
    pub async fn joins(host: &Host, name: &str) -> Self {
        let client = connects(host).await;
        let events = client.events();
        let versions = vec![VERSION.to_owned()];
        let root = vec!["ahp-root://".to_owned()];
        let greeted = client
            .initialize(name.to_owned(), versions, root)
            .await
            .expect("a handshake");
        assert_eq!(greeted.protocol_version, VERSION);
        // The first one makes it.
        let _: Result<Value, _> = client
            .request("createSession", json!({"channel": SESSION}))
            .await;
        let result: Value = client
            .request("subscribe", json!({"channel": SESSION}))
            .await
            .expect("a session");
        let mut follower = Self {
            name: name.to_owned(),
            client,
            events,
            session: state_in(&result),
            chats: BTreeMap::new(),
            seen: result["snapshot"]["fromSeq"].as_i64().unwrap_or(0),
        };
        follower.opens_all().await;
        follower
    }

    pub async fn snapshot_of(&self, channel: &str) -> Value {
        let result: Value = self
            .client
            .request("subscribe", json!({"channel": channel}))
            .await
            .expect("a snapshot");
        let typed: Result<SubscribeResult, _> = serde_json::from_value(result.clone());
        assert!(typed.is_ok(), "{:?}: {result}", typed.err());
        result["snapshot"]["state"].clone()
    }

    /// Follows every chat that is listed and not followed yet.
    async fn opens_all(&mut self) {
        for chat in self.chats() {
            if !self.chats.contains_key(&chat) {
                let result: Value = self
                    .client
                    .request("subscribe", json!({"channel": chat}))
                    .await
                    .expect("a chat");
                self.chats.insert(chat, state_in(&result));
            }
        }
    }

    pub fn session(&self) -> Value {
        serde_json::to_value(&self.session).expect("JSON")
    }

    /// The chats that the session lists.
    pub fn chats(&self) -> Vec<String> {
        let session = self.session();
        let chats = session["chats"].as_array().cloned().unwrap_or_default();
        chats
            .iter()
            .filter_map(|chat| chat["resource"].as_str().map(str::to_owned))
            .collect()
    }

    pub fn first(&self) -> String {
        self.chats()[0].clone()
    }

    pub fn chat_at(&self, uri: &str) -> Value {
        serde_json::to_value(&self.chats[uri]).expect("JSON")
    }

    pub fn chat(&self) -> Value {
        self.chat_at(&self.first())
    }

    pub fn turns(&self) -> Vec<Value> {
        self.chat()["turns"].as_array().cloned().unwrap_or_default()
    }

    pub fn last_turn(&self) -> Value {
        self.turns().last().cloned().unwrap_or_default()
    }

    /// What was said, turn by turn: the same in every version.
    pub fn conversation(&self) -> Vec<String> {
        let text = |turn: &Value| {
            let parts = turn["responseParts"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let said = parts.iter().filter(|part| part["kind"] == "markdown");
            let said: String = said.filter_map(|part| part["content"].as_str()).collect();
            format!(
                "{} -> {said}",
                turn["message"]["text"].as_str().unwrap_or("")
            )
        };
        self.turns().iter().map(text).collect()
    }

    pub fn leaves(&mut self, chat: &str) {
        self.chats.remove(chat);
    }

    pub async fn does(&self, channel: &str, action: Value) {
        let typed: StateAction = serde_json::from_value(action).expect("an action");
        assert!(!matches!(typed, StateAction::Unknown(_)), "{typed:?}");
        self.client
            .dispatch(channel.to_owned(), typed)
            .await
            .expect("the host listens");
    }

    pub async fn asks(&self, method: &str, params: Value) -> Value {
        self.client.request(method, params).await.expect(method)
    }

    pub async fn lists_sessions(&self) -> Vec<Value> {
        let list = self
            .asks("listSessions", json!({"channel": "ahp-root://"}))
            .await;
        let typed: Result<ListSessionsResult, _> = serde_json::from_value(list.clone());
        assert!(typed.is_ok(), "{:?}: {list}", typed.err());
        list["items"].as_array().cloned().unwrap_or_default()
    }

    pub async fn becomes_active(&self, client: Value) {
        let action = match VERSION {
            "0.4.0" => json!({"type": "session/activeClientChanged", "activeClient": client}),
            _ => json!({"type": "session/activeClientSet", "activeClient": client}),
        };
        self.does(SESSION, action).await;
    }

    pub async fn sends_message(&self, turn: &str, text: &str) {
        let action = json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}}});
        self.does(&self.first(), action).await;
    }

    pub async fn goes(&self) {
        self.client.shutdown().await;
    }

    /// Connects again as the same client; what it missed comes as actions or as snapshots.
    pub async fn comes_back(&mut self, host: &Host) {
        self.client = connects(host).await;
        self.events = self.client.events();
        let mut channels = vec!["ahp-root://".to_owned(), SESSION.to_owned()];
        channels.extend(self.chats.keys().cloned());
        let params = json!({"channel": "ahp-root://", "clientId": self.name, "lastSeenServerSeq": self.seen, "subscriptions": channels});
        let result = self.asks("reconnect", params).await;
        for envelope in result["actions"].as_array().into_iter().flatten() {
            let action = envelope["action"].clone();
            let action: StateAction = serde_json::from_value(action).expect("an action");
            let channel = envelope["channel"].as_str().unwrap_or("").to_owned();
            self.applies(
                &channel,
                &action,
                envelope["serverSeq"].as_i64().unwrap_or(0),
            );
        }
        for snapshot in result["snapshots"].as_array().into_iter().flatten() {
            let state = snapshot["state"].clone();
            let resource = snapshot["resource"].as_str().unwrap_or("");
            if resource == SESSION {
                self.session = serde_json::from_value(state).expect("a session");
            } else if let Some(chat) = self.chats.get_mut(resource) {
                *chat = serde_json::from_value(state).expect("a chat");
            }
            self.seen = snapshot["fromSeq"].as_i64().unwrap_or(self.seen);
        }
    }

    fn applies(&mut self, channel: &str, action: &StateAction, seq: i64) {
        assert!(
            !matches!(action, StateAction::Unknown(_)),
            "{VERSION} does not know {action:?}"
        );
        self.seen = self.seen.max(seq);
        if channel == SESSION {
            apply_action_to_session(&mut self.session, action);
        } else if let Some(chat) = self.chats.get_mut(channel) {
            apply_action_to_chat(chat, action);
        }
    }

    pub async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is_so(self) {
                let event = self.events.recv().await.expect("the stream goes on");
                if let SubscriptionEvent::Action(envelope) = event.event {
                    let reason = &envelope.rejection_reason;
                    assert!(reason.is_none(), "{reason:?}");
                    let seq = i64::try_from(envelope.server_seq).expect("a seq");
                    self.applies(&envelope.channel, &envelope.action, seq);
                }
            }
        };
        if timeout(DEADLINE, wait).await.is_err() {
            panic!(
                "{VERSION} waited in vain until {what}: {} {}",
                self.session(),
                self.chat()
            );
        }
    }

    /// The tool call of the active turn that is in this state, with its part.
    pub fn waiting(&self, status: &str) -> Option<Value> {
        let chat = self.chat();
        let parts = chat["activeTurn"]["responseParts"].as_array()?.clone();
        parts
            .into_iter()
            .find(|part| part["toolCall"]["status"] == status)
    }

    pub async fn until_waiting(&mut self, status: &str) -> Value {
        self.until(status, |me| me.waiting(status).is_some()).await;
        self.waiting(status).expect("it waits")
    }

    /// The open question: a part of the turn since 0.6, beside it before.
    fn asked(&self) -> Option<Value> {
        let chat = self.chat();
        let parts = chat["activeTurn"]["responseParts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let open = |part: &&Value| part["kind"] == "inputRequest" && part.get("response").is_none();
        let part = parts.iter().find(open).map(|part| part["request"].clone());
        part.or_else(|| chat["inputRequests"].get(0).cloned())
    }

    pub async fn until_asked(&mut self) -> Value {
        self.until("it is asked", |me| me.asked().is_some()).await;
        self.asked().expect("a question")
    }

    /// What its reducers made equals what a newcomer of the same version is told.
    pub async fn agrees(&mut self, host: &Host, after: &str) {
        self.opens_all().await;
        let fresh = Self::joins(host, "newcomer").await;
        fresh.client.shutdown().await;
        let told = comparable(&fresh);
        let what = format!("it agrees after {after} with {told}");
        self.until(&what, |me| comparable(me) == told).await;
    }
}

/// The session and its chats without what no action of this version tells, each with its reason.
fn comparable(of: &Follower) -> Value {
    let mut session = of.session();
    let mut chats: BTreeMap<String, Value> = of
        .chats
        .iter()
        .map(|(uri, chat)| (uri.clone(), serde_json::to_value(chat).expect("JSON")))
        .collect();
    for chat in chats.values_mut() {
        chat["title"] = Value::Null; // no action of a chat carries it (H-150)
        // A chat's flags came with 1.0; reducers up to 0.8 took the time of their own clock.
        chat["status"] = json!(chat["status"].as_u64().unwrap_or(0) & 31);
        if VERSION < "0.9" {
            chat["modifiedAt"] = Value::Null;
        }
        if VERSION < "0.5" {
            chat["activity"] = Value::Null; // its action came with 0.5
        }
    }
    if VERSION < "0.5" {
        session["summary"]["modifiedAt"] = Value::Null;
    }
    if VERSION < "0.8"
        && let Some(status) = session["status"].as_u64()
    {
        // They count a tool that a client runs as waiting for the user.
        session["status"] = json!(status & !16);
    }
    json!({"session": session, "chats": chats})
}

pub fn about(kind: &str, part: &Value, more: Value) -> Value {
    let mut action =
        json!({"type": kind, "turnId": "t1", "toolCallId": part["toolCall"]["toolCallId"]});
    for (field, value) in more.as_object().into_iter().flatten() {
        action[field] = value.clone();
    }
    action
}
