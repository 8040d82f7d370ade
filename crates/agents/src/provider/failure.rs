//! Failures between us and a server, as texts for people, and whether to try again.
//!
//! Promises: no address is named but host and port.
//! Must not know: what was asked.

use std::error::Error;
use std::io;
use std::time::Duration;

use reqwest::StatusCode;

use super::ProviderErrorKind::{Rejected, Unauthorized, Unavailable};
use super::endpoint::ModelEndpoint;
use super::error_body::ErrorBody;
use super::key::{self, Secret};
use super::{CHECK_BASE_URL, ProviderError};

/// Why a try failed.
pub(super) enum Failure {
    Final(ProviderError),
    /// The next try may do better.
    Transient {
        error: ProviderError,
        /// The error as a short text.
        cause: String,
        retry_after: Option<Duration>,
    },
}

impl Failure {
    /// Without secrets, as people may see it.
    pub(super) fn redact(self, secrets: &[Secret]) -> Self {
        let redact = |error: ProviderError| ProviderError {
            message: key::redact(&error.message, secrets),
            ..error
        };
        match self {
            Self::Final(error) => Self::Final(redact(error)),
            Self::Transient { error, cause, retry_after } => Self::Transient {
                error: redact(error),
                cause: key::redact(&cause, secrets),
                retry_after,
            },
        }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self::Final(error)
    }
}

pub(super) fn no_answer_within(most: Duration) -> ProviderError {
    let seconds = most.as_secs_f64();
    let message = format!("the model server did not begin to answer within {seconds} s");
    ProviderError::new(Unavailable, message)
        .with_advice("It may be busy, or something else listens at this address: try again, or check the address.")
}

pub(super) fn connection_failure(endpoint: &ModelEndpoint, fault: &reqwest::Error) -> Failure {
    let authority = endpoint.authority();
    if fault.is_builder() {
        let message = format!("no request can be made to {authority}: {}", reason(fault));
        return Failure::Final(ProviderError::new(Rejected, message));
    }
    if let Some(tls) = find::<rustls::Error>(fault) {
        let message = format!("no encrypted connection to the model server at {authority}: {tls}");
        let error = ProviderError::new(Unavailable, message);
        return Failure::Final(error.with_advice(
            "Check that the address begins with the right one of http:// and https://, and that this system trusts the \
             server's certificate (SSL_CERT_FILE names further ones).",
        ));
    }
    let cause = format!("the model server at {authority} cannot be reached ({})", reason(fault));
    Failure::Transient {
        error: ProviderError::new(Unavailable, cause.clone())
            .with_advice("Check that the server is running, and its name and port."),
        cause,
        retry_after: None,
    }
}

pub(super) fn status_failure(
    endpoint: &ModelEndpoint,
    status: StatusCode,
    error_body: &ErrorBody,
    retry_after: Option<Duration>,
    reducible: bool,
) -> Failure {
    let (kind, what) = match status.as_u16() {
        401 | 403 if endpoint.key().is_none() => (Unauthorized, "requires a key"),
        401 | 403 => (Unauthorized, "does not accept the key"),
        402 => (Unauthorized, "requires payment"),
        429 | 503 | 529 => (Unavailable, "is busy"),
        408 => (Unavailable, "gave up waiting"),
        409 | 500 | 502 | 504 => (Unavailable, "failed"),
        413 => (Rejected, "does not take requests of this size"),
        400 if error_body.is_about_the_key() => (Unauthorized, "does not accept the key"),
        404 => (Rejected, "does not know this model or address"),
        300..=399 => (
            Rejected,
            "redirects, which a key must not follow: the base URL has to be the final address",
        ),
        400..=499 => (Rejected, "does not take the request"),
        _ => (Unavailable, "failed in an unknown way"),
    };
    let cause = format!("the model server {what} ({})", status.as_u16());
    let message = match error_body.message.as_str() {
        "" => cause.clone(),
        said => format!("{cause}: {said}"),
    };
    let mut error = ProviderError::new(kind, message);
    error.blame = error_body.refusal_cause(Some(status.as_u16()));
    error.advice = match status.as_u16() {
        401 | 403 if endpoint.key().is_none() => {
            Some("Say where its key is: in a variable, a file, or the output of a command.")
        }
        401 | 403 => Some("Check the key, and that it is one for this server."),
        404 => Some(CHECK_BASE_URL),
        _ => None,
    };
    error.refuses_key = match status.as_u16() {
        401 => true,
        400 => error_body.is_about_the_key(),
        _ => false,
    };
    let blame = error.blame.as_ref();
    if blame.is_some_and(|blame| blame.forbids_repeating(reducible)) {
        // A smaller request may do better; the same one would be refused again.
        return Failure::Final(error);
    }
    match status.as_u16() {
        408 | 409 | 429 | 500 | 502 | 503 | 504 | 529 if !error_body.is_about_payment() => {
            Failure::Transient { error, cause, retry_after }
        }
        _ => Failure::Final(error),
    }
}

/// The innermost cause: what lies around it only repeats that a request failed, and to which address.
pub(super) fn reason(fault: &reqwest::Error) -> String {
    if let Some(fault) = find::<io::Error>(fault) {
        match fault.kind() {
            io::ErrorKind::ConnectionRefused => return "connection refused".to_owned(),
            io::ErrorKind::ConnectionReset => return "connection reset".to_owned(),
            io::ErrorKind::TimedOut => return "timed out".to_owned(),
            io::ErrorKind::UnexpectedEof => return "connection closed".to_owned(),
            _ => {}
        }
    }
    if fault.is_timeout() {
        return "timed out".to_owned();
    }
    let mut innermost: &dyn Error = fault;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn find<'a, E: Error + 'static>(fault: &'a reqwest::Error) -> Option<&'a E> {
    let mut next: Option<&'a (dyn Error + 'static)> = Some(fault);
    while let Some(error) = next {
        if let Some(cause) = error.downcast_ref::<E>() {
            return Some(cause);
        }
        // An io::Error names the source of what it wraps, not what it wraps.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_is_not_known_is_read_again() {
        let endpoint = ModelEndpoint::new("http://h/v1").unwrap();
        let refuses_key = |status: u16, body: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            let body = ErrorBody::from_body(body.as_bytes());
            match status_failure(&endpoint, status, &body, None, false) {
                Failure::Final(error) | Failure::Transient { error, .. } => error.refuses_key,
            }
        };
        assert!(refuses_key(401, "{}"));
        // How Gemini says it.
        let not_valid =
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}"#;
        assert!(refuses_key(400, not_valid));
        for status in [400, 402, 403, 404, 429, 500, 503] {
            assert!(!refuses_key(status, r#"{"error":{"message":"no"}}"#), "{status}");
        }
    }
}
