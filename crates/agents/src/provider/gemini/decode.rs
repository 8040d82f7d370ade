//! An answer as Google's Gemini sends it: pieces of one message, each a list of parts.
//!
//! Promises: parts go back as they came, signatures included; an answer is whole only if the server said why it stopped.

use serde_json::{Map, Value, json};

use super::super::ProviderErrorKind::{Interrupted, Rejected};
use super::super::answer_stream::{
    END_MARK, ReadAnswer, error_from_body, interrupted_error, invalid, push,
};
use super::super::error_body::ErrorBody;
use super::super::sources::CitedSources;
use super::super::{ModelEvent, ProviderError, RefusalCause, StopReason, Usage};

/// More parts than this in one answer, texts put together, are no answer.
const PARTS_MAX: usize = 1_024;

/// Reasons to stop by which the server cuts an answer off for what is in it.
const FILTERED: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// Reasons to stop of an answer that another try may do better.
const GIVEN_UP: &[&str] = &[
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "MALFORMED_RESPONSE",
    "TOO_MANY_TOOL_CALLS",
];

/// The conversation has a call of another model.
const UNSIGNED: &str = "MISSING_THOUGHT_SIGNATURE";

/// The events of one answer.
pub(crate) struct GeminiReader {
    /// Of ids for calls that the server does not name.
    prefix: String,
    parts: Vec<AnswerPart>,
    calls: usize,
    /// How many calls of the server's own tools there were.
    server_calls: usize,
    usage: Option<Usage>,
    finish: Option<String>,
    /// Why the question was not even read.
    blocked: bool,
    sources: CitedSources,
    done: bool,
}

/// A part as it goes back; texts that belong together are put together.
enum AnswerPart {
    Text(String),
    Other(Value),
}

impl ReadAnswer for GeminiReader {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if data.trim() == END_MARK {
            return Ok(()); // of a gateway; the answer has its own end
        }
        match serde_json::from_str(data).map_err(|_| invalid(data))? {
            Value::Array(pieces) => self.take_pieces(&pieces, events),
            piece => self.take_piece(&piece, events),
        }
    }

    /// One answer, or the list of its pieces.
    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let value: Value = serde_json::from_str(text).map_err(|_| invalid(text))?;
        match value {
            Value::Array(pieces) if pieces.first().is_some_and(Value::is_object) => {
                self.take_pieces(&pieces, events)
            }
            value if value["candidates"].is_array() => self.take_piece(&value, events),
            _ => Err(invalid(text)),
        }
    }

    fn conclude(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.done = true;
        let items: Vec<Value> = std::mem::take(&mut self.parts)
            .into_iter()
            .map(|part| match part {
                AnswerPart::Text(text) => json!({"text": text}),
                AnswerPart::Other(part) => part,
            })
            .collect();
        let usage = self.usage.take().map(ModelEvent::Usage);
        let stop = match self.finish.as_deref() {
            _ if self.blocked => StopReason::Refusal,
            None => {
                events.extend(usage);
                return Err(interrupted_error());
            }
            Some("STOP") if self.calls > 0 => StopReason::ToolCalls,
            Some("STOP" | "FINISH_REASON_UNSPECIFIED") => StopReason::End,
            Some("MAX_TOKENS") => StopReason::Length,
            Some(filtered) if FILTERED.contains(&filtered) => StopReason::ContentFilter,
            Some(wrong) if GIVEN_UP.contains(&wrong) => {
                events.extend(usage);
                let message = format!("the model server gave up in mid-answer ({wrong})");
                return Err(ProviderError::new(Interrupted, message));
            }
            Some(UNSIGNED) => {
                events.extend(usage);
                let message =
                    "the model server refused the request: a reasoning signature is missing";
                return Err(ProviderError {
                    blame: Some(RefusalCause::ReasoningMissing),
                    ..ProviderError::new(Rejected, message)
                });
            }
            Some(other) => StopReason::Other(other.to_owned()),
        };
        if !items.is_empty() {
            events.push(ModelEvent::Items(items));
        }
        events.extend(usage);
        events.push(ModelEvent::Stopped(stop));
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    /// Figures may come after the reason to stop, and no mark says that all has come.
    fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }
}

impl GeminiReader {
    pub(super) fn naming_calls(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            parts: Vec::new(),
            calls: 0,
            server_calls: 0,
            usage: None,
            finish: None,
            blocked: false,
            sources: CitedSources::default(),
            done: false,
        }
    }

    fn take_pieces(
        &mut self,
        pieces: &[Value],
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| self.take_piece(piece, events))
    }

    /// What is no piece of an answer says nothing.
    fn take_piece(
        &mut self,
        piece: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if !piece["error"].is_null()
            && let Some(body) = ErrorBody::from_json(piece)
        {
            return Err(error_from_body(&body));
        }
        self.usage = usage(&piece["usageMetadata"]).or(self.usage);
        self.blocked |= piece["promptFeedback"]["blockReason"].is_string();
        let candidate = &piece["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.take_part(part, events)?;
        }
        let grounds = &candidate["groundingMetadata"];
        self.show_search(&grounds["webSearchQueries"], events);
        let grounds = grounds["groundingChunks"].as_array();
        for ground in grounds.into_iter().flatten() {
            self.cite(&ground["web"], events);
        }
        let finish = candidate["finishReason"].as_str();
        self.finish = finish.map(str::to_owned).or(self.finish.take());
        Ok(())
    }

    fn take_part(
        &mut self,
        part: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if self.parts.len() == PARTS_MAX {
            return Err(invalid("more parts than an answer can have"));
        }
        let text = part["text"].as_str().unwrap_or("");
        if part["thought"] == true {
            push(events, ModelEvent::Reasoning, text);
            return Ok(()); // thoughts do not go back: signatures stand for them
        }
        push(events, ModelEvent::Text, text);
        if let Some(call) = part["functionCall"].as_object() {
            self.take_call(call, events);
        }
        self.show_server_tool(part, events);
        let is_plain =
            part.as_object().is_some_and(|part| part.len() == 1) && part["text"].is_string();
        match (is_plain, self.parts.last_mut()) {
            (true, Some(AnswerPart::Text(before))) => before.push_str(text),
            (true, _) if text.is_empty() => {}
            (true, _) => self.parts.push(AnswerPart::Text(text.to_owned())),
            (false, _) => self.parts.push(AnswerPart::Other(part.clone())),
        }
        Ok(())
    }

    /// A call comes whole.
    fn take_call(&mut self, call: &Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let index = self.calls;
        self.calls += 1;
        let word = |name: &str| call.get(name).and_then(Value::as_str);
        let own = format!("{}_{index}", self.prefix);
        events.push(ModelEvent::CallStarted {
            index,
            id: word("id").map_or(own, str::to_owned),
            name: word("name").unwrap_or("").to_owned(),
        });
        let input = call.get("args").filter(|args| args.is_object());
        let text = input.map_or_else(|| "{}".to_owned(), Value::to_string);
        events.push(ModelEvent::CallInput { index, text });
    }

    /// Tools of the server, and their results.
    fn show_server_tool(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        let (call, response) = (&part["toolCall"], &part["toolResponse"]);
        let word = |value: &Value| value.as_str().unwrap_or("").to_owned();
        if call.is_object() {
            self.server_calls += 1;
            events.push(ModelEvent::ServerCall {
                id: word(&call["id"]),
                name: word(&call["toolType"]).to_lowercase(),
                input: call["args"].to_string(),
            });
        }
        if response.is_object() {
            let error = &response["response"]["error"];
            events.push(ModelEvent::ServerResult {
                id: word(&response["id"]),
                text: word(error),
                success: error.is_null(),
            });
        }
        self.show_code(part, events);
    }

    /// A search that the server reports only by its queries.
    fn show_search(&mut self, queries: &Value, events: &mut Vec<ModelEvent>) {
        let is_told = queries.as_array().is_some_and(|queries| !queries.is_empty());
        if !is_told || self.server_calls > 0 {
            return; // there was none, or it was shown
        }
        self.server_calls += 1;
        let id = format!("{}_search", self.prefix);
        events.push(ModelEvent::ServerCall {
            id: id.clone(),
            name: "google_search".to_owned(),
            input: json!({"queries": queries}).to_string(),
        });
        events.push(ModelEvent::ServerResult { id, text: String::new(), success: true });
    }

    /// Code that the server runs, and its result.
    fn show_code(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        if let Some(code) = part["executableCode"]["code"].as_str() {
            self.server_calls += 1;
            events.push(ModelEvent::ServerCall {
                id: format!("{}_code_{}", self.prefix, self.server_calls),
                name: "code_execution".to_owned(),
                input: json!({"code": code}).to_string(),
            });
        }
        let result = &part["codeExecutionResult"];
        if result.is_object() {
            events.push(ModelEvent::ServerResult {
                id: format!("{}_code_{}", self.prefix, self.server_calls),
                text: result["output"].as_str().unwrap_or("").to_owned(),
                success: result["outcome"] == "OUTCOME_OK",
            });
        }
    }

    fn cite(&mut self, web: &Value, events: &mut Vec<ModelEvent>) {
        let Some(url) = web["uri"].as_str() else {
            return; // a source that has no address
        };
        let link = self.sources.cite(web["title"].as_str(), url);
        events.extend(link.map(ModelEvent::Text));
    }
}

/// What tools of the server read counts as input, thoughts as output (G-60).
fn usage(value: &Value) -> Option<Usage> {
    let at = |name: &str| value[name].as_u64();
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let usage = Usage {
        input_tokens: sum(at("promptTokenCount"), at("toolUsePromptTokenCount")),
        output_tokens: sum(at("candidatesTokenCount"), at("thoughtsTokenCount")),
        cache_read_tokens: at("cachedContentTokenCount"),
        cache_write_tokens: None,
    };
    (usage != Usage::default()).then_some(usage)
}
