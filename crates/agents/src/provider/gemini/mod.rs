//! Google's Gemini.
//!
//! Must not know: HTTP, who asks.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use super::answer_stream::AnswerStream;
use decode::GeminiReader;

pub(super) use encode::encode;

/// Ids of calls that the server did not name begin with this: they mean nothing to it.
const OWN_ID: &str = "gr_";

/// The last segment of the address of a question.
pub(super) fn path(model: &str) -> String {
    format!("{}:streamGenerateContent", short_name(model))
}

/// A model's name without the collection that the server puts before it.
pub(super) fn short_name(model: &str) -> String {
    model.strip_prefix("models/").unwrap_or(model).to_owned()
}

/// Reads one answer.
pub(super) fn decoder() -> AnswerStream<GeminiReader> {
    let prefix = uuid::Uuid::now_v7().simple().to_string();
    AnswerStream::new(GeminiReader::naming_calls(&format!("{OWN_ID}{prefix}")))
}
