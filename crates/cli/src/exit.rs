//! Exit codes: what a program that calls this one can rely on.

use std::process::ExitCode;

use client::chat::ChatError;
use client::{ClientError, EndpointError};

use crate::session_name::NameError;

/// How a verb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Complete,
    Failed,
    /// The command line asked for something that cannot be.
    Usage,
    Cancelled,
    /// No host, or it refused.
    NoHost,
    /// The turn is complete, but something was denied because nobody could be asked (G-66).
    Denied,
    /// The turn was cancelled because it took too long.
    TimedOut,
    /// The answer to whether a host runs is no; the code that init scripts use for it.
    NotRunning,
}

impl Exit {
    /// The exit code of an error: trouble with the host has its own.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        let chat = error.downcast_ref::<ChatError>();
        let host = error.downcast_ref::<ClientError>().is_some()
            || error.downcast_ref::<EndpointError>().is_some()
            || chat.is_some_and(|error| error.client_error().is_some());
        if error.downcast_ref::<NameError>().is_some() {
            return Self::Usage;
        }
        if host { Self::NoHost } else { Self::Failed }
    }

    /// The exit code where a chat could not be opened: the host is there and has no such session, or it is the host.
    pub(crate) fn of_opening(error: &anyhow::Error) -> Self {
        if error.downcast_ref::<NameError>().is_some() {
            return Self::Usage;
        }
        match error.downcast_ref::<ChatError>() {
            Some(ChatError::NoSessionIn { .. } | ChatError::NoSessionYet) => Self::Failed,
            _ => Self::NoHost,
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Cancelled | Self::NotRunning => 3,
            Self::NoHost => 4,
            Self::Denied => 5,
            Self::TimedOut => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn trouble_with_the_host_has_its_own_code() {
        let lost: Result<(), _> = Err(ClientError::Closed("gone".to_owned()));
        let error = lost.context("while sending").unwrap_err();
        assert_eq!(Exit::of_error(&error).code(), 4);
        assert_eq!(Exit::of_error(&EndpointError::NoHome.into()).code(), 4);
        let closed = ClientError::Closed("gone".to_owned());
        assert_eq!(Exit::of_error(&ChatError::Client(closed).into()).code(), 4);
        assert_eq!(Exit::of_error(&ChatError::Gone.into()).code(), 1);
        assert_eq!(Exit::of_error(&anyhow::anyhow!("other")).code(), 1);
    }
}
