//! What a yes to an external agent is good for (AG-31b, AG-52): the question that was answered, and just the command that it showed.

use conformance::acp::{AcpHarness, AcpSetup, scene};
use conformance::native::calls_of;
use serde_json::{Value, json};

fn create(more: Value) -> Value {
    let mut params = json!({"sessionId": "{{session}}"});
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    json!({"request": {"method": "terminal/create", "params": params}})
}

fn wait_for_exit() -> Value {
    let params = json!({"sessionId": "{{session}}", "terminalId": "{{terminal}}"});
    json!({"request": {"method": "terminal/wait_for_exit", "params": params}})
}

/// A question about the call `run` whose answer the agent does not wait for.
fn question(command: &str) -> Value {
    let call = json!({"toolCallId": "run", "title": command, "kind": "execute", "rawInput": {"command": command}});
    let options = json!([
        {"optionId": "yes", "kind": "allow_once", "name": "Yes"},
        {"optionId": "no", "kind": "reject_once", "name": "No"},
    ]);
    let params = json!({"sessionId": "{{session}}", "toolCall": call, "options": options});
    json!({"send": {"method": "session/request_permission", "params": params}})
}

async fn start(steps: Value) -> AcpHarness {
    let setup = AcpSetup::new(json!({"scenes": [scene("", steps)]})).file("sub/a.txt", "one\n");
    setup.start().await
}

fn waiting(turn: &Value) -> Vec<Value> {
    let mut calls = calls_of(turn);
    calls.retain(|call| call["status"] == "pending-confirmation");
    calls
}

async fn until_waiting(harness: &mut AcpHarness, number: usize) -> Vec<Value> {
    let chat = harness.ann.until("questions", |chat| waiting(&chat["activeTurn"]).len() == number);
    waiting(&chat.await["activeTurn"])
}

fn denied() -> Value {
    json!({"approved": false, "reason": "denied"})
}

#[tokio::test]
async fn a_yes_to_an_older_question_is_none_to_a_newer_one_of_the_same_call() {
    let steps = json!([
        question("echo old >> ran"), question("echo new >> ran"), {"await": "decided"},
        create(json!({"command": "echo new >> ran"})), create(json!({"command": "echo old >> ran"})), wait_for_exit(),
        {"say": ["done"]},
    ]);
    let mut harness = start(steps).await;
    harness.ann.sends_message("go").await;
    let asked = until_waiting(&mut harness, 2).await;
    assert_ne!(asked[0]["toolCallId"], asked[1]["toolCallId"], "{asked:#?}");
    let shown = |call: &Value| call["toolInput"].as_str().unwrap().to_owned();
    assert!(shown(&asked[0]).contains("old"), "{asked:#?}");
    assert!(shown(&asked[1]).contains("new"), "{asked:#?}");
    harness.ann.decides_about(&asked[0], json!({})).await;
    let answered = |it: &AcpHarness| it.answers().len() == 1;
    harness.until("one answer", answered).await;
    let answer = &harness.answers()[0];
    assert_eq!(answer["result"]["outcome"]["optionId"], "yes");
    harness.touch("decided");
    // The newer is still open, and the command that it showed is asked about.
    let asked = until_waiting(&mut harness, 2).await;
    assert!(!harness.work().join("ran").exists());
    harness.ann.decides_about(&asked[1], denied()).await;
    harness.ann.completed_turn().await;
    assert_eq!(harness.read("ran"), "old\n", "the older one was allowed");
}

/// An agent that says something else of a call while people decide about it: they decide about that, and a yes to what it was before is
/// refused.
#[tokio::test]
async fn a_call_that_changes_while_it_is_asked_about_is_asked_about_again() {
    let changed = json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "run",
        "rawInput": {"command": "echo new >> ran"}}});
    let steps = json!([
        question("echo old >> ran"), {"await": "change"}, changed, {"await": "decided"},
        create(json!({"command": "echo old >> ran"})), create(json!({"command": "echo new >> ran"})), wait_for_exit(),
        {"say": ["done"]},
    ]);
    let mut harness = start(steps).await;
    harness.ann.sends_message("go").await;
    let older = until_waiting(&mut harness, 1).await.remove(0);
    harness.touch("change");
    let is_other = |call: &Value| call["toolCallId"] != older["toolCallId"];
    let chat = harness
        .ann
        .until("another question", |chat| waiting(&chat["activeTurn"]).iter().any(is_other));
    let asked = waiting(&chat.await["activeTurn"]);
    assert_eq!(asked.len(), 1, "the older one is taken back: {asked:#?}");
    let shown = asked[0]["toolInput"].as_str().unwrap();
    assert!(shown.contains("echo new"), "{asked:#?}");
    let turn = harness.ann.sees()["activeTurn"]["id"].clone();
    let late = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": older["toolCallId"],
        "approved": true, "confirmed": "user-action"});
    harness.ann.does(late).await;
    let reason = harness.ann.refused().await;
    assert!(reason.contains("waits for no confirmation"), "{reason}");
    assert_eq!(harness.answers(), Vec::<Value>::new());
    harness.ann.decides_about(&asked[0], json!({})).await;
    let answered = |it: &AcpHarness| it.answers().len() == 1;
    harness.until("one answer", answered).await;
    assert_eq!(harness.answers()[0]["result"]["outcome"]["optionId"], "yes");
    harness.touch("decided");
    // What it was before is asked about anew, and nobody allows it.
    let before = until_waiting(&mut harness, 1).await.remove(0);
    assert_eq!(before["toolName"], "terminal", "{before:#}");
    harness.ann.decides_about(&before, denied()).await;
    harness.ann.completed_turn().await;
    assert_eq!(harness.read("ran"), "new\n");
}

/// A call that showed another directory, or variables, is no consent to the same line without them, nor the other way round.
#[tokio::test]
async fn a_call_consents_to_the_directory_and_the_variables_that_it_showed() {
    let line = "echo x >> ran";
    let there = json!({"command": line, "cwd": "{{cwd}}/sub"});
    let with = json!({"command": line, "env": {"CI": "1"}});
    let plain = json!({"command": line});
    let requested = json!({"command": line, "env": [{"name": "CI", "value": "1"}]});
    for (shown, requested, is_asked) in [
        (&there, plain.clone(), true),
        (&with, plain.clone(), true),
        (&plain, there.clone(), true),
        (&plain, requested.clone(), true),
        (&there, there.clone(), false),
        (&with, requested, false),
    ] {
        let what = format!("{shown} for {requested}");
        let tool = json!({"id": "run", "title": "Run", "kind": "execute", "input": shown, "ask": {},
            "steps": [create(requested)]});
        let steps = json!([{"tool": tool}, wait_for_exit(), {"say": ["done"]}]);
        let mut harness = start(steps).await;
        harness.ann.sends_message("go").await;
        harness.ann.decides(json!({})).await;
        if is_asked {
            let asked = harness.ann.asked().await;
            assert_eq!(asked["toolName"], "terminal", "{what}");
            harness.ann.decides_about(&asked, denied()).await;
        }
        let turn = harness.ann.turn_over().await;
        assert_eq!(turn["state"], "complete", "{what}");
        let ran = ["ran", "sub/ran"].map(|file| harness.work().join(file).exists());
        assert_eq!(ran.contains(&true), !is_asked, "{what}");
    }
}
