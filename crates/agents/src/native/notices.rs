//! What the host told the user in earlier turns, for the model: it stands at the end of the user's next message, so that
//! nothing of before changes in a request, and users and assistants still take turns.
//!
//! Promises: only the text of a notice reaches a model, never the command that caused it (G-74).

use std::sync::Arc;

use agent_api::UserMessage;
use compositor::Part;
use serde_json::Value;

/// How notices are introduced.
const BEFORE: &str = "(The host showed this to the user before this message:";

/// The most of all notices before one message.
const BYTES_MAX: usize = 8 * 1_024;

/// The notices among the parts of a response. A steering message is none, though it is shown as one.
pub(super) fn notices_in(parts: &[Value]) -> impl Iterator<Item = &str> {
    let notices = parts.iter().filter(|part| {
        part["kind"] == "systemNotification" && part["_meta"].get(wire::meta::STEERING).is_none()
    });
    notices.filter_map(|part| {
        let content = &part["content"];
        content.as_str().or_else(|| content["markdown"].as_str())
    })
}

/// A message with the notices that came before it.
pub(super) fn with_notices(message: Arc<UserMessage>, notices: &[String]) -> Arc<UserMessage> {
    if notices.is_empty() {
        return message;
    }
    let mut text = notices.join("\n\n");
    text.truncate(text.floor_char_boundary(BYTES_MAX));
    // At its end: parts are referred to by their position.
    let mut message = Arc::unwrap_or_clone(message);
    message.parts.push(Part::text(format!("{BEFORE}\n{text})")));
    Arc::new(message)
}
