//! Commands in the background: consented to like any other, looked at in later turns, ended with their chat and their host.

use agents::tool::ProcessRecord;
use conformance::native::{NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};

const SERVER: &str = "echo listening; while [ ! -e stop ]; do sleep 0.05; done; echo bye";

/// Starts the command in the background, with consent; its id and its process.
async fn start(harness: &mut NativeHarness, command: &str) -> (String, ProcessRecord) {
    let input = json!({"command": command, "background": true});
    harness.model.answers([Answer::calls([Call::new("a", "bash", &input)]), ends()]);
    harness.ann.sends_message("start it").await;
    let asked = harness.ann.decides(json!({})).await;
    let message = asked["invocationMessage"].as_str().unwrap();
    assert!(message.starts_with("Run in the background: "), "{message}");
    let turn = harness.ann.completed_turn().await;
    let told = calls_of(&turn)[0]["structuredContent"].clone();
    let process = serde_json::from_value(told["process"].clone()).unwrap();
    (told["id"].as_str().unwrap().to_owned(), process)
}

async fn is_gone(process: ProcessRecord) {
    while process.is_running() {
        tokio::task::yield_now().await;
    }
}

/// One call of a tool in a turn of its own; what the model got of it.
async fn call(harness: &mut NativeHarness, tool: &str, input: &Value) -> String {
    let calls = Answer::calls([Call::new("c", tool, input)]);
    harness.talk("go on", [calls, ends()]).await;
    harness.last_results().pop().unwrap()
}

#[tokio::test]
async fn a_command_goes_on_after_its_turn_and_is_looked_at_in_the_next() {
    let mut harness = NativeHarness::start().await;
    let (id, process) = start(&mut harness, SERVER).await;
    let look = json!({"id": id, "wait_seconds": 300});
    let seen = call(&mut harness, "bash_output", &look).await;
    assert_eq!(seen, "listening\n[it still runs]");
    assert!(process.is_running());
    harness.write("stop", "");
    let mut seen = String::new();
    while !seen.ends_with("[exit code 0]") {
        seen.push_str(&call(&mut harness, "bash_output", &look).await);
    }
    assert!(seen.contains("bye\n") && !seen.contains("listening"), "{seen}");
    is_gone(process).await;
    let unknown = call(&mut harness, "bash_output", &json!({"id": "b0"})).await;
    assert!(unknown.contains("there is no background command `b0`"), "{unknown}");
}

#[tokio::test]
async fn a_command_that_is_denied_does_not_start_and_one_that_is_killed_ends() {
    let mut harness = NativeHarness::start().await;
    let input = json!({"command": "touch made; sleep 1000", "background": true});
    let calls = Answer::calls([Call::new("a", "bash", &input)]);
    harness.model.answers([calls, ends()]);
    harness.ann.sends_message("start it").await;
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides(denied).await;
    harness.ann.turn_over().await;
    assert!(!harness.work().join("made").exists());

    let (id, process) = start(&mut harness, SERVER).await;
    let killed = call(&mut harness, "bash_kill", &json!({"id": id})).await;
    assert!(killed.ends_with("[killed by signal 9]"), "{killed}");
    is_gone(process).await;
}

#[tokio::test]
async fn what_was_left_running_ends_with_the_host_and_with_the_session() {
    let mut harness = NativeHarness::start().await;
    let (id, process) = start(&mut harness, SERVER).await;
    harness.restart().await;
    is_gone(process).await;
    let seen = call(&mut harness, "bash_output", &json!({"id": id})).await;
    assert!(seen.contains("of before a restart of the host have ended"), "{seen}");

    let (_, process) = start(&mut harness, SERVER).await;
    assert!(process.is_running());
    let params = json!({"channel": SESSION});
    let disposed = harness.ann.connection.request("disposeSession", params);
    disposed.await.unwrap();
    is_gone(process).await;
}
