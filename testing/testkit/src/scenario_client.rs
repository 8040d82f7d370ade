//! A client of a scenario: everything a test lets it do, and what it has seen.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::Role;
use serde_json::{Value, json};

use crate::client::{Client, ROOT};
use crate::world::World;

/// A handle on a simulated client. Clones are the same client.
#[derive(Clone)]
pub struct ScenarioClient {
    world: Rc<RefCell<World>>,
    index: usize,
    session: Rc<RefCell<String>>,
    /// The chat it is in, if not the one its session began with.
    chat: Option<String>,
}

/// An action or a request that was sent; ask later what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent(pub u64);

impl ScenarioClient {
    pub(crate) fn new(world: Rc<RefCell<World>>, index: usize) -> Self {
        Self { world, index, session: Rc::default(), chat: None }
    }

    /// Looks into the client.
    pub fn with<T>(&self, look: impl FnOnce(&mut Client) -> T) -> T {
        look(&mut self.world.borrow_mut().clients[self.index])
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn settles(&self) {
        self.world.borrow_mut().settle();
    }

    pub fn now(&self) -> String {
        self.world.borrow().now.to_rfc3339()
    }

    // Connections.

    /// It has a token of this role when it connects.
    pub fn is_a(self, role: Role) -> Self {
        self.with(|client| client.role = role);
        self
    }

    /// A bare connection: nothing was sent on it yet.
    pub fn connects(self) -> Self {
        self.world.borrow_mut().connect(self.index);
        self
    }

    /// Connects and initializes with these subscriptions.
    pub fn arrives_watching(self, channels: &[&str]) -> Self {
        self.world.borrow_mut().connect(self.index);
        let channels: Vec<String> = channels.iter().map(|channel| (*channel).to_owned()).collect();
        let params = self.with(|client| client.initialize_params(&channels));
        self.asks("initialize", params).expect("initialize is accepted");
        self
    }

    /// Connects, watching the root.
    pub fn arrives(self) -> Self {
        self.arrives_watching(&[ROOT])
    }

    pub fn loses_connection(&self) {
        let peer = self.with(|client| client.link);
        if let Some(peer) = peer {
            self.world.borrow_mut().cut(peer, 0);
        }
    }

    /// What it sent arrives, and the host takes it as far as it goes at once; nothing comes back yet.
    pub fn reaches_host(&self) {
        let peer = self.with(|client| client.link).expect("it is connected");
        let mut world = self.world.borrow_mut();
        while world.carry_to_host(peer) {}
        while world.batch(64) {}
    }

    /// The network is silent: nothing arrives, and it is not noticed.
    pub fn stalls(&self) {
        self.set_stalled(true);
    }

    pub fn unstalls(&self) {
        self.set_stalled(false);
    }

    fn set_stalled(&self, stalled: bool) {
        let peer = self.with(|client| client.link);
        if let Some(peer) = peer
            && let Some(link) = self.world.borrow_mut().links.get_mut(&peer)
        {
            link.stalled = stalled;
        }
    }

    /// Connects again and picks up where it was; the response.
    pub fn reconnects(&self) -> Value {
        self.world.borrow_mut().connect(self.index);
        let params = self.with(|client| client.reconnect_params());
        self.asks("reconnect", params).expect("reconnect is accepted")
    }

    // Requests.

    pub fn sends_raw(&self, text: &str) {
        self.world.borrow_mut().send(self.index, text.to_owned());
    }

    /// Sends a request and does not wait.
    pub fn requests(&self, method: &str, params: Value) -> Sent {
        let (id, text) = self.with(|client| client.request(method, params));
        self.sends_raw(&text);
        Sent(id)
    }

    pub fn answer(&self, sent: Sent) -> Option<Result<Value, Value>> {
        self.with(|client| client.responses.get(&sent.0).cloned())
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn asks(&self, method: &str, params: Value) -> Result<Value, Value> {
        let sent = self.requests(method, params);
        self.settles();
        self.answer(sent).unwrap_or_else(|| panic!("`{method}` was not answered"))
    }

    /// The error code of a request that must fail.
    #[track_caller]
    pub fn is_denied(&self, method: &str, params: Value) -> i64 {
        self.asks(method, params).expect_err("should fail")["code"].as_i64().unwrap_or(0)
    }

    // Sessions.

    pub fn session(&self) -> String {
        self.session.borrow().clone()
    }

    /// The chat it is in.
    pub fn chat(&self) -> String {
        match &self.chat {
            Some(chat) => chat.clone(),
            None => crate::default_chat(&self.session()),
        }
    }

    /// The same client, in another chat.
    pub fn in_chat(&self, chat: &str) -> Self {
        Self { chat: Some(chat.to_owned()), ..self.clone() }
    }

    /// Creates a session under this URI and remembers it as its own.
    pub fn creates(self, session: &str) -> Self {
        self.creates_with(session, json!({}))
    }

    /// The same with further parameters.
    pub fn creates_with(self, session: &str, more: Value) -> Self {
        let mut params = more;
        params["channel"] = session.into();
        self.asks("createSession", params).expect("the session is created");
        *self.session.borrow_mut() = session.to_owned();
        self
    }

    /// Arrives, creates a session and watches it and its chat.
    pub fn opens_chat(self) -> Self {
        let session = format!("ahp-session:/{}", self.with(|client| client.id.clone()));
        let person = self.arrives().creates(&session);
        person.watches(&person.session());
        person.watches(&person.chat());
        person
    }

    /// The same with an agent of its choice.
    pub fn opens_chat_with(self, provider: &str) -> Self {
        let session = format!("ahp-session:/{}", self.with(|client| client.id.clone()));
        let person = self.arrives();
        let params = json!({"channel": session, "provider": provider});
        person.asks("createSession", params).expect("the session is created");
        *person.session.borrow_mut() = session;
        person.watches(&person.session());
        person.watches(&person.chat());
        person
    }

    /// Arrives and watches what another one watches.
    pub fn joins(self, other: &ScenarioClient) -> Self {
        *self.session.borrow_mut() = other.session();
        let (session, chat) = (self.session(), self.chat());
        self.arrives_watching(&[ROOT, &session, &chat])
    }

    pub fn watches(&self, channel: &str) -> Value {
        self.asks("subscribe", json!({"channel": channel})).expect("subscribed")
    }

    pub fn watches_turns(&self, channel: &str, turns: u32) -> Value {
        self.asks("subscribe", json!({"channel": channel, "view": {"turns": turns}}))
            .expect("subscribed")
    }

    pub fn unwatches(&self, channel: &str) {
        let message =
            json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}});
        self.sends_raw(&message.to_string());
        self.with(|client| client.mirrors.remove(channel));
    }

    // Actions.

    pub fn dispatches(&self, channel: &str, action: Value) -> Sent {
        let (seq, text) = self.with(|client| client.dispatch(channel, action));
        self.sends_raw(&text);
        Sent(u64::try_from(seq).unwrap_or(0))
    }

    /// Dispatches and waits; the reason if it was refused.
    pub fn tries(&self, channel: &str, action: Value) -> Result<(), String> {
        let sent = self.dispatches(channel, action);
        self.settles();
        match self.refusal(sent) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    pub fn refusal(&self, sent: Sent) -> Option<String> {
        self.with(|client| {
            let of = |envelope: &&Value| envelope["origin"]["clientSeq"].as_u64() == Some(sent.0);
            let refusal = client.refusals.iter().find(of)?;
            refusal["rejectionReason"].as_str().map(str::to_owned)
        })
    }

    pub fn turn_started(&self, turn: &str, text: &str) -> Value {
        json!({
            "type": "chat/turnStarted",
            "turnId": turn,
            "startedAt": self.now(),
            "message": {"text": text, "origin": {"kind": "user"}},
        })
    }

    /// Starts a turn in its chat under a new id, and does not wait; the id.
    pub fn starts(&self, text: &str) -> String {
        let turn = self.with(|client| format!("{}-t{}", client.id, client.client_seq + 1));
        let action = self.turn_started(&turn, text);
        self.dispatches(&self.chat(), action);
        turn
    }

    /// Starts a turn and lets it play; the id.
    pub fn sends_message(&self, text: &str) -> String {
        let turn = self.starts(text);
        self.settles();
        turn
    }

    /// Sends a message so many times, each when the turn of the one before is over.
    pub fn repeats_message(&self, count: usize, text: &str) {
        for _ in 0..count {
            self.sends_message(text);
        }
    }

    pub fn cancels(&self, turn: &str) -> Result<(), String> {
        self.tries(
            &self.chat(),
            json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5}),
        )
    }

    pub fn resumes(&self, turn: &str) -> Result<(), String> {
        self.tries(&self.chat(), json!({"type": "chat/turnResume", "turnId": turn}))
    }

    pub fn becomes_active(&self) -> Result<(), String> {
        let client = self.with(|client| client.id.clone());
        let entry = json!({"clientId": client, "tools": []});
        self.tries(
            &self.session(),
            json!({"type": "session/activeClientSet", "activeClient": entry}),
        )
    }

    // The system prompt.

    /// Becomes active, wanting to rewrite these sections, declared in the field of the proposal.
    pub fn opts_in(&self, sections: &[&str]) -> Result<(), String> {
        let client = self.with(|client| client.id.clone());
        let opt_in = json!({"sections": sections});
        let entry = json!({"clientId": client, "tools": [], "systemMessageTransform": opt_in});
        self.tries(
            &self.session(),
            json!({"type": "session/activeClientSet", "activeClient": entry}),
        )
    }

    /// Requests of the host that wait for its answer.
    pub fn is_asked(&self) -> Vec<Value> {
        self.with(|client| client.asked.clone())
    }

    /// Answers the oldest of them with a result or an error member.
    #[track_caller]
    pub fn replies(&self, member: &str, value: Value) {
        let asked = self.with(|client| (!client.asked.is_empty()).then(|| client.asked.remove(0)));
        let asked = asked.expect("the host asked something");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], member: value});
        self.sends_raw(&answer.to_string());
        self.settles();
    }

    /// Rewrites these sections.
    #[track_caller]
    pub fn rewrites<'a>(&self, sections: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let sections: wire::Object = sections
            .into_iter()
            .map(|(id, text)| (id.to_owned(), json!({"content": text})))
            .collect();
        self.replies("result", json!({"sections": sections}));
    }

    // Memory.

    /// A channel as this client knows it.
    pub fn sees(&self, channel: &str) -> Value {
        self.with(|client| client.mirrors.get(channel).map_or(Value::Null, |mirror| mirror.value()))
    }

    /// The latest turn of its chat, running or done.
    pub fn latest_turn(&self) -> Value {
        let chat = self.sees(&self.chat());
        match chat.get("activeTurn") {
            Some(turn) => turn.clone(),
            None => {
                let turns = chat["turns"].as_array();
                turns.and_then(|turns| turns.last().cloned()).unwrap_or(Value::Null)
            }
        }
    }

    /// All markdown of the latest turn of its chat, running or done.
    pub fn reads(&self) -> String {
        let parts = self.latest_turn()["responseParts"].as_array().cloned().unwrap_or_default();
        let texts = parts.iter().filter(|part| part["kind"] == "markdown");
        texts.filter_map(|part| part["content"].as_str()).collect()
    }

    /// Types of the actions that came since the last time, channel by channel mixed as they came.
    pub fn received_actions(&self) -> Vec<String> {
        let envelopes = self.with(|client| std::mem::take(&mut client.envelopes));
        envelopes
            .iter()
            .map(|envelope| envelope["action"]["type"].as_str().unwrap_or("").to_owned())
            .collect()
    }

    /// The bodies of the actions of one type that came since the last look at any; the others are dropped.
    pub fn received_action_bodies(&self, kind: &str) -> Vec<Value> {
        let envelopes = self.with(|client| std::mem::take(&mut client.envelopes));
        let actions = envelopes.into_iter().map(|mut envelope| envelope["action"].take());
        actions.filter(|action| action["type"] == kind).collect()
    }

    /// Methods and action types of all frames of this connection, responses as `=`.
    pub fn received_frames(&self) -> Vec<String> {
        self.with(|client| {
            let name = |frame: &Value| match frame["method"].as_str() {
                Some("action") => {
                    frame["params"]["action"]["type"].as_str().unwrap_or("").to_owned()
                }
                Some(method) => method.to_owned(),
                None => "=".to_owned(),
            };
            client.frames.iter().map(name).collect()
        })
    }

    pub fn notifications(&self, method: &str) -> Vec<Value> {
        self.with(|client| {
            let of = client.notifications.iter().filter(|frame| frame["method"] == method);
            of.map(|frame| frame["params"].clone()).collect()
        })
    }
}
