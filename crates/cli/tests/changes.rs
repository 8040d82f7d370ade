//! What a session changed, listed, shown, taken back and committed in a real terminal by the real binary.

use std::fs;
use std::path::Path;
use std::process::Command;

use client::Target;
use conformance::native::{ChatClient, bash};
use serde_json::json;
use testkit::{Answer, Call, ModelServer};

use crate::running::Host;
use crate::terminal::Terminal;

const SESSION: &str = "native:/changes";

fn git(directory: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.current_dir(directory).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_listed_shown_taken_back_and_committed() {
    let server = ModelServer::start().await;
    let model = format!("{}#echo", server.url());
    let data = tempfile::tempdir().unwrap();
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    let host = started.await.unwrap();
    let work = host.data.path().canonicalize().unwrap().join("project");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(work.join("gone.txt"), "gone\n").unwrap();
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    git(&work, &["config", "user.name", "Test"]);
    git(&work, &["config", "user.email", "test@example.com"]);
    git(&work, &["add", "--all"]);
    git(&work, &["commit", "--quiet", "-m", "first"]);
    let edits = json!([{"old_text": "two", "new_text": "2"}]);
    let edit = Call::new("e", "edit", &json!({"path": "a.txt", "edits": edits}));
    let command = bash("rm gone.txt && echo new > new.txt");
    let answers = [
        Answer::calls([edit]),
        Answer::calls([command]),
        Answer::streams(["All changed."]),
    ];
    server.answers(answers);
    let target = Target {
        url: host.ready["url"].as_str().unwrap().to_owned(),
        token: host.ready["token"].as_str().map(str::to_owned),
    };
    let mut ann = ChatClient::arrives_at(&target, "ann").await;
    let config = json!({"approvals": "full-access"});
    ann.creates_session(SESSION, &work, config).await;
    let typed = tokio::task::spawn_blocking(move || type_commands(&host, &work));
    typed.await.unwrap();
}

fn type_commands(host: &Host, work: &Path) {
    let mut command = host.greenroom();
    command.args(["chat", "--session", SESSION]);
    let mut ann = Terminal::start("ann", command);
    ann.sees("\n›");
    ann.type_line("change them");
    // What commands changed is known when the turn has ended.
    ann.sees("15 out");
    ann.type_line("/changes");
    let screen = ann.sees("/discard all takes back");
    for text in [
        "3 files changed in this session +2 -2",
        "1 M a.txt +1 -1",
        "2 D gone.txt +0 -1",
        "3 A new.txt +1 -0",
    ] {
        assert!(screen.contains(text), "{text}:\n{screen}");
    }
    ann.type_line("/changes 1");
    // The call showed it once already.
    ann.wait_until(|screen| screen.matches("2 + 2").count() == 2);
    ann.type_line("/discard 2");
    ann.sees("Make this as before this session?");
    ann.press("\x1b[B");
    ann.sees("❯ Discard");
    ann.press("\r");
    ann.sees("1 file is what it was.");
    assert_eq!(fs::read_to_string(work.join("gone.txt")).unwrap(), "gone\n");
    ann.type_line("/commit Change a and add new");
    ann.sees("hooks of this repository");
    assert_eq!(
        git(work, &["log", "-1", "--format=%s"]),
        "Change a and add new"
    );
    assert_eq!(git(work, &["status", "--short"]), "");
}
