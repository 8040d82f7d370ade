//! Questions as agents asked them.

use wire::published::state::ChatInputQuestion;

use super::*;

fn frame(agent: &str, case: &str) -> Value {
    let mut frames = include_str!("../mapper/frames.jsonl")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let frame = frames.find(|f| f["agent"] == agent && f["case"] == case);
    frame.unwrap()["frame"]["params"].clone()
}

fn form(params: Value) -> AgentForm {
    let fields = params["requestedSchema"]["properties"].as_object();
    let order = fields.into_iter().flat_map(|fields| fields.keys().cloned());
    let asked = AskedForm {
        order: order.collect(),
        request: serde_json::from_value(params.clone()).unwrap(),
    };
    from_elicitation(&asked).unwrap()
}

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_choice_with_words_beside_it_is_one_question() {
    let form = form(frame("claude", "elicitation/create"));
    assert_eq!(form.request.questions.len(), 1);
    let question: ChatInputQuestion =
        serde_json::from_value(form.request.questions[0].clone()).unwrap();
    let ChatInputQuestion::SingleSelect(question) = question else { panic!() };
    assert_eq!((question.options[0].id.as_str(), question.allow_freeform_input), ("A", Some(true)));
    let answers = object(
        json!({"question_0": {"state": "submitted", "value": {"kind": "selected", "value": "B", "freeformValues": ["because"]}}}),
    );
    let accept = ChatInputResponseKind::Accept;
    assert_eq!(
        form.answer(&accept, &answers, &[]),
        json!({"action": "accept", "content": {"question_0": "B", "question_0_custom": "because"}})
    );
    assert_eq!(
        form.answer(&ChatInputResponseKind::Decline, &answers, &[]),
        json!({"action": "decline"})
    );
    assert_eq!(
        form.answer(&ChatInputResponseKind::Cancel, &answers, &[]),
        json!({"action": "cancel"})
    );
}

#[test]
fn every_kind_of_field_is_asked_and_read() {
    let request = json!({"mode": "form", "sessionId": "s", "message": "m", "requestedSchema": {"type": "object", "required": ["t"], "properties": {
        "t": {"type": "string", "minLength": 1},
        "n": {"type": "number", "minimum": 0.5},
        "i": {"type": "integer"},
        "b": {"type": "boolean", "default": true},
        "e": {"type": "string", "enum": ["x", "y"]},
        "m": {"type": "array", "items": {"type": "string", "enum": ["p", "q"]}},
    }}});
    let form = form(request);
    for question in &form.request.questions {
        let read: ChatInputQuestion = serde_json::from_value(question.clone()).unwrap();
        assert!(!matches!(read, ChatInputQuestion::Unknown(_)), "{question}");
    }
    let value = |kind: &str, value: Value| json!({"state": "submitted", "value": {"kind": kind, "value": value}});
    let answers = object(json!({
        "t": value("text", json!("w")), "n": value("number", json!(1.5)), "i": value("number", json!(3.0)),
        "b": value("boolean", json!(false)), "e": value("selected", json!("y")), "m": value("selected-many", json!(["q"])),
        "other": value("text", json!("?")),
    }));
    let answer = form.answer(&ChatInputResponseKind::Accept, &answers, &[]);
    assert_eq!(
        answer["content"],
        json!({"b": false, "e": "y", "i": 3, "m": ["q"], "n": 1.5, "t": "w"})
    );
}

#[test]
fn a_url_is_shown_and_not_followed() {
    let request = json!({"mode": "url", "sessionId": "s", "elicitationId": "e", "url": "https://x\u{1b}/y", "message": "m"});
    let form = form(request);
    assert_eq!(form.request.url.as_deref(), Some("https://x/y"));
    let accepted = form.answer(&ChatInputResponseKind::Accept, &Object::new(), &[]);
    assert_eq!(accepted, json!({"action": "accept"}));
    for other in ["javascript:alert(1)", "file:///etc/passwd", "x"] {
        assert_eq!(read_page(other), None, "{other}");
    }
}

#[test]
fn ag_34_a_question_that_comes_as_a_permission_is_a_question() {
    let request: acp::RequestPermissionRequest =
        serde_json::from_value(frame("qwen", "session/request_permission think")).unwrap();
    let form = from_permission(&request).unwrap();
    assert_eq!(form.request.questions[0]["options"][1]["id"], "B");
    let answers =
        object(json!({"0": {"state": "submitted", "value": {"kind": "selected", "value": "B"}}}));
    let answer = form.answer(&ChatInputResponseKind::Accept, &answers, &request.options);
    assert_eq!(
        answer,
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "answers": {"0": "B"}})
    );
    let refused = form.answer(&ChatInputResponseKind::Cancel, &answers, &request.options);
    assert_eq!(refused, json!({"outcome": {"outcome": "selected", "optionId": "cancel"}}));
    let ordinary =
        serde_json::from_value(frame("qwen", "session/request_permission execute")).unwrap();
    assert_eq!(from_permission(&ordinary), None);
}
