//! A request as Google's Gemini takes it.
//!
//! Promises: the same request gives the same bytes; settings cannot change what is asked, only how; calls that another model made
//! carry no signature unless the server asked for one.

use serde_json::{Map, Value, json};

use super::super::items::{apply_settings, blocks_of, call_of, input_object, push_blocks};
use super::super::{ModelMessage, ModelRequest, ToolSpec};
use super::OWN_ID;

/// Fields that belong to the request itself.
const NOT_SETTINGS: &[&str] = &["contents", "systemInstruction", "tools", "model"];

/// Settings that stand beside the configuration of the answer, not in it.
const OUTER_SETTINGS: &[&str] = &["safetySettings", "toolConfig", "cachedContent", "labels"];

/// What the server takes for the signature of a call that another model made (ai.google.dev, thought signatures).
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

pub(crate) fn encode(request: &ModelRequest) -> Vec<u8> {
    let mut body = Map::new();
    let system: Vec<Value> = request
        .system
        .iter()
        .map(|section| section.content.trim_end())
        .filter(|text| !text.is_empty())
        .map(|text| json!({"text": text}))
        .collect();
    if !system.is_empty() {
        let instruction = json!({"parts": system});
        body.insert("systemInstruction".to_owned(), instruction);
    }
    let tools = tools(request);
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
        let config = tool_config(request);
        if !config.is_empty() {
            body.insert("toolConfig".to_owned(), Value::Object(config));
        }
    }
    body.insert("contents".to_owned(), Value::Array(contents(request)));
    let (outer, inner): (wire::Object, wire::Object) = request
        .settings
        .clone()
        .into_iter()
        .partition(|(name, _)| OUTER_SETTINGS.contains(&name.as_str()));
    let mut config = Map::new();
    if let Some(limit) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    apply_settings(&mut config, &inner, NOT_SETTINGS);
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    apply_settings(&mut body, &outer, NOT_SETTINGS);
    Value::Object(body).to_string().into_bytes()
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let own: Vec<Value> = request.tools.iter().map(declaration).collect();
    let own = (!own.is_empty()).then(|| json!({"functionDeclarations": own}));
    let server = request.server_tools.iter().cloned();
    own.into_iter().chain(server).collect()
}

/// How tools are used. The server's own tools are allowed beside ours only if it may report what it did with them.
fn tool_config(request: &ModelRequest) -> Map<String, Value> {
    let mut config = Map::new();
    if request.forbids_calls {
        let mode = json!({"mode": "NONE"});
        config.insert("functionCallingConfig".to_owned(), mode);
    }
    if !request.tools.is_empty() && !request.server_tools.is_empty() {
        let tells = "includeServerSideToolInvocations".to_owned();
        config.insert(tells, json!(true));
    }
    config
}

fn declaration(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters})
}

fn contents(request: &ModelRequest) -> Vec<Value> {
    let mut contents = Vec::new();
    let text_part = |text: &str| json!({"text": text});
    for message in &request.messages {
        match message {
            ModelMessage::User(content) => {
                push_blocks(&mut contents, "user", "parts", blocks_of(content, text_part));
            }
            ModelMessage::Assistant { items: Some(items), .. } => {
                let mut parts = items.to_vec();
                sign(&mut parts, request.blank_reasoning);
                push_blocks(&mut contents, "model", "parts", parts);
            }
            ModelMessage::Assistant { text, calls, .. } => {
                let said = Some(text).filter(|text| !text.is_empty()).map(|text| text_part(text));
                let calls = calls.iter().map(|call| {
                    let mut function =
                        json!({"name": call.name, "args": input_object(&call.input)});
                    name_call(&mut function, &call.id);
                    json!({"functionCall": function})
                });
                let mut parts: Vec<Value> = said.into_iter().chain(calls).collect();
                sign(&mut parts, request.blank_reasoning);
                push_blocks(&mut contents, "model", "parts", parts);
            }
            ModelMessage::ToolResult { id, text, blocks } => {
                let name = call_of(request, id).map_or("", |call| call.name.as_str());
                let mut function = json!({"name": name, "response": {"output": text}});
                name_call(&mut function, id);
                let result = json!({"functionResponse": function});
                // Bodies stand beside the result: only the newest models take them in it.
                let parts = std::iter::once(result).chain(blocks.iter().cloned());
                push_blocks(&mut contents, "user", "parts", parts);
            }
        }
    }
    contents
}

/// The id of a call, if the server made it.
fn name_call(function: &mut Value, id: &str) {
    if !id.starts_with(OWN_ID) {
        function["id"] = json!(id);
    }
}

/// Signs the first call of an answer if none of its calls is, where the server wants that.
fn sign(parts: &mut [Value], is_wanted: bool) {
    let calls = || parts.iter().filter(|part| part["functionCall"].is_object());
    if !is_wanted || calls().any(|part| part["thoughtSignature"].is_string()) {
        return;
    }
    let first = parts.iter_mut().find(|part| part["functionCall"].is_object());
    if let Some(call) = first {
        call["thoughtSignature"] = json!(FOREIGN_SIGNATURE);
    }
}
