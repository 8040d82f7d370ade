//! What servers add to an answer over Chat Completions and want back with it: thoughts, and signatures of them.
//!
//! DeepSeek and Moonshot refuse a conversation in which a message with calls lacks its `reasoning_content`, Google one in which a
//! call lacks its `extra_content`; OpenRouter hands on what its vendors want back in `reasoning_details`.
//!
//! Promises: what came in pieces goes back whole, under the name it came by; what a server did not add is not made up.
//! Must not know: whether a server wants it back.

use serde_json::{Map, Value, json};

use super::super::ProviderError;
use super::super::answer_stream::invalid;

/// More details of thoughts than this in one answer, texts put together, are no answer.
const DETAILS_MAX: usize = 1_024;

const REASONING: &str = "reasoning_content";
const DETAILS: &str = "reasoning_details";
const EXTRA: &str = "extra_content";

/// The fields of a message that are not added by a server.
const OWN_FIELDS: &[&str] = &["role", "content", "tool_calls"];

/// The texts of a detail, which come in pieces.
const GROWING: &[&str] = &["text", "summary"];

/// What was added to one answer.
#[derive(Debug, Default)]
pub(super) struct Additions {
    reasoning: String,
    details: Vec<Map<String, Value>>,
    extra: Option<Value>,
}

impl Additions {
    /// More of what the model thought.
    pub(super) fn add_reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }

    /// Details of thoughts: a piece that goes on with the one before it becomes a part of it.
    pub(super) fn add_details(
        &mut self,
        pieces: impl IntoIterator<Item = Value>,
    ) -> Result<(), ProviderError> {
        for piece in pieces {
            let Value::Object(piece) = piece else {
                continue; // not a detail: there is nothing in it to send back
            };
            let is_full = self.details.len() == DETAILS_MAX;
            match self.details.last_mut() {
                Some(last) if goes_on(last, &piece) => extend(last, piece),
                Some(_) if is_full => return Err(invalid("more details than an answer can have")),
                Some(_) | None => self.details.push(piece),
            }
        }
        Ok(())
    }

    /// What a server added to the message as a whole; of several the last one counts.
    pub(super) fn set_extra(&mut self, extra: Value) {
        self.extra = Some(extra);
    }

    /// Whether nothing was added, to the message or to one of its calls.
    pub(super) fn is_empty(&self, calls: &[Option<Value>]) -> bool {
        let has_none = self.reasoning.is_empty() && self.details.is_empty() && self.extra.is_none();
        has_none && calls.iter().all(Option::is_none)
    }

    /// Adds it to the message that it came with.
    pub(super) fn apply(self, message: &mut Value, calls: Vec<Option<Value>>) {
        if !self.reasoning.is_empty() {
            message[REASONING] = json!(self.reasoning);
        }
        if !self.details.is_empty() {
            message[DETAILS] = self.details.into_iter().map(Value::Object).collect();
        }
        if let Some(extra) = self.extra {
            message[EXTRA] = extra;
        }
        let sent =
            message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
        for (call, extra) in sent.zip(calls) {
            if let Some(extra) = extra {
                call[EXTRA] = extra;
            }
        }
    }
}

/// Whether a piece is more of the detail before it. What a server does not say is the same.
fn goes_on(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let differs = |name: &str| match (last.get(name), piece.get(name)) {
        (Some(Value::Null) | None, _) | (_, Some(Value::Null) | None) => false,
        (Some(ours), Some(other)) => ours != other,
    };
    let grows = |detail: &Map<String, Value>| GROWING.iter().any(|name| detail.contains_key(*name));
    // A signature ends what it signs, and may come by itself.
    let is_signed = last.get("signature").is_some_and(Value::is_string);
    grows(last) && !is_signed && !["type", "index", "id"].into_iter().any(differs)
}

fn extend(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if GROWING.contains(&name.as_str()) =>
            {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

/// Whether a message holds something that a server added.
pub(crate) fn has_additions(message: &Value) -> bool {
    let mut fields = message.as_object().into_iter().flat_map(Map::keys);
    let mut calls = message["tool_calls"].as_array().into_iter().flatten();
    fields.any(|name| !OWN_FIELDS.contains(&name.as_str()))
        || calls.any(|call| !call[EXTRA].is_null())
}

/// Gives a message of the model empty thoughts, if it has none: servers that want them back take these for messages that another
/// model wrote, or that were told in other words.
pub(super) fn add_blank_reasoning(message: &mut Value) {
    if message[REASONING].is_null() {
        message[REASONING] = json!("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[Value]) -> Value {
        let mut added = Additions::default();
        for piece in pieces {
            added.add_details([piece.clone()]).unwrap();
        }
        let mut message = json!({"role": "assistant"});
        added.apply(&mut message, Vec::new());
        message[DETAILS].take()
    }

    #[test]
    fn details_that_came_in_pieces_go_back_whole() {
        let text = |text: &str, index: u64| json!({"type": "reasoning.text", "text": text, "index": index, "format": "f"});
        let sealed = json!({"type": "reasoning.encrypted", "data": "AA", "id": "e1", "index": 2});
        let signed = json!({"type": "reasoning.text", "signature": "s", "index": 0});
        assert_eq!(
            joined(&[
                text("a", 0),
                text("b", 0),
                signed.clone(),
                text("c", 0),
                text("d", 1),
                sealed.clone(),
                sealed.clone(),
            ]),
            json!([
                {"type": "reasoning.text", "text": "ab", "index": 0, "format": "f", "signature": "s"},
                text("c", 0),
                text("d", 1),
                sealed.clone(),
                sealed,
            ])
        );
        let summary = |text: &str| json!({"type": "reasoning.summary", "summary": text});
        let whole = json!([{"type": "reasoning.summary", "summary": "xy"}]);
        assert_eq!(joined(&[summary("x"), json!(1), summary("y")]), whole);
    }

    #[test]
    fn details_have_a_bound() {
        let mut added = Additions::default();
        let detail = |n: usize| json!({"type": "reasoning.encrypted", "id": n});
        added.add_details((0..DETAILS_MAX).map(detail)).unwrap();
        added.add_details([detail(DETAILS_MAX)]).unwrap_err();
    }

    #[test]
    fn what_was_added_is_told_from_what_is_ours() {
        let call =
            json!({"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}});
        let own = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        assert!(!has_additions(&own));
        let mut signed = own.clone();
        signed["tool_calls"][0][EXTRA] = json!({"google": {"thought_signature": "s"}});
        assert!(has_additions(&signed));
        let mut thought = own;
        add_blank_reasoning(&mut thought);
        assert!(has_additions(&thought) && thought[REASONING] == "");
    }
}
