//! A request as Anthropic's Messages takes it.
//!
//! Promises: the same request gives the same bytes, and a longer conversation begins with those of a shorter one, but for
//! where the cache marks stand; settings cannot change what is asked, only how.

use serde_json::{Map, Value, json};

use super::super::items::{apply_settings, blocks_of, input_object, is_blank_text, push_blocks};
use super::super::{ModelMessage, ModelRequest, ToolSpec};
use crate::prompt;

/// Fields that belong to the request itself.
const NOT_SETTINGS: &[&str] =
    &["model", "messages", "system", "tools", "stream", "anthropic_version"];

/// The longest answer, where the configuration does not say: a request must name one, and all current models take this.
const OUTPUT_TOKENS: u64 = 32_000;

pub(crate) fn encode(request: &ModelRequest) -> Vec<u8> {
    Value::Object(fields(request)).to_string().into_bytes()
}

/// The body of a request.
pub(super) fn fields(request: &ModelRequest) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    let limit = request.max_output_tokens.unwrap_or(OUTPUT_TOKENS);
    body.insert("max_tokens".to_owned(), json!(limit));
    let system = system(request);
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }
    let tools: Vec<Value> =
        request.tools.iter().map(tool).chain(request.server_tools.iter().cloned()).collect();
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
        if request.forbids_calls {
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
    }
    body.insert("messages".to_owned(), Value::Array(messages(request)));
    body.insert("stream".to_owned(), json!(true));
    apply_settings(&mut body, &request.settings, NOT_SETTINGS);
    body
}

/// A block for each section. The cache is marked before the first section that changes from turn to turn, and after the
/// last; what the tools take stands before both.
fn system(request: &ModelRequest) -> Vec<Value> {
    let sections: Vec<(&str, &str)> = request
        .system
        .iter()
        .filter_map(|section| {
            let text = section.content.trim_end();
            (!text.is_empty()).then_some((section.id.as_ref(), text))
        })
        .collect();
    let changes = sections.iter().position(|(id, _)| prompt::changes_often(id));
    let mut blocks: Vec<Value> = Vec::new();
    for (index, (_, text)) in sections.iter().enumerate() {
        // Blocks are put next to each other as they are: a blank line keeps the sections apart.
        let text = match index {
            0 => (*text).to_owned(),
            _ => format!("\n\n{text}"),
        };
        blocks.push(json!({"type": "text", "text": text}));
    }
    let stable = changes.and_then(|changes| changes.checked_sub(1));
    let last = blocks.len().checked_sub(1);
    for index in [stable, last].into_iter().flatten() {
        mark(blocks.get_mut(index));
    }
    blocks
}

fn mark(block: Option<&mut Value>) {
    if let Some(block) = block.and_then(Value::as_object_mut) {
        let cache = json!({"type": "ephemeral"});
        block.insert("cache_control".to_owned(), cache);
    }
}

fn messages(request: &ModelRequest) -> Vec<Value> {
    let mut messages = Vec::new();
    // How many messages there are when the newest of the user's begins: those before it do not change any more.
    let mut stable = 0;
    for message in &request.messages {
        match message {
            ModelMessage::User(content) => {
                stable = messages.len();
                push_blocks(&mut messages, "user", "content", blocks_of(content, text));
            }
            ModelMessage::Assistant { items: Some(items), .. } => {
                let items = items.iter().filter(|item| !is_blank_text(item));
                push_blocks(&mut messages, "assistant", "content", items.cloned());
            }
            ModelMessage::Assistant { text: said, calls, .. } => {
                let said = Some(said).filter(|said| !said.trim().is_empty());
                let said = said.map(|said| text(said));
                let calls = calls.iter().map(|call| {
                    let input = input_object(&call.input);
                    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
                });
                let blocks = said.into_iter().chain(calls);
                push_blocks(&mut messages, "assistant", "content", blocks);
            }
            ModelMessage::ToolResult { id, text: said, blocks } => {
                let content = if blocks.is_empty() {
                    json!(said)
                } else {
                    let said = blocks_of(&json!(said), text);
                    said.into_iter().chain(blocks.iter().cloned()).collect()
                };
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
                push_blocks(&mut messages, "user", "content", [result]);
            }
        }
    }
    let last = messages.len().checked_sub(1);
    // What the user adds in mid-turn stands in the message of the results before it.
    let before = stable.min(last.unwrap_or(0)).checked_sub(1);
    for index in [before, last] {
        let message = index.and_then(|index| messages.get_mut(index));
        let blocks = message.and_then(|message| message["content"].as_array_mut());
        // Thoughts cannot be marked.
        let block = blocks.and_then(|blocks| blocks.iter_mut().rev().find(|it| !is_thought(it)));
        mark(block);
    }
    messages
}

fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}
