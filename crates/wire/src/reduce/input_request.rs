//! The reducers of input requests: ask, answer one question after the other, complete.
//!
//! A request is open while its part has no `response`; only open ones can be addressed.

use serde_json::Value;

use super::chat::refresh_status;
use super::{Reduced, present, set, set_field, set_flag};
use crate::state::{ChatState, ResponsePart, status};
use crate::{Action, Object};

/// Whether a part is a request without an answer.
pub(super) fn is_open(part: &ResponsePart) -> bool {
    part.kind() == "inputRequest"
        && part.0.get("request").is_some_and(|request| request["id"].is_string())
        && present(&part.0, "response").is_none()
}

/// The open request with this id: its whole part.
fn find_open<'a>(state: &'a mut ChatState, id: &str) -> Option<&'a mut Object> {
    let turn = state.active_turn.as_mut()?;
    let has_id = |part: &ResponsePart| is_open(part) && part.0["request"]["id"] == id;
    turn.parts.find_mut(has_id).map(|part| &mut part.0)
}

/// Asks anew, or asks again with what was answered so far (H-215).
pub(super) fn request(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(Value::Object(request)) = action.get("request") else { return Reduced::Unchanged };
    let Some(id) = request.get("id").and_then(Value::as_str) else { return Reduced::Unchanged };
    let mut request = request.clone();
    let asked = if let Some(part) = find_open(state, id) {
        let answered = part["request"].get("answers").filter(|answers| !answers.is_null());
        if present(&request, "answers").is_none()
            && let Some(answers) = answered
        {
            request.insert("answers".to_owned(), answers.clone());
        }
        set_field(part, "request", Some(&Value::Object(request)))
    } else if let Some(turn) = &mut state.active_turn {
        let mut part = Object::new();
        part.insert("kind".to_owned(), Value::String("inputRequest".to_owned()));
        part.insert("request".to_owned(), Value::Object(request));
        turn.parts.push(ResponsePart(part));
        Reduced::Changed
    } else {
        return Reduced::Unchanged;
    };
    asked | refresh_status(state) | set_flag(&mut state.status, status::IS_READ, Some(false))
}

/// Sets or removes the answer to one question.
pub(super) fn change_answer(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(id), Some(question)) = (action.text("requestId"), action.text("questionId")) else {
        return Reduced::Unchanged;
    };
    match find_open(state, id).and_then(|part| part.get_mut("request")) {
        Some(Value::Object(request)) => {
            let mut answers = answers_of(request);
            match action.present("answer") {
                Some(answer) => answers.insert(question.to_owned(), answer.clone()),
                None => answers.shift_remove(question),
            };
            set_answers(request, answers)
        }
        _ => Reduced::Unchanged,
    }
}

/// Closes the request; answers that come with it replace those given before (H-218).
pub(super) fn complete(state: &mut ChatState, action: &Action) -> Reduced {
    let (Some(id), Some(response)) = (action.text("requestId"), action.present("response")) else {
        return Reduced::Unchanged;
    };
    let Some(part) = find_open(state, id) else { return Reduced::Unchanged };
    if let Some(Value::Object(request)) = part.get_mut("request") {
        let mut answers = answers_of(request);
        if let Some(Value::Object(last)) = action.get("answers") {
            answers.extend(last.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        let _ = set_answers(request, answers);
    }
    set_field(part, "response", Some(response)) | refresh_status(state)
}

fn answers_of(request: &Object) -> Object {
    request.get("answers").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// No answer at all is no `answers` field.
fn set_answers(request: &mut Object, answers: Object) -> Reduced {
    if answers.is_empty() {
        return set_field(request, "answers", None);
    }
    let answers_field = request.entry("answers").or_insert(Value::Null);
    set(answers_field, Value::Object(answers))
}
