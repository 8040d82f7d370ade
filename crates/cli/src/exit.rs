//! Exit codes: what a program that calls this one can rely on.

use std::process::ExitCode;

use client::chat::ChatError;
use client::{ClientError, EndpointError};

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
        if host { Self::NoHost } else { Self::Failed }
    }

    fn code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Cancelled | Self::NotRunning => 3,
            Self::NoHost => 4,
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
