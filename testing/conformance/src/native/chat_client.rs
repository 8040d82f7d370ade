//! A client in a chat of the native agent: what it does, and what it waits for.
//!
//! Promises: everything is waited for as a condition of what the client sees; a refused action is never overlooked.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Connection, Envelope, Events, HostTarget, Mirror};
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::ChannelUri;

use super::{SESSION, calls_of, parts_of};
use crate::TestHost;

/// Long enough for any machine; nothing is awaited that does not come.
const DEADLINE: Duration = Duration::from_secs(60);

static TURNS: AtomicUsize = AtomicUsize::new(0);

/// A client that reduces what it receives, and nothing else.
pub struct ChatClient {
    pub connection: Connection,
    pub chat: ChannelUri,
    events: Events,
    mirror: Mirror,
    /// The session it is in.
    session: String,
    /// The turn it started last.
    turn: String,
    name: String,
}

impl ChatClient {
    pub async fn arrives(host: &TestHost, name: &str) -> Self {
        let target = HostTarget { url: host.url.clone(), token: None };
        Self::arrives_at(&target, name).await
    }

    pub async fn arrives_at(target: &HostTarget, name: &str) -> Self {
        let (connection, events) = Connection::connect(target).await.expect("the socket opens");
        connection.initialize(name, &[]).await.expect("initialize");
        Self {
            connection,
            events,
            mirror: Mirror::default(),
            chat: ChannelUri::root(),
            session: String::new(),
            turn: String::new(),
            name: name.to_owned(),
        }
    }

    pub async fn creates_session(&mut self, session: &str, work: &Path, config: Value) {
        // The scheme of a session's URI is who works in it.
        let provider = session.split(':').next();
        let params = json!({
            "channel": session, "provider": provider, "config": config,
            "workingDirectories": [format!("file://{}", work.display())],
        });
        let created = self.connection.request("createSession", params).await;
        created.expect("the session is created");
        self.watch(session).await;
        let seen = self.until_session(session, |state| state["defaultChat"].is_string());
        let chat = seen.await["defaultChat"].clone();
        self.enters(session, chat.as_str().expect("a URI")).await;
    }

    /// Watches a session and a chat of it; what it does from now on is done there.
    pub async fn enters(&mut self, session: &str, chat: &str) {
        self.watch(session).await;
        self.watch(chat).await;
        session.clone_into(&mut self.session);
        self.chat = ChannelUri::parse(chat).expect("a URI");
    }

    /// A chat of the session that begins with another; the same person, in that chat.
    pub async fn opens_chat(&mut self, chat: &str, source: Value) {
        let session = self.session.clone();
        let params = json!({"channel": session, "chat": chat, "source": source});
        let created = self.connection.request("createChat", params).await;
        created.expect("the chat is created");
        self.enters(&session, chat).await;
    }

    async fn watch(&mut self, channel: &str) {
        let uri = ChannelUri::parse(channel).expect("a URI");
        let snapshot = self.connection.subscribe(&uri).await.expect("subscribed");
        let snapshot = snapshot.expect("a snapshot");
        self.mirror.take_snapshot(snapshot).expect("a state we know");
    }

    pub async fn does(&self, action: Value) {
        let done = self.connection.dispatch(&self.chat, action).await;
        done.expect("the connection lives");
    }

    pub async fn does_in(&self, channel: &str, action: Value) {
        let channel = ChannelUri::parse(channel).expect("a URI");
        let done = self.connection.dispatch(&channel, action).await;
        done.expect("the connection lives");
    }

    /// Starts a turn; its id.
    pub async fn sends_message(&mut self, text: &str) -> String {
        self.sends_to_model(text, Value::Null).await
    }

    /// Starts a turn with a model of its choice.
    pub async fn sends_to_model(&mut self, text: &str, model: Value) -> String {
        let mut message = json!({"text": text, "origin": {"kind": "user"}});
        if !model.is_null() {
            message["model"] = model;
        }
        self.sends(message).await
    }

    /// Starts a turn with something attached.
    pub async fn sends_with_attachments(&mut self, text: &str, attachments: Value) -> String {
        let origin = json!({"kind": "user"});
        self.sends(json!({"text": text, "origin": origin, "attachments": attachments})).await
    }

    /// Starts a turn with a message as it is.
    pub async fn sends_whole(&mut self, message: Value) -> String {
        self.sends(message).await
    }

    async fn sends(&mut self, message: Value) -> String {
        // No id is used twice, also by who comes back with nothing in the head.
        let number = TURNS.fetch_add(1, Ordering::Relaxed);
        let turn = format!("{}-{number}", self.name);
        self.turn.clone_from(&turn);
        self.does(json!({
            "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00Z", "message": message,
        }))
        .await;
        turn
    }

    /// Makes itself active in the session, with tools it can carry out.
    pub async fn offers_tools(&mut self, tools: Value) {
        let entry = json!({"clientId": self.name, "tools": tools});
        let action = json!({"type": "session/activeClientSet", "activeClient": entry});
        self.does_in(SESSION, action).await;
        let name = self.name.clone();
        self.until_session(SESSION, move |state| {
            let clients = state["activeClients"].as_array().into_iter().flatten();
            clients
                .into_iter()
                .any(|client| client["clientId"] == name.as_str() && client["tools"] == tools)
        })
        .await;
    }

    /// Carries out the call of its own that runs; it is awaited first.
    pub async fn completes_tool(&mut self, result: Value) -> Value {
        let runs =
            |call: &Value| call["status"] == "running" && call["contributor"]["kind"] == "client";
        let chat = self
            .until("a call of a client runs", |chat| calls_of(&chat["activeTurn"]).iter().any(runs))
            .await;
        let call = calls_of(&chat["activeTurn"]).into_iter().find(runs).expect("one runs");
        let turn = chat["activeTurn"]["id"].clone();
        self.does(json!({
            "type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call["toolCallId"], "result": result,
        }))
        .await;
        call
    }

    pub async fn leaves_word(&self, kind: &str, id: &str, text: &str) {
        self.does(json!({
            "type": "chat/pendingMessageSet", "kind": kind, "id": id,
            "message": {"text": text, "origin": {"kind": "user"}},
        }))
        .await;
    }

    pub async fn resumes(&self, turn: &Value) {
        self.does(json!({"type": "chat/turnResume", "turnId": turn["id"]})).await;
    }

    pub async fn cancels(&self) {
        let turn = self.sees()["activeTurn"]["id"].clone();
        self.does(json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 0})).await;
    }

    /// Decides about the call that waits; it is awaited first.
    pub async fn decides(&mut self, more: Value) -> Value {
        let call = self.asked().await;
        self.decides_about(&call, more).await;
        call
    }

    pub async fn decides_about(&mut self, call: &Value, more: Value) {
        let turn = self.sees()["activeTurn"]["id"].clone();
        let mut action = json!({
            "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call["toolCallId"], "approved": true,
            "confirmed": "user-action",
        });
        for (field, value) in more.as_object().expect("fields") {
            action[field] = value.clone();
        }
        if action["approved"] == false {
            action.as_object_mut().expect("fields").remove("confirmed");
        }
        self.does(action).await;
        let id = call["toolCallId"].clone();
        self.until("the decision arrives", move |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let mut calls = calls.iter();
            !calls.any(|call| call["toolCallId"] == id && waits(call))
        })
        .await;
    }

    /// The call that waits for a decision.
    pub async fn asked(&mut self) -> Value {
        let chat =
            self.until("a call asks", |chat| calls_of(&chat["activeTurn"]).iter().any(waits)).await;
        let mut calls = calls_of(&chat["activeTurn"]).into_iter();
        calls.find(waits).expect("one waits")
    }

    /// The question to the user that is open in the running turn: a `ChatInputRequest`.
    pub async fn questioned(&mut self) -> Value {
        let open = |turn: &Value| {
            let requests = parts_of(turn, "inputRequest").into_iter();
            let mut open = requests.filter(|part| part["response"].is_null());
            open.next().map(|mut part| part["request"].take())
        };
        let chat =
            self.until("a question is asked", |chat| open(&chat["activeTurn"]).is_some()).await;
        open(&chat["activeTurn"]).expect("one is open")
    }

    /// Answers the only question that is open by one of its options; it is awaited first, and returned when its answer was heard.
    pub async fn chooses(&mut self, option: &str) -> Value {
        let request = self.questioned().await;
        let question = request["questions"][0]["id"].as_str().expect("an id");
        let value = json!({"kind": "selected", "value": option});
        self.does(json!({
            "type": "chat/inputCompleted", "requestId": request["id"], "response": "accept",
            "answers": {question: {"state": "submitted", "value": value}},
        }))
        .await;
        let is_open =
            |part: &Value| part["request"]["id"] == request["id"] && part["response"].is_null();
        self.until("the answer is heard", |chat| {
            let asked = parts_of(&chat["activeTurn"], "inputRequest");
            !asked.iter().any(is_open)
        })
        .await;
        request
    }

    /// The chat as it is known now.
    pub fn sees(&self) -> Value {
        let chat = self.mirror.chat(self.chat.as_str());
        chat.expect("the chat is watched").value()
    }

    pub fn sees_session(&self, session: &str) -> Value {
        let state = self.mirror.session(session).expect("it is watched");
        serde_json::to_value(state).expect("JSON")
    }

    /// The last turn, once none runs and the one started last is over.
    pub async fn turn_over(&mut self) -> Value {
        let last = self.turn.clone();
        let chat = self
            .until("the turn ends", move |chat| {
                let turns = chat["turns"].as_array().expect("turns");
                chat["activeTurn"].is_null() && turns.iter().any(|turn| turn["id"] == last.as_str())
            })
            .await;
        let turns = chat["turns"].as_array().expect("turns");
        turns.last().expect("a turn").clone()
    }

    /// The last turn, which must be complete once it is over.
    pub async fn completed_turn(&mut self) -> Value {
        let turn = self.turn_over().await;
        assert_eq!(turn["state"], "complete", "{turn:#}");
        turn
    }

    /// Takes what comes until the chat is as expected.
    pub async fn until(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let chat = self.sees();
            if is_so(&chat) {
                return chat;
            }
            self.wait_for_update(what, &chat).await;
        }
    }

    pub async fn until_session(&mut self, session: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let state = self.sees_session(session);
            if is_so(&state) {
                return state;
            }
            self.wait_for_update("the session changes", &state).await;
        }
    }

    /// Takes what comes until an action of this client is refused; the reason.
    pub async fn refused(&mut self) -> String {
        loop {
            let envelope = self.next("a refusal", &Value::Null).await;
            if let Some(reason) = &envelope.rejection {
                return reason.clone();
            }
            self.mirror.apply(&envelope);
        }
    }

    async fn wait_for_update(&mut self, what: &str, now: &Value) {
        let envelope = self.next(what, now).await;
        assert!(envelope.rejection.is_none(), "{:?}", envelope.rejection);
        self.mirror.apply(&envelope);
    }

    async fn next(&mut self, what: &str, now: &Value) -> Envelope {
        loop {
            let update = timeout(DEADLINE, self.events.next())
                .await
                .unwrap_or_else(|_| panic!("{what}: nothing more comes, and it is {now:#}"))
                .expect("the connection lives");
            if update.method == "action" {
                return Envelope::from_value(update.params).expect("an envelope");
            }
        }
    }

    /// A body that is named by its URI, as text.
    pub async fn reads(&self, uri: &Value) -> String {
        let params = json!({"channel": "ahp-root://", "uri": uri});
        let read = self.connection.request("resourceRead", params).await;
        let read = read.expect("it can be read");
        assert_eq!(read["encoding"], "utf-8");
        read["data"].as_str().expect("text").to_owned()
    }
}

fn waits(call: &Value) -> bool {
    call["status"] == "pending-confirmation"
}
