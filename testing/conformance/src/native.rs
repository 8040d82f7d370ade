//! A conversation with the native agent: a host, a model server behind it, a client before it, a directory to work in.
//!
//! Promises: everything is waited for as a condition of what the client sees; a refused action is never overlooked.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::{Connection, Envelope, Events, Mirror, Target};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};
use tokio::time::timeout;
use wire::ChannelUri;

use crate::TestHost;

/// Long enough for any machine; nothing is awaited that does not come.
const DEADLINE: Duration = Duration::from_secs(60);

static TURNS: AtomicUsize = AtomicUsize::new(0);

pub const SESSION: &str = "native:/session";

/// Everything of one test.
pub struct NativeHarness {
    pub model: ModelServer,
    pub ann: ChatClient,
    host: Option<TestHost>,
    settings: HostSettings,
    directory: TempDir,
}

/// What a host is started with.
type HostSettings = Box<dyn Fn(&mut host::Config) + Send + Sync>;

impl NativeHarness {
    /// A session with one model that asks before it acts.
    pub async fn start() -> Self {
        Self::start_with(json!({})).await
    }

    /// The same with settings of the session.
    pub async fn start_with(config: Value) -> Self {
        Self::start_with_model(config, |_| {}).await
    }

    /// The same with the model's table changed.
    pub async fn start_with_model(config: Value, change: impl FnOnce(&mut host::Model)) -> Self {
        Self::start_with_settings(config, change, |_| {}).await
    }

    /// The same with limits of what may be spent.
    pub async fn start_with_budget(
        config: Value,
        change: impl FnOnce(&mut host::Model),
        budget: host::BudgetSettings,
    ) -> Self {
        Self::start_with_settings(config, change, move |host| host.budget = budget).await
    }

    /// The same with other models beside it.
    pub async fn start_with_models(
        config: Value,
        change: impl FnOnce(&mut Vec<host::Model>),
    ) -> Self {
        Self::start_with_models_and_settings(config, change, |_| {}).await
    }

    /// A session whose agent may fetch pages from these hosts, wherever they are.
    pub async fn start_with_web(config: Value, web_fetch_allow: Vec<String>) -> Self {
        let settings = move |host: &mut host::Config| {
            host.web_fetch_allow.clone_from(&web_fetch_allow);
        };
        Self::start_with_settings(config, |_| {}, settings).await
    }

    /// The same with settings of the host.
    pub async fn start_with_settings(
        config: Value,
        change: impl FnOnce(&mut host::Model),
        settings: impl Fn(&mut host::Config) + Send + Sync + 'static,
    ) -> Self {
        let change = |models: &mut Vec<host::Model>| {
            if let Some(model) = models.first_mut() {
                change(model);
            }
        };
        Self::start_with_models_and_settings(config, change, settings).await
    }

    pub async fn start_with_models_and_settings(
        config: Value,
        change: impl FnOnce(&mut Vec<host::Model>),
        settings: impl Fn(&mut host::Config) + Send + Sync + 'static,
    ) -> Self {
        let model = ModelServer::start().await;
        let table = host::Model::parse(&format!("{}#echo", model.url())).expect("a model");
        let mut models = vec![table];
        change(&mut models);
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["data", "work"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let settings: HostSettings = Box::new(move |host| {
            host.models.clone_from(&models);
            settings(host);
        });
        let host = start(directory.path(), &settings).await;
        let mut ann = ChatClient::arrives(&host, "ann").await;
        ann.creates_session(SESSION, &work_of(directory.path()), config)
            .await;
        Self {
            model,
            ann,
            host: Some(host),
            settings,
            directory,
        }
    }

    pub fn host(&self) -> &TestHost {
        self.host.as_ref().expect("the host serves")
    }

    /// The host stops and another one takes over; Ann comes back with nothing in her head.
    pub async fn restart(&mut self) {
        let chat = self.ann.chat.clone();
        self.host.take().expect("the host serves").stop().await;
        let host = start(self.directory.path(), &self.settings).await;
        self.ann = ChatClient::arrives(&host, "ann").await;
        self.ann.enters(SESSION, chat.as_str()).await;
        self.host = Some(host);
    }

    /// The session's working directory, without links in its path.
    pub fn work(&self) -> PathBuf {
        work_of(self.directory.path())
    }

    /// The host's data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.work().join(path), text).expect("the file can be written");
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work().join(path)).expect("the file can be read")
    }

    /// Ann says something, the model answers with these, one a round; the turn once it is over.
    pub async fn talk(&mut self, text: &str, answers: impl IntoIterator<Item = Answer>) -> Value {
        self.model.answers(answers);
        self.ann.sends_message(text).await;
        self.ann.turn_over().await
    }

    /// The body of the last request, without what every request of a session has in common.
    pub fn last_messages(&self) -> Vec<Value> {
        let requests = self.model.requests();
        messages(&requests.last().expect("the model was asked").json())
    }

    /// What the model got as results of its calls in the last request, in order.
    pub fn last_results(&self) -> Vec<String> {
        let messages = self.last_messages();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        results.map(text_of).collect()
    }
}

/// The messages of a request but the system's.
pub fn messages(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().expect("messages");
    let others = messages
        .iter()
        .filter(|message| message["role"] != "system");
    others.cloned().collect()
}

fn text_of(message: &Value) -> String {
    message["content"].as_str().expect("text").to_owned()
}

/// Messages in a line each, for reading.
pub fn script_of(messages: &[Value]) -> String {
    let lines = messages.iter().map(|message| {
        let mut line = format!("{}: ", message["role"].as_str().unwrap_or("?"));
        line.push_str(&read_content(&message["content"]));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let name = function["name"].as_str().unwrap_or("?");
            let input = function["arguments"].as_str().unwrap_or("?");
            line.push_str(&format!(" [{name} {input}]"));
        }
        line + "\n"
    });
    lines.collect()
}

/// The text of a content; several texts are separated by bars.
fn read_content(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts: Option<Vec<&str>> = blocks.iter().map(|block| block["text"].as_str()).collect();
    match texts {
        Some(texts) if !texts.is_empty() => texts.join(" | "),
        _ => "-".to_owned(),
    }
}

fn work_of(directory: &Path) -> PathBuf {
    let directory = directory.canonicalize().expect("the directory is there");
    directory.join("work")
}

async fn start(directory: &Path, settings: &HostSettings) -> TestHost {
    let script = json!({"scenes": [{"steps": [{"say": ["scripted"]}]}]});
    TestHost::start_with(&directory.join("data"), &script, |config| {
        config.workspaces = vec![work_of(directory)];
        settings(config);
    })
    .await
}

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
        let target = Target {
            url: host.url.clone(),
            token: None,
        };
        Self::arrives_at(&target, name).await
    }

    pub async fn arrives_at(target: &Target, name: &str) -> Self {
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
        self.mirror
            .take_snapshot(snapshot)
            .expect("a state we know");
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
        self.sends(json!({"text": text, "origin": origin, "attachments": attachments}))
            .await
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
            .until("a call of a client runs", |chat| {
                calls_of(&chat["activeTurn"]).iter().any(runs)
            })
            .await;
        let call = calls_of(&chat["activeTurn"]).into_iter().find(runs);
        let call = call.expect("one runs");
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
        self.does(json!({"type": "chat/turnResume", "turnId": turn["id"]}))
            .await;
    }

    pub async fn cancels(&self) {
        let turn = self.sees()["activeTurn"]["id"].clone();
        self.does(json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 0}))
            .await;
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
        let chat = self
            .until("a call asks", |chat| {
                calls_of(&chat["activeTurn"]).iter().any(waits)
            })
            .await;
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
        let chat = self
            .until("a question is asked", |chat| {
                open(&chat["activeTurn"]).is_some()
            })
            .await;
        open(&chat["activeTurn"]).expect("one is open")
    }

    /// Answers the only question that is open by one of its options; it is awaited first, and returned.
    pub async fn chooses(&mut self, option: &str) -> Value {
        let request = self.questioned().await;
        let question = request["questions"][0]["id"].as_str().expect("an id");
        let value = json!({"kind": "selected", "value": option});
        self.does(json!({
            "type": "chat/inputCompleted", "requestId": request["id"], "response": "accept",
            "answers": {question: {"state": "submitted", "value": value}},
        }))
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
            let update = timeout(DEADLINE, self.events.next()).await;
            let update =
                update.unwrap_or_else(|_| panic!("{what}: nothing more comes, and it is {now:#}"));
            let update = update.expect("the connection lives");
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

/// The tool calls of a turn, in order.
pub fn calls_of(turn: &Value) -> Vec<Value> {
    parts_of(turn, "toolCall")
        .into_iter()
        .map(|mut part| part["toolCall"].take())
        .collect()
}

/// The parts of a kind.
pub fn parts_of(turn: &Value, kind: &str) -> Vec<Value> {
    let parts = turn["responseParts"].as_array().into_iter().flatten();
    parts.filter(|part| part["kind"] == kind).cloned().collect()
}

/// The last error of a turn that ended in one.
pub fn error_of(turn: &Value) -> Value {
    assert_eq!(turn["state"], "error", "{turn:#}");
    let errors = parts_of(turn, "error");
    errors.last().expect("an error part").clone()
}

/// A call of the shell tool.
pub fn bash(command: &str) -> Call {
    Call::new("call_bash", "bash", &json!({"command": command}))
}

/// An answer without tool calls: the turn ends with it.
pub fn ends() -> Answer {
    Answer::streams(["done"])
}

/// The texts of the parts of a kind.
pub fn texts_in(turn: &Value, kind: &str) -> Vec<String> {
    let text = |part: &Value| part["content"].as_str().unwrap_or("").to_owned();
    parts_of(turn, kind).iter().map(text).collect()
}
