//! A request as OpenAI's Responses takes it.
//!
//! Promises: nothing is stored at the server: the whole conversation goes with each request, reasoning as the server
//! encrypted it included (G-61); the same request gives the same bytes; settings cannot change what is asked, only how.

use serde_json::{Map, Value, json};

use super::super::items::{apply_settings, blocks_of, input_object};
use super::super::{ModelMessage, ModelRequest, ToolSpec};
use crate::prompt;

/// Fields that belong to the request itself.
const NOT_SETTINGS: &[&str] = &["model", "input", "instructions", "tools", "stream", "store"];

pub(crate) fn encode(request: &ModelRequest) -> Vec<u8> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    let instructions = prompt::join(&request.system);
    if !instructions.is_empty() {
        body.insert("instructions".to_owned(), json!(instructions));
    }
    let tools: Vec<Value> =
        request.tools.iter().map(tool).chain(request.server_tools.iter().cloned()).collect();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
        if request.forbids_calls {
            body.insert("tool_choice".to_owned(), json!("none"));
        }
    }
    body.insert("input".to_owned(), Value::Array(input(request)));
    body.insert("stream".to_owned(), json!(true));
    body.insert("store".to_owned(), json!(false));
    let include = json!(["reasoning.encrypted_content"]);
    body.insert("include".to_owned(), include);
    if let Some(limit) = request.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), json!(limit));
    }
    apply_settings(&mut body, &request.settings, NOT_SETTINGS);
    Value::Object(body).to_string().into_bytes()
}

fn input(request: &ModelRequest) -> Vec<Value> {
    let mut input = Vec::new();
    for message in &request.messages {
        match message {
            ModelMessage::User(content) => {
                let blocks = blocks_of(content, text_block);
                if !blocks.is_empty() {
                    input.push(json!({"type": "message", "role": "user", "content": blocks}));
                }
            }
            ModelMessage::Assistant { items: Some(items), .. } => {
                input.extend(items.iter().cloned())
            }
            ModelMessage::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    let said = json!([{"type": "output_text", "text": text}]);
                    input.push(json!({"type": "message", "role": "assistant", "content": said}));
                }
                input.extend(calls.iter().map(|call| {
                    let arguments = match serde_json::from_str::<Map<String, Value>>(&call.input) {
                        Ok(_) => call.input.clone(),
                        Err(_) => input_object(&call.input).to_string(),
                    };
                    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
                }));
            }
            ModelMessage::ToolResult { id, text, blocks } => {
                let output = if blocks.is_empty() {
                    json!(text)
                } else {
                    let said = blocks_of(&json!(text), text_block);
                    said.into_iter().chain(blocks.iter().cloned()).collect()
                };
                input
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
        }
    }
    input
}

fn text_block(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

/// Not strict: a strict schema must name every property as required.
fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        "strict": false,
    })
}
