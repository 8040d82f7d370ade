//! What a host says of itself to its operator, beside the protocol: `GET /status`.
//!
//! Must not know: what the numbers are for.

use serde_json::Value;

use crate::http_request::HttpRequest;
use crate::{ClientError, Destination};

/// A host as it sees itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStatus {
    pub version: String,
    pub pid: Option<u32>,
    /// How many clients are connected.
    pub clients: Option<u64>,
}

/// Asks a host. One of an earlier version does not know the question and answers with an HTTP status of failure.
pub async fn ask_status(destination: &Destination) -> Result<HostStatus, ClientError> {
    let request = HttpRequest { method: "GET", path: "/status", body: None };
    match request.send(destination).await? {
        (200, body) => parse(&body),
        (status, _) => Err(ClientError::Refused { url: destination.target().url.clone(), status }),
    }
}

fn parse(body: &str) -> Result<HostStatus, ClientError> {
    let unreadable = || ClientError::Unreadable("a status that does not name a version".to_owned());
    let status: Value = serde_json::from_str(body).map_err(|_| unreadable())?;
    Ok(HostStatus {
        version: status["version"].as_str().ok_or_else(unreadable)?.to_owned(),
        pid: status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()),
        clients: status["clients"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_a_version_at_least() {
        let status = parse(r#"{"version": "0.1.0", "pid": 7, "clients": 2}"#).unwrap();
        assert_eq!((status.pid, status.clients), (Some(7), Some(2)));
        assert_eq!(parse(r#"{"version": "9", "new": []}"#).unwrap().clients, None);
        assert!(parse("{}").is_err() && parse("ok").is_err());
    }
}
