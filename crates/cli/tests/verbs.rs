//! The verbs from outside: a real host, a real socket, one process per verb.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn greenroom(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.env_remove("GREENROOM_TOKEN").env("XDG_DATA_HOME", data).current_dir(data);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A host that is gone when the test is.
struct Host {
    child: Child,
    ready: Value,
}

impl Host {
    fn start(data: &Path) -> Self {
        let mut command = greenroom(data);
        command.args(["serve", "--listen", "127.0.0.1:0", "--ready-json", "--workspace", "."]);
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { child, ready: serde_json::from_str(&line).unwrap() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn run(data: &Path, arguments: &[&str]) -> Output {
    greenroom(data).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_message_is_answered_and_its_session_is_listed_and_goes_on() {
    let data = tempfile::tempdir().unwrap();
    let mut host = Host::start(data.path());
    assert!(host.ready["url"].as_str().unwrap().starts_with("ws://127.0.0.1:"));
    assert_eq!(host.ready["pid"], host.child.id());

    let sent = run(data.path(), &["send", "hello"]);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    assert!(text(&sent.stdout).starts_with("Hello! "));
    let session = text(&sent.stderr).trim().strip_prefix("session ").unwrap().to_owned();
    assert!(session.starts_with("scripted:/"), "{session}");

    let again = run(data.path(), &["send", "stream 2", "--session", &session, "--json"]);
    let last = text(&again.stdout).lines().last().unwrap().to_owned();
    let result: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&result["state"], &result["session"]), (&"complete".into(), &session.into()));
    assert_eq!(result["text"].as_str().map(str::len), Some(80));

    let listed = run(data.path(), &["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions.as_array().map(Vec::len), Some(1));

    let checked = run(data.path(), &["doctor"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));

    signal(&host.child, Signal::TERM);
    assert_eq!(host.child.wait().unwrap().code(), Some(0));
}

#[test]
fn exit_codes_reflect_the_outcome() {
    let data = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| run(data.path(), arguments).status.code();
    assert_eq!(code(&["send", "hello"]), Some(4), "no host");
    assert_eq!(code(&["send"]), Some(2), "no text");
    assert_eq!(code(&["serve", "--no-token", "--listen", "0.0.0.0:0"]), Some(2), "open to all");
    assert_eq!(code(&[]), Some(0), "help");

    let _host = Host::start(data.path());
    assert_eq!(code(&["send", "hello", "--token", "wrong"]), Some(4), "wrong token");
    assert_eq!(code(&["send", "hello", "--agent", "nobody"]), Some(4), "no such agent");
    assert_eq!(code(&["send", "hello", "--session", "scripted:/none"]), Some(4), "no such session");
    assert_eq!(code(&["send", "x", "--session", "no such title"]), Some(2), "a name of no session");
    let failed = run(data.path(), &["send", "fail"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("can be resumed"), "{}", text(&failed.stderr));
}

#[test]
fn an_interrupt_cancels_the_turn() {
    let data = tempfile::tempdir().unwrap();
    let _host = Host::start(data.path());
    let mut sending = greenroom(data.path()).args(["send", "hang"]).spawn().unwrap();
    let mut begun = [0; 4];
    sending.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    signal(&sending, Signal::INT);
    let output = sending.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).ends_with("cancelled\n"), "{}", text(&output.stderr));
}
