//! Actions: what changes state. Kept as the JSON object that came or goes, so that fields nobody here knows survive.
//!
//! A client's action is checked by the published types and then used from its own JSON; the host's own are built here.

use ahp_types::actions::{ActionType, StateAction};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{ChannelUri, Object, rpc};

/// One action: its type and its whole JSON object (the `type` field included).
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub kind: ActionType,
    pub body: Object,
}

/// Who dispatched an accepted client action (H-063).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub client_id: String,
    pub client_seq: i64,
}

/// Why a JSON value is no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    #[error("an action is a JSON object with a `type`")]
    Shapeless,
    #[error("`{0}` does not have the fields this action needs")]
    BadPayload(String),
}

impl Action {
    /// Takes a client's action. A known type with a payload its type does not allow is refused, never passed on as
    /// something unknown (H-078); a type nobody knows comes back with `ActionType::Unknown`.
    pub fn decode(value: Value) -> Result<Self, ActionError> {
        let name = value
            .get("type")
            .and_then(Value::as_str)
            .ok_or(ActionError::Shapeless)?
            .to_owned();
        let kind = kind_of(&name);
        if !matches!(kind, ActionType::Unknown(_)) {
            let typed: Result<StateAction, _> = serde_json::from_value(value.clone());
            if !matches!(typed, Ok(ref action) if !matches!(action, StateAction::Unknown(_))) {
                return Err(ActionError::BadPayload(name));
            }
        }
        match value {
            Value::Object(body) => Ok(Self { kind, body }),
            _ => Err(ActionError::Shapeless),
        }
    }

    /// Takes an action that this host recorded itself: already checked, so only its type is read.
    pub fn recorded(value: Value) -> Option<Self> {
        let kind = kind_of(value.get("type")?.as_str()?);
        match value {
            Value::Object(body) => Some(Self { kind, body }),
            _ => None,
        }
    }

    /// An action of the host's own making. `fields` is a JSON object without `type`.
    pub fn host(name: &str, fields: Value) -> Self {
        let mut body = Object::new();
        body.insert("type".to_owned(), Value::String(name.to_owned()));
        if let Value::Object(fields) = fields {
            // An absent field is left out (H-052); what an agent sent along cannot make another action of it.
            let fields = fields
                .into_iter()
                .filter(|(key, value)| !value.is_null() && key != "type");
            body.extend(fields);
        }
        Self {
            kind: kind_of(name),
            body,
        }
    }

    pub fn delta(turn_id: &str, part_id: &str, content: String) -> Self {
        Self::host(
            "chat/delta",
            json!({"turnId": turn_id, "partId": part_id, "content": content}),
        )
    }

    pub fn reasoning(turn_id: &str, part_id: &str, content: String) -> Self {
        Self::host(
            "chat/reasoning",
            json!({"turnId": turn_id, "partId": part_id, "content": content}),
        )
    }

    pub fn name(&self) -> &str {
        self.text("type").unwrap_or("")
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

/// The action type a wire name means.
pub fn kind_of(name: &str) -> ActionType {
    serde_json::from_value(Value::String(name.to_owned()))
        .unwrap_or_else(|_| ActionType::Unknown(name.to_owned()))
}

/// An `action` notification, encoded once: the frame every subscriber gets and, inside it, the envelope that the
/// journal keeps and a replay repeats. Both share one buffer.
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
    struct Envelope<'a> {
        channel: &'a str,
        action: &'a Object,
        server_seq: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<&'a Origin>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rejection_reason: Option<&'a str>,
    }
    let envelope = Envelope {
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
    // Exactly as large as it is: the tail keeps thousands of these.
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
    Action::recorded(value.get_mut("action")?.take())
}

/// A value as JSON; see [`rpc::to_json`].
pub fn to_value<T: Serialize>(value: &T) -> Value {
    serde_json::from_slice(&rpc::to_json(value)).unwrap_or(Value::Null)
}
