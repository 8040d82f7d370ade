//! Work on files that a client asks the host for, and what comes of it (H-250).

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use wire::methods::ResourceCall;
use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::frame::EncodedContent;

/// What is to be done with files.
#[derive(Debug, Clone, PartialEq)]
pub struct FileTask {
    /// Who asks: what is granted is granted to it alone.
    pub client_id: String,
    pub call: Arc<ResourceCall>,
    /// The most that an answer may take.
    pub bytes_max: usize,
}

/// The result of a file task.
#[derive(Debug, Clone, PartialEq)]
pub enum FileAnswer {
    Content(EncodedContent),
    /// The result, a JSON object, encoded where it was made: a step must not.
    Json(Bytes),
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRefusal {
    pub why: FileRefusalReason,
    /// What its client reads.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRefusalReason {
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
    pub of: ResourceOperand,
    pub write: bool,
}

/// Which of the resources of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceOperand {
    /// The only one, or the one that is read.
    First,
    Second,
}

impl FileRefusal {
    /// As its client is told, who named these resources.
    pub(crate) fn to_error(&self, first: &str, second: Option<&str>) -> RpcError {
        let error = |code| RpcError::new(code, self.message.clone());
        match self.why {
            FileRefusalReason::NotFound => error(code::NOT_FOUND),
            FileRefusalReason::Denied(None) => error(code::PERMISSION_DENIED),
            FileRefusalReason::Denied(Some(wanted)) => {
                let uri = match wanted.of {
                    ResourceOperand::First => first,
                    ResourceOperand::Second => second.unwrap_or(first),
                };
                let mut request = json!({"channel": ChannelUri::root().as_str(), "uri": uri});
                let access = if wanted.write { "write" } else { "read" };
                request[access] = true.into();
                error(code::PERMISSION_DENIED).with_data(json!({"request": request}))
            }
            FileRefusalReason::AlreadyExists => error(code::ALREADY_EXISTS),
            FileRefusalReason::Conflict => error(code::CONFLICT),
            FileRefusalReason::Invalid => error(code::INVALID_PARAMS),
            FileRefusalReason::Failed => error(code::INTERNAL_ERROR),
        }
    }
}
