//! MCP servers that are switched on and off, trusted and changed: what runs is what somebody said yes to.

use crate::mcp::{SERVER, call, declare, entry, is_offered, published, start, wait_for_end};
use conformance::native::{SESSION, ends};
use serde_json::{Value, json};
use testkit::Answer;

fn toggle(id: &Value, enablement: Value) -> Value {
    json!({"type": "session/customizationToggled", "id": id, "enablement": enablement})
}

#[tokio::test]
async fn a_server_that_is_switched_off_ends_in_all_sessions_and_starts_again_with_the_switch() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let pid = || [Answer::calls([call("pid", &json!({}))]), ends()];
    harness.talk("one", pid()).await;
    let first = harness.last_results().pop().unwrap();
    let is =
        |kind: &'static str| move |session: &Value| published(session)["state"]["kind"] == kind;
    let session = harness.ann.until_session(SESSION, is("ready")).await;
    let id = published(&session)["id"].clone();
    let work = harness.work();
    let config = json!({"approvals": "full-access"});
    let second_session = "native:/second";
    harness.ann.creates_session(second_session, &work, config).await;
    harness.talk("two", pid()).await;
    let second = harness.last_results().pop().unwrap();
    harness.ann.until_session(second_session, is("ready")).await;

    let off = toggle(&id, json!([{"kind": "global", "enabled": false}]));
    harness.ann.does_in(SESSION, off).await;
    wait_for_end(&first).await;
    wait_for_end(&second).await;
    harness.ann.until_session(SESSION, is("stopped")).await;
    harness.ann.until_session(second_session, is("stopped")).await;

    let on = toggle(&id, json!([]));
    harness.ann.does_in(second_session, on).await;
    harness.ann.until_session(SESSION, is("ready")).await;
    harness.ann.until_session(second_session, is("ready")).await;
}

#[tokio::test]
async fn switching_a_server_of_a_directory_on_is_no_answer_to_its_question() {
    let mut harness = start(json!({}), Vec::new()).await;
    let starts = harness.work().join("starts");
    declare(&harness, &["--starts", starts.to_str().unwrap()]);
    harness.model.answers([ends()]);
    harness.ann.sends_message("one").await;
    harness.ann.chooses("no").await;
    harness.ann.turn_over().await;
    let has = |enabled: Value| {
        move |session: &Value| {
            let server = published(session);
            server["state"]["kind"] == "stopped" && server["enablement"][0]["enabled"] == enabled
        }
    };
    let session = harness.ann.until_session(SESSION, has(Value::Null)).await;
    let id = published(&session)["id"].clone();
    for enabled in [false, true] {
        let decision = json!([{"kind": "session", "enabled": enabled}]);
        harness.ann.does_in(SESSION, toggle(&id, decision)).await;
        harness.ann.until_session(SESSION, has(json!(enabled))).await;
    }
    harness.talk("two", [ends()]).await;
    assert!(!starts.exists(), "it was never started");
}

#[tokio::test]
async fn a_program_that_changed_after_the_answer_is_not_started() {
    let mut harness = start(json!({}), Vec::new()).await;
    let program = harness.work().join("server");
    let script = format!("#!/bin/sh\nexec {SERVER} \"$@\"\n");
    harness.write("server", &script);
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let file = json!({"mcpServers": {"test": {"command": "./server"}}});
    harness.write(".mcp.json", &file.to_string());
    harness.model.answers([Answer::calls([call("crash", &json!({}))]), ends()]);
    harness.ann.sends_message("one").await;
    harness.ann.questioned().await;
    harness.ann.chooses("session").await;
    // While it runs, somebody puts another program in its place; then it crashes.
    let asked = harness.ann.asked().await;
    harness.write("server", "#!/bin/sh\ntouch ran\nsleep 1000\n");
    harness.ann.decides_about(&asked, json!({})).await;
    harness.ann.turn_over().await;
    let failed = |session: &Value| published(session)["state"]["kind"] == "error";
    let session = harness.ann.until_session(SESSION, failed).await;
    let error = published(&session)["state"].to_string();
    assert!(error.contains("changed since it was allowed"), "{error}");
    assert!(!harness.work().join("ran").exists());
}

#[tokio::test]
async fn an_input_of_a_file_is_asked_for_once_and_shown_in_the_question_of_trust() {
    let mut harness = start(json!({"approvals": "full-access"}), Vec::new()).await;
    let starts = harness.work().join("starts-${input:region}");
    let file = json!({
        "inputs": [{"id": "region", "type": "pickString", "description": "Which one?", "options": ["north", "south"]}],
        "servers": {"test": {"command": SERVER, "args": ["--starts", starts]}},
    });
    std::fs::create_dir(harness.work().join(".vscode")).unwrap();
    harness.write(".vscode/mcp.json", &file.to_string());
    harness.model.answers([ends()]);
    harness.ann.sends_message("one").await;
    let request = harness.ann.questioned().await;
    assert_eq!(request["questions"][0]["message"], "Which one?", "{request:#}");
    harness.ann.chooses("north").await;
    let is_asked = |chat: &Value| {
        let turn = chat["activeTurn"].to_string();
        turn.contains("Start the MCP server")
    };
    let chat = harness.ann.until("the question of trust", is_asked).await;
    let shown = chat["activeTurn"].to_string();
    assert!(shown.contains("starts-north"), "{shown}");
    harness.ann.chooses("session").await;
    harness.ann.turn_over().await;
    assert!(is_offered(&harness, "mcp__test__echo"));
    assert!(harness.work().join("starts-north").exists());
    harness.talk("two", [ends()]).await;
    assert!(is_offered(&harness, "mcp__test__echo"), "nobody is asked again");
}

#[tokio::test]
async fn a_start_by_a_client_is_a_yes_for_the_session() {
    let mut harness = start(json!({}), Vec::new()).await;
    declare(&harness, &[]);
    harness.model.answers([ends()]);
    harness.ann.sends_message("one").await;
    harness.ann.chooses("no").await;
    harness.ann.turn_over().await;
    let session = harness
        .ann
        .until_session(SESSION, |session| published(session)["state"]["kind"] == "stopped")
        .await;
    let id = published(&session)["id"].clone();
    let begin = json!({"type": "session/mcpServerStartRequested", "id": id});
    harness.ann.does_in(SESSION, begin).await;
    harness
        .ann
        .until_session(SESSION, |session| published(session)["state"]["kind"] == "ready")
        .await;
    harness.talk("two", [ends()]).await;
    assert!(is_offered(&harness, "mcp__test__echo"));
}
