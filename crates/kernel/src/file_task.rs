//! Work on files that a client asks the host for, and what comes of it (H-250).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use wire::methods::ResourceCall;
use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::frame::Content;

/// What is to be done with files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileTask {
    /// Who asks: what is granted is granted to it alone.
    pub client_id: String,
    pub call: Arc<ResourceCall>,
    /// The most that an answer may take.
    pub bytes_max: usize,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub enum FileAnswer {
    Content(Content),
    /// The result, a JSON object, encoded where it was made: a step must not.
    Json(Bytes),
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRefusal {
    pub why: WhyRefused,
    /// What its client reads.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyRefused {
    NotFound,
    /// It lies where it may not be used. What a client would have to ask for; `None` if asking is of no use.
    Denied(Option<WantedAccess>),
    AlreadyExists,
    /// It is not what the client says it is.
    Conflict,
    /// It cannot be done with what is there.
    Invalid,
    Failed,
}

/// What a client would have to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedAccess {
    pub of: WhichResource,
    pub write: bool,
}

/// Which of the resources of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichResource {
    /// The only one, or the one that is read.
    First,
    Second,
}

impl FileRefusal {
    /// As its client is told, who named these resources.
    pub(crate) fn to_error(&self, (first, second): (&str, Option<&str>)) -> RpcError {
        let error = |code| RpcError::new(code, self.message.clone());
        match self.why {
            WhyRefused::NotFound => error(code::NOT_FOUND),
            WhyRefused::Denied(None) => error(code::PERMISSION_DENIED),
            WhyRefused::Denied(Some(wanted)) => {
                let uri = match wanted.of {
                    WhichResource::First => first,
                    WhichResource::Second => second.unwrap_or(first),
                };
                let mut request = json!({"channel": ChannelUri::root().as_str(), "uri": uri});
                let access = if wanted.write { "write" } else { "read" };
                request[access] = true.into();
                error(code::PERMISSION_DENIED).with_data(json!({"request": request}))
            }
            WhyRefused::AlreadyExists => error(code::ALREADY_EXISTS),
            WhyRefused::Conflict => error(code::CONFLICT),
            WhyRefused::Invalid => error(code::INVALID_PARAMS),
            WhyRefused::Failed => error(code::INTERNAL_ERROR),
        }
    }
}
