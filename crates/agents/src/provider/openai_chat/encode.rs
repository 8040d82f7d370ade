//! A request as Chat Completions takes it.
//!
//! Promises: the same request gives the same bytes; settings cannot change what is asked, only how.

use serde_json::{Map, Value, json};

use super::super::items::{apply_settings, input_object};
use super::super::{ModelMessage, ModelRequest, ToolSpec, ToolUse};
use super::added::add_blank_reasoning;
use crate::prompt;

/// Fields that belong to the request itself.
const NOT_SETTINGS: &[&str] = &["model", "messages", "tools", "stream", "n"];

/// The name under which a server takes the output limit: OpenAI's newer models refuse the old one, others know only that.
fn limit_field(host: &str) -> &'static str {
    let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
    if is_openai || host.ends_with(".openai.azure.com") {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

/// Whether the cache must be asked for: OpenRouter hands Claude's on, and marks where it ends by itself. All others keep what
/// they like.
fn asks_for_cache(host: &str, model: &str) -> bool {
    host == "openrouter.ai" && model.starts_with("anthropic/")
}

/// A request for a server, which is known by its host.
pub(crate) fn encode(request: &ModelRequest, host: &str) -> Vec<u8> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), messages(request));
    let tools: Vec<Value> =
        request.tools.iter().map(tool).chain(request.server_tools.iter().cloned()).collect();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
        if request.forbids_calls {
            body.insert("tool_choice".to_owned(), json!("none"));
        }
    }
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    if let Some(limit) = request.max_output_tokens {
        body.insert(limit_field(host).to_owned(), json!(limit));
    }
    if asks_for_cache(host, &request.model) {
        let cache = json!({"type": "ephemeral"});
        body.insert("cache_control".to_owned(), cache);
    }
    apply_settings(&mut body, &request.settings, NOT_SETTINGS);
    Value::Object(body).to_string().into_bytes()
}

fn messages(request: &ModelRequest) -> Value {
    let system = Some(prompt::join(&request.system)).filter(|system| !system.is_empty());
    let system = system.map(|system| json!({"role": "system", "content": system}));
    let mut messages: Vec<Value> = system.into_iter().collect();
    let mut bodies = Vec::new();
    for it in &request.messages {
        match it {
            ModelMessage::ToolResult { id, blocks, .. } if !blocks.is_empty() => {
                let which = format!("(What came with the result of call {id}:)");
                bodies.push(json!({"type": "text", "text": which}));
                bodies.extend_from_slice(blocks);
            }
            ModelMessage::ToolResult { .. } => {}
            ModelMessage::User(_) | ModelMessage::Assistant { .. } => {
                messages.extend(take_bodies(&mut bodies));
            }
        }
        let mut message = message(it, request.strings_only);
        if let (Some(message), ModelMessage::Assistant { .. }) = (&mut message, it)
            && request.blank_reasoning
        {
            add_blank_reasoning(message);
        }
        messages.extend(message);
    }
    messages.extend(take_bodies(&mut bodies));
    Value::Array(messages)
}

/// A result is a text here: pictures that came with results follow in a message of the user's, once all results of a
/// round are there, for nothing may stand between them.
fn take_bodies(bodies: &mut Vec<Value>) -> Option<Value> {
    let content = std::mem::take(bodies);
    (!content.is_empty()).then(|| json!({"role": "user", "content": content}))
}

fn message(message: &ModelMessage, strings_only: bool) -> Option<Value> {
    match message {
        // What was for the host alone says nothing, and servers refuse a message without content.
        ModelMessage::User(content) if content.as_array().is_some_and(Vec::is_empty) => None,
        ModelMessage::User(content) => Some(json!({"role": "user", "content": content})),
        ModelMessage::Assistant { items: Some(items), .. } => {
            let mut message = items.first().cloned()?;
            if strings_only && message["content"].is_null() {
                message["content"] = json!("");
            }
            Some(message)
        }
        ModelMessage::Assistant { text, calls, .. } => assistant_message(text, calls, strings_only),
        ModelMessage::ToolResult { id, text, .. } => {
            Some(json!({"role": "tool", "tool_call_id": id, "content": text}))
        }
    }
}

/// What the model said; none if it said nothing, for servers refuse an empty message.
pub(crate) fn assistant_message(
    text: &str,
    calls: &[ToolUse],
    strings_only: bool,
) -> Option<Value> {
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    // Servers that know only texts do not know their absence either.
    let content = Some(text).filter(|text| strings_only || !text.is_empty());
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    Some(message)
}

fn call(call: &ToolUse) -> Value {
    let function = json!({"name": call.name, "arguments": input(&call.input)});
    json!({"id": call.id, "type": "function", "function": function})
}

/// Several servers parse the inputs of the history and fail on one that is no JSON object, in every round from then on.
fn input(text: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => input_object(text).to_string(),
    }
}

fn tool(tool: &ToolSpec) -> Value {
    let function =
        json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    json!({"type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_api::Section;

    fn check(request: &ModelRequest, expected: &Value) {
        let body: Value = serde_json::from_slice(&encode(request, "localhost")).unwrap();
        assert_eq!(&body, expected);
    }

    fn asking(messages: Vec<ModelMessage>) -> ModelRequest {
        ModelRequest { model: "m".to_owned(), messages, ..ModelRequest::default() }
    }

    fn used(id: &str, input: &str) -> ToolUse {
        ToolUse { id: id.to_owned(), name: "read".to_owned(), input: input.to_owned() }
    }

    #[test]
    fn a_request_with_everything() {
        let request = ModelRequest {
            model: "qwen3".to_owned(),
            system: vec![Section::new("tone", "Be brief.")],
            messages: vec![
                ModelMessage::User("read both".into()),
                ModelMessage::Assistant {
                    text: "Reading.".to_owned(),
                    calls: vec![used("c1", "{\"path\":\"a\"}"), used("c2", "{\"path\":\"b\"}")],
                    items: None,
                },
                ModelMessage::ToolResult {
                    id: "c1".to_owned(),
                    text: "A".to_owned(),
                    blocks: Vec::new(),
                },
                ModelMessage::ToolResult {
                    id: "c2".to_owned(),
                    text: String::new(),
                    blocks: Vec::new(),
                },
            ],
            tools: vec![ToolSpec {
                name: "read".to_owned(),
                description: "Reads a file.".to_owned(),
                parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            }],
            max_output_tokens: Some(4_096),
            settings: json!({"temperature": 0.2, "reasoning_effort": "low"})
                .as_object()
                .unwrap()
                .clone(),
            ..ModelRequest::default()
        };
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
        check(
            &request,
            &json!({
                "model": "qwen3",
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "read both"},
                    {"role": "assistant", "content": "Reading.",
                     "tool_calls": [call("c1", "{\"path\":\"a\"}"), call("c2", "{\"path\":\"b\"}")]},
                    {"role": "tool", "tool_call_id": "c1", "content": "A"},
                    {"role": "tool", "tool_call_id": "c2", "content": ""},
                ],
                "tools": [{"type": "function", "function": {
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                }}],
                "stream": true,
                "stream_options": {"include_usage": true},
                "max_tokens": 4_096,
                "temperature": 0.2,
                "reasoning_effort": "low",
            }),
        );
    }

    #[test]
    fn pictures_of_results_follow_when_all_results_are_there() {
        let picture =
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}});
        let result = |id: &str, blocks: Vec<Value>| ModelMessage::ToolResult {
            id: id.to_owned(),
            text: "seen".to_owned(),
            blocks,
        };
        let request = asking(vec![
            result("c1", vec![picture.clone()]),
            result("c2", Vec::new()),
            ModelMessage::User("and?".into()),
        ]);
        let body: Value = serde_json::from_slice(&encode(&request, "localhost")).unwrap();
        let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "seen"});
        let which = json!({"type": "text", "text": "(What came with the result of call c1:)"});
        assert_eq!(
            body["messages"],
            json!([
                tool("c1"),
                tool("c2"),
                {"role": "user", "content": [which, picture]},
                {"role": "user", "content": "and?"},
            ])
        );
    }

    #[test]
    fn absent_fields_are_not_sent() {
        let silent =
            ModelMessage::Assistant { text: String::new(), calls: Vec::new(), items: None };
        check(
            &asking(vec![ModelMessage::User(json!([])), ModelMessage::User("hi".into()), silent]),
            &json!({
                "model": "m",
                "messages": [{"role": "user", "content": "hi"}],
                "stream": true,
                "stream_options": {"include_usage": true},
            }),
        );
    }

    #[test]
    fn inputs_of_the_history_are_always_objects() {
        for (written, sent) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("", "{}"),
            (" \n", "{}"),
            ("{\"a\":", "{\"not_json\":\"{\\\"a\\\":\"}"),
            ("[1]", "{\"not_json\":\"[1]\"}"),
        ] {
            assert_eq!(input(written), sent);
        }
    }

    #[test]
    fn calls_without_text_have_no_content() {
        let calling = ModelMessage::Assistant {
            text: String::new(),
            calls: vec![used("c1", "")],
            items: None,
        };
        let content = |strings_only| message(&calling, strings_only).unwrap()["content"].clone();
        assert_eq!((content(false), content(true)), (Value::Null, json!("")));
    }

    #[test]
    fn settings_do_not_change_the_conversation() {
        let settings = json!({"stream": false, "model": "other", "messages": [], "tools": [], "n": 5,
            "stream_options": null, "temperature": null, "top_p": 0.9});
        let request =
            ModelRequest { settings: settings.as_object().unwrap().clone(), ..asking(Vec::new()) };
        check(&request, &json!({"model": "m", "messages": [], "stream": true, "top_p": 0.9}));
    }

    #[test]
    fn the_cache_of_claude_behind_openrouter_is_asked_for() {
        let cache_of = |host: &str, model: &str| {
            let request = ModelRequest { model: model.to_owned(), ..asking(Vec::new()) };
            let body: Value = serde_json::from_slice(&encode(&request, host)).unwrap();
            body["cache_control"].clone()
        };
        let asked = json!({"type": "ephemeral"});
        assert_eq!(cache_of("openrouter.ai", "anthropic/claude-x"), asked);
        assert_eq!(cache_of("openrouter.ai", "openai/gpt-x"), Value::Null);
        assert_eq!(cache_of("localhost", "anthropic/claude-x"), Value::Null);
    }

    #[test]
    fn openai_takes_the_output_limit_under_another_name() {
        assert_eq!(limit_field("api.openai.com"), "max_completion_tokens");
        assert_eq!(limit_field("eu.api.openai.com"), "max_completion_tokens");
        assert_eq!(limit_field("mine.openai.azure.com"), "max_completion_tokens");
        assert_eq!(limit_field("localhost"), "max_tokens");
        let request = ModelRequest { max_output_tokens: Some(9), ..asking(Vec::new()) };
        let body: Value = serde_json::from_slice(&encode(&request, "api.openai.com")).unwrap();
        assert_eq!(body["max_completion_tokens"], 9);
    }
}
