//! A server's question to the user as an input request, and the answer back (MC-11).
//!
//! Promises: bounded; a page is shown, never opened; an answer has the types that the server asked for.
//! Must not know: how questions are shown.

use agent_api::{AgentEvent, AgentReply, EventSink, InputRequest, TurnOver};
use serde_json::{Map, Value, json};
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use super::shown;
use crate::mcp::{Elicitation, ElicitationAnswer, ElicitationForm};

const FIELDS_MAX: usize = 16;
const OPTIONS_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 2_000;

/// What must come back as it was: names, values that may be chosen, defaults, addresses. Longer ones are not asked about.
const VALUE_BYTES_MAX: usize = 2_048;

/// Asks the user for a server, by a number that no other question of the turn has.
pub(super) async fn ask(
    server: &str,
    elicitation: Elicitation,
    ask: u64,
    events: &dyn EventSink,
) -> Result<ElicitationAnswer, TurnOver> {
    let Some(request) = make_request(server, &elicitation) else {
        return Ok(ElicitationAnswer::Decline);
    };
    let reply = events.ask(AgentEvent::InputRequested { ask, request });
    let AgentReply::Answered { response, answers, .. } = reply.await? else {
        return Err(TurnOver); // replies are routed by what they answer
    };
    Ok(match response {
        ChatInputResponseKind::Accept => match &elicitation.form {
            ElicitationForm::Url(_) => ElicitationAnswer::Accept(None),
            ElicitationForm::Fields(schema) => {
                ElicitationAnswer::Accept(Some(read_answers(schema, &answers)))
            }
        },
        ChatInputResponseKind::Decline => ElicitationAnswer::Decline,
        ChatInputResponseKind::Cancel => ElicitationAnswer::Cancel,
    })
}

/// The question; none if it cannot be shown.
fn make_request(server: &str, elicitation: &Elicitation) -> Option<InputRequest> {
    let server = shown(server);
    let said = cut(&elicitation.message);
    let message = format!("The MCP server `{server}` asks: {said}");
    match &elicitation.form {
        ElicitationForm::Url(url) => Some(InputRequest {
            message: Some(message),
            url: Some(url.clone()).filter(|url| is_page(url) && url.len() <= VALUE_BYTES_MAX),
            ..InputRequest::default()
        })
        .filter(|request| request.url.is_some()),
        ElicitationForm::Fields(schema) => {
            let fields = schema["properties"].as_object()?;
            let is_bounded = fields.len() <= FIELDS_MAX
                && fields.iter().all(|(name, field)| has_bounds(name, field));
            if fields.is_empty() || !is_bounded {
                return None;
            }
            let required = schema["required"].as_array();
            let is_required = |name: &str| {
                let mut required = required.into_iter().flatten();
                required.any(|required| required == name)
            };
            let questions =
                fields.iter().map(|(name, field)| make_question(name, field, is_required(name)));
            Some(InputRequest {
                message: Some(message),
                questions: questions.collect(),
                ..InputRequest::default()
            })
        }
    }
}

/// Whether all that must come back as it was can be shown whole.
fn has_bounds(name: &str, field: &Value) -> bool {
    let options = options_of(field);
    let default = &field["default"];
    let mut values = options.iter().map(|(id, _)| id.as_str());
    let mut values = values.by_ref().chain(default.as_str()).chain([name]);
    values.all(|value| value.len() <= VALUE_BYTES_MAX)
}

/// Other schemes could do something else than show a page.
fn is_page(url: &str) -> bool {
    let url = reqwest::Url::parse(url);
    url.is_ok_and(|url| matches!(url.scheme(), "https" | "http"))
}

/// `ChatInputQuestion` of one field.
fn make_question(name: &str, field: &Value, required: bool) -> Value {
    let title = field["title"].as_str().unwrap_or(name);
    let message = field["description"].as_str().unwrap_or(title);
    let options = options_of(field);
    let kind = match (options.is_empty(), field["type"].as_str()) {
        (false, Some("array")) => "multi-select",
        (false, _) => "single-select",
        (true, Some(kind @ ("number" | "integer" | "boolean"))) => kind,
        (true, _) => "text",
    };
    let mut question = json!({
        "kind": kind,
        "id": name,
        "title": cut(title),
        "message": cut(message),
        "required": required,
    });
    if !options.is_empty() {
        let options = options.iter().map(|(id, label)| json!({"id": id, "label": cut(label)}));
        question["options"] = options.collect();
        question["allowFreeformInput"] = json!(false);
        return question;
    }
    let bounds = match kind {
        "text" => [("min", "minLength"), ("max", "maxLength")],
        _ => [("min", "minimum"), ("max", "maximum")],
    };
    for (to, from) in bounds {
        if field[from].is_number() && kind != "boolean" {
            question[to] = field[from].clone();
        }
    }
    for (to, from) in [("defaultValue", "default"), ("format", "format")] {
        let is_fitting = match (to, kind) {
            ("format", kind) => kind == "text" && is_short(&field[from]),
            (_, "text") => field[from].is_string(),
            (_, "boolean") => field[from].is_boolean(),
            _ => field[from].is_number(),
        };
        if is_fitting {
            question[to] = field[from].clone();
        }
    }
    question
}

fn is_short(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() <= VALUE_BYTES_MAX)
}

/// What may be chosen, by value and by name: the shapes that the versions of the protocol have for it.
fn options_of(field: &Value) -> Vec<(String, String)> {
    let from = match field["type"].as_str() {
        Some("array") => &field["items"],
        _ => field,
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let named = [&from["oneOf"], &from["anyOf"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|option| {
            let id = text(&option["const"])?;
            Some((id.clone(), text(&option["title"]).unwrap_or(id)))
        });
    let labels = from["enumNames"].as_array();
    let values =
        from["enum"].as_array().into_iter().flatten().enumerate().filter_map(|(index, value)| {
            let id = text(value)?;
            let label = labels.and_then(|labels| text(labels.get(index)?));
            Some((id.clone(), label.unwrap_or(id)))
        });
    named.chain(values).take(OPTIONS_MAX).collect()
}

/// The answers as an object of the schema's types; a field without one is left out.
fn read_answers(schema: &Value, answers: &Object) -> Value {
    let fields = schema["properties"].as_object();
    let mut content = Map::new();
    for (name, field) in fields.into_iter().flatten() {
        let answer = answers.get(name);
        let answer = answer.filter(|answer| answer["state"] == "submitted");
        let Some(value) = answer.map(|answer| &answer["value"]["value"]) else { continue };
        let fits = match field["type"].as_str() {
            Some("boolean") => value.is_boolean(),
            Some("number" | "integer") => value.is_number(),
            Some("array") => value.is_array(),
            _ => value.is_string(),
        };
        if fits {
            content.insert(name.clone(), value.clone());
        }
    }
    Value::Object(content)
}

/// A label: on lines of its own, but without what would control a terminal (TR-8).
fn cut(text: &str) -> String {
    let shown = text.chars().filter(|c| *c == '\n' || !c.is_control());
    shown.take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::published::state::ChatInputQuestion;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "name": {"type": "string", "title": "Name", "maxLength": 9, "default": "x"},
            "age": {"type": "integer", "minimum": 1},
            "sure": {"type": "boolean"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}]},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        }, "required": ["name"]})
    }

    #[test]
    fn fields_become_questions_that_clients_can_read() {
        let elicitation =
            Elicitation { message: "Who?".to_owned(), form: ElicitationForm::Fields(schema()) };
        let request = make_request("files", &elicitation).unwrap();
        assert_eq!(request.message.unwrap(), "The MCP server `files` asks: Who?");
        let kinds: Vec<&str> =
            request.questions.iter().map(|question| question["kind"].as_str().unwrap()).collect();
        assert_eq!(
            kinds,
            ["text", "integer", "boolean", "single-select", "single-select", "multi-select"]
        );
        assert_eq!(request.questions[0]["required"], true);
        assert_eq!(request.questions[3]["options"][1], json!({"id": "g", "label": "Green"}));
        for question in &request.questions {
            let read: ChatInputQuestion = serde_json::from_value(question.clone()).unwrap();
            assert!(!matches!(read, ChatInputQuestion::Unknown(_)), "{question}");
        }
        let page = |url: &str| {
            let form = ElicitationForm::Url(url.to_owned());
            let message = String::new();
            make_request("s", &Elicitation { message, form })
        };
        assert_eq!(page("https://h/in").unwrap().url.unwrap(), "https://h/in");
        assert_eq!(page("file:///etc/passwd"), None);
    }

    #[test]
    fn answers_have_the_types_that_were_asked_for() {
        let submitted =
            |value: Value| json!({"state": "submitted", "value": {"kind": "x", "value": value}});
        let answers: Object = [
            ("name".to_owned(), submitted(json!("Ada"))),
            ("age".to_owned(), submitted(json!("seven"))),
            ("sure".to_owned(), submitted(json!(true))),
            ("colour".to_owned(), json!({"state": "draft", "value": {"value": "r"}})),
            ("tags".to_owned(), submitted(json!(["a"]))),
        ]
        .into_iter()
        .collect();
        let read = read_answers(&schema(), &answers);
        assert_eq!(read, json!({"name": "Ada", "sure": true, "tags": ["a"]}));
    }
}
