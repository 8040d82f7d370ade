//! Questions of ACP agents to the user, and questions that they take back.

use conformance::acp::{AcpHarness, AcpSetup, scene};
use conformance::native::{calls_of, parts_of, texts_in};
use serde_json::{Value, json};

fn form() -> Value {
    json!({"mode": "form", "message": "Which?", "requestedSchema": {"type": "object", "required": ["pick"], "properties": {
        "pick": {"type": "string", "title": "Pick", "oneOf": [
            {"const": "A", "title": "The first", "description": "a"}, {"const": "B", "title": "The second"},
        ]},
        "pick_custom": {"type": "string", "title": "Other"},
        "many": {"type": "array", "title": "Many", "items": {"type": "string", "enum": ["x", "y"]}},
        "name": {"type": "string", "title": "Name"},
        "sure": {"type": "boolean", "title": "Sure"},
        "count": {"type": "integer", "title": "Count"},
    }}})
}

fn answered(value: Value) -> Value {
    json!({"state": "submitted", "value": value})
}

async fn completes(harness: &AcpHarness, request: &Value, response: &str, answers: Value) {
    let mut action =
        json!({"type": "chat/inputCompleted", "requestId": request["id"], "response": response});
    if !answers.is_null() {
        action["answers"] = answers;
    }
    harness.ann.does(action).await;
}

#[tokio::test]
async fn a_form_is_questions_and_the_answers_go_back_by_name() {
    let steps = json!([{"ask": form()}, {"say": ["{{last}}"]}]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    harness.ann.sends_message("ask").await;
    let request = harness.ann.questioned().await;
    let questions = request["questions"].as_array().unwrap();
    let find = |id: &str| questions.iter().find(|question| question["id"] == id);
    let kinds = [
        ("pick", "single-select"),
        ("many", "multi-select"),
        ("name", "text"),
        ("sure", "boolean"),
        ("count", "integer"),
    ];
    assert_eq!(questions.len(), kinds.len(), "{request:#}");
    for (id, kind) in kinds {
        assert_eq!(find(id).unwrap()["kind"], kind, "{request:#}");
    }
    let pick = find("pick").unwrap();
    assert_eq!(pick["allowFreeformInput"], true);
    assert_eq!(pick["options"][0]["id"], "A");
    assert_eq!(pick["options"][0]["label"], "The first");
    let answers = json!({
        "pick": answered(json!({"kind": "selected", "value": "B", "freeformValues": ["but"]})),
        "many": answered(json!({"kind": "selected-many", "value": ["x", "y"]})),
        "name": answered(json!({"kind": "text", "value": "Ann"})),
        "sure": answered(json!({"kind": "boolean", "value": true})),
        "count": answered(json!({"kind": "number", "value": 3})),
    });
    completes(&harness, &request, "accept", answers).await;
    harness.ann.turn_over().await;
    let answer = harness.answers().remove(0);
    assert_eq!(answer["result"]["action"], "accept", "{answer:#}");
    let content = json!({"pick": "B", "pick_custom": "but", "many": ["x", "y"], "name": "Ann", "sure": true, "count": 3});
    assert_eq!(answer["result"]["content"], content);
}

#[tokio::test]
async fn no_is_no_and_never_mind_is_never_mind() {
    let steps = json!([{"ask": form()}]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    for response in ["decline", "cancel"] {
        harness.ann.sends_message("ask").await;
        let request = harness.ann.questioned().await;
        completes(&harness, &request, response, Value::Null).await;
        harness.ann.turn_over().await;
        let answer = harness.answers().pop().unwrap();
        assert_eq!(answer["result"]["action"], response);
    }
}

#[tokio::test]
async fn an_address_is_shown_and_not_opened() {
    let ask = json!({"mode": "url", "elicitationId": "e", "message": "Sign in", "url": "https://example.com/sign-in"});
    let mut harness = AcpHarness::start(json!([scene("", json!([{"ask": ask}]))])).await;
    harness.ann.sends_message("ask").await;
    let request = harness.ann.questioned().await;
    assert_eq!(request["url"], "https://example.com/sign-in", "{request:#}");
    completes(&harness, &request, "accept", Value::Null).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.answers()[0]["result"]["action"], "accept");
}

#[tokio::test]
async fn a_question_without_a_turn_is_answered_at_once() {
    let scenes = json!([
        scene("^first", json!([{"end": {}}, {"ask": form()}])),
        scene("", json!([{"say": ["well"]}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    harness.talk("first").await;
    harness.until("its answer", |it| !it.answers().is_empty()).await;
    assert_eq!(harness.answers()[0]["result"]["action"], "cancel");
    let turn = harness.talk("second").await;
    assert!(parts_of(&turn, "inputRequest").is_empty());
    assert_eq!(texts_in(&turn, "markdown"), ["well"]);
}

#[tokio::test]
async fn a_permission_that_is_taken_back_waits_for_nobody() {
    let tool = json!({"title": "make", "kind": "edit", "ask": {"withdraw": "now"}});
    let steps = json!([{"tool": tool}, {"say": ["went on"]}]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    harness.ann.sends_message("go").await;
    harness.ann.asked().await;
    harness.touch("now");
    let turn = harness.ann.completed_turn().await;
    let call = calls_of(&turn).remove(0);
    assert_eq!(call["status"], "cancelled", "{call:#}");
    assert_eq!(call["reason"], "skipped");
    assert_eq!(texts_in(&turn, "markdown"), ["went on"]);
}

#[tokio::test]
async fn a_cancel_answers_every_question_of_the_agent_after_the_cancel() {
    let tool = json!({"title": "make", "kind": "edit", "ask": {}});
    for withdraws in [false, true] {
        let script = json!({"withdraws_on_cancel": withdraws, "scenes": [
            scene("^go", json!([{"tool": tool}])), scene("", json!([{"say": ["next"]}])),
        ]});
        let mut harness = AcpSetup::new(script).start().await;
        harness.ann.sends_message("go").await;
        harness.ann.asked().await;
        harness.ann.cancels().await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(turn["state"], "cancelled", "{turn:#}");
        let next = harness.talk("next").await;
        assert_eq!(texts_in(&next, "markdown"), ["next"]);
        let frames = harness.frames();
        let cancel = frames.iter().position(|frame| frame["method"] == "session/cancel");
        let answer = frames.iter().position(|frame| frame["method"].is_null());
        assert!(cancel.unwrap() < answer.unwrap(), "{frames:#?}");
        let outcome = &frames[answer.unwrap()]["result"]["outcome"];
        assert_eq!(outcome["outcome"], "cancelled");
    }
}
