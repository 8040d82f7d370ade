//! The wire formats as their servers speak them: one answer, said in each.
//!
//! Promises: text and inputs come in pieces; figures mean the same in all of them.

#![allow(dead_code, reason = "each test uses some of it")]

use host::Api;
use serde_json::{Value, json};

/// What stands for what only the server can read.
pub(crate) const SIGNATURE: &str = "c2lnbmVkLWJ5LXRoZS1zZXJ2ZXI=";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Anthropic,
    Responses,
    Gemini,
}

pub(crate) const WIRES: [Wire; 4] = [Wire::Chat, Wire::Anthropic, Wire::Responses, Wire::Gemini];

/// An answer, in no wire format yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    text: String,
    calls: Vec<SaidCall>,
    refused: bool,
    cut_off: bool,
}

/// A call of a tool in an answer.
#[derive(Debug, Clone)]
struct SaidCall {
    id: String,
    name: String,
    input: Value,
}

impl Said {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub(crate) fn calling(calls: &[(&str, &str, Value)]) -> Self {
        let owned = |(id, name, input): &(&str, &str, Value)| SaidCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            input: input.clone(),
        };
        Self {
            text: "Looking.".to_owned(),
            calls: calls.iter().map(owned).collect(),
            ..Self::default()
        }
    }

    /// Calls without a word.
    pub(crate) fn only_calling(calls: &[(&str, &str, Value)]) -> Self {
        Self { text: String::new(), ..Self::calling(calls) }
    }

    pub(crate) fn refusal() -> Self {
        Self { refused: true, ..Self::text("No.") }
    }

    pub(crate) fn cut_off(text: &str) -> Self {
        Self { cut_off: true, ..Self::text(text) }
    }

    /// Text in two pieces.
    fn pieces(&self) -> [&str; 2] {
        self.text.split_at(self.text.len() / 2).into()
    }
}

fn events(events: &[Value]) -> String {
    let line = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    events.iter().map(line).collect()
}

impl Wire {
    pub(crate) fn api(self) -> Api {
        match self {
            Self::Chat => Api::Chat,
            Self::Anthropic => Api::Anthropic,
            Self::Responses => Api::Responses,
            Self::Gemini => Api::Gemini,
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions?version=7",
            Self::Anthropic => "/v1/messages?version=7",
            Self::Responses => "/v1/responses?version=7",
            Self::Gemini => "/v1/models/echo:streamGenerateContent?version=7&alt=sse",
        }
    }

    pub(crate) fn key(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Chat | Self::Responses => ("authorization", format!("Bearer {key}")),
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }
    }

    pub(crate) fn has_thoughts(self) -> bool {
        self != Self::Chat
    }

    pub(crate) fn signs(self) -> bool {
        self != Self::Chat
    }

    /// The messages of a request.
    pub(crate) fn conversation(self, body: &Value) -> Value {
        let field = match self {
            Self::Chat | Self::Anthropic => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        };
        body[field].clone()
    }

    /// A request up to the end of its conversation, without the marks of the cache.
    pub(crate) fn prefix(self, body: &[u8]) -> String {
        let text = String::from_utf8(body.to_vec())
            .expect("JSON is text")
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        let end = match self {
            Self::Chat => r#"],"tools":"#,
            Self::Anthropic => r#"]}],"stream""#,
            Self::Responses => r#"],"stream""#,
            Self::Gemini if text.contains(r#"]}],"generationConfig""#) => {
                r#"]}],"generationConfig""#
            }
            Self::Gemini => r#"]}]}"#,
        };
        let at = text.rfind(end).unwrap_or_else(|| panic!("{end} in {text}"));
        text[..at].to_owned()
    }

    pub(crate) fn picture(self, data: &str) -> Value {
        let url = format!("data:image/png;base64,{data}");
        match self {
            Self::Chat => json!({"type": "image_url", "image_url": {"url": url}}),
            Self::Anthropic => {
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
            }
            Self::Responses => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
            Self::Gemini => json!({"inlineData": {"mimeType": "image/png", "data": data}}),
        }
    }

    /// How its server words it that a picture is not taken.
    pub(crate) fn refuses_pictures(self) -> (u16, &'static str) {
        match self {
            Self::Chat => (
                400,
                r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error"}}"#,
            ),
            Self::Anthropic => (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0.content.1.image.source.base64: Could not process image"}}"#,
            ),
            Self::Responses => (
                400,
                r#"{"error":{"message":"Invalid value: 'input_image'. Supported values are: 'input_text'.","type":"invalid_request_error","code":"invalid_value"}}"#,
            ),
            Self::Gemini => (
                400,
                r#"{"error":{"code":400,"message":"Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting","status":"INVALID_ARGUMENT"}}"#,
            ),
        }
    }

    /// What of an answer goes back, item by item.
    pub(crate) fn items(self, said: &Said) -> Value {
        let calls = said.calls.iter();
        let items: Vec<Value> = match self {
            Self::Chat => calls
                .map(|SaidCall { id, name, input }| {
                    let function = json!({"name": name, "arguments": input.to_string()});
                    json!({"id": id, "type": "function", "function": function})
                })
                .collect(),
            Self::Anthropic => {
                let thought =
                    json!({"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE});
                let calls = calls.map(|SaidCall { id, name, input }| {
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                });
                std::iter::once(thought).chain(calls).collect()
            }
            Self::Responses => {
                let thought = self.thought();
                let calls = calls.map(|call| Self::function_call(call, true));
                std::iter::once(thought).chain(calls).collect()
            }
            Self::Gemini => calls.map(Self::gemini_call).collect(),
        };
        Value::Array(items)
    }

    fn thought(self) -> Value {
        json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": SIGNATURE})
    }

    fn function_call(call: &SaidCall, whole: bool) -> Value {
        let SaidCall { id, name, input } = call;
        let arguments = if whole { input.to_string() } else { String::new() };
        json!({"id": format!("fc_{id}"), "type": "function_call", "status": "completed", "call_id": id, "name": name, "arguments": arguments})
    }

    fn gemini_call(call: &SaidCall) -> Value {
        let SaidCall { id, name, input } = call;
        json!({"functionCall": {"id": id, "name": name, "args": input}, "thoughtSignature": SIGNATURE})
    }

    /// The answer as the server streams it.
    pub(crate) fn stream(self, said: &Said) -> String {
        match self {
            Self::Chat => chat(said),
            Self::Anthropic => anthropic(said),
            Self::Responses => responses(said),
            Self::Gemini => gemini(said),
        }
    }
}

fn chat(said: &Said) -> String {
    let chunk = |delta: Value, finish: Value| json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let field = if said.refused { "refusal" } else { "content" };
    let mut stream: Vec<Value> =
        said.pieces().iter().map(|piece| chunk(json!({field: piece}), Value::Null)).collect();
    for (index, SaidCall { id, name, input }) in said.calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": input.to_string()});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        stream.push(chunk(json!({"tool_calls": [call]}), Value::Null));
    }
    let finish = match said {
        _ if said.cut_off => "length",
        _ if said.calls.is_empty() => "stop",
        _ => "tool_calls",
    };
    stream.push(chunk(json!({}), json!(finish)));
    stream.push(json!({"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 80}}}));
    format!("{}data: [DONE]\n\n", events(&stream))
}

fn anthropic(said: &Said) -> String {
    let usage = json!({"input_tokens": 25, "cache_creation_input_tokens": 15, "cache_read_input_tokens": 80, "output_tokens": 1});
    let mut stream = vec![
        json!({"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "usage": usage}}),
    ];
    let mut index = 0;
    let mut block = |begins: Value, deltas: Vec<Value>| {
        stream
            .push(json!({"type": "content_block_start", "index": index, "content_block": begins}));
        for delta in deltas {
            stream.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        stream.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if !said.calls.is_empty() {
        block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": "Hm."}),
                json!({"type": "signature_delta", "signature": SIGNATURE}),
            ],
        );
    }
    let text = said.pieces().map(|text| json!({"type": "text_delta", "text": text}));
    block(json!({"type": "text", "text": ""}), text.to_vec());
    for SaidCall { id, name, input } in &said.calls {
        let input = input.to_string();
        let (first, second) = input.split_at(input.len() / 2);
        let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
        block(
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            vec![piece(first), piece(second)],
        );
    }
    let stop = match said {
        _ if said.cut_off => "max_tokens",
        _ if said.refused => "refusal",
        _ if said.calls.is_empty() => "end_turn",
        _ => "tool_use",
    };
    stream.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 30}}));
    stream.push(json!({"type": "message_stop"}));
    events(&stream)
}

fn responses(said: &Said) -> String {
    let mut stream = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
    ];
    let mut at = 0;
    if !said.calls.is_empty() {
        stream.push(json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."}));
        stream.push(json!({"type": "response.output_item.done", "output_index": 0, "item": Wire::Responses.thought()}));
        at = 1;
    }
    let kind = if said.refused { "response.refusal.delta" } else { "response.output_text.delta" };
    for piece in said.pieces() {
        stream.push(json!({"type": kind, "output_index": at, "content_index": 0, "delta": piece}));
    }
    let part = if said.refused {
        json!({"type": "refusal", "refusal": said.text})
    } else {
        json!({"type": "output_text", "text": said.text, "annotations": []})
    };
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [part]});
    stream.push(json!({"type": "response.output_item.done", "output_index": at, "item": message}));
    for call in &said.calls {
        at += 1;
        let (begun, whole) = (Wire::function_call(call, false), Wire::function_call(call, true));
        stream
            .push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
        let input = call.input.to_string();
        stream.push(json!({"type": "response.function_call_arguments.delta", "output_index": at, "delta": input}));
        stream
            .push(json!({"type": "response.output_item.done", "output_index": at, "item": whole}));
    }
    let usage = json!({"input_tokens": 120, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 30, "total_tokens": 150});
    let (kind, details) = if said.cut_off {
        ("response.incomplete", json!({"reason": "max_output_tokens"}))
    } else {
        ("response.completed", Value::Null)
    };
    stream.push(json!({"type": kind, "response": {"id": "resp_1", "status": "completed", "incomplete_details": details, "usage": usage}}));
    events(&stream)
}

fn gemini(said: &Said) -> String {
    let piece = |parts: Value, finish: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}]});
    let mut stream = Vec::new();
    if said.refused {
        stream.push(json!({"promptFeedback": {"blockReason": "SAFETY"}}));
        return events(&stream);
    }
    if !said.calls.is_empty() {
        stream.push(piece(json!([{"text": "Hm.", "thought": true}]), Value::Null));
    }
    for text in said.pieces() {
        stream.push(piece(json!([{"text": text}]), Value::Null));
    }
    let calls: Vec<Value> = said.calls.iter().map(Wire::gemini_call).collect();
    let finish = if said.cut_off { "MAX_TOKENS" } else { "STOP" };
    let mut last = piece(json!(calls), json!(finish));
    last["usageMetadata"] = json!({"promptTokenCount": 120, "cachedContentTokenCount": 80, "candidatesTokenCount": 18, "thoughtsTokenCount": 12});
    stream.push(last);
    events(&stream)
}
