//! Agents that exit, hang, flood, print what they should not, or speak another protocol: each has an end, and words for the user.

use conformance::acp::{AcpHarness, AcpSetup, is_alive, scene};
use conformance::native::{error_of, texts_in};
use serde_json::{Value, json};

/// The error that the next turn ends in.
async fn failure(harness: &mut AcpHarness) -> Value {
    error_of(&harness.talk("go").await)
}

fn kind(error: &Value) -> &str {
    error["error"]["errorType"].as_str().unwrap()
}

fn words(error: &Value) -> &str {
    error["error"]["message"].as_str().unwrap()
}

#[tokio::test]
async fn an_exit_at_any_point_ends_the_turn_and_the_next_one_starts_a_process() {
    let exit = json!([{"stderr": {"text": "out of luck", "times": 1}}, {"exit": 3}]);
    for method in ["initialize", "session/new", "session/prompt"] {
        let rule = json!({"method": method, "times": 1, "steps": exit});
        let script = json!({"answers": [rule], "scenes": [scene("", json!([{"say": ["well"]}]))]});
        let mut harness = AcpSetup::new(script).start().await;
        let error = failure(&mut harness).await;
        assert_eq!(kind(&error), "agentExited", "{method}: {error:#}");
        assert_eq!(error["resumable"], true);
        let told = words(&error);
        assert!(told.contains('3') && told.contains("out of luck"), "{told}");
        let turn = harness.talk("again").await;
        assert_eq!(texts_in(&turn, "markdown"), ["well"], "{method}");
        assert_eq!(harness.starts().len(), 2, "{method}");
    }
}

#[tokio::test]
async fn an_exit_in_the_middle_keeps_what_was_said_and_closes_what_was_asked() {
    let tool = json!({"title": "make", "kind": "edit", "ask": {}});
    let scenes = json!([
        scene("^said", json!([{"say": ["half"]}, {"await": "die"}, "kill"])),
        scene("^asked", json!([{"tool": tool}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    harness.ann.sends_message("said").await;
    let has_half = |chat: &Value| texts_in(&chat["activeTurn"], "markdown") == ["half"];
    harness.ann.until("half of it", has_half).await;
    harness.touch("die");
    let turn = harness.ann.turn_over().await;
    let error = error_of(&turn);
    assert_eq!(kind(&error), "agentExited", "{error:#}");
    assert_eq!(texts_in(&turn, "markdown"), ["half"]);
    harness.ann.sends_message("asked").await;
    harness.ann.asked().await;
    let pid = harness.starts().last().unwrap().pid.to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status();
    assert!(killed.unwrap().success());
    let turn = harness.ann.turn_over().await;
    assert_eq!(kind(&error_of(&turn)), "agentExited");
    let calls = conformance::native::calls_of(&turn);
    assert_ne!(calls[0]["status"], "pending-confirmation", "{turn:#}");
}

#[tokio::test]
async fn an_agent_that_exits_again_and_again_is_not_started_for_a_while() {
    let rule = json!({"method": "initialize", "steps": [{"exit": 1}]});
    let mut harness = AcpSetup::new(json!({"answers": [rule]})).start().await;
    for _ in 0..3 {
        assert_eq!(kind(&failure(&mut harness).await), "agentExited");
    }
    let error = failure(&mut harness).await;
    assert_eq!(kind(&error), "agentUnavailable", "{error:#}");
    assert_eq!(harness.starts().len(), 3);
}

#[tokio::test]
async fn another_version_of_the_protocol_is_named_and_not_spoken() {
    let script = json!({"initialize": {"protocolVersion": 2}});
    let mut harness = AcpSetup::new(script).start().await;
    let error = failure(&mut harness).await;
    let told = words(&error);
    assert!(told.contains('1') && told.contains('2'), "{error:#}");
    assert_eq!(harness.received("initialize")[0]["protocolVersion"], 1);
    assert!(harness.received("session/new").is_empty());
}

#[tokio::test]
async fn a_start_that_hangs_is_given_up() {
    let rule = json!({"method": "initialize", "steps": [{"stderr": {"text": "waiting for the moon", "times": 1}}], "answer": "silence"});
    let setup = AcpSetup::new(json!({"answers": [rule]}));
    let entry = "trust = \"always\"\nstart_timeout_s = 1";
    let mut harness = setup.entry(entry).start().await;
    let error = failure(&mut harness).await;
    assert_eq!(kind(&error), "agentStartTimeout", "{error:#}");
    assert!(words(&error).contains("waiting for the moon"), "{error:#}");
    assert_eq!(error["resumable"], true);
    let pid = harness.starts()[0].pid;
    harness.until("it is stopped", |_| !is_alive(pid)).await;
}

#[tokio::test]
async fn a_line_that_is_no_json_is_passed_over_and_three_in_a_row_are_not() {
    let scenes = json!([
        scene(
            "^one",
            json!([{"garbage": 1}, {"say": ["well"]}, {"garbage": 2}, {"say": [" done"]}])
        ),
        scene("^three", json!([{"say": ["half"]}, {"garbage": 3}, "hang"])),
        scene("", json!([{"say": ["again"]}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    let turn = harness.talk("one").await;
    assert_eq!(texts_in(&turn, "markdown"), ["well done"]);
    let error = error_of(&harness.talk("three").await);
    assert_eq!(kind(&error), "agentProtocol", "{error:#}");
    let turn = harness.talk("next").await;
    assert_eq!(texts_in(&turn, "markdown"), ["again"]);
}

#[tokio::test]
async fn a_line_without_end_is_cut_off_with_its_process() {
    let steps = json!([{"say": ["half"]}, {"endless_line": 40_000_000}, "hang"]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let error = failure(&mut harness).await;
    assert_eq!(kind(&error), "agentProtocol", "{error:#}");
    let pid = harness.starts()[0].pid;
    harness.until("it is stopped", |_| !is_alive(pid)).await;
}

#[tokio::test]
async fn a_flood_of_errors_stops_nothing_and_its_end_is_told() {
    let line = "e".repeat(1000);
    let steps = json!([
        {"stderr": {"text": line, "times": 20_000}}, {"say": ["well"]},
        {"stderr": {"text": "the last word", "times": 1}}, {"exit": 1},
    ]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    assert_eq!(texts_in(&turn, "markdown"), ["well"]);
    let error = error_of(&turn);
    assert!(words(&error).contains("the last word"), "{error:#}");
    assert!(words(&error).len() < 1000, "{error:#}");
}

#[tokio::test]
async fn unknown_requests_are_refused_and_unknown_words_passed_over() {
    let steps = json!([
        {"notify": {"method": "_auth/status_update", "params": {"authStatus": {"kind": "api_key"}}}},
        {"notify": {"method": "qwen/notify/session/mode-update", "params": {"v": 1}}},
        {"update": {"sessionUpdate": "something_new", "value": 1}},
        {"request": {"method": "craft/drainMidTurnQueue", "params": {}}},
        {"request": {"method": "window/open", "params": {"sessionId": "{{session}}", "command": "true"}}},
        {"request": {"method": "fs/read_text_file", "params": {"sessionId": "{{session}}", "path": "/etc/passwd"}}},
        {"say": ["went on"]},
    ]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    assert_eq!(texts_in(&turn, "markdown"), ["went on"], "{turn:#}");
    let answers = harness.answers();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer["error"]["code"], -32601, "{answer:#}");
    }
}

#[tokio::test]
async fn a_sign_in_that_is_missing_says_what_to_run() {
    let missing = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let method = json!({"id": "login", "name": "Log in", "type": "terminal", "args": ["auth", "login"], "_meta": {
        "terminal-auth": {"command": "/usr/bin/fake agent", "args": ["auth", "login"], "label": "Fake login"},
    }});
    for at in ["session/new", "session/prompt"] {
        let rule = json!({"method": at, "answer": missing});
        let script = json!({"initialize": {"authMethods": [method]}, "answers": [rule]});
        let mut harness = AcpSetup::new(script).start().await;
        let error = failure(&mut harness).await;
        assert_eq!(kind(&error), "agentSignIn", "{at}: {error:#}");
        assert_eq!(error["resumable"], true);
        assert!(words(&error).contains("'/usr/bin/fake agent' auth login"), "{error:#}");
        assert!(harness.received("authenticate").is_empty());
    }
}

#[tokio::test]
async fn a_configured_method_signs_in_once_and_the_turn_goes_on() {
    let missing = json!({"error": {"code": -32000, "message": "Authentication required"}});
    for at in ["session/new", "session/prompt"] {
        let rule = json!({"method": at, "until": "authenticate", "answer": missing});
        let script = json!({"answers": [rule], "scenes": [scene("", json!([{"say": ["in"]}]))]});
        let entry = "trust = \"always\"\nauth = { method = \"api-key\" }";
        let mut harness = AcpSetup::new(script).entry(entry).start().await;
        let turn = harness.talk("go").await;
        assert_eq!(texts_in(&turn, "markdown"), ["in"], "{at}: {turn:#}");
        let asked = harness.received("authenticate");
        assert_eq!(asked.len(), 1, "{at}");
        assert_eq!(asked[0]["methodId"], "api-key");
    }
}

#[tokio::test]
async fn a_sign_in_that_proves_nothing_is_not_tried_for_ever() {
    let missing = json!({"error": {"code": -32000, "message": "Key missing"}});
    let rule = json!({"method": "session/new", "answer": missing});
    let entry = "trust = \"always\"\nauth = { method = \"api-key\" }";
    let setup = AcpSetup::new(json!({"answers": [rule]})).entry(entry);
    let mut harness = setup.start().await;
    let error = failure(&mut harness).await;
    assert_eq!(kind(&error), "agentSignIn", "{error:#}");
    assert_eq!(harness.received("authenticate").len(), 1);
    assert_eq!(harness.received("session/new").len(), 2);
}

#[tokio::test]
async fn a_command_that_is_not_there_is_told_by_the_turn_alone() {
    // A later key of the same name would be an error: the table's command is taken from its preset.
    let script = json!({"scenes": []});
    let settings =
        "[[agents]]\nid = \"absent\"\ncommand = \"no-such-agent-anywhere\"\ntrust = \"always\"";
    let mut harness = AcpSetup::new(script).settings(settings).start().await;
    let work = harness.work();
    harness.ann.creates_session("absent:/session", &work, json!({})).await;
    let error = failure(&mut harness).await;
    assert!(words(&error).contains("no-such-agent-anywhere"), "{error:#}");
}
