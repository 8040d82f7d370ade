//! Questions of an agent to the user, as input requests, and the answers in the agent's shapes.
//!
//! Promises: pure. A form is asked whole or not at all; an answer names options by what the agent called them.
//! Must not know: who answers.

mod schema;
#[cfg(test)]
mod tests;

use agent_api::InputRequest;
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};
use wire::Object;
use wire::published::state::ChatInputResponseKind;

use super::connection::AskedForm;
use super::label::label;
use schema::read_schema;

const QUESTIONS_MAX: usize = 32;
const OPTIONS_MAX: usize = 256;
const TEXT_CHARS_MAX: usize = 2_000;
const URL_BYTES_MAX: usize = 8_192;

/// The field beside a choice that takes words of the user's own.
const CUSTOM: &str = "_custom";

/// A question that is asked, with what is needed to read the answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AgentForm {
    pub(super) request: InputRequest,
    fields: Vec<FormField>,
    shape: FieldShape,
}

#[derive(Debug, Clone, PartialEq)]
struct FormField {
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
enum FieldShape {
    Elicitation,
    /// A page to be opened: there is nothing to fill in.
    Url,
    /// A permission request that is none (AG-34).
    Permission,
}

/// A request for input. None if it is of a kind that we do not know.
pub(super) fn from_elicitation(form: &AskedForm) -> Option<AgentForm> {
    let AskedForm { request, order } = form;
    let message = Some(long(&request.message));
    match &request.mode {
        acp::ElicitationMode::Url(url) => Some(AgentForm {
            request: InputRequest {
                message,
                url: Some(read_page(&url.url)?),
                questions: Vec::new(),
            },
            fields: Vec::new(),
            shape: FieldShape::Url,
        }),
        acp::ElicitationMode::Form(form) => {
            let (questions, fields) = read_schema(&form.requested_schema, order)?;
            Some(AgentForm {
                request: InputRequest { message, url: None, questions },
                fields,
                shape: FieldShape::Elicitation,
            })
        }
        _ => None,
    }
}

/// The address of a page. Cut, it would lead somewhere else; other schemes could do something else than show a page.
fn read_page(url: &str) -> Option<String> {
    if url.len() > URL_BYTES_MAX {
        return None;
    }
    let shown: String = url.chars().filter(|c| !c.is_control()).collect();
    let read = reqwest::Url::parse(&shown).ok()?;
    matches!(read.scheme(), "https" | "http").then_some(shown)
}

fn long(text: &str) -> String {
    let readable = text.chars().filter(|c| !c.is_control() || *c == '\n');
    readable.take(TEXT_CHARS_MAX).collect()
}

/// A permission request that asks the user something else (AG-34). None of an ordinary one.
pub(super) fn from_permission(request: &acp::RequestPermissionRequest) -> Option<AgentForm> {
    let meta = [request.tool_call.meta.as_ref(), request.meta.as_ref()];
    let is_question = meta.into_iter().flatten().any(|meta| {
        meta.get("qwenInteractionKind").and_then(Value::as_str) == Some("user_question")
    });
    if !is_question {
        return None;
    }
    let asked = request
        .tool_call
        .fields
        .raw_input
        .as_ref()
        .and_then(|input| input.get("questions")?.as_array());
    let mut questions = Vec::new();
    let mut fields = Vec::new();
    for (index, question) in asked.into_iter().flatten().take(QUESTIONS_MAX).enumerate() {
        let text = |name: &str| question[name].as_str().unwrap_or_default();
        let is_many = question["multiSelect"] == Value::Bool(true);
        let options: Vec<Value> = question["options"]
            .as_array()
            .into_iter()
            .flatten()
            .take(OPTIONS_MAX)
            .map(|option| {
                let name = option["label"].as_str().unwrap_or_default();
                let mut read = json!({"id": name, "label": label(name, 300)});
                if let Some(description) = option["description"].as_str() {
                    read["description"] = json!(label(description, 500));
                }
                read
            })
            .collect();
        let kind = if is_many { FieldKind::Many } else { FieldKind::One };
        questions.push(json!({
            "kind": if is_many { "multi-select" } else { "single-select" },
            "id": index.to_string(),
            "title": label(text("header"), 100),
            "message": long(text("question")),
            "required": true,
            "options": options,
            "allowFreeformInput": true,
        }));
        fields.push(FormField { id: index.to_string(), kind, custom: None });
    }
    let title = request.tool_call.fields.title.as_deref();
    Some(AgentForm {
        request: InputRequest { message: title.map(long), url: None, questions },
        fields,
        shape: FieldShape::Permission,
    })
}

impl AgentForm {
    /// The answer for the agent. `options` are those of a permission request.
    pub(super) fn answer(
        &self,
        response: &ChatInputResponseKind,
        answers: &Object,
        options: &[acp::PermissionOption],
    ) -> Value {
        let is_accepted = *response == ChatInputResponseKind::Accept;
        match self.shape {
            FieldShape::Permission => self.permission_answer(is_accepted, answers, options),
            FieldShape::Url if is_accepted => json!({"action": "accept"}),
            FieldShape::Elicitation if is_accepted => {
                json!({"action": "accept", "content": self.content(answers)})
            }
            FieldShape::Url | FieldShape::Elicitation => match response {
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
        use super::mapper::{PermissionChoice, option_for};
        let choice = if is_accepted { PermissionChoice::Approve } else { PermissionChoice::Deny };
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
                    let all: Vec<String> =
                        [chosen.filter(|text| !text.is_empty()), free_words(value)]
                            .into_iter()
                            .flatten()
                            .collect();
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
    let words: Vec<&str> =
        value["freeformValues"].as_array()?.iter().filter_map(Value::as_str).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

impl FormField {
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
                let whole = value
                    .as_i64()
                    .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i64));
                whole.map(|value| json!(value))
            }
            FieldKind::Many => value.is_array().then(|| value.clone()),
        }
    }
}
