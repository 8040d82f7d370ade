//! Actions: what changes state. Held as the JSON object that was received or is sent, so that unknown fields survive.
//!
//! A client's action is checked against the published types and then used from its own JSON; the
//! host's own are built here.
//! `table.rs` lists them all; `kind.rs` is what can be asked of a row.

mod kind;
mod payload;
mod table;

pub use kind::{
    ActionKind, AllowedSender, AnnotationsAction, ChangesetAction, ChannelKind, ChatAction,
    ClientAction, ResourceWatchAction, RootAction, SessionAction, TerminalAction,
};
pub(crate) use table::with_action_table;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::bounds::OverBound;
use crate::{ChannelUri, Object};

/// The field that names an action's kind.
pub(crate) const TYPE_FIELD: &str = "type";

/// One action: its kind and its whole JSON object (the `type` field included).
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub kind: ActionKind,
    pub body: Object,
}

/// Who dispatched an accepted client action (H-063).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub client_id: String,
    pub client_seq: i64,
}

/// Why a JSON value is not an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    #[error("an action is a JSON object with a `type`")]
    NotAnAction,
    #[error("`{0}` does not have the fields this action needs")]
    BadPayload(String),
    #[error(transparent)]
    OverBound(#[from] OverBound),
}

impl Action {
    /// Reads a client's action. A known type with a payload its type does not allow is refused, never passed on as
    /// something unknown (H-078); a type that the table does not list becomes [`ActionKind::Unknown`].
    pub fn decode(value: Value) -> Result<Self, ActionError> {
        let kind = check_payload(&value)?;
        match value {
            Value::Object(body) => Ok(Self { kind, body }),
            _ => Err(ActionError::NotAnAction),
        }
    }

    /// Reads an action that this host recorded itself: already checked, so only its type is read.
    pub fn from_record(value: Value) -> Option<Self> {
        let kind = ActionKind::from_name(value.get("type")?.as_str()?);
        match value {
            Value::Object(body) => Some(Self { kind, body }),
            _ => None,
        }
    }

    /// An action of the host's own making. `fields` is a JSON object without `type`.
    pub fn host(kind: ActionKind, fields: Value) -> Self {
        debug_assert!(kind != ActionKind::Unknown, "the host sends what the table lists");
        let mut body = Object::new();
        body.insert("type".to_owned(), Value::String(kind.name().to_owned()));
        debug_assert!(fields.is_object(), "{}: fields are an object", kind.name());
        if let Value::Object(fields) = fields {
            // An absent field is left out (H-052); what an agent sent along cannot make another action of it.
            let fields =
                fields.into_iter().filter(|(key, value)| !value.is_null() && key != "type");
            body.extend(fields);
        }
        Self { kind, body }
    }

    pub fn delta(turn_id: &str, part_id: &str, content: String) -> Self {
        Self::host(
            ActionKind::ChatDelta,
            json!({"turnId": turn_id, "partId": part_id, "content": content}),
        )
    }

    pub fn reasoning(turn_id: &str, part_id: &str, content: String) -> Self {
        Self::host(
            ActionKind::ChatReasoning,
            json!({"turnId": turn_id, "partId": part_id, "content": content}),
        )
    }

    pub fn name(&self) -> &str {
        match self.kind {
            ActionKind::Unknown => self.text("type").unwrap_or(""),
            known => known.name(),
        }
    }

    pub fn get(&self, field: &str) -> Option<&Value> {
        self.body.get(field)
    }

    /// A field whose JSON `null` means the same as its absence (H-052 for what comes in).
    pub fn present(&self, field: &str) -> Option<&Value> {
        self.body.get(field).filter(|value| !value.is_null())
    }

    pub fn text(&self, field: &str) -> Option<&str> {
        self.body.get(field).and_then(Value::as_str)
    }

    pub fn flag(&self, field: &str) -> Option<bool> {
        self.body.get(field).and_then(Value::as_bool)
    }

    pub fn integer(&self, field: &str) -> Option<i64> {
        self.body.get(field).and_then(Value::as_i64)
    }
}

/// Checks an action against the published type of its kind and returns the kind.
pub fn check_payload(value: &Value) -> Result<ActionKind, ActionError> {
    let name = value.get("type").and_then(Value::as_str);
    let kind = ActionKind::from_name(name.ok_or(ActionError::NotAnAction)?);
    if payload::is_readable(kind, value) {
        Ok(kind)
    } else {
        Err(ActionError::BadPayload(kind.name().to_owned()))
    }
}

/// An `action` notification, encoded once: the frame every subscriber gets and, inside it, the envelope that the
/// journal stores and a replay repeats. Both share one buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedAction {
    pub frame: Bytes,
    pub envelope: Bytes,
}

const FRAME_HEAD: &[u8] = br#"{"jsonrpc":"2.0","method":"action","params":"#;

/// Encodes an envelope. `rejection` is set only for what goes back to its sender (H-066, H-067).
pub fn encode(
    channel: &ChannelUri,
    action: &Object,
    server_seq: u64,
    origin: Option<&Origin>,
    rejection: Option<&str>,
) -> EncodedAction {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct EnvelopeFields<'a> {
        channel: &'a str,
        action: &'a Object,
        server_seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<&'a Origin>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rejection_reason: Option<&'a str>,
    }
    let envelope = EnvelopeFields {
        channel: channel.as_str(),
        action,
        server_seq,
        origin,
        rejection_reason: rejection,
    };
    let mut buffer = Vec::with_capacity(384);
    buffer.extend_from_slice(FRAME_HEAD);
    if let Err(error) = serde_json::to_writer(&mut buffer, &envelope) {
        unreachable!("an envelope always encodes: {error}");
    }
    buffer.push(b'}');
    // Exactly as large as it is: the tail holds thousands of these.
    let frame = Bytes::from(buffer.into_boxed_slice());
    let envelope = frame.slice(FRAME_HEAD.len()..frame.len() - 1);
    EncodedAction { frame, envelope }
}

/// The frame around an envelope that was encoded before.
pub fn frame_of(envelope: &[u8]) -> Bytes {
    let mut buffer = Vec::with_capacity(FRAME_HEAD.len() + envelope.len() + 1);
    buffer.extend_from_slice(FRAME_HEAD);
    buffer.extend_from_slice(envelope);
    buffer.push(b'}');
    Bytes::from(buffer)
}

/// The action inside a recorded envelope.
pub fn from_envelope(envelope: &[u8]) -> Option<Action> {
    let mut value: Value = serde_json::from_slice(envelope).ok()?;
    Action::from_record(value.get_mut("action")?.take())
}

/// A value as JSON; see [`crate::rpc::to_json`].
pub fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value)
        .unwrap_or_else(|error| unreachable!("a wire value always encodes: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::decode_dispatch;
    use crate::{Incoming, rpc};

    fn turn_started(data: &str) -> Value {
        let attachment = json!({"type": "embeddedResource", "label": "a", "contentType": "image/png", "data": data});
        let message = json!({"text": "x", "origin": {"kind": "user"}, "attachments": [attachment]});
        json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-01-01T00:00:00Z", "message": message})
    }

    #[test]
    fn a_large_attachment_is_moved_from_the_message_into_the_action() {
        let params = json!({"channel": "ahp-chat:/1", "clientSeq": 1, "action": turn_started(&"QUJD".repeat(100_000))});
        let text =
            json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}).to_string();
        let Ok(Incoming::Notification { params, .. }) = rpc::decode(&text, 128) else {
            panic!("a notification")
        };
        let address = |message: &Value| {
            let data = message["attachments"][0]["data"].as_str();
            data.map(|data| (data.as_ptr(), data.len()))
        };
        let before = address(&params["action"]["message"]);
        let dispatch = decode_dispatch(params).unwrap();
        let action = Action::decode(dispatch.action).unwrap();
        assert_eq!(address(&action.body["message"]), before);
        assert_eq!(before.map(|(_, len)| len), Some(400_000));
    }

    #[test]
    fn a_long_text_makes_no_payload_right_and_none_wrong() {
        let long = "x".repeat(100_000);
        let good = turn_started(&long);
        assert_eq!(check_payload(&good), Ok(ActionKind::ChatTurnStarted));
        assert_eq!(good, turn_started(&long));
        let refused = Err(ActionError::BadPayload("chat/turnStarted".to_owned()));
        for (field, value) in
            [("message", json!(long)), ("turnId", json!([long])), ("startedAt", json!(null))]
        {
            let mut bad = turn_started("");
            bad[field] = value.clone();
            assert_eq!(check_payload(&bad), refused, "{field}");
            assert_eq!(bad[field], value);
        }
    }

    #[test]
    fn an_unknown_type_has_its_name_and_a_value_without_type_is_no_action() {
        let action = Action::decode(json!({"type": "x-later/thing", "n": 1})).unwrap();
        assert_eq!((action.kind, action.name()), (ActionKind::Unknown, "x-later/thing"));
        for bad in [json!(null), json!([]), json!({}), json!({"type": 7}), json!("chat/delta")] {
            assert_eq!(Action::decode(bad), Err(ActionError::NotAnAction));
        }
    }
}
