//! The agent itself, driven by hand over its pipes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn state(directory: &TempDir) -> PathBuf {
    directory.path().join("state")
}

impl Agent {
    fn start(directory: &TempDir, script: &Value) -> Self {
        let file = directory.path().join("script.json");
        std::fs::write(&file, script.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-agent"));
        command.arg("--script").arg(&file).arg("--state");
        command.arg(state(directory)).current_dir(directory.path());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut agent = Self { child, input, output, next: 100 };
        let (_, told) = agent.call("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(told["result"]["protocolVersion"], 1);
        agent
    }

    fn send(&mut self, frame: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{frame}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    fn next(&mut self) -> Value {
        let line = self.output.next().expect("it goes on").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Everything until the answer to a request, and the answer.
    fn until_answer(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let frame = self.next();
            if frame["id"] == id && frame["method"].is_null() {
                return (before, frame);
            }
            before.push(frame);
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> (Vec<Value>, Value) {
        let id = self.ask(method, params);
        self.until_answer(id)
    }

    fn opens(&mut self, directory: &Path) -> String {
        let params = json!({"cwd": directory, "mcpServers": []});
        let (_, opened) = self.call("session/new", &params);
        opened["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompts(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }
}

fn said(frames: &[Value], kind: &str) -> Vec<String> {
    let updates = frames.iter().map(|frame| &frame["params"]["update"]);
    let of_kind = updates.filter(|update| update["sessionUpdate"] == kind);
    of_kind.map(|update| update["content"]["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_call_asks_with_id_zero_and_the_answer_decides() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made.txt");
    let write = json!({"path": made, "text": "made"});
    let tool = json!({"tool": {"title": "make", "kind": "edit", "ask": {}, "write": write}});
    let script = json!({"scenes": [{"when": "make", "steps": [tool, {"say": ["{{last}}"]}]}]});
    let mut agent = Agent::start(&directory, &script);
    let session = agent.opens(directory.path());
    for (option, is_there) in [("reject", false), ("once", true)] {
        let id = agent.prompts(&session, "make it");
        let question = loop {
            let frame = agent.next();
            if frame["method"] == "session/request_permission" {
                break frame;
            }
        };
        assert_eq!(question["params"]["toolCall"]["toolCallId"], "call_1");
        assert_eq!(question["id"], if is_there { 1 } else { 0 });
        let outcome = json!({"outcome": "selected", "optionId": option});
        agent
            .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": outcome}}));
        let (_, answer) = agent.until_answer(id);
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        assert_eq!(made.exists(), is_there);
    }
}

#[test]
fn a_session_is_there_for_the_next_process_and_comes_again_after_the_answer_if_so_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut script = json!({"scenes": [
        {"when": "^hang", "steps": [{"say": ["half"]}, "hang"]},
        {"steps": [{"say": ["I know {{history}}"]}]},
    ]});
    let mut agent = Agent::start(&directory, &script);
    let session = agent.opens(directory.path());
    let id = agent.prompts(&session, "first");
    agent.until_answer(id);
    agent.prompts(&session, "hang");
    while said(&[agent.next()], "agent_message_chunk") != ["half"] {}
    drop(agent);

    script["replay"] = json!("after-response");
    let mut agent = Agent::start(&directory, &script);
    let params = json!({"sessionId": session, "cwd": directory.path(), "mcpServers": []});
    let (before, loaded) = agent.call("session/load", &params);
    assert!(before.is_empty() && loaded["result"].is_object(), "{loaded}");
    let past: Vec<Value> = (0..3).map(|_| agent.next()).collect();
    assert_eq!(said(&past, "user_message_chunk"), ["first", "hang"]);
    assert_eq!(said(&past, "agent_message_chunk"), ["I know []"]);
    let id = agent.prompts(&session, "again");
    let (frames, _) = agent.until_answer(id);
    let words = [r#"I know ["first","hang"]"#];
    assert_eq!(said(&frames, "agent_message_chunk"), words);
    assert_eq!(acp_agent::starts(&state(&directory)).len(), 2);
}

#[test]
fn a_cancel_ends_the_prompt_and_takes_its_question_back() {
    let directory = tempfile::tempdir().unwrap();
    let tool = json!({"tool": {"title": "run", "ask": {}}});
    let script = json!({"withdraws_on_cancel": true, "scenes": [{"steps": [tool]}]});
    let mut agent = Agent::start(&directory, &script);
    let session = agent.opens(directory.path());
    let id = agent.prompts(&session, "go");
    while agent.next()["method"] != "session/request_permission" {}
    let params = json!({"sessionId": session});
    agent.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}));
    let (frames, answer) = agent.until_answer(id);
    assert_eq!(frames.last().unwrap()["method"], "$/cancel_request");
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}

#[test]
fn a_rule_counts_over_processes() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        json!({"answers": [{"method": "session/new", "times": 1, "steps": [{"exit": 3}]}]});
    let mut agent = Agent::start(&directory, &script);
    agent.ask("session/new", &json!({"cwd": directory.path(), "mcpServers": []}));
    assert_eq!(agent.child.wait().unwrap().code(), Some(3));
    let mut agent = Agent::start(&directory, &script);
    agent.opens(directory.path());
    agent.input = None;
    assert_eq!(agent.child.wait().unwrap().code(), Some(0), "its input ended");
}

#[test]
fn a_mistake_in_the_script_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.json");
    std::fs::write(&file, r#"{"scenes": [{"steps": [{"sya": ["hello"]}]}]}"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-agent"));
    command.arg("--script").arg(&file).arg("--state").arg(state(&directory));
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("sya"), "{told}");
}

#[test]
fn what_is_not_of_the_schema_is_noted_and_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(&directory, &json!({}));
    let (_, answer) = agent.call("session/new", &json!({"mcpServers": []}));
    assert_eq!(answer["error"]["code"], -32602);
    let received = acp_agent::received(&state(&directory));
    assert!(received.last().unwrap().invalid.is_some(), "{received:?}");
}
