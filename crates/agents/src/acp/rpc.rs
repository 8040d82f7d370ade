//! The envelope of what an agent sends: JSON-RPC, one message on a line.
//!
//! Promises: the envelope is decoded with borrowed fields; what it carries stays raw until somebody knows its type.
//! Must not know: methods.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const AUTH_REQUIRED: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;
pub(super) const REQUEST_CANCELLED: i64 = -32800;

/// A message.
#[derive(Debug)]
pub(super) enum RpcMessage<'a> {
    Request {
        id: RequestId,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours. A request that we never made is answered with a number that we do not know.
    Response {
        id: Option<u64>,
        outcome: Result<&'a RawValue, AcpError>,
    },
}

/// The name of an agent's request: any JSON (AG-20), in one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RequestId(String);

/// Why a line is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoMessage {
    NotJson,
    NotRpc,
}

#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub(super) struct AcpError {
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl RequestId {
    pub(super) fn new(id: &Value) -> Self {
        Self(id.to_string())
    }

    /// As JSON.
    pub(super) fn as_json(&self) -> &str {
        &self.0
    }
}

impl AcpError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// The same error with what another one says of its cause: its words, and the variables that it misses.
    #[must_use]
    pub(super) fn caused_by(mut self, cause: &Self) -> Self {
        let words = cause.text();
        if !words.is_empty() {
            self.message = format!("{}: {words}", self.message);
        }
        if let Some(names) = cause.data.get("envVars") {
            let mut data = self.data.as_object().cloned().unwrap_or_default();
            data.insert("envVars".to_owned(), names.clone());
            self.data = Value::Object(data);
        }
        self
    }

    /// What it says, with the details that some agents put beside it.
    pub(super) fn text(&self) -> String {
        match self.data.get("details").and_then(Value::as_str) {
            Some(details) if !details.is_empty() => format!("{}: {details}", self.message),
            _ => self.message.clone(),
        }
    }
}

pub(super) fn decode(line: &[u8]) -> Result<RpcMessage<'_>, NoMessage> {
    if !line.trim_ascii_start().starts_with(b"{") {
        // A list would be read as an object without names.
        let other = serde_json::from_slice::<serde::de::IgnoredAny>(line);
        return Err(other.map_or(NoMessage::NotJson, |_| NoMessage::NotRpc));
    }
    let envelope: RpcEnvelope<'_> = match serde_json::from_slice(line) {
        Ok(envelope) => envelope,
        Err(error) if error.is_data() => return Err(NoMessage::NotRpc),
        Err(_) => return Err(NoMessage::NotJson),
    };
    let RpcEnvelope { id, method, params, result, error } = envelope;
    if let Some(method) = method {
        return Ok(match id {
            None => RpcMessage::Notification { method, params },
            Some(id) => RpcMessage::Request { id: read_id(id)?, method, params },
        });
    }
    let id = id.and_then(|id| id.get().parse().ok());
    match (result, error) {
        (_, Some(error)) if error.get() != "null" => {
            Ok(RpcMessage::Response { id, outcome: Err(read_error(error)) })
        }
        (Some(result), _) => Ok(RpcMessage::Response { id, outcome: Ok(result) }),
        // `"result": null` is read as no result at all; an answer has an id.
        (None, _) if id.is_some() => Ok(RpcMessage::Response { id, outcome: Ok(RawValue::NULL) }),
        (None, _) => Err(NoMessage::NotRpc),
    }
}

fn read_id(id: &RawValue) -> Result<RequestId, NoMessage> {
    let id: Value = serde_json::from_str(id.get()).map_err(|_| NoMessage::NotRpc)?;
    Ok(RequestId::new(&id))
}

fn read_error(error: &RawValue) -> AcpError {
    let read = serde_json::from_str(error.get());
    // An error that cannot be read is one all the same.
    read.unwrap_or_else(|_| AcpError::new(INTERNAL_ERROR, "an error that cannot be read"))
}

/// A request as a line.
pub(super) fn encode_request(
    id: u64,
    method: &str,
    params: &impl Serialize,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct RpcRequest<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    to_line(&RpcRequest { jsonrpc: "2.0", id, method, params })
}

/// A notification as a line.
pub(super) fn encode_notification(
    method: &str,
    params: &impl Serialize,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct RpcNotification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    to_line(&RpcNotification { jsonrpc: "2.0", method, params })
}

/// An answer as a line.
pub(super) fn encode_answer(id: &RequestId, answer: &Result<Value, AcpError>) -> Vec<u8> {
    let id = id.as_json();
    let (name, body) = match answer {
        Ok(result) => ("result", result.to_string()),
        Err(error) => {
            let mut body = serde_json::json!({"code": error.code, "message": error.message});
            if let Some(body) = body.as_object_mut()
                && !error.data.is_null()
            {
                body.insert("data".to_owned(), error.data.clone());
            }
            ("error", body.to_string())
        }
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{name}\":{body}}}\n").into_bytes()
}

fn to_line(message: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_message_is_told_apart() {
        let request = br#"{"jsonrpc":"2.0","id":0,"method":"a/b","params":{"x":1}}"#;
        match decode(request) {
            Ok(RpcMessage::Request { id, method, params }) => {
                assert_eq!((id.as_json(), &*method), ("0", "a/b"));
                assert_eq!(params.unwrap().get(), r#"{"x":1}"#);
            }
            other => panic!("{other:?}"),
        }
        for (id, spelled) in
            [(json!("a\u{e9}"), "\"a\u{e9}\""), (json!(7.5), "7.5"), (json!(-1), "-1")]
        {
            let line = json!({"id": id, "method": "m"}).to_string();
            match decode(line.as_bytes()) {
                Ok(RpcMessage::Request { id, params: None, .. }) => {
                    assert_eq!(id.as_json(), spelled)
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(
            decode(br#"{"method":"m","params":[]}"#),
            Ok(RpcMessage::Notification { .. })
        ));
        assert!(matches!(
            decode(br#"{"id":3,"result":{}}"#),
            Ok(RpcMessage::Response { id: Some(3), outcome: Ok(_) })
        ));
        assert!(matches!(
            decode(br#"{"id":3,"result":null}"#),
            Ok(RpcMessage::Response { id: Some(3), outcome: Ok(_) })
        ));
        match decode(
            br#"{"id":"x","error":{"code":-32000,"message":"no","data":{"details":"why"}}}"#,
        ) {
            Ok(RpcMessage::Response { id: None, outcome: Err(error) }) => {
                assert_eq!((error.code, error.text()), (-32000, "no: why".to_owned()));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_said() {
        for (line, why) in [
            (&b"Loading..."[..], NoMessage::NotJson),
            (b"", NoMessage::NotJson),
            (b"{\"id\":", NoMessage::NotJson),
            (b"\xff\xfe", NoMessage::NotJson),
            (b"17", NoMessage::NotRpc),
            (b"[1]", NoMessage::NotRpc),
            (br#"{"level":"info"}"#, NoMessage::NotRpc),
            (br#"{"method":7}"#, NoMessage::NotRpc),
        ] {
            match decode(line) {
                Err(found) => assert_eq!(found, why, "{line:?}"),
                Ok(message) => panic!("{message:?}"),
            }
        }
    }

    #[test]
    fn answers_name_the_request_as_it_named_itself() {
        let id = RequestId::new(&json!("q\"1"));
        let line = encode_answer(&id, &Ok(json!({"a": 1})));
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read, json!({"jsonrpc": "2.0", "id": "q\"1", "result": {"a": 1}}));
        let id = RequestId::new(&json!(0));
        let line = encode_answer(&id, &Err(AcpError::new(METHOD_NOT_FOUND, "no")));
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["error"], json!({"code": -32601, "message": "no"}));
        assert!(line.ends_with(b"\n"));
    }
}
