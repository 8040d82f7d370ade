//! What a host sends about channels: snapshots and action envelopes.

use serde_json::Value;
use wire::{Action, Origin};

use crate::ClientError;

/// A channel's state at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub resource: String,
    pub state: Value,
    pub from_seq: u64,
}

/// An action as it comes over the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub channel: String,
    pub action: Action,
    pub server_seq: u64,
    /// Set if a client dispatched it.
    pub origin: Option<Origin>,
    /// Set if the host refused it; only its sender gets that.
    pub rejection: Option<String>,
}

impl Snapshot {
    pub fn from_value(mut value: Value) -> Result<Self, ClientError> {
        let unreadable =
            || ClientError::Unreadable("a snapshot without resource, state or fromSeq".to_owned());
        let from_seq = value["fromSeq"].as_u64().ok_or_else(unreadable)?;
        let resource = value["resource"].as_str().ok_or_else(unreadable)?.to_owned();
        let state = value.get_mut("state").map(Value::take).ok_or_else(unreadable)?;
        Ok(Self { resource, state, from_seq })
    }

    /// The snapshot in the answer to a `subscribe`, if the channel has state.
    pub(crate) fn of_subscription(result: &mut Value) -> Result<Option<Self>, ClientError> {
        match result.get_mut("snapshot").map(Value::take) {
            None | Some(Value::Null) => Ok(None),
            Some(snapshot) => Self::from_value(snapshot).map(Some),
        }
    }

    /// The list of snapshots under a key of a result.
    pub(crate) fn list(result: &mut Value, key: &str) -> Result<Vec<Self>, ClientError> {
        match result.get_mut(key).map(Value::take) {
            Some(Value::Array(items)) => items.into_iter().map(Self::from_value).collect(),
            _ => Err(ClientError::Unreadable(format!("a result without `{key}`"))),
        }
    }
}

impl Envelope {
    pub fn from_value(mut value: Value) -> Result<Self, ClientError> {
        let unreadable =
            || ClientError::Unreadable("an action without channel, type or serverSeq".to_owned());
        let channel = value["channel"].as_str().ok_or_else(unreadable)?.to_owned();
        let server_seq = value["serverSeq"].as_u64().ok_or_else(unreadable)?;
        let rejection = value["rejectionReason"].as_str().map(str::to_owned);
        let origin = &value["origin"];
        let origin = match (origin["clientId"].as_str(), origin["clientSeq"].as_i64()) {
            (Some(client_id), Some(client_seq)) => {
                Some(Origin { client_id: client_id.to_owned(), client_seq })
            }
            _ => None,
        };
        let action = value.get_mut("action").map(Value::take).and_then(Action::from_record);
        Ok(Self { channel, action: action.ok_or_else(unreadable)?, server_seq, origin, rejection })
    }

    /// Was this dispatched by that client under that number?
    pub fn is_from(&self, client_id: &str, client_seq: i64) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| origin.client_id == client_id && origin.client_seq == client_seq)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_envelope_is_read_whole() {
        let envelope = Envelope::from_value(json!({
            "channel": "ahp-chat:/c",
            "action": {"type": "chat/delta", "content": "x"},
            "serverSeq": 7,
            "origin": {"clientId": "me", "clientSeq": 3},
            "rejectionReason": "no",
        }))
        .unwrap();
        assert_eq!((envelope.server_seq, envelope.action.name()), (7, "chat/delta"));
        assert!(envelope.is_from("me", 3) && !envelope.is_from("me", 4));
        assert_eq!(envelope.rejection.as_deref(), Some("no"));
    }

    #[test]
    fn an_invalid_envelope_is_an_error() {
        for bad in [json!(null), json!({}), json!({"channel": "a:", "serverSeq": 1, "action": {}})]
        {
            assert!(matches!(Envelope::from_value(bad), Err(ClientError::Unreadable(_))));
        }
        assert!(Snapshot::from_value(json!({"resource": "a:/", "state": {}})).is_err());
    }
}
