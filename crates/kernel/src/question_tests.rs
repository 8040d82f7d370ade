//! Which answers fit a question, and what completes a request.

use serde_json::json;
use wire::ActionKind;

use super::*;
use crate::fixture_tests::{KernelFixture, action};

fn asked(questions: Value) -> (KernelFixture, String) {
    let mut fixture = KernelFixture::new();
    fixture.start_turn("t1");
    let request = json!({"id": "q1", "message": "?", "questions": questions});
    fixture.act(ActionKind::ChatInputRequested, json!({"request": request}));
    (fixture, "q1".to_owned())
}

fn submitted(kind: &str, value: Value) -> Value {
    json!({"state": "submitted", "value": {"kind": kind, "value": value}})
}

fn completing(fixture: &KernelFixture, fields: Value) -> Result<Action, String> {
    let mut completed = action(ActionKind::ChatInputCompleted, fields);
    let state = fixture.kernel.chat(&fixture.chat).state();
    check_completed(state, &mut completed).map(|()| completed).map_err(|refusal| refusal.0)
}

#[test]
fn an_answer_has_the_kind_and_the_bounds_of_its_question() {
    let (fixture, id) = asked(json!([
        {"id": "name", "kind": "text", "message": "?", "min": 2, "max": 4},
        {"id": "count", "kind": "integer", "message": "?", "max": 9},
        {"id": "one", "kind": "single-select", "message": "?", "options": [{"id": "a", "label": "A"}]},
    ]));
    let accept = |name: &str, answer: Value| {
        let fields = json!({"requestId": id, "response": "accept", "answers": {name: answer}});
        completing(&fixture, fields).map(|_| ())
    };
    assert_eq!(accept("name", submitted("text", json!("abc"))), Ok(()));
    assert_eq!(accept("count", submitted("number", json!(9))), Ok(()));
    assert_eq!(accept("one", submitted("selected", json!("a"))), Ok(()));
    for (name, answer, why) in [
        ("name", submitted("text", json!("a")), "too short"),
        ("name", submitted("boolean", json!(true)), "does not fit"),
        ("count", submitted("number", json!(1.5)), "whole number"),
        ("count", submitted("number", json!(10)), "out of range"),
        ("one", submitted("selected", json!("b")), "not one of the options"),
        ("other", submitted("text", json!("x")), "no question `other`"),
    ] {
        let refusal = accept(name, answer.clone()).unwrap_err();
        assert!(refusal.contains(why), "{name} {answer}: {refusal}");
    }
}

#[test]
fn what_was_typed_for_a_number_becomes_one() {
    let (fixture, id) = asked(json!([{"id": "count", "kind": "number", "message": "?"}]));
    let typed = |text: &str| {
        let answers = json!({"count": submitted("text", json!(text))});
        completing(&fixture, json!({"requestId": id, "response": "accept", "answers": answers}))
    };
    let read = typed("7").unwrap();
    assert_eq!(read.body["answers"]["count"]["value"]["kind"], "number");
    assert!(typed("seven").unwrap_err().contains("is a text that is not"));
}

#[test]
fn a_required_question_is_answered_before_all_is_accepted() {
    let questions = json!([{"id": "must", "kind": "text", "message": "?", "required": true}]);
    let (mut fixture, id) = asked(questions);
    let respond = |response: &str| json!({"requestId": id, "response": response});
    let missing = completing(&fixture, respond("accept")).unwrap_err();
    assert_eq!(missing, "`must` needs a submitted answer");
    assert!(completing(&fixture, respond("decline")).is_ok());
    assert!(completing(&fixture, respond("cancel")).is_ok());
    assert!(completing(&fixture, respond("maybe")).is_err());
    // What a client synced before counts.
    let draft =
        json!({"requestId": id, "questionId": "must", "answer": submitted("text", json!("x"))});
    fixture.act(ActionKind::ChatInputAnswerChanged, draft);
    assert!(completing(&fixture, respond("accept")).is_ok());
}

#[test]
fn only_an_open_request_of_the_turn_that_runs_is_answered() {
    let (mut fixture, id) = asked(json!([]));
    let accept = json!({"requestId": id, "response": "accept"});
    assert!(completing(&fixture, accept.clone()).is_ok());
    assert!(completing(&fixture, json!({"requestId": "q2", "response": "accept"})).is_err());
    let chat = fixture.chat.clone();
    fixture.step(|step| close_open_questions(step, &chat));
    let over = completing(&fixture, accept).unwrap_err();
    assert_eq!(over, "no input request with this id is open");
}
