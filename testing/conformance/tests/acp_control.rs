//! Cancel, queue and steering of a turn whose agent is an external process.

use conformance::acp::{AcpHarness, AcpSetup, is_alive, scene};
use conformance::native::texts_in;
use serde_json::{Value, json};

fn says(words: &'static str) -> impl Fn(&Value) -> bool {
    move |chat| texts_in(&chat["activeTurn"], "markdown") == [words]
}

fn hanging() -> Value {
    scene("^hang", json!([{"say": ["half"]}, "hang"]))
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_the_same_process_does_the_next() {
    let mut harness =
        AcpHarness::start(json!([hanging(), scene("", json!([{"say": ["next"]}]))])).await;
    harness.ann.sends_message("hang").await;
    harness.ann.until("it works", says("half")).await;
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled");
    assert_eq!(texts_in(&turn, "markdown"), ["half"]);
    let next = harness.talk("next").await;
    assert_eq!(texts_in(&next, "markdown"), ["next"]);
    assert_eq!(harness.starts().len(), 1);
    assert_eq!(harness.received("session/cancel").len(), 1);
}

#[tokio::test]
async fn the_next_prompt_waits_for_the_answer_to_the_cancelled_one() {
    let script =
        json!({"cancel": "late", "scenes": [hanging(), scene("", json!([{"say": ["next"]}]))]});
    let mut harness = AcpSetup::new(script).start().await;
    harness.ann.sends_message("hang").await;
    harness.ann.until("it works", says("half")).await;
    harness.ann.cancels().await;
    harness.ann.turn_over().await;
    harness.ann.sends_message("next").await;
    harness.until("the cancel", |it| !it.received("session/cancel").is_empty()).await;
    assert_eq!(harness.received("session/prompt").len(), 1);
    harness.touch("answer-cancel");
    let next = harness.ann.turn_over().await;
    assert_eq!(texts_in(&next, "markdown"), ["next"]);
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancel_is_replaced() {
    let script = json!({"cancel": "ignored", "stays": true, "scenes": [hanging(), scene("", json!([{"say": ["next"]}]))]});
    let mut harness = AcpSetup::new(script).start().await;
    harness.ann.sends_message("hang").await;
    harness.ann.until("it works", says("half")).await;
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled", "nobody waits for the agent to see it");
    let next = harness.talk("next").await;
    assert_eq!(texts_in(&next, "markdown"), ["next"], "{next:#}");
    let starts = harness.starts();
    assert_eq!(starts.len(), 2);
    harness.until("the first is stopped", |_| !is_alive(starts[0].pid)).await;
}

#[tokio::test]
async fn messages_wait_in_the_hosts_queue_and_never_overlap() {
    for overlap in ["queues", "aborts", "aborts-with-error"] {
        let scenes = json!([
            scene("^first", json!([{"say": ["one"]}, {"await": "go"}, {"say": [" done"]}])),
            scene("", json!([{"say": ["two"]}])),
        ]);
        let script = json!({"overlap": overlap, "scenes": scenes});
        let mut harness = AcpSetup::new(script).start().await;
        harness.ann.sends_message("first").await;
        harness.ann.until("it works", says("one")).await;
        harness.ann.leaves_word("queued", "q1", "second").await;
        harness.ann.until("it waits", |chat| chat["queuedMessages"][0]["id"] == "q1").await;
        assert_eq!(harness.received("session/prompt").len(), 1, "{overlap}");
        harness.touch("go");
        let both =
            |chat: &Value| chat["activeTurn"].is_null() && chat["turns"][1]["state"] == "complete";
        let chat = harness.ann.until("both are done", both).await;
        assert_eq!(texts_in(&chat["turns"][0], "markdown"), ["one done"], "{overlap}");
        assert_eq!(texts_in(&chat["turns"][1], "markdown"), ["two"], "{overlap}");
    }
}

#[tokio::test]
async fn steering_goes_into_the_turn_where_the_agent_takes_it() {
    let steps = json!([{"say": ["one"]}, "await_steering", {"say": [" then {{steering}}"]}]);
    let script = json!({"initialize": {"_meta": {"steering": {"supported": true}}}, "scenes": [scene("", steps)]});
    let mut harness = AcpSetup::new(script).start().await;
    harness.ann.sends_message("go").await;
    harness.ann.until("it works", says("one")).await;
    harness.ann.leaves_word("steering", "s1", "left").await;
    let turn = harness.ann.completed_turn().await;
    assert!(texts_in(&turn, "markdown").concat().ends_with("then left"), "{turn:#}");
    let chat = harness.ann.sees();
    assert!(chat["steeringMessage"].is_null(), "{chat:#}");
    assert_eq!(chat["turns"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn steering_that_the_agent_cannot_take_starts_the_next_turn() {
    let scenes = json!([
        scene("^first", json!([{"say": ["one"]}, {"await": "go"}])),
        scene("", json!([{"say": ["two"]}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    harness.ann.sends_message("first").await;
    harness.ann.until("it works", says("one")).await;
    harness.ann.leaves_word("steering", "s1", "second").await;
    harness.ann.until("it waits", |chat| chat["steeringMessage"]["id"] == "s1").await;
    harness.touch("go");
    let both =
        |chat: &Value| chat["activeTurn"].is_null() && chat["turns"][1]["state"] == "complete";
    let chat = harness.ann.until("both are done", both).await;
    assert_eq!(texts_in(&chat["turns"][1], "markdown"), ["two"]);
    assert_eq!(harness.prompts(), ["first", "second"]);
    assert!(harness.received("_session/steering").is_empty());
}

#[tokio::test]
async fn chats_of_a_directory_share_a_process_unless_each_has_its_own() {
    let script = json!({"scenes": [scene("", json!([{"say": ["{{pid}}"]}]))]});
    for (share, processes) in [("directory", 1), ("chat", 2)] {
        let entry = format!("trust = \"always\"\nshare = \"{share}\"");
        let mut harness = AcpSetup::new(script.clone()).entry(&entry).start().await;
        harness.talk("one").await;
        let work = harness.work();
        harness.ann.creates_session("fake:/other", &work, json!({})).await;
        harness.talk("two").await;
        assert_eq!(harness.starts().len(), processes, "{share}");
        assert_eq!(harness.received("session/new").len(), 2, "{share}");
    }
}

#[tokio::test]
async fn nothing_of_the_agent_is_left_when_the_host_stops() {
    let steps = json!([{"child": {"ignores_term": true}}, {"say": ["started"]}]);
    for stays in [false, true] {
        let script = json!({"stays": stays, "scenes": [scene("", steps.clone())]});
        let mut harness = AcpSetup::new(script).start().await;
        harness.talk("go").await;
        let agent = harness.starts()[0].pid;
        let child = acp_agent::children(&harness.state())[0];
        assert!(is_alive(agent) && is_alive(child));
        harness.stop().await;
        harness.until("both are gone", |_| !is_alive(agent) && !is_alive(child)).await;
    }
}

#[tokio::test]
async fn no_process_starts_before_the_first_turn_and_an_idle_one_is_stopped() {
    let script = json!({"scenes": [scene("", json!([{"say": ["{{history}}"]}]))]});
    let entry = "trust = \"always\"\nidle_s = 1";
    let mut harness = AcpSetup::new(script).entry(entry).start().await;
    assert!(harness.starts().is_empty());
    harness.talk("one").await;
    let pid = harness.starts()[0].pid;
    harness.until("it is stopped", |_| !is_alive(pid)).await;
    let turn = harness.talk("two").await;
    assert_eq!(texts_in(&turn, "markdown"), [r#"["one"]"#]);
    assert_eq!(harness.starts().len(), 2);
}
