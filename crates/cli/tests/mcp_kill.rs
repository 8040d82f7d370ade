//! The real binary with a real MCP server behind it, killed with `kill -9` in the middle of a call: nothing is left running, and
//! the next turn has a server of its own.

use std::path::Path;
use std::time::Duration;

use conformance::acp::{is_alive, until};
use conformance::native::{ChatClient, calls_of, messages};
use mcp_server::Switches;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};

use crate::running::{Host, data_directory};

const SESSION: &str = "native:/killed";

/// Long enough for any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Set where this executable is the server.
const PLAYS: &str = "MCP_TEST_PLAYS_SERVER";

/// No test by itself: what the next one has the host start.
#[test]
fn plays_the_server() {
    if std::env::var_os(PLAYS).is_some() {
        mcp_server::run_with(Switches::default()).unwrap();
    }
}

fn declare(data: &Path) {
    let server = json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "mcp_kill::plays_the_server", "--nocapture"],
        "env": {PLAYS: "1"},
    });
    let directory = data_directory(data);
    std::fs::create_dir_all(&directory).unwrap();
    let file = json!({"mcpServers": {"test": server}});
    std::fs::write(directory.join("mcp.json"), file.to_string()).unwrap();
}

async fn start(data: TempDir, model: &ModelServer) -> (Host, ChatClient) {
    let model = format!("{}#echo", model.url());
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    let host = started.await.unwrap();
    let ann = ChatClient::arrives_at(&host.target(), "ann").await;
    (host, ann)
}

fn call(tool: &str, input: &Value) -> Answer {
    Answer::calls([Call::new(tool, &format!("mcp__test__{tool}"), input)])
}

/// What the model was last told of a call.
fn last_result(model: &ModelServer) -> String {
    let requests = model.requests();
    let all = messages(&requests.last().unwrap().json());
    let told = all.iter().rev().find(|message| message["role"] == "tool");
    told.unwrap()["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_killed_host_leaves_no_server_behind_and_the_next_one_starts_its_own() {
    let data = tempfile::tempdir().unwrap();
    declare(data.path());
    let work = data.path().canonicalize().unwrap();
    let model = ModelServer::start().await;
    let (host, mut ann) = start(data, &model).await;
    ann.creates_session(SESSION, &work, json!({"approvals": "full-access"})).await;
    let slow = json!({"steps": 1_000_000, "ms": 20});
    model.answers([call("pid", &json!({})), call("child", &json!({})), call("slow", &slow)]);
    ann.sends_message("go").await;
    let chat = ann
        .until("progress", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let shown = calls.get(2).map(|call| call["content"].to_string());
            shown.is_some_and(|shown| shown.contains("step"))
        })
        .await;
    let calls = calls_of(&chat["activeTurn"]);
    let number = |at: usize| -> u32 {
        let text = calls[at]["content"][0]["text"].as_str().unwrap();
        text.trim().parse().unwrap()
    };
    let processes = [number(0), number(1)];
    assert!(processes.iter().all(|pid| is_alive(*pid)), "{processes:?}");

    let (chat, data) = (ann.chat.clone(), host.kill());
    let gone = until(|| !processes.iter().any(|pid| is_alive(*pid)));
    assert!(tokio::time::timeout(DEADLINE, gone).await.is_ok(), "it still runs");

    let (_host, mut ann) = start(data, &model).await;
    ann.enters(SESSION, chat.as_str()).await;
    ann.until("the turn is closed", |chat| chat["activeTurn"].is_null()).await;
    model.answers([call("pid", &json!({})), Answer::streams(["done"])]);
    ann.sends_message("again").await;
    ann.turn_over().await;
    let now: u32 = last_result(&model).parse().unwrap();
    assert!(!processes.contains(&now) && is_alive(now));
}
