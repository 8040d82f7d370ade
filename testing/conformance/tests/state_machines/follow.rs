//! A published client that mirrors a session and some of its chats with its own reducers, and can be asked to agree.

use std::collections::BTreeMap;
use std::time::Duration;

use ahp::reducers::{apply_action_to_chat, apply_action_to_session};
use ahp::{Client, ClientConfig, ClientEventStream, SubscriptionEvent};
use ahp_types::actions::{ActionEnvelope, StateAction};
use ahp_types::commands::SubscribeView;
use ahp_types::state::{ChatState, SessionState, SnapshotState};
use ahp_ws::WebSocketTransport;
use conformance::TestHost;
use serde_json::{Value, json};
use tokio::time::timeout;

pub const SESSION: &str = "ahp-session:/machines";
const ROOT: &str = "ahp-root://";
/// Generous: the machine may be busy. Nothing waits this long unless it waits for ever.
const DEADLINE: Duration = Duration::from_secs(60);

/// A client and the state it made of the actions it received.
pub struct Follower {
    pub client: Client,
    events: ClientEventStream,
    pub session: SessionState,
    pub chats: BTreeMap<String, ChatState>,
    /// Reasons of refused actions, in order.
    pub refused: Vec<String>,
}

async fn connect(host: &TestHost, name: &str) -> Client {
    let transport = WebSocketTransport::connect(&host.url).await.expect("the socket opens");
    let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
    let client = Client::connect(transport, config).await.expect("the client starts");
    client
        .initialize(name.to_owned(), vec!["1.0.0".to_owned()], vec![ROOT.to_owned()])
        .await
        .expect("initialize");
    client
}

impl Follower {
    /// Creates the session and follows it and its first chat.
    pub async fn creates(host: &TestHost, name: &str) -> Self {
        let client = connect(host, name).await;
        let _: Value = client
            .request("createSession", json!({"channel": SESSION}))
            .await
            .expect("createSession");
        Self::with(client).await
    }

    pub async fn joins(host: &TestHost, name: &str) -> Self {
        Self::with(connect(host, name).await).await
    }

    async fn with(client: Client) -> Self {
        let events = client.events();
        let (result, _) = client.subscribe(SESSION.to_owned()).await.expect("subscribe");
        let SnapshotState::Session(session) = result.snapshot.expect("a snapshot").state else {
            panic!("a session")
        };
        let first = session.default_chat.clone().expect("a default chat");
        let mut follower =
            Self { client, events, session: *session, chats: BTreeMap::new(), refused: Vec::new() };
        follower.opens(&first).await;
        follower
    }

    /// Follows another chat.
    pub async fn opens(&mut self, chat: &str) {
        self.opens_with(chat, None).await;
    }

    pub async fn opens_with(&mut self, chat: &str, turns: Option<i64>) {
        let view = turns.map(|turns| SubscribeView { turns: Some(turns) });
        let (result, _) = self
            .client
            .subscribe_with_options(chat.to_owned(), None, view)
            .await
            .expect("subscribe to a chat");
        let SnapshotState::Chat(state) = result.snapshot.expect("a snapshot").state else {
            panic!("a chat")
        };
        self.chats.insert(chat.to_owned(), *state);
    }

    /// The first chat of the session.
    pub fn first(&self) -> String {
        self.session.default_chat.clone().expect("a default chat")
    }

    pub fn chat(&self) -> &ChatState {
        &self.chats[&self.first()]
    }

    pub async fn does(&self, chat: &str, action: Value) {
        let action: StateAction = serde_json::from_value(action).expect("a known action");
        assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
        self.client.dispatch(chat.to_owned(), action).await.expect("dispatch");
    }

    pub async fn sends_message(&self, turn: &str, text: &str) {
        let action = json!({
            "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
            "message": {"text": text, "origin": {"kind": "user"}},
        });
        self.does(&self.first(), action).await;
    }

    pub async fn asks(&self, method: &str, params: Value) -> Value {
        self.client.request(method, params).await.expect("it is answered")
    }

    fn apply(&mut self, envelope: &ActionEnvelope) {
        if let Some(reason) = &envelope.rejection_reason {
            self.refused.push(reason.clone());
            return;
        }
        if envelope.channel == SESSION {
            apply_action_to_session(&mut self.session, &envelope.action);
        } else if let Some(chat) = self.chats.get_mut(&envelope.channel) {
            apply_action_to_chat(chat, &envelope.action);
        }
    }

    /// Takes what comes until something is true.
    pub async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let wait = async {
            while !is_so(self) {
                let event = self.events.recv().await.expect("the stream goes on");
                if let SubscriptionEvent::Action(envelope) = event.event {
                    self.apply(&envelope);
                }
            }
        };
        if timeout(DEADLINE, wait).await.is_err() {
            panic!("waited in vain until {what}: {:?} {:?}", self.session, self.chats);
        }
    }

    /// Until the first chat is idle after this turn.
    pub async fn until_done(&mut self, turn: &str) {
        let done = |me: &Self| {
            let chat = me.chat();
            chat.active_turn.is_none() && chat.turns.last().is_some_and(|last| last.id == turn)
        };
        self.until(&format!("{turn} is done"), done).await;
    }

    /// JSON of the tool call or request that waits in a chat's active turn, in this state.
    pub fn waiting(&self, chat: &str, status: &str) -> Option<Value> {
        let turn = self.chats.get(chat)?.active_turn.as_ref()?;
        let parts = turn.response_parts.iter();
        let parts = parts.map(|part| serde_json::to_value(part).expect("parts are JSON"));
        let waits = |part: &Value| match part["kind"].as_str() {
            Some("toolCall") => part["toolCall"]["status"] == status,
            Some("inputRequest") => status == "asked" && part.get("response").is_none(),
            _ => false,
        };
        parts.into_iter().find(waits)
    }

    pub async fn until_waiting(&mut self, chat: &str, status: &str) -> Value {
        let what = format!("something is {status}");
        self.until(&what, |me| me.waiting(chat, status).is_some()).await;
        self.waiting(chat, status).expect("it waits")
    }

    /// What it reduced becomes what a new client gets. Actions may still be on their way; what never agrees is wrong.
    pub async fn agrees_with_a_newcomer(&mut self, host: &TestHost, after: &str) {
        let mut fresh = Self::joins(host, "newcomer").await;
        for chat in self.chats.keys().cloned().collect::<Vec<_>>() {
            if !fresh.chats.contains_key(&chat) {
                fresh.opens(&chat).await;
            }
        }
        fresh.client.shutdown().await;
        let same = |me: &Self| {
            let chats = |follower: &Self| -> Vec<ChatState> {
                let of = |uri: &String| comparable(follower.chats[uri].clone());
                me.chats.keys().map(of).collect()
            };
            me.session == fresh.session && chats(me) == chats(&fresh)
        };
        let what = format!("all agree after {after} with {:?} {:?}", fresh.session, fresh.chats);
        self.until(&what, same).await;
    }
}

/// What no chat action carries is left out of the comparison (H-150).
fn comparable(mut chat: ChatState) -> ChatState {
    chat.title.clear();
    chat
}
