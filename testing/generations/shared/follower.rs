//! The published client: its own types decode what it hears, its own reducers make the state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::VERSION;
use super::super::ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use super::super::ahp_types::actions::StateAction;
use super::super::ahp_ws::WebSocketTransport;
use super::super::answering::answer_requests;
use super::SESSION;
use super::commands::{judge_result, write_params};
use super::judge::{Heard, Judged};
use super::ledger;
use super::mirror::{Mirror, ROOT};
use super::view::View;

const DEADLINE: Duration = Duration::from_secs(60);

// Each test uses a part of it.
#[allow(dead_code)]
pub struct Follower {
    name: String,
    url: String,
    client: Client,
    events: ClientEventStream,
    heard: Arc<Heard>,
    mirror: Mirror,
    /// What it dispatched and has not come back yet, by its numbers.
    unanswered: RefCell<BTreeMap<i64, String>>,
}

async fn connects(url: &str, heard: &Arc<Heard>) -> Client {
    let inner = WebSocketTransport::connect(url).await.expect("a socket");
    let heard = heard.clone();
    let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
    let client = Client::connect(Judged { inner, heard }, config).await;
    client.expect("a client")
}

#[allow(dead_code)]
impl Follower {
    /// Comes to the session, which the first one makes.
    pub async fn joins(url: &str, name: &str) -> Self {
        let mut follower = Self::greets(url, name).await;
        follower.follows(ROOT).await;
        let made: Result<Value, _> = follower
            .client
            .request("createSession", json!({"channel": SESSION, "provider": "scripted"}))
            .await;
        drop(made); // it may be there already
        follower.follows(SESSION).await;
        follower.opens_all().await;
        follower
    }

    async fn greets(url: &str, name: &str) -> Self {
        let heard = Arc::new(Heard::default());
        let client = connects(url, &heard).await;
        let events = client.events();
        let greeted = client
            .initialize(name.to_owned(), vec![VERSION.to_owned()], Vec::new())
            .await
            .expect("a handshake");
        assert_eq!(greeted.protocol_version, VERSION);
        ledger::open().asked.insert("initialize".to_owned());
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            client,
            events,
            heard,
            mirror: Mirror::default(),
            unanswered: RefCell::default(),
        }
    }

    /// Follows a channel from now on.
    pub async fn follows(&mut self, channel: &str) {
        self.follows_view(json!({"channel": channel})).await;
    }

    /// The same, by params that may say how much of it is wanted at first.
    pub async fn follows_view(&mut self, params: Value) {
        let result = self.asks("subscribe", params).await;
        if result["snapshot"].is_object() {
            self.mirror.takes_snapshot(&result["snapshot"]);
        }
    }

    /// Makes a channel and follows it in one breath, so that what happens there at once is heard.
    pub async fn makes(&mut self, method: &str, params: Value, channel: &str) {
        let made = self.asks(method, params);
        let followed = self.asks("subscribe", json!({"channel": channel}));
        let (_, followed) = tokio::join!(made, followed);
        self.mirror.takes_snapshot(&followed["snapshot"]);
    }

    /// Follows a channel no more.
    pub async fn unfollows(&mut self, channel: &str) {
        let left = self.client.unsubscribe(channel.to_owned()).await;
        left.expect("the host listens");
        ledger::open().asked.insert("unsubscribe".to_owned());
        self.mirror.leaves(channel);
    }

    /// Answers the host's requests like this, if the published client can.
    pub fn answers(&self, answer: fn(&str, &Value) -> Result<Value, i32>) {
        answer_requests(&self.client, answer);
    }

    /// How many actions came on a channel so far.
    pub fn count_heard(&self, channel: &str) -> usize {
        self.heard.count("action", |params| params["channel"] == channel)
    }

    pub async fn snapshot_of(&self, channel: &str) -> Value {
        let result = self.asks("subscribe", json!({"channel": channel})).await;
        result["snapshot"]["state"].clone()
    }

    /// Follows every chat that is listed and not followed yet.
    pub async fn opens_all(&mut self) {
        for chat in self.chats() {
            if !self.mirror.follows(&chat) {
                self.follows(&chat).await;
            }
        }
    }

    pub fn leaves(&mut self, channel: &str) {
        self.mirror.leaves(channel);
    }

    pub fn view(&self) -> View {
        View { session: self.mirror.value(SESSION), chats: self.mirror.chats() }
    }

    pub fn session(&self) -> Value {
        self.mirror.value(SESSION)
    }

    pub fn root(&self) -> Value {
        self.mirror.value(ROOT)
    }

    /// A channel that it follows.
    pub fn at(&self, channel: &str) -> Value {
        self.mirror.value(channel)
    }

    pub fn chats(&self) -> Vec<String> {
        self.view().listed()
    }

    pub fn first(&self) -> String {
        self.view().first()
    }

    pub fn chat(&self) -> Value {
        self.view().chat()
    }

    pub fn turns(&self) -> Vec<Value> {
        self.view().turns()
    }

    pub fn last_turn(&self) -> Value {
        self.view().last_turn()
    }

    pub fn conversation(&self) -> Vec<String> {
        self.view().conversation()
    }

    pub async fn does(&self, channel: &str, action: Value) {
        let name = action["type"].as_str().unwrap_or_default().to_owned();
        let typed: StateAction = serde_json::from_value(action).expect("an action");
        assert!(!matches!(typed, StateAction::Unknown(_)), "{typed:?}");
        let sent = self.client.dispatch(channel.to_owned(), typed).await;
        let number = sent.expect("the host listens").client_seq;
        self.unanswered.borrow_mut().insert(number, name);
        ledger::open().asked.insert("dispatchAction".to_owned());
    }

    /// Asks by params that this version's own type writes, for an answer that its own type reads.
    pub async fn asks(&self, method: &str, params: Value) -> Value {
        let params = write_params(method, params);
        let answer: Result<Value, _> = self.client.request(method, params).await;
        let result = answer.unwrap_or_else(|error| panic!("{VERSION} {method}: {error}"));
        let is_read = judge_result(method, &result);
        assert_eq!(is_read, Ok(()), "{VERSION} {method}: {result}");
        ledger::open().asked.insert(method.to_owned());
        result
    }

    pub async fn lists_sessions(&self) -> Vec<Value> {
        let params = json!({"channel": ROOT});
        let list = self.asks("listSessions", params).await;
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
        self.heard.assert_all_read();
    }

    /// Connects again as the same client; what it missed comes as actions or as snapshots.
    pub async fn comes_back(&mut self, url: &str) {
        self.client = connects(url, &self.heard).await;
        self.url = url.to_owned();
        self.events = self.client.events();
        self.unanswered.borrow_mut().clear(); // a new connection counts anew
        let params = json!({"channel": ROOT, "clientId": self.name, "lastSeenServerSeq": self.mirror.seen,
            "subscriptions": self.mirror.names()});
        let result = self.asks("reconnect", params).await;
        assert!(result["missing"].as_array().is_none_or(Vec::is_empty), "{result}");
        for envelope in result["actions"].as_array().into_iter().flatten() {
            let action = envelope["action"].clone();
            let action: StateAction = serde_json::from_value(action).expect("an action");
            let channel = envelope["channel"].as_str().expect("a channel");
            let seq = envelope["serverSeq"].as_i64().expect("a seq");
            self.mirror.applies(channel, &action, seq);
        }
        for snapshot in result["snapshots"].as_array().into_iter().flatten() {
            self.mirror.takes_snapshot(snapshot);
        }
    }

    /// The next that comes by the client's own stream of events.
    pub async fn hears(&mut self) {
        let event = self.events.recv().await.expect("the stream goes on");
        if let SubscriptionEvent::Action(envelope) = event.event {
            let reason = &envelope.rejection_reason;
            assert!(reason.is_none(), "{VERSION} {reason:?} {:?}", envelope.action);
            if let Some(origin) = &envelope.origin
                && origin.client_id == self.name
            {
                let accepted = self.unanswered.borrow_mut().remove(&origin.client_seq);
                ledger::open().sent.extend(accepted);
            }
            let seq = i64::try_from(envelope.server_seq).expect("a seq");
            self.mirror.applies(&envelope.channel, &envelope.action, seq);
        }
    }

    pub async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is_so(self) {
                self.hears().await;
            }
        };
        let is_late = timeout(DEADLINE, wait).await.is_err();
        self.heard.assert_all_read();
        if is_late {
            let names = self.mirror.names();
            let all: BTreeMap<&str, Value> =
                names.iter().map(|name| (name.as_str(), self.at(name))).collect();
            panic!("{VERSION} waited in vain until {what}: {}", json!(all));
        }
    }

    pub async fn until_waiting(&mut self, status: &str) -> Value {
        self.until(status, |me| me.waiting(status).is_some()).await;
        self.waiting(status).expect("it waits")
    }

    pub fn waiting(&self, status: &str) -> Option<Value> {
        self.view().waiting(status)
    }

    pub async fn until_asked(&mut self) -> Value {
        self.until("it is asked", |me| me.view().asked().is_some()).await;
        self.view().asked().expect("a question")
    }

    /// A notification that the client's own types read, whether or not it hands it on.
    pub async fn until_told(&self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let wait = async {
            loop {
                if let Some(params) = self.heard.find(method, &fits) {
                    return params;
                }
                self.heard.changes().await;
            }
        };
        let told = timeout(DEADLINE, wait).await;
        self.heard.assert_all_read();
        told.unwrap_or_else(|_| panic!("{VERSION} was never told {method}"))
    }

    pub fn was_told(&self, method: &str) -> bool {
        self.heard.find(method, |_| true).is_some()
    }

    /// What its reducers made of each channel equals what a newcomer of the same version is told.
    pub async fn agrees(&mut self, after: &str) {
        self.opens_all().await;
        let mut fresh = Self::joins(&self.url, "newcomer").await;
        for channel in self.mirror.names() {
            if !fresh.mirror.follows(&channel) {
                fresh.follows(&channel).await;
            }
        }
        fresh.goes().await;
        let told: BTreeMap<String, Value> = fresh.mirror.names().into_iter().map(|name| (name.clone(), fresh.mirror.comparable(&name))).collect();
        let what = format!("it agrees after {after} with {}", json!(told));
        // The channels were told one after the other: each was so at its own moment.
        let open = RefCell::new(told);
        self.until(&what, |me| {
            let mut open = open.borrow_mut();
            open.retain(|name, told| {
                let is_same = me.mirror.comparable(name) == *told;
                if is_same {
                    me.counts_as_followed(name);
                }
                !is_same
            });
            open.is_empty()
        })
        .await;
    }

    /// What was heard on a channel led where it should: `agrees` has seen it, or the test itself where nobody can be told of the
    /// channel any more.
    pub fn counts_as_followed(&self, channel: &str) {
        let heard = self.mirror.takes_heard(channel);
        ledger::open().followed.extend(heard);
    }
}

#[allow(dead_code)]
pub fn about(kind: &str, part: &Value, more: Value) -> Value {
    let mut action =
        json!({"type": kind, "turnId": "t1", "toolCallId": part["toolCall"]["toolCallId"]});
    for (field, value) in more.as_object().into_iter().flatten() {
        action[field] = value.clone();
    }
    action
}
