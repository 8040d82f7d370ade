//! `greenroom watch` from outside: a chat, a session, the root; JSON and words; over the death of the host.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::running::{Host, text};

/// A watcher whose lines are read as they come.
struct Watcher {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watcher {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("another line").unwrap()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Reads on to the line that has this value under this pointer.
    fn until(&mut self, pointer: &str, value: &str) -> Value {
        loop {
            let line = self.json();
            if line.pointer(pointer) == Some(&json!(value)) {
                return line;
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn chat_of(host: &Host, session: &str) -> String {
    let mut command = host.greenroom();
    command.args(["watch", "--json", session]);
    let state = Watcher::start(command).json();
    let chat = &state["state"]["defaultChat"];
    chat.as_str().unwrap().to_owned()
}

#[test]
fn a_chat_is_followed_action_by_action() {
    let host = Host::start();
    let session = host.new_session("hello");
    let chat = chat_of(&host, &session);
    let mut command = host.greenroom();
    command.args(["watch", "--json", &chat]);
    let mut watcher = Watcher::start(command);
    let state = watcher.json();
    assert_eq!((&state["type"], &state["channel"]), (&json!("state"), &json!(chat)));
    assert_eq!(state["state"]["turns"].as_array().map(Vec::len), Some(1));

    host.run(&["send", "--session", &session, "stream 3"]);
    let mut seqs = vec![state["serverSeq"].as_u64().unwrap()];
    let mut names = Vec::new();
    loop {
        let line = watcher.json();
        assert_eq!(line["type"], "action");
        seqs.push(line["serverSeq"].as_u64().unwrap());
        let name = line["action"]["type"].as_str().unwrap().to_owned();
        names.push(name.clone());
        if name == "chat/turnComplete" {
            break;
        }
    }
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert_eq!(names[0], "chat/turnStarted");
    let deltas = names.iter().filter(|name| *name == "chat/delta").count();
    assert_eq!(deltas, 3, "{names:?}");

    kill_process(Pid::from_child(&watcher.child), Signal::INT).unwrap();
    assert_eq!(watcher.child.wait().unwrap().code(), Some(0));
}

#[test]
fn new_sessions_appear_on_the_root_channel() {
    let host = Host::start();
    let mut command = host.greenroom();
    command.args(["watch", "--json", "ahp-root://"]);
    let mut watcher = Watcher::start(command);
    assert_eq!(watcher.json()["state"]["agents"][0]["provider"], "scripted");
    let session = host.new_session("hello");
    let added = watcher.until("/method", "root/sessionAdded");
    assert_eq!(added["params"]["summary"]["resource"], session.as_str());
}

#[test]
fn output_is_text_by_default_and_a_missing_channel_is_reported() {
    let host = Host::start();
    let session = host.new_session("hello");
    let mut command = host.greenroom();
    command.args(["watch", &chat_of(&host, &session)]);
    let mut watcher = Watcher::start(command);
    let first = watcher.line();
    assert!(first.ends_with(": 1 turn, idle"), "{first}");
    host.run(&["send", "--session", &session, "hello"]);
    let started = watcher.line();
    assert!(started.contains("chat/turnStarted (by greenroom-"), "{started}");

    let missing = host.run(&["watch", "scripted:/none"]);
    assert_eq!(missing.status.code(), Some(4), "{}", text(&missing.stderr));
}

#[test]
fn a_watcher_outlives_the_host() {
    let host = Host::start();
    let session = host.new_session("hello");
    let chat = chat_of(&host, &session);
    let mut command = host.greenroom();
    command.args(["watch", "--json", &chat]);
    let mut watcher = Watcher::start(command);
    assert_eq!(watcher.json()["type"], "state");
    let host = Host::start_with(host.kill(), &[]);
    watcher.until("/state", "back");
    host.run(&["send", "--session", &session, "hello"]);
    watcher.until("/action/type", "chat/turnStarted");
    watcher.until("/action/type", "chat/turnComplete");
}
