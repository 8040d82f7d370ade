//! The wire formats of model servers, as far as an answer of plain text goes: what is asked, and the events of an answer.
//!
//! Events have the fields that servers commonly send, so that decoding one costs what it costs elsewhere.

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::harness::MODEL;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireFormat {
    Chat,
    Anthropic,
    Responses,
    Gemini,
}

impl WireFormat {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Anthropic, Self::Responses, Self::Gemini];

    /// As the command line names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
        }
    }

    /// `anthropic+http://127.0.0.1:1/v1`
    pub(crate) fn parse(text: &str) -> Result<(Self, &str)> {
        let (name, url) = text.split_once('+').context("WIRE+URL")?;
        let known = Self::ALL.into_iter().find(|wire| wire.name() == name);
        Ok((known.ok_or_else(|| anyhow!("no wire format `{name}`"))?, url))
    }

    pub(crate) fn path(self) -> String {
        match self {
            Self::Chat => "chat/completions".to_owned(),
            Self::Anthropic => "messages".to_owned(),
            Self::Responses => "responses".to_owned(),
            Self::Gemini => format!("models/{MODEL}:streamGenerateContent?alt=sse"),
        }
    }

    /// The wire format that a request to this path is in.
    pub(crate) fn of_path(path: &str) -> Result<Self> {
        let is_its_own = |wire: &Self| path.ends_with(&wire.path());
        Self::ALL.into_iter().find(is_its_own).ok_or_else(|| anyhow!("nothing is served at {path}"))
    }

    /// A request with nothing but a text.
    pub(crate) fn request(self, text: &str) -> Value {
        let said = json!({"role": "user", "content": text});
        match self {
            Self::Chat => {
                json!({"model": MODEL, "messages": [said], "stream": true, "stream_options": {"include_usage": true}})
            }
            Self::Anthropic => {
                json!({"model": MODEL, "max_tokens": 32_000, "messages": [said], "stream": true})
            }
            Self::Responses => {
                json!({"model": MODEL, "input": [said], "stream": true, "store": false})
            }
            Self::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        }
    }

    /// The text of the last message of a request.
    pub(crate) fn text_of(self, body: &Value) -> Option<&str> {
        let (list, content) = match self {
            Self::Chat | Self::Anthropic => ("messages", "content"),
            Self::Responses => ("input", "content"),
            Self::Gemini => ("contents", "parts"),
        };
        let content = &body[list].as_array()?.last()?[content];
        content.as_str().or_else(|| content[0]["text"].as_str())
    }

    /// What comes before the first piece.
    pub(crate) fn begin(self) -> Vec<Value> {
        match self {
            Self::Chat => {
                vec![chat_choice(&json!({"role": "assistant", "content": ""}), &Value::Null)]
            }
            Self::Anthropic => {
                let usage = json!({"input_tokens": 10, "output_tokens": 1});
                let message = json!({"id": "msg_01900000000070008000", "type": "message", "role": "assistant", "model": MODEL, "content": [], "usage": usage});
                vec![
                    json!({"type": "message_start", "message": message}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                ]
            }
            Self::Responses => {
                vec![
                    json!({"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress"}}),
                ]
            }
            Self::Gemini => Vec::new(),
        }
    }

    pub(crate) fn piece(self, text: &str) -> Value {
        match self {
            Self::Chat => chat_choice(&json!({"content": text}), &Value::Null),
            Self::Anthropic => {
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
            }
            Self::Responses => json!({
                "type": "response.output_text.delta", "sequence_number": 7, "item_id": "msg_01900000000070008000",
                "output_index": 0, "content_index": 0, "delta": text, "logprobs": [],
            }),
            Self::Gemini => gemini_candidate(text, &Value::Null),
        }
    }

    pub(crate) fn end(self, pieces: u32) -> Vec<Value> {
        match self {
            Self::Chat => {
                let usage = json!({"prompt_tokens": 10, "completion_tokens": pieces});
                vec![chat_choice(&json!({}), &json!("stop")), chat_event(json!([]), &usage)]
            }
            Self::Anthropic => vec![
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": pieces}}),
                json!({"type": "message_stop"}),
            ],
            Self::Responses => {
                let usage = json!({"input_tokens": 10, "output_tokens": pieces});
                vec![
                    json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}}),
                ]
            }
            Self::Gemini => {
                let mut last = gemini_candidate("", &json!("STOP"));
                last["usageMetadata"] =
                    json!({"promptTokenCount": 10, "candidatesTokenCount": pieces});
                vec![last]
            }
        }
    }

    /// An event as it is written.
    pub(crate) fn data(self, event: &Value) -> String {
        match (self, event["type"].as_str()) {
            (Self::Anthropic | Self::Responses, Some(name)) => {
                format!("event: {name}\ndata: {event}\n\n")
            }
            _ => format!("data: {event}\n\n"),
        }
    }

    /// What stands after the last event.
    pub(crate) fn end_mark(self) -> &'static str {
        match self {
            Self::Chat => "data: [DONE]\n\n",
            Self::Anthropic | Self::Responses | Self::Gemini => "",
        }
    }
}

fn chat_choice(delta: &Value, finish: &Value) -> Value {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    chat_event(choices, &Value::Null)
}

fn chat_event(choices: Value, usage: &Value) -> Value {
    json!({
        "id": "chatcmpl-01900000000070008000",
        "object": "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    })
}

fn gemini_candidate(text: &str, finish: &Value) -> Value {
    let content = json!({"role": "model", "parts": [{"text": text}]});
    json!({
        "candidates": [{"content": content, "index": 0, "finishReason": finish}],
        "modelVersion": MODEL,
        "responseId": "01900000000070008000",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_recognised_and_its_text_found() {
        for wire in WireFormat::ALL {
            let request = wire.request("answer 1 2 3");
            assert_eq!(wire.text_of(&request), Some("answer 1 2 3"));
            let path = format!("/v1/{}", wire.path());
            assert_eq!(WireFormat::of_path(&path).unwrap(), wire);
            let named = format!("{}+http://h/v1", wire.name());
            assert_eq!(WireFormat::parse(&named).unwrap(), (wire, "http://h/v1"));
        }
    }
}
