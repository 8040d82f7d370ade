//! Why a turn stops before its end.

use agent_api::{AgentError, TurnOver};

use crate::provider::{ProviderError, ProviderErrorKind};

/// The type of the error in which a turn ends that the model refuses to answer (G-60).
pub(super) const REFUSAL: &str = "refusal";

pub(super) enum TurnStop {
    /// Its events have no receiver any more.
    Over,
    /// The user ended it here, and a notice says so: it is complete.
    Ended,
    Failed(AgentError),
}

impl From<TurnOver> for TurnStop {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl From<ProviderError> for TurnStop {
    fn from(error: ProviderError) -> Self {
        let error_type = match error.kind {
            ProviderErrorKind::Unauthorized => "modelUnauthorized",
            ProviderErrorKind::Rejected => "modelRejected",
            ProviderErrorKind::Unavailable => "modelUnavailable",
            ProviderErrorKind::Interrupted => "modelInterrupted",
            ProviderErrorKind::Unreadable => "modelUnreadable",
        };
        Self::Failed(AgentError {
            error_type: error_type.to_owned(),
            message: error.message,
            resumable: error.kind.may_be_retried(),
        })
    }
}
