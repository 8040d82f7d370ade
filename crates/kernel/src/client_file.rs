//! Files that only the client which sends a message can read: it is asked for them before the message is composed, so that what
//! the message means is known when it is recorded, and stays known when the client is gone.
//!
//! Promises: a client that does not answer, or not well, costs the file and never the message.

use std::sync::Arc;

use agent_api::{ClientFileCall, ClientFileFacts};
use serde_json::{Value, json};

use crate::rendered::RequestEnd;

/// How long a client may take to find out whether its files may be used: its user may be asked.
const PERMISSION_MS: u64 = 120_000;

/// How long a text among the facts of a file may be.
const FACT_BYTES_MAX: usize = 1_024;

/// A file that a client was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFile {
    pub uri: String,
    pub read: Result<ClientFileBody, ClientFileError>,
}

/// What a client read, as it was sent. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientFileBody {
    Base64(Arc<str>),
    Text(Arc<str>),
}

/// What the host wants to know of a client's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientQuestion {
    /// What is in a directory.
    List { uri: String },
    /// What is in a file.
    Read { uri: String },
    /// Anything else that can be done with files.
    Use(ClientFileCall),
    /// Whether they may be used: the client may ask its user.
    Permission { uri: String, write: bool },
}

/// What a client answered about its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAnswer {
    Entries(Vec<ListedEntry>),
    Body(ClientFileBody),
    Facts(ClientFileFacts),
    /// It is done, or allowed.
    Done,
}

/// One entry of a client's directory, by its name as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    pub name: String,
    pub is_directory: bool,
}

/// Why a file of a client is not there, in words for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientFileError {
    #[error("the client did not answer in time")]
    Timeout,
    #[error("the client is gone")]
    PeerGone,
    #[error("the client refused to read it (error {0})")]
    Refused(i32),
    #[error("the client sent an invalid response")]
    Malformed,
    #[error("it has more than the {0} bytes that are read from a client")]
    TooLarge(usize),
    #[error("no more than {0} files of a message are read from its client")]
    TooMany(usize),
    #[error("the client has too many questions to answer already")]
    Busy,
}

impl ClientFile {
    /// The result of a request for a file; an answer may have at most so many bytes.
    pub(crate) fn of_reply(uri: String, reply: RequestEnd, bytes_max: usize) -> Self {
        let value = value_of(reply, bytes_max);
        let read = value.and_then(|value| body_in(value).ok_or(ClientFileError::Malformed));
        Self { uri, read }
    }
}

impl ClientQuestion {
    pub(crate) fn uri(&self) -> &str {
        match self {
            Self::List { uri } | Self::Read { uri } | Self::Permission { uri, .. } => uri,
            Self::Use(call) => call.uris().0,
        }
    }

    /// The method that asks it.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::List { .. } | Self::Use(ClientFileCall::List { .. }) => "resourceList",
            Self::Read { .. } | Self::Use(ClientFileCall::Read { .. }) => "resourceRead",
            Self::Use(ClientFileCall::Resolve { .. }) => "resourceResolve",
            Self::Use(ClientFileCall::Write { .. }) => "resourceWrite",
            Self::Use(ClientFileCall::Copy { .. }) => "resourceCopy",
            Self::Use(ClientFileCall::Move { .. }) => "resourceMove",
            Self::Use(ClientFileCall::Delete { .. }) => "resourceDelete",
            Self::Use(ClientFileCall::MakeDirectory { .. }) => "resourceMkdir",
            Self::Permission { .. } => "resourceRequest",
        }
    }

    /// Its parameters beside the channel.
    pub(crate) fn params(&self) -> Value {
        match self {
            Self::Use(ClientFileCall::Write { uri, text, if_match, create_only }) => {
                let mut params = json!({"uri": uri, "data": text, "encoding": "utf-8"});
                if let Some(etag) = if_match {
                    params["ifMatch"] = json!(etag);
                }
                if *create_only {
                    params["createOnly"] = json!(true);
                }
                params
            }
            Self::Use(
                ClientFileCall::Copy { source, destination }
                | ClientFileCall::Move { source, destination },
            ) => json!({"source": source, "destination": destination, "failIfExists": true}),
            Self::Use(ClientFileCall::Delete { uri, recursive }) => {
                json!({"uri": uri, "recursive": recursive})
            }
            Self::Permission { uri, write } => json!({"uri": uri, "read": true, "write": write}),
            Self::List { .. } | Self::Read { .. } | Self::Use(_) => json!({"uri": self.uri()}),
        }
    }

    /// How long it may take: who asks its user takes longer.
    pub(crate) fn time_ms(&self, usual_ms: u64) -> u64 {
        match self {
            Self::Permission { .. } => usual_ms.max(PERMISSION_MS),
            Self::List { .. } | Self::Read { .. } | Self::Use(_) => usual_ms,
        }
    }

    /// The result of a request; an answer may have at most so many bytes.
    pub(crate) fn answer_of(
        self,
        reply: RequestEnd,
        bytes_max: usize,
    ) -> Result<ClientAnswer, ClientFileError> {
        match self {
            Self::Read { uri } | Self::Use(ClientFileCall::Read { uri }) => {
                ClientFile::of_reply(uri, reply, bytes_max).read.map(ClientAnswer::Body)
            }
            Self::List { .. } | Self::Use(ClientFileCall::List { .. }) => {
                let value = value_of(reply, bytes_max)?;
                entries_in(&value).map(ClientAnswer::Entries)
            }
            Self::Use(ClientFileCall::Resolve { .. }) => {
                let value = value_of(reply, bytes_max)?;
                facts_in(&value).map(ClientAnswer::Facts)
            }
            Self::Use(_) | Self::Permission { .. } => {
                value_of(reply, bytes_max).map(|_| ClientAnswer::Done)
            }
        }
    }
}

fn value_of(reply: RequestEnd, bytes_max: usize) -> Result<Value, ClientFileError> {
    match reply {
        RequestEnd::Timeout => Err(ClientFileError::Timeout),
        RequestEnd::PeerGone => Err(ClientFileError::PeerGone),
        RequestEnd::Error(error) => Err(ClientFileError::Refused(error.code)),
        RequestEnd::Result { bytes, .. } if bytes > bytes_max => {
            Err(ClientFileError::TooLarge(bytes_max))
        }
        RequestEnd::Result { value, .. } => Ok(value),
    }
}

/// The files and directories in a `ResourceListResult`; what is neither is left out.
fn entries_in(result: &Value) -> Result<Vec<ListedEntry>, ClientFileError> {
    let entries = result
        .get("entries")
        .and_then(Value::as_array)
        .ok_or(ClientFileError::Malformed)?
        .iter()
        .filter_map(|entry| {
            Some(ListedEntry {
                name: entry.get("name")?.as_str()?.to_owned(),
                is_directory: match entry.get("type")?.as_str()? {
                    "file" => false,
                    "directory" => true,
                    _ => return None,
                },
            })
        });
    Ok(entries.collect())
}

/// What a `ResourceResolveResult` says. It is read by a model: what it says of a kind or a version is short.
fn facts_in(result: &Value) -> Result<ClientFileFacts, ClientFileError> {
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let (kind, etag) = (text("type"), text("etag"));
    let is_long = |text: Option<&str>| text.is_some_and(|text| text.len() > FACT_BYTES_MAX);
    if is_long(kind) || is_long(etag) {
        return Err(ClientFileError::Malformed);
    }
    let kind = kind.ok_or(ClientFileError::Malformed)?;
    Ok(ClientFileFacts {
        kind: kind.to_owned(),
        size: result.get("size").and_then(Value::as_u64),
        etag: etag.map(str::to_owned),
    })
}

/// The body in a `ResourceReadResult`. One that does not say how it is encoded is base64.
fn body_in(mut result: Value) -> Option<ClientFileBody> {
    let data = match result.get_mut("data").map(Value::take) {
        Some(Value::String(data)) => Arc::from(data),
        _ => return None,
    };
    match result.get("encoding") {
        None | Some(Value::Null) => Some(ClientFileBody::Base64(data)),
        Some(Value::String(encoding)) => match encoding.as_str() {
            "base64" => Some(ClientFileBody::Base64(data)),
            "utf-8" => Some(ClientFileBody::Text(data)),
            _ => None,
        },
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wire::RpcError;

    use super::*;
    use crate::host_guard::HostGuard;

    fn read(reply: RequestEnd) -> Result<ClientFileBody, ClientFileError> {
        ClientFile::of_reply("x-y:/a".to_owned(), reply, 100).read
    }

    fn result(value: Value) -> RequestEnd {
        RequestEnd::Result { value, bytes: 100, hold: HostGuard::default() }
    }

    #[test]
    fn both_encodings_are_read_and_nothing_else() {
        let base64 = Ok(ClientFileBody::Base64("aGk=".into()));
        assert_eq!(read(result(json!({"data": "aGk="}))), base64);
        assert_eq!(read(result(json!({"data": "aGk=", "encoding": "base64"}))), base64);
        let text = json!({"data": "hi", "encoding": "utf-8", "contentType": "text/plain"});
        assert_eq!(read(result(text)), Ok(ClientFileBody::Text("hi".into())));
        for strange in [
            json!(null),
            json!([]),
            json!({}),
            json!({"data": 5}),
            json!({"data": "x", "encoding": "rot13"}),
            json!({"data": "x", "encoding": 5}),
        ] {
            assert_eq!(read(result(strange)), Err(ClientFileError::Malformed));
        }
    }

    #[test]
    fn each_question_is_a_method_with_its_parameters() {
        let (uri, to) = ("x-y:/a".to_owned(), "x-y:/b".to_owned());
        let write = ClientFileCall::Write {
            uri: uri.clone(),
            text: "t".to_owned(),
            if_match: Some("1".to_owned()),
            create_only: false,
        };
        let copy = ClientFileCall::Copy { source: uri.clone(), destination: to };
        let delete = ClientFileCall::Delete { uri: uri.clone(), recursive: true };
        let written = json!({"uri": uri, "data": "t", "encoding": "utf-8", "ifMatch": "1"});
        let copied = json!({"source": uri, "destination": "x-y:/b", "failIfExists": true});
        for (call, method, params) in [
            (write, "resourceWrite", written),
            (copy, "resourceCopy", copied),
            (delete, "resourceDelete", json!({"uri": uri, "recursive": true})),
        ] {
            let question = ClientQuestion::Use(call);
            assert_eq!((question.method(), question.params()), (method, params));
            let done = question.answer_of(result(json!({})), 100);
            assert_eq!(done, Ok(ClientAnswer::Done));
        }
        let resolve = || ClientQuestion::Use(ClientFileCall::Resolve { uri: uri.clone() });
        let facts = json!({"uri": uri, "type": "file", "size": 3, "etag": "1"});
        let expected =
            ClientFileFacts { kind: "file".to_owned(), size: Some(3), etag: Some("1".to_owned()) };
        let answer = resolve().answer_of(result(facts), 100);
        assert_eq!(answer, Ok(ClientAnswer::Facts(expected)));
        let strange = resolve().answer_of(result(json!({"size": "3"})), 100);
        assert_eq!(strange, Err(ClientFileError::Malformed));
        let etag = "1".repeat(FACT_BYTES_MAX + 1);
        let long = resolve().answer_of(result(json!({"type": "file", "etag": etag})), 100);
        assert_eq!(long, Err(ClientFileError::Malformed));
        let permission = ClientQuestion::Permission { uri: uri.clone(), write: true };
        assert_eq!(permission.method(), "resourceRequest");
        assert!(permission.time_ms(5_000) > resolve().time_ms(5_000));
    }

    #[test]
    fn whatever_goes_wrong_has_a_reason() {
        let large = RequestEnd::Result {
            value: json!({"data": "aGk="}),
            bytes: 101,
            hold: HostGuard::default(),
        };
        let refused = RequestEnd::Error(RpcError::new(-32601, "no such method"));
        for (reply, expected) in [
            (large, ClientFileError::TooLarge(100)),
            (refused, ClientFileError::Refused(-32601)),
            (RequestEnd::Timeout, ClientFileError::Timeout),
            (RequestEnd::PeerGone, ClientFileError::PeerGone),
        ] {
            assert_eq!(read(reply), Err(expected));
        }
    }
}
