//! A chat that a message refers to: the words of another conversation, quoted for the model and marked as such.
//!
//! It is stored as the attachment it came as. What was said there is read and frozen by whoever can read chats; here it is
//! found in a part and given its form.

use serde_json::Value;

use crate::part::Part;

/// A reference to a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatReference<'a> {
    pub uri: &'a str,
    /// The turn that its transcript ends with; none if nothing was said there yet.
    pub end_turn: Option<&'a str>,
    pub label: &'a str,
}

impl<'a> ChatReference<'a> {
    /// The reference in a part, if it is one.
    pub fn of(part: &'a Part) -> Option<Self> {
        if part.kind() != "ahp-attachment" {
            return None;
        }
        let attachment = part.object().get("attachment")?;
        let text = |key: &str| attachment.get(key).and_then(Value::as_str);
        (text("type")? == "chat").then_some(())?;
        Some(Self {
            uri: text("resource")?,
            end_turn: text("endTurn"),
            label: text("label").unwrap_or(""),
        })
    }
}

/// The part with the turn that its transcript is to end with, unless it names one; other parts stay as they are.
pub fn with_end_turn(part: Part, end_turn: &str) -> Part {
    if ChatReference::of(&part).is_none_or(|chat| chat.end_turn.is_some()) {
        return part;
    }
    let mut value = part.into_value();
    value["attachment"]["endTurn"] = Value::String(end_turn.to_owned());
    Part::new(value)
}
