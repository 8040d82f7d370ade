//! Failures of a server, as texts for people and models.
//!
//! Promises: no sentence holds the value of a variable, a header or a token.
//! Must not know: what is done about it.

use std::time::Duration;

use rmcp::service::ServiceError;

use super::auth::TokenChallenge;
use crate::secret_values::SecretValues;

/// Characters of a server's own message in an error.
const WORDS_CHARS_MAX: usize = 500;

/// Why a server is not there, or does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error(
        "the command `{command}` was not found; install it, or write its full path in the declaration"
    )]
    CommandMissing { command: String },
    #[error("it could not be started: {0}")]
    NotStarted(String),
    #[error("its program changed since it was allowed; the next message asks again")]
    ProgramChanged,
    /// With the last line of its standard error.
    #[error("it ended{}", describe_words(.0))]
    Ended(String),
    #[error("it did not answer within {} s{}", .0.as_secs(), describe_words(.1))]
    Silent(Duration, String),
    #[error("it sent a message of more than {} MiB, so the connection was closed", .0 >> 20)]
    TooLarge(usize),
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it does not speak a version of MCP that greenroom knows: {0}")]
    Handshake(String),
    #[error(
        "it wants a token; `/sign-in` in `greenroom chat` gets one, or put one into the `headers` of its declaration"
    )]
    TokenWanted(TokenChallenge),
    /// What it has is not of whoever calls it.
    #[error("it works with somebody else's sign-in at the moment")]
    OthersToken,
    /// It wants a token, and nobody can find out which.
    #[error("it wants a token, but {0}")]
    NoSignIn(String),
    /// An error of the protocol in answer to a request.
    #[error("it answered with an error: {message} ({code})")]
    Refused { code: i32, message: String },
    #[error("it sent an answer that is not understood")]
    Unreadable,
    #[error("the call was ended after {} s without a sign of life", .0.as_secs())]
    CallSilent(Duration),
    #[error("the call was ended after {} s", .0.as_secs())]
    CallTooLong(Duration),
    #[error("its prompt has more than {} KiB", .0 >> 10)]
    PromptTooLarge(usize),
    #[error("it was stopped")]
    Stopped,
}

impl McpError {
    /// What rmcp says of a request that came to nothing.
    pub(super) fn of_request(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(refusal) => {
                Self::Refused { code: refusal.code.0, message: clean(&refusal.message) }
            }
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                Self::Ended(String::new())
            }
            ServiceError::Timeout { timeout } => Self::Silent(timeout, String::new()),
            ServiceError::Cancelled { .. } => Self::Stopped,
            _ => Self::Unreadable,
        }
    }
}

impl McpError {
    /// The same without secrets in the server's message.
    pub(super) fn without(self, secrets: &SecretValues) -> Self {
        match self {
            Self::NotStarted(why) => Self::NotStarted(secrets.blank(why)),
            Self::Ended(words) => Self::Ended(secrets.blank(words)),
            Self::Silent(limit, words) => Self::Silent(limit, secrets.blank(words)),
            Self::Unreachable(why) => Self::Unreachable(secrets.blank(why)),
            Self::Handshake(why) => Self::Handshake(secrets.blank(why)),
            Self::Refused { code, message } => {
                Self::Refused { code, message: secrets.blank(message) }
            }
            error @ (Self::CommandMissing { .. }
            | Self::ProgramChanged
            | Self::TooLarge(_)
            | Self::TokenWanted(_)
            | Self::OthersToken
            | Self::NoSignIn(_)
            | Self::Unreadable
            | Self::CallSilent(_)
            | Self::CallTooLong(_)
            | Self::PromptTooLarge(_)
            | Self::Stopped) => error,
        }
    }
}

fn describe_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

/// A server's own message on one line, bounded and without what would control a terminal.
pub(super) fn clean(words: &str) -> String {
    let words: String =
        words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS_CHARS_MAX).collect();
    words.trim().to_owned()
}
