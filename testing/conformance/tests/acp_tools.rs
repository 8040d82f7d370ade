//! Tool calls of ACP agents: each agent speaks of them in its own order, and what a person consents to is what was asked.

use std::path::Path;

use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use conformance::native::{calls_of, texts_in};
use serde_json::{Value, json};

/// Scenes of one call each, by the first word of the prompt.
fn scenes(tools: &[(&str, Value)]) -> Value {
    let one = |(when, tool): &(&str, Value)| {
        scene(&format!("^{when}"), json!([{"tool": tool}, {"say": ["done"]}]))
    };
    tools.iter().map(one).collect()
}

fn only_call(turn: &Value) -> Value {
    let mut calls = calls_of(turn);
    assert_eq!(calls.len(), 1, "{turn:#}");
    calls.remove(0)
}

#[tokio::test]
async fn a_call_that_asks_nobody_runs_and_is_over() {
    let tool = json!({"title": "Read a.txt", "name": "read_file", "kind": "read", "input": {"path": "a.txt"}, "outputs": ["half", "whole"]});
    let mut harness = AcpHarness::start(scenes(&[("read", tool)])).await;
    let call = only_call(&harness.talk("read").await);
    assert_eq!(call["status"], "completed", "{call:#}");
    assert_eq!(call["toolName"], "read_file");
    assert_eq!(call["displayName"], "Read a.txt");
    assert_eq!(call["confirmed"], "not-needed");
    assert_eq!(call["success"], true);
    assert_eq!(call["content"], json!([{"type": "text", "text": "whole"}]));
    let input: Value = serde_json::from_str(call["toolInput"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"path": "a.txt"}));
}

#[tokio::test]
async fn every_order_of_words_about_a_call_asks_once_and_runs_after_the_yes() {
    let tool = |announced: &str| {
        let write = json!({"path": "made.txt", "text": announced});
        json!({"title": "make", "kind": "edit", "announced": announced, "ask": {}, "write": write})
    };
    let mut early = tool("first");
    early["runs_before_asking"] = json!(true);
    let ways = [
        ("plain", tool("first")),
        ("unannounced", tool("by-question")),
        ("later", tool("after-answer")),
        ("early", early),
    ];
    let mut harness = AcpHarness::start(scenes(&ways)).await;
    for (way, tool) in &ways {
        let before = std::fs::read_to_string(harness.work().join("made.txt")).ok();
        harness.ann.sends_message(way).await;
        let asked = harness.ann.asked().await;
        let now = std::fs::read_to_string(harness.work().join("made.txt")).ok();
        assert_eq!(before, now, "{way}: not before it is allowed");
        harness.ann.decides_about(&asked, json!({"selectedOptionId": "once"})).await;
        let turn = harness.ann.turn_over().await;
        let call = only_call(&turn);
        assert_eq!(call["status"], "completed", "{way}: {call:#}");
        assert_eq!(call["confirmed"], "user-action", "{way}: {call:#}");
        assert_eq!(harness.read("made.txt"), tool["announced"].as_str().unwrap());
    }
    let outcomes = harness.answers();
    assert_eq!(outcomes.len(), ways.len(), "each question is answered once: {outcomes:#?}");
    for (number, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome["id"], number, "ids begin at 0");
        let chosen = json!({"outcome": "selected", "optionId": "once"});
        assert_eq!(outcome["result"]["outcome"], chosen);
    }
}

#[tokio::test]
async fn a_call_first_heard_of_at_its_end_is_there() {
    let tool = json!({"title": "done already", "kind": "other", "announced": "at-the-end", "outputs": ["result"]});
    let mut harness = AcpHarness::start(scenes(&[("go", tool)])).await;
    let call = only_call(&harness.talk("go").await);
    assert_eq!(call["status"], "completed", "{call:#}");
    assert_eq!(call["content"][0]["text"], "result");
}

#[tokio::test]
async fn a_denied_call_is_denied_whether_the_agent_says_more_or_not() {
    let tool = |silent: bool| json!({"title": "make", "kind": "edit", "ask": {}, "silent_after_denial": silent});
    let both = [("loud", tool(false)), ("silent", tool(true))];
    let mut harness = AcpHarness::start(scenes(&both)).await;
    for (way, _) in &both {
        harness.ann.sends_message(way).await;
        let denial = json!({"approved": false, "reason": "denied"});
        harness.ann.decides(denial).await;
        let turn = harness.ann.completed_turn().await;
        let call = only_call(&turn);
        assert_eq!(call["status"], "cancelled", "{way}: {call:#}");
        assert_eq!(call["reason"], "denied", "{way}: {call:#}");
        assert_eq!(texts_in(&turn, "markdown"), ["done"]);
    }
    for outcome in harness.answers() {
        assert_eq!(outcome["result"]["outcome"]["optionId"], "reject");
    }
}

#[tokio::test]
async fn ids_that_come_again_in_the_next_turn_are_other_calls() {
    let tool = json!({"title": "again", "kind": "read", "id": "call_1", "outputs": ["{{text}}"]});
    let mut harness = AcpHarness::start(scenes(&[("go", tool)])).await;
    for words in ["go one", "go two"] {
        let call = only_call(&harness.talk(words).await);
        assert_eq!(call["content"][0]["text"], words);
    }
    let chat = harness.ann.sees();
    let id = |turn: usize| calls_of(&chat["turns"][turn])[0]["toolCallId"].clone();
    assert_ne!(id(0), id(1));
}

#[tokio::test]
async fn ids_of_requests_may_be_words() {
    let tool = json!({"title": "make", "kind": "edit", "ask": {}});
    let script = json!({"request_ids": "strings", "scenes": scenes(&[("go", tool)])});
    let mut harness = AcpSetup::new(script).start().await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    let call = only_call(&harness.ann.turn_over().await);
    assert_eq!(call["status"], "completed");
    assert_eq!(harness.answers()[0]["id"], "ask-0");
}

#[tokio::test]
async fn the_question_shows_the_input_that_is_asked_about_and_the_agents_own_words() {
    let options = json!([
        {"optionId": "all", "kind": "allow_always", "name": "Yes, and all `make` commands"},
        {"optionId": "one", "kind": "allow_once", "name": "Yes"},
        {"optionId": "no", "kind": "reject_once", "name": "No, tell it what to do"},
    ]);
    let tool = json!({
        "title": "make", "kind": "execute", "input": {}, "asked_input": {"command": "make all"},
        "ask": {"options": options},
    });
    let mut harness = AcpHarness::start(scenes(&[("go", tool)])).await;
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    let input: Value = serde_json::from_str(asked["toolInput"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"command": "make all"}));
    assert_ne!(asked["editable"], true);
    let shown: Vec<Value> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| json!([option["id"], option["label"], option["kind"]]))
        .collect();
    let expected = json!([
        ["one", "Yes", "approve"],
        ["all", "Yes, and all `make` commands", "approve"],
        ["no", "No, tell it what to do", "deny"],
    ]);
    assert_eq!(json!(shown), expected, "once comes before always");
    // A plain yes is the smallest yes.
    harness.ann.decides_about(&asked, json!({})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.answers()[0]["result"]["outcome"]["optionId"], "one");
}

#[tokio::test]
async fn an_option_that_says_always_goes_to_the_agent_as_it_is() {
    let tool = json!({"title": "make", "kind": "execute", "ask": {}});
    let mut harness = AcpHarness::start(scenes(&[("go", tool)])).await;
    for _ in 0..2 {
        harness.ann.sends_message("go").await;
        // Asked again: the agent's memory is the agent's.
        harness.ann.decides(json!({"selectedOptionId": "always"})).await;
        harness.ann.turn_over().await;
    }
    for answer in harness.answers() {
        assert_eq!(answer["result"]["outcome"]["optionId"], "always");
    }
}

/// An edit of a file, and two calls that are none.
fn kinds(work: &Path) -> Value {
    let edit = |path: &str| {
        let diff = json!({"path": work.join(path), "old": null, "new": "new"});
        json!({"title": path, "kind": "edit", "ask": {}, "diff": diff})
    };
    let plain = |kind: &str| json!({"title": kind, "kind": kind, "ask": {}});
    scenes(&[
        ("edit", edit("a.txt")),
        ("hook", edit(".git/hooks/pre-commit")),
        ("outside", edit("../a.txt")),
        ("link", edit("link/a.txt")),
        ("execute", plain("execute")),
        ("read", plain("read")),
    ])
}

#[tokio::test]
async fn the_sessions_approvals_answer_before_anyone_is_asked() {
    let mut harness = AcpHarness::start(json!([])).await;
    // A directory by its name, and outside by where it leads.
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), harness.work().join("link")).unwrap();
    harness.changes_script(&json!({"scenes": kinds(&harness.work())}));
    let expected = [
        ("full-access", ["once", "once", "once", "once", "once", "once"]),
        ("accept-edits", ["once", "asked", "asked", "asked", "asked", "asked"]),
        ("plan", ["reject", "reject", "reject", "reject", "reject", "asked"]),
    ];
    for (mode, outcomes) in expected {
        let config = json!({"type": "session/configChanged", "config": {"approvals": mode}});
        harness.ann.does_in(SESSION, config).await;
        let is_so = move |state: &Value| state["config"]["values"]["approvals"] == mode;
        harness.ann.until_session(SESSION, is_so).await;
        let words = ["edit", "hook", "outside", "link", "execute", "read"];
        for (word, outcome) in words.iter().zip(outcomes) {
            harness.ann.sends_message(word).await;
            if outcome == "asked" {
                harness.ann.decides(json!({})).await;
                harness.ann.turn_over().await;
                continue;
            }
            let call = only_call(&harness.ann.turn_over().await);
            let answered = harness.answers().pop().unwrap();
            let chosen = &answered["result"]["outcome"]["optionId"];
            assert_eq!(chosen, outcome, "{mode} {word}");
            if outcome == "once" {
                assert_eq!(call["confirmed"], "setting", "{mode} {word}: {call:#}");
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_fails_says_why_and_one_without_an_end_is_closed() {
    let failed = json!({"title": "try", "kind": "execute", "outcome": "failed", "outputs": ["no such file"]});
    let endless = json!({"title": "try", "kind": "execute", "outcome": "none"});
    let mut harness = AcpHarness::start(scenes(&[("fail", failed), ("endless", endless)])).await;
    let call = only_call(&harness.talk("fail").await);
    assert_eq!(call["success"], false, "{call:#}");
    assert!(call["error"]["message"].as_str().unwrap().contains("no such file"));
    let call = only_call(&harness.talk("endless").await);
    assert_eq!(call["status"], "completed", "{call:#}");
    assert_eq!(call["success"], true);
}

#[tokio::test]
async fn output_that_comes_as_a_terminal_is_text_with_its_exit_code() {
    let terminal = json!({"output": ["line one\n", "line two\n"], "exit_code": 3});
    let tool = json!({"title": "make", "kind": "execute", "terminal": terminal});
    let mut harness = AcpHarness::start(scenes(&[("go", tool)])).await;
    let call = only_call(&harness.talk("go").await);
    let content = call["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{call:#}");
    assert_eq!(content[0]["text"], "line one\nline two\n");
    assert!(call["pastTenseMessage"].to_string().contains('3'), "{call:#}");
}

/// The question and the result of an edit, as texts.
async fn edited(harness: &mut AcpHarness, words: &str) -> [String; 4] {
    harness.ann.sends_message(words).await;
    let asked = harness.ann.asked().await;
    let preview = asked["edits"]["items"][0].clone();
    let before = harness.ann.reads(&preview["before"]["content"]["uri"]).await;
    let after = harness.ann.reads(&preview["after"]["content"]["uri"]).await;
    harness.ann.decides_about(&asked, json!({})).await;
    let call = only_call(&harness.ann.turn_over().await);
    let blocks = call["content"].as_array().unwrap().iter();
    let edits: Vec<&Value> = blocks.filter(|block| block["type"] == "fileEdit").collect();
    assert_eq!(edits.len(), 1, "{call:#}");
    let was = harness.ann.reads(&edits[0]["before"]["content"]["uri"]).await;
    let is = harness.ann.reads(&edits[0]["after"]["content"]["uri"]).await;
    [before, after, was, is]
}

#[tokio::test]
async fn an_edit_is_shown_as_the_whole_file_whether_the_agent_sends_lines_or_all_of_it() {
    let (old, new) = ("one\ntwo\nthree\n", "one\n2\nthree\n");
    for (from, to) in [("two", "2"), (old, new)] {
        let script = |path: &str| {
            let tool = json!({
                "title": "edit", "kind": "edit", "ask": {}, "locations": [path],
                "diff": {"path": path, "old": from, "new": to}, "write": {"path": path, "text": new},
            });
            json!({"scenes": scenes(&[("edit", tool)])})
        };
        let setup = AcpSetup::new(script("/none")).file("a.txt", old);
        let mut harness = setup.start().await;
        let path = harness.work().join("a.txt").display().to_string();
        harness.changes_script(&script(&path));
        let texts = edited(&mut harness, "edit").await;
        assert_eq!(texts, [old, new, old, new]);
    }
}

#[tokio::test]
async fn an_edit_outside_of_the_directory_is_words_alone() {
    let tool = json!({
        "title": "edit", "kind": "edit", "ask": {}, "diff": {"path": "/etc/hostname", "old": "a", "new": "b"},
    });
    let mut harness = AcpHarness::start(scenes(&[("edit", tool)])).await;
    harness.ann.sends_message("edit").await;
    let asked = harness.ann.asked().await;
    // What the agent says of the file is shown, and what is in the file is not.
    let shown = asked["edits"]["items"][0].clone();
    let before = harness.ann.reads(&shown["before"]["content"]["uri"]).await;
    assert_eq!(before, "a");
    harness.ann.decides_about(&asked, json!({})).await;
    let call = only_call(&harness.ann.turn_over().await);
    assert!(!call.to_string().contains("fileEdit"), "{call:#}");
}

#[tokio::test]
async fn a_question_in_the_shape_of_a_permission_is_a_question() {
    let questions = json!([{"question": "Which?", "header": "Pick", "multiSelect": false, "options": [
        {"label": "A", "description": "a"}, {"label": "B", "description": "b"},
    ]}]);
    let options = json!([
        {"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"},
        {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"},
    ]);
    let meta = json!({"qwenInteractionKind": "user_question", "qwenQuestions": questions});
    let tool = json!({
        "title": "Ask user 1 question", "kind": "think", "input": {"questions": questions},
        "announced": "by-question", "ask": {"options": options, "meta": meta},
    });
    let script = json!({"scenes": scenes(&[("ask", tool)])});
    let config = json!({"approvals": "full-access"});
    let mut harness = AcpSetup::new(script).config(config).start().await;
    harness.ann.sends_message("ask").await;
    let request = harness.ann.questioned().await;
    let question = &request["questions"][0];
    assert!(question["message"].to_string().contains("Which?"), "{request:#}");
    let second = question["options"][1]["id"].as_str().unwrap().to_owned();
    harness.ann.chooses(&second).await;
    harness.ann.turn_over().await;
    let answer = harness.answers().remove(0);
    assert_eq!(answer["result"]["outcome"]["optionId"], "proceed_once");
    assert!(answer["result"]["answers"].to_string().contains('B'), "{answer:#}");
}

/// As Codex tells of a command that its sandbox lets run and then stops: begun at once, printed beside the call, failed.
#[tokio::test]
async fn a_command_that_nobody_is_asked_about_is_shown_with_what_it_printed() {
    let call = |fields: Value| {
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_1"});
        for (name, value) in fields.as_object().unwrap() {
            update[name] = value.clone();
        }
        json!({"update": update})
    };
    let begun = call(
        json!({"sessionUpdate": "tool_call", "name": "exec_command", "kind": "execute", "title": "touch x",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": "call_1"}], "rawInput": {"command": "touch x"},
        "_meta": {"terminal_info": {"cwd": "/", "terminal_id": "call_1"}}}),
    );
    let printed = call(
        json!({"_meta": {"terminal_output": {"data": "Read-only file system\n", "terminal_id": "call_1"}}}),
    );
    let failed = call(
        json!({"status": "failed", "_meta": {"terminal_exit": {"exit_code": 1, "signal": null, "terminal_id": "call_1"}}}),
    );
    let steps = json!([{"think": ["Hm."]}, begun, printed, failed, {"say": ["Done."]}]);
    let mut harness = AcpHarness::start(json!([scene("go", steps)])).await;
    let turn = harness.talk("go").await;
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 1, "{turn:#}");
    assert_eq!(
        (&calls[0]["toolName"], &calls[0]["success"]),
        (&json!("exec_command"), &json!(false))
    );
    assert_eq!(calls[0]["content"][0]["text"], "Read-only file system\n", "{turn:#}");
    assert_eq!(calls[0]["pastTenseMessage"], "touch x (exit code 1)");
}
