//! OpenAI Chat Completions, as OpenAI and all the servers that follow it speak it.
//!
//! Promises: an answer is whole only if the server said why it stopped; text, calls and figures come in the order sent;
//! the dialects of llama.cpp, Ollama, vLLM, LM Studio, DeepSeek and the brokers are understood without being asked for.
//! Must not know: HTTP, who asks.

mod added;
mod calls;
mod chunk;
mod encode;
mod models;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::ProviderErrorKind::Interrupted;
use super::answer_stream::{
    AnswerStream, END_MARK, ReadAnswer, error_from_body, interrupted_error, invalid,
};
use super::error_body::ErrorBody;
use super::{ModelEvent, ProviderError, StopReason, Usage};
use added::Additions;
use calls::Calls;
use chunk::{Chunk, ChunkChoice};

pub(super) use added::has_additions;
pub(super) use encode::{assistant_message, encode};
pub(super) use models::model_names;

pub(super) const PATH: &[&str] = &["chat", "completions"];
pub(super) const MODELS_PATH: &[&str] = &["models"];

/// Reads one answer.
pub(super) fn decoder() -> AnswerStream<ChatReader> {
    let prefix = uuid::Uuid::now_v7().simple().to_string();
    AnswerStream::new(ChatReader::naming_calls(&prefix))
}

/// The events of one answer.
pub(super) struct ChatReader {
    calls: Calls,
    /// All text that came.
    text: String,
    added: Additions,
    usage: Option<Usage>,
    /// Why the server says it stopped.
    finish: Option<String>,
    /// Whether the model refused to answer.
    refused: bool,
    done: bool,
}

impl ReadAnswer for ChatReader {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        match data.trim() {
            END_MARK => self.conclude(events),
            _ => match serde_json::from_str(data) {
                Ok(chunk) => self.take_chunk(chunk, data, events),
                Err(_) if is_other_piece(data) => Ok(()),
                Err(_) => Err(invalid(data)),
            },
        }
    }

    /// A whole answer has the shape of a piece.
    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let chunk = serde_json::from_str(text).map_err(|_| invalid(text))?;
        self.take_chunk(chunk, text, events)
    }

    /// Without a reason to stop the answer is not whole.
    fn conclude(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.done = true;
        if self.finish.is_some() {
            self.calls.start_nameless(events);
        }
        events.extend(self.usage.take().map(ModelEvent::Usage));
        let Some(finish) = &self.finish else { return Err(interrupted_error()) };
        let reason = self.stop_reason(finish)?;
        let whole = self.take_message().map(|message| vec![message]);
        events.extend(whole.map(ModelEvent::Items));
        events.push(ModelEvent::Stopped(reason));
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }
}

impl ChatReader {
    /// Calls that come without an id get one that begins with this.
    fn naming_calls(prefix: &str) -> Self {
        Self {
            calls: Calls::naming(prefix),
            text: String::new(),
            added: Additions::default(),
            usage: None,
            finish: None,
            refused: false,
            done: false,
        }
    }

    /// Takes a piece; `text` is what it was read from.
    fn take_chunk(
        &mut self,
        chunk: Chunk<'_>,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if chunk.may_be_error()
            && let Ok(value) = serde_json::from_str(text)
            && let Some(error_body) = ErrorBody::from_json(&value)
        {
            return Err(error_from_body(&error_body));
        }
        self.usage = chunk.usage().or(self.usage);
        for choice in chunk.choices.into_iter().flatten().filter(ChunkChoice::is_first) {
            self.take_choice(choice, events)?;
        }
        Ok(())
    }

    fn take_choice(
        &mut self,
        choice: ChunkChoice,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        self.usage = choice.usage().or(self.usage);
        // Some servers give an empty reason with every piece.
        let finish = choice.finish_reason();
        if let Some(delta) = choice.delta.or(choice.message) {
            let said = delta.to_events();
            for event in &said {
                self.refused |= matches!(event, ModelEvent::Refusal(_));
                if let ModelEvent::Text(text) | ModelEvent::Refusal(text) = event {
                    self.text.push_str(text);
                }
            }
            events.extend(said);
            delta.add_to(&mut self.added)?;
            for call in delta.calls() {
                self.calls.take(call, events)?;
            }
        }
        self.finish = finish.or(self.finish.take());
        Ok(())
    }

    /// The answer as its server wants it back, if it added something to it. Otherwise it is what everybody makes of it.
    fn take_message(&mut self) -> Option<Value> {
        let (calls, extras) = self.calls.take_all();
        let added = std::mem::take(&mut self.added);
        if added.is_empty(&extras) {
            return None;
        }
        let mut message = assistant_message(&self.text, &calls, false)?;
        added.apply(&mut message, extras);
        Some(message)
    }

    fn stop_reason(&self, finish: &str) -> Result<StopReason, ProviderError> {
        match finish {
            // Servers disagree on which of these goes with calls: the calls themselves tell.
            "stop" | "tool_calls" | "function_call" | "tool_use" | "eos" | "eos_token"
            | "stop_sequence" | "end_turn" => Ok(if !self.calls.is_empty() {
                StopReason::ToolCalls
            } else if self.refused {
                StopReason::Refusal
            } else {
                StopReason::End
            }),
            "length" | "max_tokens" | "model_length" => Ok(StopReason::Length),
            "content_filter" | "sensitive" => Ok(StopReason::ContentFilter),
            "refusal" => Ok(StopReason::Refusal),
            "error" | "abort" | "network_error" | "insufficient_system_resource" => {
                let message = format!("the model server gave up in mid-answer ({finish})");
                Err(ProviderError::new(Interrupted, message))
            }
            other => Ok(StopReason::Other(other.to_owned())),
        }
    }
}

/// Whether a piece of a stream is nothing of an answer: what servers may add some day ends none.
fn is_other_piece(text: &str) -> bool {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => !object.contains_key("error"),
        Ok(value) => value.is_null(),
        Err(_) => false,
    }
}
