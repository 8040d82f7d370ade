//! The real binary with a real agent process behind it, killed with `kill -9` at every point of a turn: nothing is left running,
//! nothing is said twice, and the next turn works.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::HostTarget;
use conformance::acp::{is_alive, scene, settings_file, until, work_of, write_script};
use conformance::native::{ChatClient, calls_of, error_of, texts_in};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

const SESSION: &str = "fake:/killed";

/// Long enough for any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A host process, and the directory that outlives it.
struct Killed {
    directory: TempDir,
    child: Child,
    ann: ChatClient,
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(directory: &Path) -> (Child, HostTarget) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(["serve", "--no-token", "--ready-json", "--no-scripted"]);
    command.args(["--config", "greenroom.toml", "--data", "data"]);
    command.env("GREENROOM_MODEL_PORTS", "");
    command.current_dir(directory);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let url = ready["url"].as_str().unwrap().to_owned();
    (child, HostTarget { url, token: None })
}

impl Killed {
    async fn start(script: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["data", "work", "state"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        write_script(directory.path(), script);
        let settings = settings_file(directory.path(), "", "trust = \"always\"");
        std::fs::write(directory.path().join("greenroom.toml"), settings).unwrap();
        let (child, target) = serve(directory.path());
        let mut ann = ChatClient::arrives_at(&target, "ann").await;
        let work = work_of(directory.path());
        ann.creates_session(SESSION, &work, json!({})).await;
        Self { directory, child, ann }
    }

    fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.state().join(name), "").unwrap();
    }

    /// `kill -9` of the host; returns when all that its agent started is gone, and another host serves.
    async fn dies_and_comes_back(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let agents = acp_agent::starts(&self.state()).into_iter().map(|it| it.pid);
        let all: Vec<u32> = agents.chain(acp_agent::children(&self.state())).collect();
        let gone = until(|| !all.iter().any(|pid| is_alive(*pid)));
        timeout(DEADLINE, gone).await.expect("no process is left");
        let chat = self.ann.chat.clone();
        let (child, target) = serve(self.directory.path());
        self.child = child;
        self.ann = ChatClient::arrives_at(&target, "ann").await;
        self.ann.enters(SESSION, chat.as_str()).await;
    }

    /// The last turn as it is found.
    async fn last_turn(&mut self) -> Value {
        let over = |chat: &Value| {
            chat["activeTurn"].is_null() && !chat["turns"].as_array().unwrap().is_empty()
        };
        let chat = self.ann.until("the turn is closed", over).await;
        chat["turns"].as_array().unwrap().last().unwrap().clone()
    }

    async fn talk(&mut self, text: &str) -> Value {
        self.ann.sends_message(text).await;
        self.ann.turn_over().await
    }

    async fn reaches(&self, name: &str) {
        let file = self.state().join(name);
        let reached = until(|| file.exists());
        timeout(DEADLINE, reached).await.expect("the agent gets there");
    }

    fn count(&self, method: &str) -> usize {
        let received = acp_agent::received(&self.state());
        let of_method = received.iter().filter(|line| line.frame["method"] == method);
        of_method.count()
    }
}

fn remembers() -> Value {
    scene("", json!([{"say": ["I know {{history}}"]}]))
}

#[tokio::test]
async fn in_mid_turn() {
    let script = json!({"scenes": [scene("^go", json!([{"say": ["half"]}, "hang"])), remembers()]});
    let mut killed = Killed::start(&script).await;
    killed.ann.sends_message("go").await;
    let half = |chat: &Value| texts_in(&chat["activeTurn"], "markdown") == ["half"];
    killed.ann.until("half of it", half).await;
    killed.dies_and_comes_back().await;
    let turn = killed.last_turn().await;
    assert_eq!(error_of(&turn)["resumable"], true, "{turn:#}");
    assert_eq!(texts_in(&turn, "markdown"), ["half"]);
    let next = killed.talk("next").await;
    assert_eq!(texts_in(&next, "markdown"), [r#"I know ["go"]"#], "{next:#}");
    assert_eq!(killed.count("session/new"), 1);
}

#[tokio::test]
async fn in_mid_turn_and_the_turn_goes_on() {
    let rest = scene("interrupted", json!([{"say": ["the second half"]}]));
    let first = scene("^go", json!([{"say": ["the first half, "]}, "hang"]));
    let mut killed = Killed::start(&json!({"scenes": [rest, first]})).await;
    killed.ann.sends_message("go").await;
    let half = |chat: &Value| texts_in(&chat["activeTurn"], "markdown") == ["the first half, "];
    killed.ann.until("half of it", half).await;
    killed.dies_and_comes_back().await;
    let turn = killed.last_turn().await;
    killed.ann.resumes(&turn).await;
    let is_whole = |chat: &Value| chat["turns"][0]["state"] == "complete";
    let chat = killed.ann.until("it goes on", is_whole).await;
    let said = texts_in(&chat["turns"][0], "markdown");
    assert_eq!(said, ["the first half, ", "the second half"], "{chat:#}");
    assert_eq!(chat["turns"].as_array().unwrap().len(), 1);
    let counts = ["session/new", "session/resume", "session/prompt"].map(|it| killed.count(it));
    assert_eq!(counts, [1, 1, 2]);
}

#[tokio::test]
async fn in_mid_question() {
    let tool = json!({"title": "make", "kind": "edit", "ask": {}, "write": {"path": "made.txt", "text": "made"}});
    let child = json!({"child": {"ignores_term": false}});
    let script = json!({"scenes": [scene("^go", json!([child, {"tool": tool}])), remembers()]});
    let mut killed = Killed::start(&script).await;
    killed.ann.sends_message("go").await;
    killed.ann.asked().await;
    killed.dies_and_comes_back().await;
    let turn = killed.last_turn().await;
    assert_eq!(error_of(&turn)["resumable"], true, "{turn:#}");
    let call = calls_of(&turn).remove(0);
    assert_eq!(call["status"], "cancelled", "{call:#}");
    assert_eq!(call["reason"], "skipped", "{call:#}");
    let next = killed.talk("next").await;
    assert_eq!(next["state"], "complete", "{next:#}");
    assert!(!work_of(killed.directory.path()).join("made.txt").exists());
}

#[tokio::test]
async fn between_a_session_of_the_agent_and_the_note_of_it() {
    let rule = json!({"method": "session/new", "times": 1, "steps": [{"touch": "asked"}, {"await": "never"}]});
    let script = json!({"answers": [rule], "scenes": [remembers()]});
    let mut killed = Killed::start(&script).await;
    killed.ann.sends_message("go").await;
    killed.reaches("asked").await;
    killed.dies_and_comes_back().await;
    let turn = killed.last_turn().await;
    assert_eq!(error_of(&turn)["resumable"], true, "{turn:#}");
    let next = killed.talk("next").await;
    assert_eq!(texts_in(&next, "markdown"), ["I know []"], "{next:#}");
    assert_eq!(killed.count("session/new"), 2);
}

#[tokio::test]
async fn while_the_agent_loads_its_session() {
    let rule = json!({"method": "session/load", "times": 1, "steps": [{"touch": "asked"}, {"await": "go"}]});
    let no_resume = json!({"agentCapabilities": {"sessionCapabilities": {"resume": null}}});
    let script = json!({"initialize": no_resume, "answers": [rule], "scenes": [remembers()]});
    let mut killed = Killed::start(&script).await;
    killed.talk("one").await;
    killed.dies_and_comes_back().await;
    killed.ann.sends_message("two").await;
    killed.reaches("asked").await;
    killed.dies_and_comes_back().await;
    let turn = killed.last_turn().await;
    assert_eq!(error_of(&turn)["resumable"], true, "{turn:#}");
    killed.touch("go");
    let next = killed.talk("three").await;
    assert_eq!(next["state"], "complete", "{next:#}");
    // The turn that was cut off never reached the agent's session, so the agent is told everything anew.
    let received = acp_agent::received(&killed.state());
    let mut prompts = received.iter().filter(|line| line.frame["method"] == "session/prompt");
    let told = prompts.next_back().unwrap().frame["params"]["prompt"].to_string();
    assert!(told.contains("one") && told.contains("two"), "{told}");
    let chat = killed.ann.sees();
    assert_eq!(chat["turns"].as_array().unwrap().len(), 3);
    assert_eq!(texts_in(&chat["turns"][0], "markdown"), ["I know []"]);
}
