//! JSON-RPC messages: decode, encode, ids, error codes. Tolerant of what is received, strict in what is sent.
//!
//! One text is one message; arrays (batches) are refused (H-016). An id is answered as it was received: string, number,
//! fraction or null. The published envelope takes a request with a string id for a notification, so this one is ours.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Error codes of JSON-RPC and AHP (H-345).
pub mod code {
    pub use ahp_types::errors::ahp_error_codes::*;
    pub use ahp_types::errors::json_rpc_error_codes::*;
}

/// A request id, exactly as the peer wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    Null,
    Number(serde_json::Number),
    String(String),
}

/// Longest id of a request that is answered under it, in bytes.
const ID_BYTES_MAX: usize = 1_024;

impl Id {
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::String(text) if text.len() > ID_BYTES_MAX => None,
            Value::Null => Some(Self::Null),
            Value::Number(number) => Some(Self::Number(number)),
            Value::String(text) => Some(Self::String(text)),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// The `error` member of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// One message from the other side.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request { id: Id, method: String, params: Value },
    Notification { method: String, params: Value },
    Response { id: Id, result: Result<Value, RpcError> },
}

/// A text that is not a message, and how to answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The id to answer under; null where none could be read (H-006).
    pub id: Id,
    pub error: RpcError,
}

/// Reads one message. `depth_max` bounds nesting before anything is built (H-355).
#[allow(
    clippy::result_large_err,
    reason = "the rare case, moved once; boxing it would burden every reader"
)]
pub fn decode(text: &str, depth_max: usize) -> Result<Incoming, Malformed> {
    let malformed =
        |id, code, message: String| Malformed { id, error: RpcError::new(code, message) };
    if measure(text).depth > depth_max {
        let message = format!("JSON nested deeper than {depth_max} levels");
        return Err(malformed(Id::Null, code::INVALID_REQUEST, message));
    }
    // Depth is bounded above, by a number that is ours.
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| malformed(Id::Null, code::PARSE_ERROR, format!("not JSON: {error}")))?;
    let Value::Object(mut message) = value else {
        let what = if value.is_array() {
            "batches are not part of AHP"
        } else {
            "a message is a JSON object"
        };
        return Err(malformed(Id::Null, code::INVALID_REQUEST, what.to_owned()));
    };
    let id = match message.remove("id").map(Id::from_value) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            let what =
                format!("an id is a number, null or a string of at most {ID_BYTES_MAX} bytes");
            return Err(malformed(Id::Null, code::INVALID_REQUEST, what));
        }
    };
    let invalid = |id: Option<Id>, what: &str| {
        malformed(id.unwrap_or(Id::Null), code::INVALID_REQUEST, what.to_owned())
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(id, "`jsonrpc` must be \"2.0\""));
    }
    match message.remove("method") {
        Some(Value::String(method)) => {
            let params = message.remove("params").unwrap_or_default();
            Ok(match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            })
        }
        Some(_) => Err(invalid(id, "`method` must be a string")),
        None => {
            let Some(id) = id else { return Err(invalid(None, "neither `method` nor `id`")) };
            let result = match (message.remove("result"), message.remove("error")) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(serde_json::from_value(error).unwrap_or_else(|_| {
                    RpcError::new(code::INTERNAL_ERROR, "an error without code or message")
                })),
                _ => return Err(invalid(Some(id), "a response has either `result` or `error`")),
            };
            Ok(Incoming::Response { id, result })
        }
    }
}

/// What can be said of a JSON text before anything is built from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JsonMeasure {
    /// How deep its brackets nest.
    pub depth: usize,
    /// How many values it holds; an array or object counts [`CONTAINER_VALUES`], for that is what it takes in memory.
    pub values: usize,
    /// Bytes of the texts in it that are longer than `LONG_TEXT_BYTES`.
    pub long_text_bytes: usize,
}

/// How many values an array or object counts as, beside what is in it.
pub const CONTAINER_VALUES: usize = 5;

/// Texts above this are most likely bodies.
const LONG_TEXT_BYTES: usize = 1_024 * 1_024;

/// Measures a JSON text. One pass, nothing allocated, and no look at what is inside a string: an attachment is skipped at the
/// speed of a memory scan.
pub fn measure(text: &str) -> JsonMeasure {
    let bytes = text.as_bytes();
    let mut measure = JsonMeasure::default();
    let (mut depth, mut position) = (0usize, 0usize);
    while let Some(byte) = bytes.get(position) {
        position += 1;
        match byte {
            b'"' => {
                let end = end_of_string(bytes, position);
                if end - position > LONG_TEXT_BYTES {
                    measure.long_text_bytes += end - position;
                }
                position = end;
            }
            b'{' | b'[' => {
                depth += 1;
                measure.depth = measure.depth.max(depth);
                measure.values += CONTAINER_VALUES;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => measure.values += 1,
            _ => {}
        }
    }
    measure
}

/// The position after the quote that ends the string whose first byte is at `position`, or the end of the text.
fn end_of_string(bytes: &[u8], mut position: usize) -> usize {
    while let Some(rest) = bytes.get(position..)
        && let Some(offset) = memchr::memchr2(b'"', b'\\', rest)
    {
        if rest[offset] == b'"' {
            return position + offset + 1;
        }
        position += offset + 2; // the backslash and what it escapes
    }
    bytes.len()
}

/// Serialises a value that is known to be representable in JSON.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value)
        .unwrap_or_else(|error| unreachable!("a wire value always encodes: {error}"))
}

/// How many bytes a value takes as JSON, without encoding it.
pub fn json_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value)
        .unwrap_or_else(|error| unreachable!("a wire value always encodes: {error}"));
    counter.0
}

/// How many bytes a text takes within a string of JSON, quotes left out. Cheap: every piece of a stream passes this.
pub fn text_bytes(text: &str) -> usize {
    let escaped = text.bytes().map(|byte| {
        let short = matches!(byte, b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c);
        let long = byte < 0x20 && !short;
        usize::from(short) + 5 * usize::from(long)
    });
    text.len() + escaped.sum::<usize>()
}

/// The text of a successful response.
pub fn response<T: Serialize + ?Sized>(id: &Id, result: &T) -> Bytes {
    #[derive(Serialize)]
    struct ResponseFields<'a, T: ?Sized> {
        jsonrpc: &'static str,
        id: &'a Id,
        result: &'a T,
    }
    Bytes::from(to_json(&ResponseFields { jsonrpc: "2.0", id, result }))
}

/// The text of an error response.
pub fn error_response(id: &Id, error: &RpcError) -> Bytes {
    #[derive(Serialize)]
    struct ErrorFields<'a> {
        jsonrpc: &'static str,
        id: &'a Id,
        error: &'a RpcError,
    }
    Bytes::from(to_json(&ErrorFields { jsonrpc: "2.0", id, error }))
}

/// The text of a notification.
pub fn notification<T: Serialize + ?Sized>(method: &str, params: &T) -> Bytes {
    #[derive(Serialize)]
    struct NotificationFields<'a, T: ?Sized> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a T,
    }
    Bytes::from(to_json(&NotificationFields { jsonrpc: "2.0", method, params }))
}

/// The text of a request.
pub fn request<T: Serialize + ?Sized>(id: u64, method: &str, params: &T) -> Bytes {
    #[derive(Serialize)]
    struct RequestFields<'a, T: ?Sized> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a T,
    }
    Bytes::from(to_json(&RequestFields { jsonrpc: "2.0", id, method, params }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_they_are_encoded() {
        let all: String = (0..300).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"quoted\" \\ \n\r\t\u{8}\u{c}", "\u{0}\u{1f}\u{7f}é😀", &all]
        {
            let encoded = to_json(text);
            assert_eq!(text_bytes(text), encoded.len() - 2, "{text:?}");
            let value = serde_json::json!({"text": [text, 1.5, null]});
            assert_eq!(json_bytes(&value), to_json(&value).len());
        }
    }

    fn answer(text: &str) -> String {
        match decode(text, 128) {
            Ok(Incoming::Request { id, .. }) => {
                String::from_utf8(response(&id, &Value::Null).to_vec()).unwrap()
            }
            Ok(other) => format!("{other:?}"),
            Err(bad) => String::from_utf8(error_response(&bad.id, &bad.error).to_vec()).unwrap(),
        }
    }

    #[test]
    fn an_id_is_answered_as_it_was_received() {
        for id in ["7", "\"seven\"", "null", "1.5", "-3", "18446744073709551615"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            assert_eq!(answer(&text), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#));
        }
    }

    #[test]
    fn invalid_messages_are_answered_with_their_code() {
        let code = |text: &str| decode(text, 128).map_err(|bad| bad.error.code);
        assert_eq!(code("{"), Err(code::PARSE_ERROR));
        assert_eq!(code("[]"), Err(code::INVALID_REQUEST));
        assert_eq!(code("7"), Err(code::INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0"}"#), Err(code::INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), Err(code::INVALID_REQUEST));
        assert_eq!(
            code(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
            Err(code::INVALID_REQUEST)
        );
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":5}"#), Err(code::INVALID_REQUEST));
    }

    #[test]
    fn a_text_is_measured_without_a_look_into_its_strings() {
        let measured = |text: &str| measure(text).values;
        assert_eq!(measured("1"), 0);
        assert_eq!(measured("[1,2,3]"), CONTAINER_VALUES + 2);
        assert_eq!(measured(r#"{"a":",,,[[["}"#), CONTAINER_VALUES);
        assert_eq!(measured("[[],[]]"), 3 * CONTAINER_VALUES + 1);
        let long = "x".repeat(LONG_TEXT_BYTES);
        assert_eq!(
            measure(&format!(r#"["short","{long}","{long}y"]"#)).long_text_bytes,
            2 * (LONG_TEXT_BYTES + 1) + 1
        );
    }

    #[test]
    fn an_id_is_answered_only_if_it_is_short() {
        let request = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#);
        assert!(decode(&request(&"i".repeat(ID_BYTES_MAX)), 8).is_ok());
        let refused = decode(&request(&"i".repeat(ID_BYTES_MAX + 1)), 8).unwrap_err();
        assert_eq!((refused.id, refused.error.code), (Id::Null, code::INVALID_REQUEST));
        assert!(refused.error.message.contains("1024"));
    }

    #[test]
    fn depth_is_bounded_before_anything_is_built() {
        let nested = |levels: usize| {
            let open = "[".repeat(levels - 1);
            let close = "]".repeat(levels - 1);
            format!(r#"{{"jsonrpc":"2.0","method":"x","params":{open}{close}}}"#)
        };
        assert!(decode(&nested(128), 128).is_ok());
        assert_eq!(decode(&nested(129), 128).unwrap_err().error.code, code::INVALID_REQUEST);
        assert!(decode(r#"{"jsonrpc":"2.0","method":"[[[[\"[["}"#, 1).is_ok());
        for (text, depth) in [
            ("", 0),
            ("[", 1),
            ("]][", 1),
            (r#""["#, 0),
            (r#""\"#, 0),
            (r#"["\\",["\"]"]]"#, 2),
            (r#"{"a":"\u005b","b":[[]]}"#, 3),
        ] {
            assert_eq!(measure(text).depth, depth, "{text}");
        }
    }
}
