//! MCP servers that never answer, fall silent in a call, or end in one, in a turn of the native agent: the turn goes on, and the chat
//! says why.

use std::time::{Duration, Instant};

use crate::mcp::{call, entry, is_offered, notices, published, start};
use agents::mcp::McpEntry;
use conformance::native::{SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::Answer;

/// How clients see the server of this name.
fn state_of(session: &Value, name: &str) -> Value {
    let all = session["customizations"].as_array().into_iter().flatten();
    let mut servers = all.filter(|entry| entry["type"] == "mcpServer" && entry["name"] == name);
    servers.next().cloned().unwrap_or_default()
}

// MC-4, MC-5
#[tokio::test]
async fn a_turn_goes_on_without_a_server_that_never_answers() {
    let silent = McpEntry { name: "silent".to_owned(), ..entry(&["--silent"]) };
    let mut harness = start(json!({}), vec![silent, entry(&[])]).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("go").await;
    let waits = |session: &Value| {
        state_of(session, "silent")["state"] == json!({"kind": "starting", "blocking": true})
            && state_of(session, "test")["state"]["kind"] == "ready"
    };
    let session = harness.ann.until_session(SESSION, waits).await;
    let id = state_of(&session, "silent")["id"].clone();
    let goes_on = json!({"type": "session/mcpServerBackgroundRequested", "id": id});
    harness.ann.does_in(SESSION, goes_on).await;
    let turn = harness.ann.completed_turn().await;
    let said = notices(&turn);
    assert!(
        said.contains("The MCP server `silent` still starts; its tools are there when it is ready"),
        "{said}"
    );
    assert!(is_offered(&harness, "mcp__test__echo"));
    let waits_for_nobody = |session: &Value| {
        state_of(session, "silent")["state"] == json!({"kind": "starting", "blocking": false})
    };
    harness.ann.until_session(SESSION, waits_for_nobody).await;
    // Nobody waits for it again: a turn would wait for ten seconds.
    let began = Instant::now();
    harness.talk("on", [ends()]).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

// MC-10
#[tokio::test]
async fn a_call_that_falls_silent_is_ended_and_the_next_one_works() {
    let hasty = McpEntry { timeout_s: Some(1), ..entry(&[]) };
    let mut harness = start(json!({"approvals": "full-access"}), vec![hasty]).await;
    let silent = call("slow", &json!({"steps": 1, "ms": 600_000}));
    let turn = harness.talk("go", [Answer::calls([silent]), ends()]).await;
    assert_eq!(calls_of(&turn)[0]["success"], false, "{turn:#}");
    let told = harness.last_results().pop().unwrap();
    assert!(told.contains("1 s without a sign of life"), "{told}");
    let echo = call("echo", &json!({"text": "on"}));
    harness.talk("on", [Answer::calls([echo]), ends()]).await;
    assert_eq!(harness.last_results().pop().unwrap(), "on");
}

// MC-5
#[tokio::test]
async fn a_server_that_ends_in_a_call_says_why_and_is_started_again_once() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let crash = || [Answer::calls([call("crash", &json!({}))]), ends()];
    let is =
        |kind: &'static str| move |session: &Value| published(session)["state"]["kind"] == kind;
    let words = "it ended: the disk is on fire";
    let turn = harness.talk("crash", crash()).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(calls_of(&turn)[0]["success"], false, "{turn:#}");
    let told = harness.last_results().pop().unwrap();
    assert!(told.contains(words), "{told}");
    harness.ann.until_session(SESSION, is("ready")).await;
    let echo = call("echo", &json!({"text": "on"}));
    harness.talk("on", [Answer::calls([echo]), ends()]).await;
    assert_eq!(harness.last_results().pop().unwrap(), "on");
    harness.talk("again", crash()).await;
    let session = harness.ann.until_session(SESSION, is("error")).await;
    let state = published(&session)["state"].to_string();
    assert!(state.contains("the disk is on fire"), "{state}");
    let turn = harness.talk("without", [ends()]).await;
    let said = notices(&turn);
    assert!(said.contains(&format!("The MCP server `test` is not available: {words}")), "{said}");
    assert!(!is_offered(&harness, "mcp__test__echo"));
}
