//! A conversation with an external agent: a host, the scripted ACP agent behind it as a process, a client before it.
//!
//! Promises: everything is waited for as a condition, of what the client sees or of what the agent noted; nothing waits for time
//! to pass.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{interval, timeout};
use wire::ChannelUri;

use crate::TestHost;
use crate::native::ChatClient;

/// Long enough for any machine; nothing is awaited that does not come.
const DEADLINE: Duration = Duration::from_secs(60);

pub const SESSION: &str = "fake:/session";

/// Everything of one test.
pub struct AcpHarness {
    pub ann: ChatClient,
    session: String,
    host: Option<TestHost>,
    directory: TempDir,
}

/// A session before it is there.
pub struct AcpSetup {
    script: Value,
    /// Another agent than the scripted one: its id and its table.
    other: Option<(String, String)>,
    /// Lines of the agent's table in the settings file.
    entry: String,
    /// Lines of the file before it.
    settings: String,
    config: Value,
    files: Vec<(String, String)>,
}

impl AcpSetup {
    pub fn new(script: Value) -> Self {
        Self {
            script,
            other: None,
            entry: "trust = \"always\"".to_owned(),
            settings: String::new(),
            config: json!({}),
            files: Vec::new(),
        }
    }

    /// Lines of the agent's table instead of `trust = "always"`.
    #[must_use]
    pub fn entry(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.entry);
        self
    }

    /// Another agent than the scripted one, by its table in the settings file.
    #[must_use]
    pub fn other_agent(mut self, id: &str, table: &str) -> Self {
        self.other = Some((id.to_owned(), table.to_owned()));
        self
    }

    /// Lines of the settings file.
    #[must_use]
    pub fn settings(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.settings);
        self
    }

    /// Settings of the session.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config;
        self
    }

    /// A file of the working directory.
    #[must_use]
    pub fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub async fn start(self) -> AcpHarness {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "state"] {
            std::fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let work = work_of(directory.path());
        for (path, text) in &self.files {
            let path = work.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, text).expect("the file can be written");
        }
        write_script(directory.path(), &self.script);
        let mut settings = settings_file(directory.path(), &self.settings, &self.entry);
        let mut session = SESSION.to_owned();
        if let Some((id, table)) = &self.other {
            settings.push_str(&format!("\n[[agents]]\nid = \"{id}\"\n{table}\n"));
            session = format!("{id}:/session");
        }
        std::fs::write(directory.path().join("greenroom.toml"), settings).expect("a file");
        let host = start_host(directory.path()).await;
        let mut ann = ChatClient::arrives(&host, "ann").await;
        ann.creates_session(&session, &work, self.config).await;
        AcpHarness { ann, session, host: Some(host), directory }
    }
}

/// The settings of a host that has the scripted agent as `fake`, and no agent that happens to be on this machine.
pub fn settings_file(directory: &Path, settings: &str, entry: &str) -> String {
    let agent = acp_agent::binary().expect("the agent is built");
    let place = |name: &str| json!(directory.join(name)).to_string();
    format!(
        "listen = \"127.0.0.1:0\"\nworkspaces = [{work}]\nagents_auto = false\n{settings}\n\n\
         [[agents]]\nid = \"fake\"\nname = \"Fake\"\ncommand = {command}\n\
         args = [\"--script\", {script}, \"--state\", {state}]\n{entry}\n",
        work = json!(work_of(directory)),
        command = json!(agent),
        script = place("script.json"),
        state = place("state"),
    )
}

pub fn write_script(directory: &Path, script: &Value) {
    std::fs::write(directory.join("script.json"), script.to_string()).expect("a file");
}

pub fn work_of(directory: &Path) -> PathBuf {
    let directory = directory.canonicalize().expect("the directory is there");
    directory.join("work")
}

async fn start_host(directory: &Path) -> TestHost {
    let script = json!({"scenes": [{"steps": [{"say": ["scripted"]}]}]});
    TestHost::start_with(&directory.join("data"), &script, |config| {
        let file = directory.join("greenroom.toml");
        config.load_toml(&file).expect("the settings can be read");
    })
    .await
}

impl AcpHarness {
    /// A session with an agent that plays these scenes.
    pub async fn start(scenes: Value) -> Self {
        AcpSetup::new(json!({"scenes": scenes})).start().await
    }

    pub fn host(&self) -> &TestHost {
        self.host.as_ref().expect("the host serves")
    }

    /// The host stops and another one takes over; Ann comes back with nothing in her head.
    pub async fn restart(&mut self) {
        let chat = self.ann.chat.clone();
        self.host.take().expect("the host serves").stop().await;
        let host = start_host(self.directory.path()).await;
        self.ann = ChatClient::arrives(&host, "ann").await;
        self.ann.enters(&self.session, chat.as_str()).await;
        self.host = Some(host);
    }

    /// The host stops for good; the state directory stays to be read.
    pub async fn stop(&mut self) {
        self.host.take().expect("the host serves").stop().await;
    }

    /// The session's working directory, without links in its path.
    pub fn work(&self) -> PathBuf {
        work_of(self.directory.path())
    }

    pub fn session(&self) -> &str {
        &self.session
    }

    /// The host's own data.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data/data")
    }

    /// Where the agent keeps its sessions and its notes.
    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// What the agent plays from its next prompt, and does from its next process, on.
    pub fn changes_script(&self, script: &Value) {
        write_script(self.directory.path(), script);
    }

    /// Lets a step `{"await": name}` go on.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.state().join(name), "").expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work().join(path)).expect("the file can be read")
    }

    /// Ann says something; the turn once it is over.
    pub async fn talk(&mut self, text: &str) -> Value {
        self.ann.sends_message(text).await;
        self.ann.turn_over().await
    }

    /// The parameters of what the agent was sent by a method, in order. Everything was of the schema.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let frames = self.frames();
        let of_method = frames.iter().filter(|frame| frame["method"] == method);
        of_method.map(|frame| frame["params"].clone()).collect()
    }

    /// Every line that the agent was sent, by all its processes.
    pub fn frames(&self) -> Vec<Value> {
        let received = acp_agent::received(&self.state());
        for line in &received {
            assert!(line.invalid.is_none(), "{line:#?}");
        }
        received.into_iter().map(|line| line.frame).collect()
    }

    /// The methods that the agent was sent, in order.
    pub fn methods(&self) -> Vec<String> {
        let frames = self.frames();
        let methods = frames.iter().filter_map(|frame| frame["method"].as_str());
        methods.map(str::to_owned).collect()
    }

    /// What the agent was answered, in order: results and errors.
    pub fn answers(&self) -> Vec<Value> {
        let frames = self.frames();
        let answers = frames.iter().filter(|frame| frame["method"].is_null());
        answers
            .map(|frame| match frame.get("error") {
                Some(error) => json!({"id": frame["id"], "error": error}),
                None => json!({"id": frame["id"], "result": frame["result"]}),
            })
            .collect()
    }

    /// The text of each prompt, in order.
    pub fn prompts(&self) -> Vec<String> {
        let prompts = self.received("session/prompt");
        prompts.iter().map(prompt_text).collect()
    }

    pub fn starts(&self) -> Vec<acp_agent::Start> {
        acp_agent::starts(&self.state())
    }

    /// What the root says of the agent, once it is as expected.
    pub async fn agent_told(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let looks = async {
            loop {
                let root = self
                    .ann
                    .connection
                    .subscribe(&ChannelUri::root())
                    .await
                    .expect("subscribed")
                    .expect("a snapshot");
                let agents = root.state["agents"].as_array().expect("agents");
                let id = self.session.split(':').next();
                let found = agents.iter().find(|it| it["provider"].as_str() == id);
                let agent = found.expect("the agent is offered").clone();
                if is_so(&agent) {
                    return agent;
                }
            }
        };
        timeout(DEADLINE, looks).await.expect("it is told in time")
    }

    /// Waits for something outside of the protocol.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waits = until(|| is_so(self));
        let waited = timeout(DEADLINE, waits).await;
        waited.unwrap_or_else(|_| panic!("{what} does not come about: {:#?}", self.frames()));
    }
}

/// Looks again and again.
pub async fn until(is_so: impl Fn() -> bool) {
    let mut looks = interval(Duration::from_millis(10));
    while !is_so() {
        looks.tick().await;
    }
}

/// The texts of a prompt's blocks, one under the other.
pub fn prompt_text(params: &Value) -> String {
    let blocks = params["prompt"].as_array().expect("blocks").iter();
    let texts = blocks.map(|block| {
        let text = block["text"].as_str();
        text.or_else(|| block["resource"]["text"].as_str()).unwrap_or("-")
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Whether a process is there and does something: one that ended and that nobody collects does not.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// A scene.
pub fn scene(when: &str, steps: Value) -> Value {
    json!({"when": when, "steps": steps})
}
