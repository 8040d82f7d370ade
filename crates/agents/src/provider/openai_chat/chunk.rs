//! The shape of one piece of an answer. A whole answer has the same shape, with `message` for `delta`.
//!
//! Promises: a field of an unexpected type is passed over, not fatal; what is not looked at costs no parsing.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{ModelEvent, ProviderError, Usage};
use super::added::Additions;

type Raw<'a> = Option<&'a RawValue>;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<ChunkChoice<'a>>>,
    #[serde(borrow, default)]
    usage: Raw<'a>,
    #[serde(borrow, default)]
    error: Raw<'a>,
    #[serde(borrow, default)]
    object: Raw<'a>,
}

#[derive(Deserialize)]
pub(super) struct ChunkChoice<'a> {
    #[serde(borrow, default)]
    index: Raw<'a>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Raw<'a>,
    /// Moonshot counts here.
    #[serde(borrow, default)]
    usage: Raw<'a>,
}

#[derive(Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    content: Raw<'a>,
    /// DeepSeek, llama.cpp, older vLLM.
    #[serde(borrow, default)]
    reasoning_content: Raw<'a>,
    /// Ollama, newer vLLM, OpenRouter.
    #[serde(borrow, default)]
    reasoning: Raw<'a>,
    /// What OpenRouter's vendors want back.
    #[serde(borrow, default)]
    reasoning_details: Raw<'a>,
    /// What Google wants back.
    #[serde(borrow, default)]
    extra_content: Raw<'a>,
    #[serde(borrow, default)]
    refusal: Raw<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Option<WireCall<'a>>>>,
    /// What calls were called before there could be several.
    #[serde(borrow, default)]
    function_call: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(borrow, default)]
    index: Raw<'a>,
    #[serde(borrow, default)]
    id: Raw<'a>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
    #[serde(borrow, default)]
    extra_content: Raw<'a>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Raw<'a>,
    #[serde(borrow, default)]
    arguments: Raw<'a>,
}

/// A piece of a call, as far as the server says which.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallPiece {
    pub index: Option<u64>,
    pub id: Option<String>,
    pub name: Option<String>,
    /// May be empty.
    pub input: String,
    /// What the server wants back with the call.
    pub extra: Option<Value>,
}

impl Chunk<'_> {
    /// Whether to look for a error_body: `{"error": ...}`, or `{"object": "error", ...}` of older vLLM.
    pub(super) fn may_be_error(&self) -> bool {
        self.error.is_some() || string(self.object).as_deref() == Some("error")
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        usage(self.usage)
    }
}

impl ChunkChoice<'_> {
    pub(super) fn is_first(&self) -> bool {
        number(self.index).unwrap_or(0) == 0
    }

    pub(super) fn finish_reason(&self) -> Option<String> {
        string(self.finish_reason)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        usage(self.usage)
    }
}

impl Delta<'_> {
    /// All but the calls.
    pub(super) fn to_events(&self) -> Vec<ModelEvent> {
        let reasoning = string(self.reasoning_content).or_else(|| string(self.reasoning));
        let mut events: Vec<_> = reasoning.map(ModelEvent::Reasoning).into_iter().collect();
        match string(self.content) {
            Some(text) => events.push(ModelEvent::Text(text)),
            None => events.extend(parts(self.content)),
        }
        events.extend(string(self.refusal).map(ModelEvent::Refusal));
        events
    }

    /// Keeps what goes back with the answer.
    pub(super) fn add_to(&self, added: &mut Additions) -> Result<(), ProviderError> {
        if let Some(text) = string(self.reasoning_content) {
            added.add_reasoning(&text);
        }
        if let Some(Value::Array(details)) = value(self.reasoning_details) {
            added.add_details(details)?;
        }
        if let Some(extra) = value(self.extra_content) {
            added.set_extra(extra);
        }
        Ok(())
    }

    pub(super) fn calls(self) -> impl Iterator<Item = CallPiece> {
        let calls = self.tool_calls.into_iter().flatten().flatten().map(|call| CallPiece {
            index: number(call.index),
            id: string(call.id),
            extra: value(call.extra_content),
            ..piece(call.function)
        });
        let old = self
            .function_call
            .map(|function| CallPiece { index: Some(0), ..piece(Some(function)) });
        calls.chain(old)
    }
}

fn piece(function: Option<WireFunction>) -> CallPiece {
    let Some(function) = function else {
        return CallPiece::default(); // a piece that says nothing yet
    };
    let input = function.arguments.map(|raw| match string(Some(raw)) {
        Some(text) => text,
        // Some servers send the input itself instead of its text.
        None if raw.get().starts_with('{') => raw.get().to_owned(),
        None => String::new(),
    });
    CallPiece {
        name: string(function.name),
        input: input.unwrap_or_default(),
        ..CallPiece::default()
    }
}

/// Content as a list of parts, as Mistral sends it when it thinks.
fn parts(content: Raw) -> Vec<ModelEvent> {
    let Some(Value::Array(parts)) = content.and_then(|raw| serde_json::from_str(raw.get()).ok())
    else {
        return Vec::new(); // no parts either: no text
    };
    let mut events = Vec::new();
    for part in &parts {
        let text = part["text"].as_str().filter(|text| !text.is_empty());
        events.extend(text.map(|text| ModelEvent::Text(text.to_owned())));
        for thought in part["thinking"].as_array().into_iter().flatten() {
            let text = thought["text"].as_str().filter(|text| !text.is_empty());
            events.extend(text.map(|text| ModelEvent::Reasoning(text.to_owned())));
        }
    }
    events
}

fn usage(raw: Raw) -> Option<Usage> {
    let value: Value = serde_json::from_str(raw?.get()).ok()?;
    let at = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let cached = at("/prompt_tokens_details/cached_tokens");
    let usage = Usage {
        input_tokens: at("/prompt_tokens"),
        output_tokens: at("/completion_tokens"),
        cache_read_tokens: cached
            .or_else(|| at("/prompt_cache_hit_tokens"))
            .or_else(|| at("/cached_tokens")),
        // OpenRouter tells what its vendors wrote.
        cache_write_tokens: at("/prompt_tokens_details/cache_write_tokens"),
    };
    (usage != Usage::default()).then_some(usage)
}

/// A value that is not null.
fn value(raw: Raw) -> Option<Value> {
    let value: Value = serde_json::from_str(raw?.get()).ok()?;
    (!value.is_null()).then_some(value)
}

/// A string that says something.
fn string(raw: Raw) -> Option<String> {
    let text = raw?.get();
    if !text.starts_with('"') {
        return None;
    }
    serde_json::from_str(text).ok().filter(|text: &String| !text.is_empty())
}

fn number(raw: Raw) -> Option<u64> {
    raw?.get().trim_matches('"').parse().ok()
}
