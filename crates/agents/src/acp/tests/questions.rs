//! Questions of the agent, and who answers them.

use agent_api::AgentEvent;
use serde_json::{Value, json};

use super::harness::{Place, Reply, user};

fn asks(tool: Value) -> Value {
    let mut tool = tool;
    tool["ask"] = json!({});
    json!({"scenes": [
        {"when": "^instead", "steps": [{"say": ["ok: {{text}}"]}]},
        {"steps": [{"tool": tool}, {"say": ["after"]}]},
    ]})
}

fn run() -> Value {
    json!({"title": "touch x", "kind": "execute", "input": {"command": "touch x"}, "outputs": ["done"]})
}

#[tokio::test]
async fn ag_31_a_decision_goes_back_as_an_option() {
    for (reply, expected) in [
        (Reply::Approve, "once"),
        (Reply::Choose("always", true), "always"),
        (Reply::Deny(None), "reject"),
        // An option that says something else than the decision is not taken.
        (Reply::Choose("always", false), "reject"),
    ] {
        let place = Place::new(&asks(run()));
        let agent = place.agent();
        let turn = place.turn_with(&agent, user("t1", "x"), vec![reply.clone()]).await;
        assert_eq!(turn.result, Ok(()), "{reply:?}");
        let answer = &place.answers()[0];
        assert_eq!(answer["outcome"]["optionId"], expected, "{reply:?}");
        let asked = &turn.ready()[0];
        assert_eq!(asked["toolInput"], "{\"command\":\"touch x\"}");
        let labels: Vec<&Value> =
            asked["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
        assert_eq!(labels, ["approve", "approve", "deny"]);
        assert_eq!(asked.get("editable"), None, "AG-32");
        assert_eq!(turn.completed().len(), usize::from(expected != "reject"));
        assert_eq!(turn.texts().last().unwrap(), "after");
    }
}

#[tokio::test]
async fn ag_27_quirks_of_announcing_come_to_the_same() {
    for quirk in [
        json!({"announced": "by-question"}),
        json!({"announced": "after-answer"}),
        json!({"runs_before_asking": true}),
        json!({"asked_input": {"command": "touch x"}, "input": {}}),
    ] {
        let mut tool = run();
        tool.as_object_mut().unwrap().extend(quirk.as_object().cloned().unwrap());
        let place = Place::new(&asks(tool));
        let agent = place.agent();
        let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Approve]).await;
        assert_eq!(turn.result, Ok(()), "{quirk}");
        let asked: Vec<Value> =
            turn.ready().into_iter().filter(|ready| ready.get("confirmed").is_none()).collect();
        assert_eq!(asked.len(), 1, "{quirk}");
        assert_eq!(asked[0]["toolInput"], "{\"command\":\"touch x\"}", "{quirk}");
        assert_eq!(turn.completed().len(), 1, "{quirk}");
        let started =
            turn.events.iter().filter(|event| matches!(event, AgentEvent::ToolStarted { .. }));
        assert_eq!(started.count(), 1, "{quirk}");
    }
}

#[tokio::test]
async fn ag_32_words_of_a_denial_are_said_when_the_prompt_is_over() {
    let place = Place::new(&asks(run()));
    let agent = place.agent();
    let turn =
        place.turn_with(&agent, user("t1", "x"), vec![Reply::Deny(Some("instead do y"))]).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(turn.texts(), ["after", "ok: instead do y"]);
    assert_eq!(place.count("session/prompt"), 2);
}

#[tokio::test]
async fn ag_33_settings_answer_for_the_user() {
    let edit =
        |path: &str| json!({"title": "Edit", "kind": "edit", "diff": {"path": path, "new": "x"}});
    for (mode, tool, replies, expected) in [
        ("full-access", run(), vec![], "once"),
        ("plan", run(), vec![], "reject"),
        ("accept-edits", edit("{{cwd}}/a.txt"), vec![], "once"),
        ("accept-edits", edit("{{cwd}}/.mcp.json"), vec![Reply::Deny(None)], "reject"),
        ("accept-edits", edit("/etc/outside"), vec![Reply::Deny(None)], "reject"),
        ("accept-edits", run(), vec![Reply::Approve], "once"),
    ] {
        let place = Place::new(&asks(tool));
        let agent = place.agent();
        let input = user("t1", "x").with_config("approvals", json!(mode));
        let asked = replies.len();
        let turn = place.turn_with(&agent, input, replies).await;
        assert_eq!(turn.result, Ok(()), "{mode}");
        assert_eq!(place.answers()[0]["outcome"]["optionId"], expected, "{mode}");
        let by_setting =
            turn.ready().iter().filter(|ready| ready["confirmed"] == "setting").count();
        let refused = turn.position(|event| matches!(event, AgentEvent::ToolRefused { .. }));
        assert_eq!(by_setting + usize::from(refused.is_some()), 1 - asked, "{mode}");
    }
}

#[tokio::test]
async fn ag_27c_edits_are_shown_whole_before_and_after() {
    let place = Place::new(&asks(json!({
        "title": "Edit a.txt", "kind": "edit",
        "diff": {"path": "{{cwd}}/a.txt", "old": "two", "new": "TWO"},
        "write": {"path": "{{cwd}}/a.txt", "text": "one\nTWO\n"},
    })));
    std::fs::write(place.work().join("a.txt"), "one\ntwo\n").unwrap();
    let agent = place.agent();
    let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Approve]).await;
    assert_eq!(turn.result, Ok(()));
    let edits = &turn.ready()[0]["edits"]["items"];
    assert_eq!(edits[0]["before"]["content"]["sizeHint"], "one\ntwo\n".len());
    assert_eq!(edits[0]["after"]["content"]["sizeHint"], "one\nTWO\n".len());
    let completed = &turn.completed()[0];
    let block = completed["content"]
        .as_array()
        .unwrap()
        .iter()
        .find(|block| block["type"] == "fileEdit")
        .unwrap();
    assert_eq!(block["diff"], json!({"added": 1, "removed": 1}));
    assert_ne!(block["before"]["content"]["uri"], block["after"]["content"]["uri"]);
}

#[tokio::test]
async fn a_form_is_asked_and_its_answer_goes_back() {
    let form = json!({"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "properties": {
        "q": {"type": "string", "oneOf": [{"const": "A", "title": "a"}, {"const": "B", "title": "b"}]}}}});
    let place = Place::new(&json!({"scenes": [{"steps": [{"ask": form}, {"say": ["{{last}}"]}]}]}));
    let agent = place.agent();
    let answer = json!({"q": {"state": "submitted", "value": {"kind": "selected", "value": "B"}}});
    let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Answer(answer)]).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(place.answers()[0], json!({"action": "accept", "content": {"q": "B"}}));
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_taken_back_from_people() {
    let mut tool = run();
    tool["ask"] = json!({"withdraw": "withdraw"});
    let place = Place::new(&json!({"scenes": [{"steps": [{"tool": tool}, {"say": ["after"]}]}]}));
    place.touch("withdraw");
    let agent = place.agent();
    let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Silence]).await;
    assert_eq!(turn.result, Ok(()));
    let withdrawn =
        turn.position(|event| matches!(event, AgentEvent::ConfirmationWithdrawn { .. }));
    assert!(withdrawn.is_some());
    assert_eq!(turn.texts(), ["after"]);
}

/// Nobody can consent to an edit that cannot be shown.
#[tokio::test]
async fn an_edit_whose_preview_cannot_be_stored_is_refused_and_says_why() {
    let place = Place::new(&asks(json!({"title": "Edit", "kind": "edit",
        "diff": {"path": "{{cwd}}/a.txt", "old": "one", "new": "two"}})));
    std::fs::write(place.work().join("a.txt"), "one\n").unwrap();
    let agent = place.agent();
    let turn = place.turn(&agent, user("t1", "x").on_full_disk()).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(place.answers()[0]["outcome"]["optionId"], "reject");
    let refused = turn.events.iter().find_map(|event| match event {
        AgentEvent::ToolRefused { result, .. } => Some(json!(result.clone().into_object())),
        _ => None,
    });
    let refused = refused.expect("the call is refused").to_string();
    assert!(refused.contains("the disk is full"), "{refused}");
}

#[tokio::test]
async fn fields_of_a_form_are_asked_in_the_agents_order() {
    let form = json!({"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {
        "zone": {"type": "string"}, "age": {"type": "integer"}, "middle": {"type": "boolean"}}}});
    let place = Place::new(&json!({"scenes": [{"steps": [{"ask": form}]}]}));
    let agent = place.agent();
    let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Answer(json!({}))]).await;
    assert_eq!(turn.result, Ok(()));
    let asked = turn.events.iter().find_map(|event| match event {
        AgentEvent::InputRequested { request, .. } => Some(request.questions.clone()),
        _ => None,
    });
    let ids: Vec<Value> = asked.unwrap().iter().map(|question| question["id"].clone()).collect();
    assert_eq!(ids, ["zone", "age", "middle"]);
}

#[tokio::test]
async fn ag_51_a_write_beyond_the_calls_of_a_turn_is_refused() {
    let begin = |id: usize| json!({"update": {"sessionUpdate": "tool_call", "toolCallId": id.to_string(), "title": "T"}});
    let mut steps: Vec<Value> = (1..4_096).map(begin).collect();
    for name in ["last", "beyond"] {
        let path = format!("{{{{cwd}}}}/{name}");
        let params = json!({"sessionId": "{{session}}", "path": path, "content": "x"});
        steps.push(json!({"request": {"method": "fs/write_text_file", "params": params}}));
    }
    let place = Place::new(&json!({"scenes": [{"steps": steps}]}));
    let agent = place.agent_with(|config| config.fs = true);
    let input = user("t1", "x").with_config("approvals", json!("full-access"));
    let turn = place.turn(&agent, input).await;
    assert_eq!(turn.result, Ok(()));
    let frames = place.received().into_iter().map(|line| line.frame);
    let answers: Vec<Value> = frames.filter(|frame| frame["method"].is_null()).collect();
    assert_eq!(answers[0]["result"], json!({}), "{answers:?}");
    let refused = &answers[1]["error"]["message"];
    assert_eq!(refused, "more calls than a turn can have", "{answers:?}");
    assert!(place.work().join("last").exists());
    assert!(!place.work().join("beyond").exists());
    let is_start = |event: &&AgentEvent| matches!(event, AgentEvent::ToolStarted { .. });
    assert_eq!(turn.events.iter().filter(is_start).count(), 4_096);
}
