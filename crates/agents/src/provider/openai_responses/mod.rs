//! OpenAI's Responses.
//!
//! Must not know: HTTP, who asks.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use super::answer_stream::AnswerStream;
use decode::ResponseReader;

pub(super) use encode::encode;

pub(super) const PATH: &[&str] = &["responses"];

/// Reads one answer.
pub(super) fn decoder() -> AnswerStream<ResponseReader> {
    AnswerStream::new(ResponseReader::default())
}
