//! Anthropic's Messages.
//!
//! Must not know: HTTP, who asks.

mod decode;
mod encode;
#[cfg(test)]
mod tests;
pub(super) mod vertex;

use super::answer_stream::AnswerStream;
use decode::MessageReader;

pub(super) use encode::encode;

pub(super) const PATH: &[&str] = &["messages"];

/// Reads one answer.
pub(super) fn decoder() -> AnswerStream<MessageReader> {
    AnswerStream::new(MessageReader::default())
}
