//! OpenAI Chat Completions, as OpenAI and all the servers that follow it speak it.
//!
//! Promises: an answer is whole only if the server said why it stopped; text, calls and figures come in the order sent;
//! the dialects of llama.cpp, Ollama, vLLM, LM Studio, DeepSeek and the brokers are understood without being asked for.
//! Must not know: HTTP, who asks.

mod calls;
mod chunk;
mod encode;
mod models;
#[cfg(test)]
mod tests;

use super::ProviderErrorKind::{Interrupted, Unreadable};
use super::error_body::{self, ErrorBody};
use super::sse::{self, EventKind};
use super::{Decode, ModelEvent, ProviderError, StopReason, StreamFlow, Usage};
use calls::Calls;
use chunk::{Chunk, ChunkChoice};

pub(super) use encode::{encode, limit_field};
pub(super) use models::model_names;

pub(super) const PATH: &[&str] = &["chat", "completions"];
pub(super) const MODELS_PATH: &[&str] = &["models"];

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const END_MARK: &str = "[DONE]";
/// What is shown of an invalid response.
const EXCERPT_CHARS: usize = 120;

/// One answer being read.
pub(super) struct ChatStreamDecoder {
    body: BodyKind,
    calls: Calls,
    usage: Option<Usage>,
    /// Why the server says it stopped.
    finish: Option<String>,
    done: bool,
}

/// What kind of body it is, as soon as that is known.
enum BodyKind {
    /// With the part of a byte order mark that has come.
    Unknown(Vec<u8>),
    Events(sse::SseReader),
    /// From a server that does not stream: one JSON document.
    Document(Vec<u8>),
}

impl Decode for ChatStreamDecoder {
    fn read(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<StreamFlow, ProviderError> {
        let bytes = self.recognise(bytes)?;
        let mut messages = Vec::new();
        let mut reading = Ok(());
        match &mut self.body {
            BodyKind::Unknown(_) => {}
            BodyKind::Events(reader) => reading = reader.read(bytes, &mut messages),
            BodyKind::Document(document) if document.len() + bytes.len() > sse::EVENT_BYTES_MAX => {
                reading = Err(sse::TooLarge);
            }
            BodyKind::Document(document) => document.extend_from_slice(bytes),
        }
        for message in messages {
            if self.done {
                break;
            }
            self.take(&message, events)?;
        }
        if self.done {
            return Ok(StreamFlow::Done);
        }
        reading.map_err(|sse::TooLarge| {
            let message = "the model server sends a piece that is too large to be taken";
            ProviderError::new(Unreadable, message)
        })?;
        Ok(StreamFlow::More)
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.done {
            return Ok(());
        }
        match &mut self.body {
            BodyKind::Unknown(_) => {}
            BodyKind::Events(reader) => {
                let mut rest = Vec::new();
                reader.end(&mut rest);
                if reader.is_foreign() {
                    let message =
                        "the model server answers with some other text; is the base URL right?";
                    return Err(ProviderError::new(Unreadable, message));
                }
                for message in rest {
                    match self.take(&message, events) {
                        // Half a piece: what matters is that the answer broke off.
                        Err(error) if error.kind == Unreadable => {}
                        taken => taken?,
                    }
                }
            }
            BodyKind::Document(document) => {
                let text = String::from_utf8_lossy(&std::mem::take(document)).into_owned();
                self.take_document(&text, events)?;
            }
        }
        if self.done {
            Ok(())
        } else {
            self.conclude(events)
        }
    }

    fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }
}

impl ChatStreamDecoder {
    pub(super) fn new() -> Self {
        Self::naming_calls(&uuid::Uuid::now_v7().simple().to_string())
    }

    /// Calls that come without an id get one that begins with this.
    fn naming_calls(prefix: &str) -> Self {
        Self {
            body: BodyKind::Unknown(Vec::new()),
            calls: Calls::naming(prefix),
            usage: None,
            finish: None,
            done: false,
        }
    }

    /// Distinguishes an event stream from a document by its first byte, for what servers say in `Content-Type` is not to be
    /// trusted; gives back what is left to read.
    fn recognise<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], ProviderError> {
        let BodyKind::Unknown(mark) = &mut self.body else {
            return Ok(bytes);
        };
        for (index, byte) in bytes.iter().enumerate() {
            mark.push(*byte);
            if BYTE_ORDER_MARK.starts_with(mark) {
                continue;
            }
            if byte.is_ascii_whitespace() {
                mark.clear();
                continue;
            }
            self.body = match byte {
                b'{' | b'[' => BodyKind::Document(Vec::new()),
                b'<' => {
                    let message =
                        "the model server answers with a web page; is the base URL right?";
                    return Err(ProviderError::new(Unreadable, message));
                }
                _ => BodyKind::Events(sse::SseReader::default()),
            };
            return Ok(&bytes[index..]);
        }
        Ok(&[])
    }

    fn take(
        &mut self,
        message: &sse::SseEvent,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if message.kind == EventKind::Error {
            return Err(reported(&ErrorBody::from_body(message.data.as_bytes())));
        }
        if message.data.trim() == END_MARK {
            return self.conclude(events);
        }
        self.take_chunk(&message.data, events)
    }

    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        match self.take_chunk(text, events) {
            Err(error) if error.kind == Unreadable => {
                match serde_json::from_str(text) {
                    // Some brokers wrap their complaints in a list.
                    Ok(value) => {
                        Err(ErrorBody::from_json(&value).map_or(error, |body| reported(&body)))
                    }
                    Err(fault) if fault.is_eof() => Err(broken_off()),
                    Err(_) => Err(error),
                }
            }
            taken => taken,
        }
    }

    fn take_chunk(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let chunk: Chunk = serde_json::from_str(text).map_err(|_| {
            let excerpt: String = error_body::one_line(text)
                .chars()
                .take(EXCERPT_CHARS)
                .collect();
            ProviderError::new(
                Unreadable,
                format!("the model server sent an invalid response: {excerpt}"),
            )
        })?;
        if chunk.may_be_error()
            && let Ok(value) = serde_json::from_str(text)
            && let Some(error_body) = ErrorBody::from_json(&value)
        {
            return Err(reported(&error_body));
        }
        self.usage = chunk.usage().or(self.usage);
        for choice in chunk
            .choices
            .into_iter()
            .flatten()
            .filter(ChunkChoice::is_first)
        {
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
            events.extend(delta.to_events());
            for call in delta.calls() {
                self.calls.take(call, events)?;
            }
        }
        self.finish = finish.or(self.finish.take());
        Ok(())
    }

    /// The stream has ended: usage, then the end. Without a reason to stop the answer is not whole.
    fn conclude(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.done = true;
        if self.finish.is_some() {
            self.calls.start_nameless(events);
        }
        events.extend(self.usage.take().map(ModelEvent::Usage));
        let Some(finish) = &self.finish else {
            return Err(broken_off());
        };
        let reason = self.stop_reason(finish)?;
        events.push(ModelEvent::Stopped(reason));
        Ok(())
    }

    fn stop_reason(&self, finish: &str) -> Result<StopReason, ProviderError> {
        match finish {
            // Servers disagree on which of these goes with calls: the calls themselves tell.
            "stop" | "tool_calls" | "function_call" | "tool_use" | "eos" | "eos_token"
            | "stop_sequence" | "end_turn" => Ok(match self.calls.is_empty() {
                true => StopReason::End,
                false => StopReason::ToolCalls,
            }),
            "length" | "max_tokens" | "model_length" => Ok(StopReason::Length),
            "content_filter" | "sensitive" => Ok(StopReason::ContentFilter),
            "error" | "abort" | "network_error" | "insufficient_system_resource" => {
                let message = format!("the model server gave up in mid-answer ({finish})");
                Err(ProviderError::new(Interrupted, message))
            }
            other => Ok(StopReason::Other(other.to_owned())),
        }
    }
}

fn broken_off() -> ProviderError {
    ProviderError::new(Interrupted, "the answer of the model server broke off")
}

/// What a server complained of instead of an answer.
fn reported(error_body: &ErrorBody) -> ProviderError {
    let message = match error_body.message.as_str() {
        "" => "the model server reports an error".to_owned(),
        message => format!("the model server reports an error: {message}"),
    };
    ProviderError::new(error_body.kind(), message)
}
