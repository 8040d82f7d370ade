//! A chat and its agent's own session find each other again: after a restart, a crash, a lost session, in a fork.

use conformance::acp::{AcpHarness, AcpSetup, prompt_text, scene};
use conformance::native::{error_of, texts_in};
use serde_json::{Value, json};

/// Says what the agent itself remembers.
fn remembering() -> Value {
    json!([scene("", json!([{"say": ["I know {{history}}"]}]))])
}

fn markdown(turn: &Value) -> String {
    texts_in(turn, "markdown").concat()
}

fn notices(turn: &Value) -> Vec<String> {
    texts_in(turn, "systemNotification")
}

/// One turn, a restart of the host, another turn.
async fn over_a_restart(script: Value) -> (AcpHarness, Value) {
    let mut harness = AcpSetup::new(script).start().await;
    harness.talk("one").await;
    harness.restart().await;
    let turn = harness.talk("two").await;
    (harness, turn)
}

#[tokio::test]
async fn after_a_restart_the_agent_resumes_its_session() {
    let (harness, turn) = over_a_restart(json!({"scenes": remembering()})).await;
    assert_eq!(markdown(&turn), r#"I know ["one"]"#);
    assert!(notices(&turn).is_empty(), "{turn:#}");
    assert_eq!(harness.received("session/resume").len(), 1);
    assert_eq!(harness.received("session/new").len(), 1);
    assert!(harness.received("session/load").is_empty());
}

/// An agent that can only load.
fn loading(mut script: Value) -> Value {
    script["initialize"] = json!({"agentCapabilities": {"sessionCapabilities": {"resume": null}}});
    script["scenes"] = remembering();
    script
}

#[tokio::test]
async fn nothing_of_a_replay_is_told_again_whenever_it_comes() {
    let ways = [
        loading(json!({"replay": "before-response"})),
        loading(json!({"replay": "after-response"})),
        json!({"resume_replays": true, "scenes": remembering()}),
    ];
    for script in ways {
        let (harness, turn) = over_a_restart(script.clone()).await;
        assert_eq!(markdown(&turn), r#"I know ["one"]"#, "{script}");
        let chat = harness.ann.sees();
        let turns = chat["turns"].as_array().unwrap();
        assert_eq!(turns.len(), 2, "{chat:#}");
        assert_eq!(markdown(&turns[0]), "I know []", "{chat:#}");
        assert_eq!(harness.prompts().len(), 2, "{script}");
    }
}

#[tokio::test]
async fn an_agent_that_cannot_reopen_is_told_the_past() {
    let unknown =
        json!({"error": {"code": -32601, "message": "\"Method not found\": session/load"}});
    let lost = [
        json!({"error": {"code": -32002, "message": "Resource not found", "data": {"sessionId": "x"}}}),
        json!({"error": {"code": -32603, "message": "Internal error", "data": {"details": "Invalid session identifier \"x\"."}}}),
        json!({"error": {"code": -32603, "message": "Internal error: OpenCode service failure", "data": {"service": "session"}}}),
    ];
    let none = json!({"initialize": {"agentCapabilities": {"loadSession": false, "sessionCapabilities": {"resume": null}}}, "scenes": remembering()});
    let mut scripts = vec![none];
    let mut offered = loading(json!({}));
    offered["answers"] = json!([{"method": "session/load", "answer": unknown}]);
    scripts.push(offered);
    for answer in lost {
        scripts.push(json!({"answers": [{"method": "session/resume", "answer": answer}], "scenes": remembering()}));
    }
    for script in scripts {
        let (harness, turn) = over_a_restart(script.clone()).await;
        assert_eq!(markdown(&turn), "I know []", "{script}");
        assert_eq!(notices(&turn).len(), 1, "{script}: {turn:#}");
        assert_eq!(harness.received("session/new").len(), 2, "{script}");
        let prompt = harness.received("session/prompt").pop().unwrap();
        let text = prompt_text(&prompt);
        assert!(text.contains("one") && text.contains("I know []"), "{text}");
        assert!(text.trim_end().ends_with("two"), "{text}");
        // It is told once.
        let mut harness = harness;
        harness.talk("three").await;
        assert_eq!(harness.prompts().pop().unwrap(), "three");
    }
}

#[tokio::test]
async fn a_session_that_is_lost_at_the_prompt_is_opened_again_once() {
    let lost = json!({"error": {"code": -32002, "message": "Session x not found"}});
    let rule = json!({"method": "session/prompt", "times": 1, "answer": lost});
    let script = json!({"answers": [rule], "scenes": remembering()});
    let mut harness = AcpSetup::new(script).start().await;
    let turn = harness.talk("one").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(harness.received("session/prompt").len(), 2);
}

#[tokio::test]
async fn a_turn_that_an_exit_cut_off_goes_on_where_it_was() {
    let scenes = json!([
        scene("interrupted", json!([{"say": [" and the rest"]}])),
        scene("^go", json!([{"say": ["the first half"]}, {"exit": 1}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    let turn = harness.talk("go").await;
    assert_eq!(error_of(&turn)["resumable"], true);
    harness.ann.resumes(&turn).await;
    let chat = harness
        .ann
        .until("it goes on", |chat| {
            chat["activeTurn"].is_null() && chat["turns"][0]["state"] == "complete"
        })
        .await;
    assert!(markdown(&chat["turns"][0]).ends_with("and the rest"), "{chat:#}");
    assert_eq!(harness.received("session/resume").len(), 1);
    let prompt = harness.prompts().pop().unwrap();
    assert!(prompt.contains("the first half"), "{prompt}");
}

#[tokio::test]
async fn what_was_taken_back_is_not_known_to_the_agent() {
    let mut harness = AcpHarness::start(remembering()).await;
    let first = harness.talk("keep this").await;
    harness.talk("forget this").await;
    let truncated = json!({"type": "chat/truncated", "turnId": first["id"]});
    harness.ann.does(truncated).await;
    let is_short = |chat: &Value| chat["turns"].as_array().unwrap().len() == 1;
    harness.ann.until("it is taken back", is_short).await;
    let turn = harness.talk("three").await;
    assert_eq!(markdown(&turn), "I know []");
    let prompt = harness.prompts().pop().unwrap();
    assert!(prompt.contains("keep this") && !prompt.contains("forget this"), "{prompt}");
}

#[tokio::test]
async fn a_fork_knows_what_was_said_before_it_and_says_nothing_of_it() {
    let mut harness = AcpHarness::start(remembering()).await;
    let first = harness.talk("the beginning").await;
    harness.talk("elsewhere").await;
    let chat = harness.ann.chat.as_str().to_owned();
    let source = json!({"kind": "fork", "chat": chat, "turnId": first["id"]});
    harness.ann.opens_chat("ahp-chat:/forked", source).await;
    let turn = harness.talk("go on").await;
    assert!(notices(&turn).is_empty(), "{turn:#}");
    let prompt = harness.prompts().pop().unwrap();
    assert!(prompt.contains("the beginning") && !prompt.contains("elsewhere"), "{prompt}");
    assert_eq!(harness.received("session/new").len(), 2);
}

/// An agent that can fork does: its own history is more than a transcript.
#[tokio::test]
async fn a_fork_at_the_last_turn_is_made_by_the_agent_if_it_can() {
    let initialize = json!({"agentCapabilities": {"sessionCapabilities": {"fork": {}}}});
    let steps = json!([{"say": ["{{text}} after {{history}}"]}]);
    let script = json!({"initialize": initialize, "scenes": [scene("", steps)]});
    let mut harness = AcpSetup::new(script).start().await;
    let first = harness.talk("one").await;
    let chat = harness.ann.chat.as_str().to_owned();
    let source = json!({"kind": "fork", "chat": chat, "turnId": first["id"]});
    harness.ann.opens_chat("ahp-chat:/forked", source.clone()).await;
    let turn = harness.talk("two").await;
    assert_eq!(texts_in(&turn, "systemNotification"), [""; 0]);
    let forks = harness.received("session/fork");
    assert_eq!(forks.len(), 1, "{:#?}", harness.methods());
    let prompts = harness.received("session/prompt");
    assert_eq!(forks[0]["sessionId"], prompts[0]["sessionId"]);
    assert_ne!(prompts[1]["sessionId"], prompts[0]["sessionId"], "a session of its own");
    assert_eq!(harness.prompts()[1], "two", "no transcript is needed");
    let session = harness.session().to_owned();
    // The source goes on; a fork of its first turn must not know the second.
    harness.ann.enters(&session, &chat).await;
    harness.talk("three").await;
    harness.ann.opens_chat("ahp-chat:/other", source).await;
    harness.talk("four").await;
    assert_eq!(harness.received("session/fork").len(), 1);
    assert!(!harness.prompts()[3].contains("three"), "{:?}", harness.prompts());
}
