//! A conversation with the native agent: a host, a model server behind it, a client before it, a directory to work in.
//!
//! Promises: everything is waited for as a condition of what the client sees; a refused action is never overlooked.

mod chat_client;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};

use crate::TestHost;

pub use chat_client::ChatClient;

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
        ann.creates_session(SESSION, &work_of(directory.path()), config).await;
        Self { model, ann, host: Some(host), settings, directory }
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

    /// Writes a file of the session's working directory, and the directories that it lies in.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        let directory = path.parent().expect("a file is in a directory");
        std::fs::create_dir_all(directory).expect("the directory can be made");
        std::fs::write(path, text).expect("the file can be written");
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
    let others = messages.iter().filter(|message| message["role"] != "system");
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

/// The tool calls of a turn, in order.
pub fn calls_of(turn: &Value) -> Vec<Value> {
    parts_of(turn, "toolCall").into_iter().map(|mut part| part["toolCall"].take()).collect()
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
