//! An answer as its bytes come: an event stream, or one JSON document of a server that does not stream.
//!
//! Promises: what is read does not depend on how the bytes were split; an answer that is not whole is an error.
//! Must not know: what is in an event or a document.

use serde_json::Value;

use super::ProviderErrorKind::{Interrupted, Unreadable};
use super::error_body::{self, ErrorBody};
use super::sse::{self, EventKind, SseEvent};
use super::{Decode, ModelEvent, ProviderError, StreamFlow};

/// How event streams end over Chat Completions, and behind gateways over other wire formats, too.
pub(super) const END_MARK: &str = "[DONE]";

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// What is shown of an invalid response.
const EXCERPT_CHARS: usize = 120;

/// Reads the events of one wire format.
pub(super) trait ReadAnswer {
    /// Takes the data of one event.
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Takes an answer that came whole, in one document.
    fn take_document(
        &mut self,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError>;

    /// Nothing more comes: figures, then the end. Fails if the answer is not whole.
    fn conclude(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Whether the last event is out.
    fn is_done(&self) -> bool;

    /// Whether only usage can still come.
    fn has_stopped(&self) -> bool;
}

/// One answer being read.
pub(super) struct AnswerStream<R> {
    body: BodyKind,
    reader: R,
}

/// What kind of body it is, as soon as that is known.
enum BodyKind {
    /// With the part of a byte order mark that has come.
    Unknown(Vec<u8>),
    Events(sse::SseReader),
    /// From a server that does not stream: one JSON document.
    Document(Vec<u8>),
}

impl<R: ReadAnswer> AnswerStream<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { body: BodyKind::Unknown(Vec::new()), reader }
    }

    /// Distinguishes an event stream from a document by its first byte, for what servers say in `Content-Type` is not to be
    /// trusted; gives back what is left to read.
    fn recognise<'b>(&mut self, bytes: &'b [u8]) -> Result<&'b [u8], ProviderError> {
        let BodyKind::Unknown(mark) = &mut self.body else { return Ok(bytes) };
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
        message: &SseEvent,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        match message.kind {
            EventKind::Error => {
                Err(error_from_body(&ErrorBody::from_body(message.data.as_bytes())))
            }
            EventKind::Message => self.reader.take(&message.data, events),
        }
    }
}

impl<R: ReadAnswer> Decode for AnswerStream<R> {
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
            if self.reader.is_done() {
                break;
            }
            self.take(&message, events)?;
        }
        if self.reader.is_done() {
            return Ok(StreamFlow::Done);
        }
        reading.map_err(|sse::TooLarge| {
            let message = "the model server sends a piece that is too large to be taken";
            ProviderError::new(Unreadable, message)
        })?;
        Ok(StreamFlow::More)
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.reader.is_done() {
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
                match self.reader.take_document(&text, events) {
                    Err(error) if error.kind == Unreadable => {
                        return Err(explain_document(&text, error));
                    }
                    taken => taken?,
                }
            }
        }
        if self.reader.is_done() { Ok(()) } else { self.reader.conclude(events) }
    }

    fn has_stopped(&self) -> bool {
        self.reader.has_stopped()
    }
}

/// Why a document is no answer.
fn explain_document(text: &str, error: ProviderError) -> ProviderError {
    match serde_json::from_str(text) {
        // Some brokers wrap their complaints in a list.
        Ok(value) => ErrorBody::from_json(&value).map_or(error, |body| error_from_body(&body)),
        Err(fault) if fault.is_eof() => interrupted_error(),
        Err(_) => error,
    }
}

pub(super) fn interrupted_error() -> ProviderError {
    ProviderError::new(Interrupted, "the answer of the model server broke off")
}

/// A piece that is not what the wire format has.
pub(super) fn invalid(text: &str) -> ProviderError {
    let excerpt: String = error_body::one_line(text).chars().take(EXCERPT_CHARS).collect();
    let message = format!("the model server sent an invalid response: {excerpt}");
    ProviderError::new(Unreadable, message)
}

/// What a server complained of instead of an answer.
pub(super) fn error_from_body(error_body: &ErrorBody) -> ProviderError {
    let message = match error_body.message.as_str() {
        "" => "the model server reports an error".to_owned(),
        message => format!("the model server reports an error: {message}"),
    };
    ProviderError {
        blame: error_body.refusal_cause(None),
        refuses_key: error_body.status == Some(401),
        ..ProviderError::new(error_body.kind(), message)
    }
}

pub(super) fn error_from_json(event: &Value) -> ProviderError {
    error_from_body(&ErrorBody::from_json(event).unwrap_or_default())
}

pub(super) fn push(events: &mut Vec<ModelEvent>, event: fn(String) -> ModelEvent, text: &str) {
    if !text.is_empty() {
        events.push(event(text.to_owned()));
    }
}
