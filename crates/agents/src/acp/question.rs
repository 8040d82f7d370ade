//! Questions of an agent to the user, as input requests, and the answers in the agent's shapes.
//!
//! Promises: pure. A form is asked whole or not at all; an answer names options by what the agent called them.
//! Must not know: who answers.

use agent_api::InputRequest;
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use super::label::label;

const QUESTIONS_MAX: usize = 32;
const OPTIONS_MAX: usize = 256;
const TEXT_CHARS_MAX: usize = 2_000;

/// The field beside a choice that takes words of the user's own.
const CUSTOM: &str = "_custom";

/// A question that is asked, with what is needed to read the answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    pub(super) request: InputRequest,
    fields: Vec<Field>,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
struct Field {
    id: String,
    kind: FieldKind,
    /// The field that takes words of the user's own.
    custom: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    Boolean,
    One,
    Many,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Elicitation,
    /// A page to be opened: there is nothing to fill in.
    Url,
    /// A permission request that is none (AG-34).
    Permission,
}

/// A request for input. None if it is of a kind that we do not know.
pub(super) fn from_elicitation(request: &acp::CreateElicitationRequest) -> Option<Form> {
    let message = Some(long(&request.message));
    match &request.mode {
        acp::ElicitationMode::Url(url) => Some(Form {
            request: InputRequest {
                message,
                url: Some(url.url.chars().filter(|c| !c.is_control()).collect()),
                questions: Vec::new(),
            },
            fields: Vec::new(),
            shape: Shape::Url,
        }),
        acp::ElicitationMode::Form(form) => {
            let (questions, fields) = read_schema(&form.requested_schema)?;
            Some(Form {
                request: InputRequest {
                    message,
                    url: None,
                    questions,
                },
                fields,
                shape: Shape::Elicitation,
            })
        }
        _ => None,
    }
}

fn read_schema(schema: &acp::ElicitationSchema) -> Option<(Vec<Value>, Vec<Field>)> {
    if schema.properties.len() > 2 * QUESTIONS_MAX {
        return None;
    }
    let required = schema.required.as_deref().unwrap_or_default();
    let mut questions = Vec::new();
    let mut fields = Vec::new();
    for (id, property) in &schema.properties {
        let base = id.strip_suffix(CUSTOM);
        if base.is_some_and(|base| schema.properties.contains_key(base)) {
            continue; // asked with the other
        }
        let custom = format!("{id}{CUSTOM}");
        let custom = schema.properties.contains_key(&custom).then_some(custom);
        let (mut question, kind) = read_property(id, property)?;
        question["required"] = json!(required.contains(id));
        if custom.is_some() && matches!(kind, FieldKind::One | FieldKind::Many) {
            question["allowFreeformInput"] = json!(true);
        }
        questions.push(question);
        fields.push(Field {
            id: id.clone(),
            kind,
            custom,
        });
    }
    Some((questions, fields))
}

fn read_property(
    id: &str,
    property: &acp::ElicitationPropertySchema,
) -> Option<(Value, FieldKind)> {
    use acp::ElicitationPropertySchema as P;
    let head = |kind: &str, title: &Option<String>, description: &Option<String>| {
        let title = title
            .as_deref()
            .map_or_else(|| label(id, 100), |title| label(title, 200));
        let message = description.as_deref().map_or_else(|| title.clone(), long);
        json!({"kind": kind, "id": id, "title": title, "message": message})
    };
    let put = |question: &mut Value, name: &str, value: Option<Value>| {
        if let (Some(fields), Some(value)) = (question.as_object_mut(), value) {
            fields.insert(name.to_owned(), value);
        }
    };
    Some(match property {
        P::String(string) => {
            let options = string.one_of.as_ref().map(|options| read_options(options));
            let options =
                options.or_else(|| string.enum_values.as_ref().map(|values| read_names(values)));
            match options {
                Some(options) => {
                    let mut question = head("single-select", &string.title, &string.description);
                    put(&mut question, "options", Some(json!(options)));
                    (question, FieldKind::One)
                }
                None => {
                    let mut question = head("text", &string.title, &string.description);
                    put(
                        &mut question,
                        "min",
                        string.min_length.map(|min| json!(min)),
                    );
                    put(
                        &mut question,
                        "max",
                        string.max_length.map(|max| json!(max)),
                    );
                    put(
                        &mut question,
                        "defaultValue",
                        string.default.as_ref().map(|text| json!(text)),
                    );
                    (question, FieldKind::Text)
                }
            }
        }
        P::Number(number) => {
            let mut question = head("number", &number.title, &number.description);
            put(&mut question, "min", number.minimum.map(|min| json!(min)));
            put(&mut question, "max", number.maximum.map(|max| json!(max)));
            put(
                &mut question,
                "defaultValue",
                number.default.map(|value| json!(value)),
            );
            (question, FieldKind::Number)
        }
        P::Integer(number) => {
            let mut question = head("integer", &number.title, &number.description);
            put(&mut question, "min", number.minimum.map(|min| json!(min)));
            put(&mut question, "max", number.maximum.map(|max| json!(max)));
            put(
                &mut question,
                "defaultValue",
                number.default.map(|value| json!(value)),
            );
            (question, FieldKind::Integer)
        }
        P::Boolean(boolean) => {
            let mut question = head("boolean", &boolean.title, &boolean.description);
            put(
                &mut question,
                "defaultValue",
                boolean.default.map(|value| json!(value)),
            );
            (question, FieldKind::Boolean)
        }
        P::Array(array) => {
            let options = match &array.items {
                acp::MultiSelectItems::String(items) => read_names(&items.values),
                acp::MultiSelectItems::Titled(items) => read_options(&items.options),
                _ => return None,
            };
            let mut question = head("multi-select", &array.title, &array.description);
            put(&mut question, "options", Some(json!(options)));
            put(&mut question, "min", array.min_items.map(|min| json!(min)));
            put(&mut question, "max", array.max_items.map(|max| json!(max)));
            (question, FieldKind::Many)
        }
        _ => return None,
    })
}

fn read_options(options: &[acp::EnumOption]) -> Vec<Value> {
    let options = options.iter().take(OPTIONS_MAX).map(|option| {
        let mut read = json!({"id": option.value, "label": label(&option.title, 300)});
        if let Some(description) = &option.description {
            read["description"] = json!(label(description, 500));
        }
        read
    });
    options.collect()
}

fn read_names(names: &[String]) -> Vec<Value> {
    let names = names.iter().take(OPTIONS_MAX);
    names
        .map(|name| json!({"id": name, "label": label(name, 300)}))
        .collect()
}

fn long(text: &str) -> String {
    let readable = text.chars().filter(|c| !c.is_control() || *c == '\n');
    readable.take(TEXT_CHARS_MAX).collect()
}

/// A permission request that asks the user something else (AG-34). None of an ordinary one.
pub(super) fn from_permission(request: &acp::RequestPermissionRequest) -> Option<Form> {
    let meta = [request.tool_call.meta.as_ref(), request.meta.as_ref()];
    let is_question = meta.into_iter().flatten().any(|meta| {
        meta.get("qwenInteractionKind").and_then(Value::as_str) == Some("user_question")
    });
    if !is_question {
        return None;
    }
    let asked = request.tool_call.fields.raw_input.as_ref();
    let asked = asked.and_then(|input| input.get("questions")?.as_array());
    let mut questions = Vec::new();
    let mut fields = Vec::new();
    for (index, question) in asked.into_iter().flatten().take(QUESTIONS_MAX).enumerate() {
        let text = |name: &str| question[name].as_str().unwrap_or_default();
        let is_many = question["multiSelect"] == Value::Bool(true);
        let options = question["options"]
            .as_array()
            .into_iter()
            .flatten()
            .take(OPTIONS_MAX);
        let options = options.map(|option| {
            let name = option["label"].as_str().unwrap_or_default();
            let mut read = json!({"id": name, "label": label(name, 300)});
            if let Some(description) = option["description"].as_str() {
                read["description"] = json!(label(description, 500));
            }
            read
        });
        let options: Vec<Value> = options.collect();
        let kind = if is_many {
            FieldKind::Many
        } else {
            FieldKind::One
        };
        questions.push(json!({
            "kind": if is_many { "multi-select" } else { "single-select" },
            "id": index.to_string(),
            "title": label(text("header"), 100),
            "message": long(text("question")),
            "required": true,
            "options": options,
            "allowFreeformInput": true,
        }));
        fields.push(Field {
            id: index.to_string(),
            kind,
            custom: None,
        });
    }
    let title = request.tool_call.fields.title.as_deref();
    Some(Form {
        request: InputRequest {
            message: title.map(long),
            url: None,
            questions,
        },
        fields,
        shape: Shape::Permission,
    })
}

impl Form {
    /// The answer for the agent. `options` are those of a permission request.
    pub(super) fn answer(
        &self,
        response: &ChatInputResponseKind,
        answers: &Object,
        options: &[acp::PermissionOption],
    ) -> Value {
        let is_accepted = *response == ChatInputResponseKind::Accept;
        match self.shape {
            Shape::Permission => self.permission_answer(is_accepted, answers, options),
            Shape::Url if is_accepted => json!({"action": "accept"}),
            Shape::Elicitation if is_accepted => {
                json!({"action": "accept", "content": self.content(answers)})
            }
            Shape::Url | Shape::Elicitation => match response {
                ChatInputResponseKind::Decline => json!({"action": "decline"}),
                _ => json!({"action": "cancel"}),
            },
        }
    }

    fn content(&self, answers: &Object) -> Value {
        let mut content = Map::new();
        for field in &self.fields {
            let Some(value) = submitted(answers, &field.id) else {
                continue; // skipped
            };
            let words = free_words(value);
            if let Some(read) = field.read(value) {
                content.insert(field.id.clone(), read);
            }
            if let (Some(custom), Some(words)) = (&field.custom, words) {
                content.insert(custom.clone(), json!(words));
            }
        }
        Value::Object(content)
    }

    fn permission_answer(
        &self,
        is_accepted: bool,
        answers: &Object,
        options: &[acp::PermissionOption],
    ) -> Value {
        use super::mapper::{Choice, option_for};
        let choice = if is_accepted {
            Choice::Approve
        } else {
            Choice::Deny
        };
        let outcome = match option_for(options, choice) {
            Some((id, _)) => json!({"outcome": "selected", "optionId": id}),
            None => json!({"outcome": "cancelled"}),
        };
        let mut answer = json!({"outcome": outcome});
        if is_accepted {
            let mut given = Map::new();
            for field in &self.fields {
                let value = submitted(answers, &field.id);
                let read = value.and_then(|value| {
                    let chosen = field.read(value).map(|chosen| match chosen {
                        Value::Array(many) => {
                            let many: Vec<&str> = many.iter().filter_map(Value::as_str).collect();
                            many.join(", ")
                        }
                        Value::String(one) => one,
                        other => other.to_string(),
                    });
                    let all = [chosen.filter(|text| !text.is_empty()), free_words(value)];
                    let all: Vec<String> = all.into_iter().flatten().collect();
                    (!all.is_empty()).then(|| all.join(", "))
                });
                given.extend(read.map(|text| (field.id.clone(), json!(text))));
            }
            answer["answers"] = Value::Object(given);
        }
        answer
    }
}

/// The value of an answer that was given.
fn submitted<'a>(answers: &'a Object, id: &str) -> Option<&'a Value> {
    let answer = answers.get(id)?;
    (answer["state"] == "submitted").then(|| &answer["value"])
}

/// Words of the user's own beside or instead of a choice.
fn free_words(value: &Value) -> Option<String> {
    let words = value["freeformValues"].as_array()?;
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

impl Field {
    fn read(&self, value: &Value) -> Option<Value> {
        let value = &value["value"];
        match self.kind {
            FieldKind::Text | FieldKind::One => {
                let text = value.as_str()?;
                let is_chosen = self.kind == FieldKind::Text || !text.is_empty();
                is_chosen.then(|| json!(text))
            }
            FieldKind::Boolean => value.as_bool().map(|value| json!(value)),
            FieldKind::Number => value.as_f64().map(|value| json!(value)),
            FieldKind::Integer => {
                let whole = value.as_i64();
                let whole = whole.or_else(|| {
                    value
                        .as_f64()
                        .filter(|n| n.fract() == 0.0)
                        .map(|n| n as i64)
                });
                whole.map(|value| json!(value))
            }
            FieldKind::Many => value.is_array().then(|| value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::published::state::ChatInputQuestion;

    use super::*;

    fn frame(agent: &str, case: &str) -> Value {
        let frames = include_str!("mapper/frames.jsonl").lines();
        let mut frames = frames.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let frame = frames.find(|f| f["agent"] == agent && f["case"] == case);
        frame.unwrap()["frame"]["params"].clone()
    }

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_choice_with_words_beside_it_is_one_question() {
        let request = serde_json::from_value(frame("claude", "elicitation/create")).unwrap();
        let form = from_elicitation(&request).unwrap();
        assert_eq!(form.request.questions.len(), 1);
        let question: ChatInputQuestion =
            serde_json::from_value(form.request.questions[0].clone()).unwrap();
        let ChatInputQuestion::SingleSelect(question) = question else {
            panic!()
        };
        assert_eq!(
            (
                question.options[0].id.as_str(),
                question.allow_freeform_input
            ),
            ("A", Some(true))
        );
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
        let form = from_elicitation(&serde_json::from_value(request).unwrap()).unwrap();
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
        let form = from_elicitation(&serde_json::from_value(request).unwrap()).unwrap();
        assert_eq!(form.request.url.as_deref(), Some("https://x/y"));
        let accepted = form.answer(&ChatInputResponseKind::Accept, &Object::new(), &[]);
        assert_eq!(accepted, json!({"action": "accept"}));
    }

    #[test]
    fn ag_34_a_question_that_comes_as_a_permission_is_a_question() {
        let request: acp::RequestPermissionRequest =
            serde_json::from_value(frame("qwen", "session/request_permission think")).unwrap();
        let form = from_permission(&request).unwrap();
        assert_eq!(form.request.questions[0]["options"][1]["id"], "B");
        let answers = object(
            json!({"0": {"state": "submitted", "value": {"kind": "selected", "value": "B"}}}),
        );
        let answer = form.answer(&ChatInputResponseKind::Accept, &answers, &request.options);
        assert_eq!(
            answer,
            json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "answers": {"0": "B"}})
        );
        let refused = form.answer(&ChatInputResponseKind::Cancel, &answers, &request.options);
        assert_eq!(
            refused,
            json!({"outcome": {"outcome": "selected", "optionId": "cancel"}})
        );
        let ordinary =
            serde_json::from_value(frame("qwen", "session/request_permission execute")).unwrap();
        assert_eq!(from_permission(&ordinary), None);
    }
}
