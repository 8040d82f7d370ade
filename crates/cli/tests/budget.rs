//! Budgets with the real binary: what was spent survives a kill, and nobody answers for the user.

use crate::running;

use std::process::{Command, Output};

use conformance::native::ChatClient;
use serde_json::json;
use tempfile::TempDir;
use testkit::{Answer, Call, Gate, ModelServer};

use crate::running::{Host, data_directory, text};

const SESSION: &str = "native:/budget";

async fn run(mut command: Command) -> Output {
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

async fn start(data: TempDir, server: &ModelServer) -> Host {
    let model = format!("{}#echo", server.url());
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    started.await.unwrap()
}

fn with_settings(toml: &str) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let directory = data_directory(data.path());
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("greenroom.toml"), toml).unwrap();
    data
}

async fn arrives(host: &Host) -> ChatClient {
    ChatClient::arrives_at(&host.target(), "ann").await
}

#[tokio::test]
async fn a_call_that_was_under_way_when_the_host_was_killed_is_spent() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.answers([Answer::streams(["I am"]).waits(&gate)]);
    // Less than any request has.
    let host = start(with_settings("[budget.day]\ntokens = 50\n"), &server).await;
    let mut ann = arrives(&host).await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({})).await;
    let chat = ann.chat.clone();
    ann.sends_message("go").await;
    gate.reached().await;
    let host = start(host.kill(), &server).await;
    let mut ann = arrives(&host).await;
    ann.enters(SESSION, chat.as_str()).await;
    let turn = ann.sees()["turns"][0].clone();
    assert_eq!(turn["state"], "error", "{turn:#}");
    ann.resumes(&turn).await;
    let request = ann.chooses("stop").await;
    let message = request["message"].as_str().unwrap();
    assert!(message.contains("budget.day.tokens"), "{message}");
    ann.until("it ends", |chat| chat["turns"][0]["state"] == "complete").await;
    assert_eq!(server.requests().len(), 1, "no model was asked again");
}

#[tokio::test]
async fn without_a_terminal_the_question_is_cancelled_and_the_turn_stops() {
    let server = ModelServer::start().await;
    let list = Call::new("c", "list", &json!({}));
    server.answers([Answer::streams(["Looking."]).then_calls([list])]);
    let host = start(with_settings("[budget.turn]\ncalls = 1\n"), &server).await;
    let mut send = host.greenroom();
    send.args(["send", "--agent", "native", "go"]);
    let sent = run(send).await;
    let (out, err) = (text(&sent.stdout), text(&sent.stderr));
    assert_eq!(sent.status.code(), Some(5), "{out}{err}");
    assert!(format!("{out}{err}").contains("Stopped at a limit"), "{out}{err}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_message_may_bring_what_its_session_may_spend() {
    let server = ModelServer::start().await;
    let host = start(tempfile::tempdir().unwrap(), &server).await;
    server.answers([Answer::streams(["Done."]), Answer::streams(["Done."])]);
    let mut ann = arrives(&host).await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({})).await;
    for (budget, usd) in [("$2.50", 2.5), ("off", 0.0)] {
        let mut send = host.greenroom();
        send.args(["send", "--session", SESSION, "--budget", budget, "go"]);
        let sent = run(send).await;
        assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
        let is_set = |state: &serde_json::Value| state["config"]["values"]["budget"] == usd;
        ann.until_session(SESSION, is_set).await;
    }
    let mut send = host.greenroom();
    send.args(["send", "--agent", "native", "--budget", "much", "go"]);
    let refused = run(send).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("2.50"));
    let mut send = host.greenroom();
    send.args(["send", "--agent", "scripted", "--budget", "1", "go"]);
    let refused = run(send).await;
    let err = text(&refused.stderr);
    assert!(err.contains("leave --budget out"), "{err}");
    assert_eq!(server.requests().len(), 2, "nothing was sent without it");
}

#[test]
fn the_settings_file_is_checked_and_shows_budgets() {
    let data = with_settings("[budget.turn]\ncalls = 0\n");
    let mut check = running::greenroom(data.path());
    let checked = check.args(["config", "check"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(2));
    let said = format!("{}{}", text(&checked.stdout), text(&checked.stderr));
    assert!(said.contains("budget.turn.calls must be more than 0"), "{said}");
    let mut init = running::greenroom(data.path());
    let printed = init.args(["config", "init", "--print"]).output().unwrap();
    assert!(text(&printed.stdout).contains("[budget.day]"));
}
