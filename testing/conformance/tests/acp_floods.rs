//! Agents that ask or talk without end, and one that is killed while it has a child: each has an end, words for the user, and loses
//! and doubles nothing.

use crate::real_agents::processes::kill;
use conformance::acp::{AcpHarness, AcpSetup, is_alive, scene};
use conformance::native::{error_of, texts_in};
use serde_json::{Value, json};

/// More than may be open at once.
const ASKED: usize = 300;

fn says_next() -> Value {
    scene("", json!([{"say": ["next"]}]))
}

/// A question that nobody waits for.
fn ask(number: usize) -> Value {
    json!({"send": {"method": "session/request_permission", "params": {
        "sessionId": "{{session}}",
        "toolCall": {"toolCallId": format!("call-{number}"), "title": format!("Step {number}"), "kind": "execute"},
        "options": [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ],
    }}})
}

// AG-20
#[tokio::test]
async fn an_agent_that_asks_without_end_is_refused_and_the_chat_says_so() {
    let mut steps: Vec<Value> = (0..ASKED).map(ask).collect();
    steps.push(json!("hang"));
    let mut harness = AcpHarness::start(json!([scene("^ask", json!(steps)), says_next()])).await;
    harness.ann.sends_message("ask").await;
    let is_said = |chat: &Value| {
        let notices = texts_in(&chat["activeTurn"], "systemNotification");
        notices.concat().contains("asks more than 256 questions at once")
    };
    harness.ann.until("it is said", is_said).await;
    let refused = harness.answers();
    assert_eq!(refused.len(), ASKED - 256, "{refused:#?}");
    harness.ann.cancels().await;
    harness.ann.turn_over().await;
    harness.until("all are answered", |it| it.answers().len() == ASKED).await;
    for answer in harness.answers() {
        let outcome = &answer["result"]["outcome"]["outcome"];
        assert_eq!(outcome, "cancelled", "{answer:#}");
    }
    let next = harness.talk("on").await;
    assert_eq!(texts_in(&next, "markdown"), ["next"], "{next:#}");
    assert_eq!(harness.starts().len(), 1);
}

#[tokio::test]
async fn an_agent_that_talks_without_end_is_stopped_and_the_next_turn_works() {
    let talks = json!([{"stream": {"chunks": 1_000_000, "size": 1_000}}]);
    let script = json!({"scenes": [scene("^talk", talks), says_next()]});
    let setup = AcpSetup::new(script).settings("[limits]\nturn_bytes_max = 300000");
    let mut harness = setup.start().await;
    let turn = harness.talk("talk").await;
    let error = error_of(&turn);
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("as large as a turn may be"), "{error:#}");
    assert!(texts_in(&turn, "markdown").concat().len() > 100_000);
    let next = harness.talk("on").await;
    assert_eq!(texts_in(&next, "markdown"), ["next"], "{next:#}");
    assert_eq!(harness.received("session/cancel").len(), 1);
    assert_eq!(harness.starts().len(), 1);
}

// AG-12, AG-21
#[tokio::test]
async fn an_agent_that_is_killed_leaves_no_child_and_its_turn_goes_on_without_a_word_twice() {
    let child = json!({"child": {"ignores_term": true}});
    let scenes = json!([
        scene("interrupted", json!([{"say": ["the second half"]}])),
        scene("^go", json!([child, {"say": ["the first half, "]}, "hang"])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    harness.ann.sends_message("go").await;
    let has_half = |chat: &Value| texts_in(&chat["activeTurn"], "markdown") == ["the first half, "];
    harness.ann.until("half of it", has_half).await;
    let child = acp_agent::children(&harness.state())[0];
    assert!(is_alive(child));
    kill(harness.starts()[0].pid);
    let turn = harness.ann.turn_over().await;
    let error = error_of(&turn);
    assert_eq!(error["error"]["errorType"], "agentExited", "{error:#}");
    assert_eq!(error["resumable"], true);
    harness.until("its child is gone", |_| !is_alive(child)).await;
    harness.ann.resumes(&turn).await;
    let is_whole = |chat: &Value| chat["turns"][0]["state"] == "complete";
    let chat = harness.ann.until("it goes on", is_whole).await;
    let said = texts_in(&chat["turns"][0], "markdown");
    assert_eq!(said, ["the first half, ", "the second half"], "{chat:#}");
    harness.restart().await;
    let chat = harness.ann.sees();
    assert_eq!(texts_in(&chat["turns"][0], "markdown"), said, "{chat:#}");
    assert_eq!(chat["turns"].as_array().unwrap().len(), 1);
}
