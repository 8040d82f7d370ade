//! What a model server answers, written so that a test is easy to read.

use serde_json::{Value, json};

use super::Gate;

/// One answer. Without more ado it is an event stream that comes whole, with figures and an end mark.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    /// Waited for before the first byte of the response.
    pub(super) begins_after: Option<Gate>,
    pub(super) pieces: Pieces,
    steps: Vec<Step>,
    /// What comes between the reason to stop and the figures.
    after_finish: Option<Step>,
    finish: Option<String>,
    usage: Option<(u64, u64)>,
    end_mark: EndMark,
}

/// A tool call that the model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    id: String,
    name: String,
    input: String,
}

/// How whoever reads knows where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    Chunked,
    UntilClose,
    /// The connection is closed instead of a response.
    NoResponse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    AsWritten,
    Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndMark {
    Sent,
    Missing,
}

/// One thing an answer does.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Writes(Vec<u8>),
    Waits(Gate),
    /// Closes the connection in mid-stream.
    Cuts,
    /// Writes the same again and again until the reader is gone.
    WritesForever(Vec<u8>),
    /// Keeps the connection alive with comments until the gate is open.
    KeepsAlive(Gate),
}

impl Call {
    pub fn new(id: &str, name: &str, input: &Value) -> Self {
        Self::with_text(id, name, &input.to_string())
    }

    /// A call whose input is any text, broken JSON for example.
    pub fn with_text(id: &str, name: &str, input: &str) -> Self {
        Self { id: id.to_owned(), name: name.to_owned(), input: input.to_owned() }
    }

    /// Beginning, first half and second half.
    fn deltas(&self, index: usize) -> [Value; 3] {
        let middle = self.input.len() / 2;
        let middle = (middle..).find(|offset| self.input.is_char_boundary(*offset));
        let (first, second) = self.input.split_at(middle.unwrap_or_default());
        let begins = json!({"index": index, "id": self.id, "type": "function",
            "function": {"name": self.name, "arguments": ""}});
        let more = |text: &str| json!({"index": index, "function": {"arguments": text}});
        [begins, more(first), more(second)]
    }
}

impl Answer {
    /// An event stream that says nothing yet.
    fn stream() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            framing: Framing::Chunked,
            begins_after: None,
            pieces: Pieces::AsWritten,
            steps: Vec::new(),
            after_finish: None,
            finish: None,
            usage: Some((10, 5)),
            end_mark: EndMark::Sent,
        }
        .delta(&json!({"role": "assistant", "content": ""}))
        .finishes("stop")
    }

    /// Text, one chunk for each piece.
    pub fn streams<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::stream().then_streams(texts)
    }

    pub fn thinks<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let delta = |text| json!({"reasoning_content": text});
        texts.into_iter().fold(Self::stream(), |answer, text| answer.delta(&delta(text)))
    }

    pub fn refuses(text: &str) -> Self {
        Self::stream().delta(&json!({"refusal": text}))
    }

    /// Calls, all at the same time: their inputs come in pieces and in turn.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::stream().then_calls(calls)
    }

    /// Text again and again, until the reader is gone.
    pub fn streams_forever(text: &str) -> Self {
        let mut answer = Self::stream();
        answer.steps.push(Step::WritesForever(event(&chunk(&json!({"content": text}), None))));
        answer
    }

    /// Whatever this is, instead of a stream.
    pub fn raw(body: impl Into<Vec<u8>>) -> Self {
        let mut answer = Self::stream();
        answer.steps = vec![Step::Writes(body.into())];
        answer.finish = None;
        answer.usage = None;
        answer.end_mark = EndMark::Missing;
        answer
    }

    /// A whole answer in one JSON document, as of a server that does not stream.
    pub fn document(value: &Value) -> Self {
        Self {
            framing: Framing::Length,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            ..Self::raw(value.to_string())
        }
    }

    /// A failure with a message in OpenAI's shape.
    pub fn error(status: u16, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "error", "code": null}});
        Self { status, ..Self::document(&body) }
    }

    /// A failure with any body.
    pub fn status(status: u16, body: &str) -> Self {
        Self { status, framing: Framing::Length, headers: Vec::new(), ..Self::raw(body) }
    }

    /// Closes the connection instead of an answer.
    pub fn hangs_up() -> Self {
        Self { framing: Framing::NoResponse, ..Self::raw("") }
    }

    pub(super) fn models(names: &[String]) -> Self {
        let models: Vec<_> =
            names.iter().map(|name| json!({"id": name, "object": "model"})).collect();
        Self::document(&json!({"object": "list", "data": models}))
    }

    pub fn then_streams<'a>(self, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let delta = |text| json!({"content": text});
        texts.into_iter().fold(self, |answer, text| answer.delta(&delta(text)))
    }

    pub fn then_calls(self, calls: impl IntoIterator<Item = Call>) -> Self {
        let calls: Vec<_> =
            calls.into_iter().enumerate().map(|(index, call)| call.deltas(index)).collect();
        let mut answer = self.finishes("tool_calls");
        for turn in 0..3 {
            for call in &calls {
                answer = answer.delta(&json!({"tool_calls": [call[turn]]}));
            }
        }
        answer
    }

    /// One chunk with any delta.
    pub fn delta(self, delta: &Value) -> Self {
        self.writes(event(&chunk(delta, None)))
    }

    /// Any bytes, in the middle of a stream.
    pub fn writes(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Writes(bytes.into()));
        self
    }

    /// Goes on only when the gate is open.
    pub fn waits(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Waits(gate.clone()));
        self
    }

    /// Says nothing until the gate is open, but keeps the connection alive as busy servers do.
    pub fn keeps_alive(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::KeepsAlive(gate.clone()));
        self
    }

    /// Does not even begin before the gate is open.
    pub fn begins_after(self, gate: &Gate) -> Self {
        Self { begins_after: Some(gate.clone()), ..self }
    }

    /// The connection is closed here.
    pub fn cuts(mut self) -> Self {
        self.steps.push(Step::Cuts);
        self
    }

    pub fn finishes(self, reason: &str) -> Self {
        Self { finish: Some(reason.to_owned()), ..self }
    }

    /// The connection is closed before usage and the end mark.
    pub fn cuts_after_finish(self) -> Self {
        Self { after_finish: Some(Step::Cuts), ..self }
    }

    pub fn waits_after_finish(self, gate: &Gate) -> Self {
        Self { after_finish: Some(Step::Waits(gate.clone())), ..self }
    }

    pub fn without_finish(self) -> Self {
        Self { finish: None, ..self }
    }

    pub fn with_usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        Self { usage: Some((input_tokens, output_tokens)), ..self }
    }

    pub fn without_usage(self) -> Self {
        Self { usage: None, ..self }
    }

    pub fn without_end_mark(self) -> Self {
        Self { end_mark: EndMark::Missing, ..self }
    }

    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Every byte is written by itself, in an HTTP chunk of its own.
    pub fn split_at_every_byte(self) -> Self {
        Self { pieces: Pieces::Bytes, ..self }
    }

    /// The end of the body is the end of the connection, so that a cut looks like an end.
    pub fn until_close(self) -> Self {
        Self { framing: Framing::UntilClose, ..self }
    }

    /// All steps, the end of the stream included.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = self.steps.clone();
        if let Some(reason) = &self.finish {
            steps.push(Step::Writes(event(&chunk(&json!({}), Some(reason)))));
        }
        steps.extend(self.after_finish.clone());
        let mut write = |bytes| steps.push(Step::Writes(bytes));
        if let Some((input, output)) = self.usage {
            let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
            let mut last = chunk(&Value::Null, None);
            last["choices"] = json!([]);
            last["usage"] = usage;
            write(event(&last));
        }
        if self.end_mark == EndMark::Sent {
            write(b"data: [DONE]\n\n".to_vec());
        }
        steps
    }
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

fn event(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}
