//! Commands of the native agent in terminals: seen, taken over, let go on alone; and commands of the user.

use conformance::native::{ChatClient, NativeHarness, bash, calls_of, ends};
use serde_json::{Value, json};
use testkit::Answer;

/// The block of a call's terminal.
fn terminal_of(turn: &Value) -> Option<Value> {
    let calls = calls_of(turn);
    let content = calls.first()?["content"].as_array()?.clone();
    content.into_iter().find(|block| block["type"] == "terminal")
}

/// Waits until a command runs in its terminal, and watches that.
async fn watches(client: &mut ChatClient) -> String {
    let chat = client.until("a terminal", |chat| terminal_of(&chat["activeTurn"]).is_some()).await;
    let block = terminal_of(&chat["activeTurn"]).unwrap();
    assert_eq!(block["isPty"], true);
    let uri = block["resource"].as_str().unwrap().to_owned();
    let params = json!({"channel": uri});
    client.connection.request("subscribe", params).await.unwrap();
    uri
}

/// The text of a terminal.
async fn shown(client: &ChatClient, uri: &str) -> (String, Value) {
    let params = json!({"channel": uri});
    let answer = client.connection.request("subscribe", params).await.unwrap();
    let state = answer["snapshot"]["state"].clone();
    let parts = state["content"].as_array().cloned().unwrap_or_default();
    let texts = parts.iter().map(|part| part["value"].as_str().unwrap_or_default());
    (texts.collect(), state)
}

async fn shows(client: &ChatClient, uri: &str, text: &str) -> Value {
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
    for _ in 0..3_000 {
        tick.tick().await;
        let (shown, state) = shown(client, uri).await;
        if shown.contains(text) {
            return state;
        }
    }
    panic!("{uri} never shows {text}");
}

#[tokio::test]
async fn a_user_answers_what_a_command_asks_and_the_model_hears_of_it() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let command = "printf 'your name? '; read name; echo \"hello $name\"; tty >/dev/null && exit 4";
    harness.model.answers([Answer::calls([bash(command)]), ends()]);
    harness.ann.sends_message("ask me").await;
    let uri = watches(&mut harness.ann).await;
    let state = shows(&harness.ann, &uri, "your name? ").await;
    assert_eq!(state["claim"]["kind"], "session");
    let claim = json!({"kind": "client", "clientId": "ann"});
    let action = json!({"type": "terminal/claimed", "claim": claim});
    harness.ann.does_in(&uri, action).await;
    let typed = json!({"type": "terminal/input", "data": "bob\r"});
    harness.ann.does_in(&uri, typed).await;
    let turn = harness.ann.turn_over().await;
    let told = harness.last_results().pop().unwrap();
    assert!(told.contains("hello bob\n[exit code 4]"), "{told}");
    assert!(told.contains("the user took the terminal over"), "{told}");
    let block = terminal_of(&turn).unwrap();
    assert_eq!(block["result"]["exitCode"], 4, "{block}");
    let (text, state) = shown(&harness.ann, &uri).await;
    assert!(text.contains("hello bob\r\n"), "{text}");
    assert_eq!(state["lifecycle"], json!({"status": "exited", "exitCode": 4}));
}

#[tokio::test]
async fn a_command_that_is_let_go_goes_on_in_the_background() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second";
    harness.model.answers([Answer::calls([bash(command)]), ends()]);
    harness.ann.sends_message("run it").await;
    let uri = watches(&mut harness.ann).await;
    let state = shows(&harness.ann, &uri, "first").await;
    let mut claim = state["claim"].clone();
    claim.as_object_mut().unwrap().remove("toolCallId");
    let action = json!({"type": "terminal/claimed", "claim": claim});
    harness.ann.does_in(&uri, action).await;
    harness.ann.turn_over().await;
    let told = harness.last_results().pop().unwrap();
    assert!(told.starts_with("first\n") && told.contains("in the background as `b"), "{told}");
    let id = told.split('`').nth(1).unwrap().to_owned();
    harness.write("go", "");
    let look = json!({"id": id, "wait_seconds": 300});
    let mut seen = String::new();
    while !seen.ends_with("[exit code 0]") {
        let call = testkit::Call::new("c", "bash_output", &look);
        harness.talk("go on", [Answer::calls([call]), ends()]).await;
        seen.push_str(&harness.last_results().pop().unwrap());
    }
    assert!(seen.contains("second\n") && !seen.contains("first"), "{seen}");
}

#[tokio::test]
async fn a_command_of_the_user_runs_without_a_model_and_a_later_one_knows_of_it() {
    let mut harness = NativeHarness::start().await;
    harness.ann.sends_message("!echo of the user; exit 2").await;
    let turn = harness.ann.completed_turn().await;
    let call = calls_of(&turn)[0].clone();
    assert_eq!(call["confirmed"], "user-action");
    assert_eq!(call["content"][0]["text"], "of the user\n[exit code 2]");
    assert!(terminal_of(&turn).is_some(), "{call:#}");
    harness.talk("what did I do?", [ends()]).await;
    let asked = serde_json::to_string(&harness.last_messages()).unwrap();
    assert!(asked.contains("of the user"), "{asked}");
}
