//! The real binary as process 1 of a container: nothing that lost its parent is left behind, and signals and exit codes are
//! those of the program.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::HostTarget;
use conformance::native::ChatClient;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use crate::running::greenroom;

/// Longer than anything takes that works.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a command as process 1 of a namespace of its own; `None` where this machine lets nobody make one.
fn as_process_one(command: &Command) -> Option<Command> {
    let ways: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let unshare = |way: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(way);
        unshare.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
        unshare
    };
    let is_permitted = |way: &&[&str]| {
        let tried = unshare(way).arg("true").stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let way = ways.into_iter().find(is_permitted);
    if way.is_none() {
        eprintln!("NOT TESTED: this machine does not permit process namespaces");
    }
    let mut inside = unshare(way?);
    inside.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside.current_dir(command.get_current_dir().unwrap());
    Some(inside)
}

/// State, parent and number of a process.
fn processes() -> Vec<(char, i32, i32)> {
    let read = |entry: std::fs::DirEntry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        Some((state, fields.next()?.parse().ok()?, number))
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| read(entry.unwrap())).collect()
}

fn children_of(parent: i32) -> Vec<(char, i32)> {
    let children = processes().into_iter().filter(|(_, of, _)| *of == parent);
    children.map(|(state, _, number)| (state, number)).collect()
}

/// A namespace; all in it is gone when the test is.
struct Namespace(Child);

impl Namespace {
    /// Its first process, as it is numbered outside.
    fn process_one(&self) -> i32 {
        let children = children_of(i32::try_from(self.0.id()).unwrap());
        assert_eq!(children.len(), 1, "{children:?}");
        children[0].1
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: waited in vain");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_orphans_is_reaped_and_a_signal_stops_the_host() {
    let server = ModelServer::start().await;
    // Ended before the command is, killed with it, and in sessions of their own: all lose their parents.
    let orphans = "for n in 1 2 3 4 5; do (true &) ; (sleep 1000 &) ; (setsid sleep 1000 &) ; done; sleep 0.2; echo ran";
    let bash = Call::new("c", "bash", &json!({"command": orphans}));
    server.answers([Answer::calls([bash]), Answer::streams(["Done."])]);
    let data = tempfile::tempdir().unwrap();
    let model = format!("{}#echo", server.url());
    let mut command = greenroom(data.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--ready-json", "--no-token"]);
    command.args(["--workspace", ".", "--model", &model]);
    let Some(mut command) = as_process_one(&command) else {
        return; // said above
    };
    let mut namespace = Namespace(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    let mut stdout = BufReader::new(namespace.0.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let target = HostTarget { url: ready["url"].as_str().unwrap().to_owned(), token: None };
    let mut ann = ChatClient::arrives_at(&target, "ann").await;
    let work = data.path().canonicalize().unwrap();
    let permissions = json!({"permissions": "full-access"});
    ann.creates_session("native:/one", &work, permissions).await;
    ann.sends_message("go").await;
    let turn = ann.turn_over().await;
    assert!(turn.to_string().contains("ran\\n[exit code 0]"), "{turn:#}");

    let one = namespace.process_one();
    let zombies = || {
        let children = children_of(one).into_iter();
        children.filter(|(state, _)| *state == 'Z').count()
    };
    wait_until("all orphans are reaped", || zombies() == 0).await;
    kill_process(Pid::from_raw(one).unwrap(), Signal::TERM).unwrap();
    let status = tokio::task::spawn_blocking(move || namespace.0.wait().unwrap());
    let status = tokio::time::timeout(DEADLINE, status).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(0), "SIGTERM stops the host in good order");
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let data = tempfile::tempdir().unwrap();
    let mut command = greenroom(data.path());
    command.args(["send", "--host", "ws://127.0.0.1:9/", "hello"]);
    let Some(mut command) = as_process_one(&command) else {
        return; // said above
    };
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
}
