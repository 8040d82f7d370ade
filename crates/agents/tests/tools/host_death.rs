//! A host that is killed takes its commands with it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;
use tokio::sync::mpsc;

use crate::background::Chat;
use crate::bash::{TREE, TREE_PROCESSES};
use crate::processes::{Process, numbers};
use crate::{Session, named};

/// Says that this process is the host.
const IS_HOST: &str = "TOOLS_TEST_IS_HOST";

/// Not a test by itself: the host of the one below.
#[tokio::test]
async fn host() {
    if std::env::var_os(IS_HOST).is_none() {
        return;
    }
    let session = Session::new();
    let (output, mut updates) = mpsc::channel(1);
    let (input, tool) = (json!({"command": TREE}), named("bash"));
    let run = tool.run(&input, &session.workspace, &output);
    let watch = async {
        while let Some(text) = updates.recv().await {
            if numbers(&text, TREE_PROCESSES).is_some() {
                println!("\n{text}");
            }
        }
    };
    let (outcome, ()) = tokio::join!(run, watch);
    panic!("{outcome:?}");
}

/// Not a test by itself either: a host whose command runs in the background.
#[tokio::test]
async fn background_host() {
    if std::env::var_os(IS_HOST).is_none() {
        return;
    }
    let chat = Chat::new();
    let (id, _) = chat.start(TREE).await;
    loop {
        println!("\n{}", chat.look(&id).await);
    }
}

#[test]
fn commands_do_not_outlive_a_killed_host() {
    dies_with_its_processes("host_death::host");
}

#[test]
fn background_commands_do_not_outlive_a_killed_host() {
    dies_with_its_processes("host_death::background_host");
}

fn dies_with_its_processes(host: &str) {
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", host, "--nocapture"])
        .env(IS_HOST, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut lines = BufReader::new(host.stdout.take().unwrap());
    let processes: Vec<Process> = loop {
        assert_ne!(lines.read_line(&mut text).unwrap(), 0, "{text}");
        if let Some(numbers) = numbers(&text, TREE_PROCESSES) {
            break numbers.into_iter().map(Process::new).collect();
        }
    };
    assert!(processes.iter().all(|process| process.was_alive() && process.is_alive()));
    host.kill().unwrap();
    host.wait().unwrap();
    processes.iter().for_each(Process::is_gone);
}
