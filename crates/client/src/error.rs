//! Errors between a client and its host, with messages that say what to do next.

use wire::RpcError;
use wire::action::ActionError;

use crate::EndpointError;
use crate::replica::TooManyPending;

/// Why a connection or a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    #[error("`{url}` is not a host address: {why}. One looks like ws://127.0.0.1:4790/")]
    BadUrl { url: String, why: String },
    #[error(
        "no host answers at {url}: {why}. Start one with `greenroom serve`, or name another with --host"
    )]
    Unreachable { url: String, why: String },
    #[error(
        "the host at {url} does not accept the token (HTTP 401). Pass the right one with --token-file or GREENROOM_TOKEN"
    )]
    Unauthorized { url: String },
    #[error(
        "what listens at {url} did not prove that it is the host of this data directory: {why}. The token was not sent. \
         `greenroom doctor` says more; a host of an earlier version has to be restarted"
    )]
    NotProven { url: String, why: String },
    #[error("what answers at {url} refused the connection (HTTP {status}). {}", explain_status(*status))]
    Refused { url: String, status: u16 },
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("the host refused it: {0}")]
    ActionRefused(String),
    #[error("the host did not answer `{method}` within {seconds} s")]
    TimedOut { method: String, seconds: u64 },
    #[error(
        "the host is of an earlier version, which knows no devices. Restart it with `greenroom restart`"
    )]
    TooOld,
    #[error("the host does not answer to this address")]
    AddressNotAllowed,
    #[error("the connection is closed: {0}")]
    Closed(String),
    #[error("the connection is closed: another one took this client's id")]
    Superseded,
    #[error("the connection was closed because {events} messages of the host waited unread")]
    Overflow { events: usize },
    #[error("the host sent something this client cannot read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    NotFound(#[from] EndpointError),
    #[error(transparent)]
    BadAction(#[from] ActionError),
    #[error(transparent)]
    TooManyPending(#[from] TooManyPending),
}

fn explain_status(status: u16) -> &'static str {
    match status {
        503 => {
            "It has too many connections, is starting or stopping, or no node serves the space now: try again in a moment"
        }
        _ => "Is it an agent host?",
    }
}

impl ClientError {
    /// The code of the host's answer, if it answered.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Rpc(error) => Some(error.code),
            _ => None,
        }
    }
}
