//! What a host says of itself to its operator, beside the protocol: `GET /status`.
//!
//! Promises: the token follows the same proof, over the same connection, as for a client that connects (G-62); at most
//! `ANSWER_BYTES_MAX` are read and `WAIT_MAX` waited.
//! Must not know: what the numbers are for.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::destination::{self, Destination};
use crate::{ClientError, proof};

/// More than the answer of any host.
const ANSWER_BYTES_MAX: usize = 16 * 1_024;
const WAIT_MAX: Duration = Duration::from_secs(10);

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
    match tokio::time::timeout(WAIT_MAX, ask(destination)).await {
        Ok(answer) => answer,
        Err(_) => Err(ClientError::Unreachable {
            url: destination.target().url.clone(),
            why: format!("no answer within {} s", WAIT_MAX.as_secs()),
        }),
    }
}

async fn ask(destination: &Destination) -> Result<HostStatus, ClientError> {
    let url = || destination.target().url.clone();
    let broken = |error: std::io::Error| ClientError::Unreachable {
        url: url(),
        why: error.to_string(),
    };
    let (mut stream, authority) = destination::open_stream(destination).await?;
    let token = destination.target().token.as_deref();
    // A token that is no header value was never one of a host.
    if token.is_some_and(|token| token.contains(|c: char| c.is_control())) {
        return Err(ClientError::Unauthorized { url: url() });
    }
    let authorization = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let request = format!(
        "GET /status HTTP/1.1\r\nHost: {authority}\r\n{authorization}Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    let mut answer = Vec::with_capacity(1_024);
    loop {
        match proof::parse_response(&answer, ANSWER_BYTES_MAX) {
            Ok(None) => {}
            Ok(Some((200, body))) => return parse(&body),
            Ok(Some((401, _))) => return Err(ClientError::Unauthorized { url: url() }),
            Ok(Some((status, _))) => return Err(ClientError::Refused { url: url(), status }),
            Err(why) => return Err(ClientError::Unreadable(format!("its status: {why}"))),
        }
        if answer.len() >= ANSWER_BYTES_MAX {
            return Err(ClientError::Unreadable("its status is too long".to_owned()));
        }
        if stream.read_buf(&mut answer).await.map_err(broken)? == 0 {
            return Err(ClientError::Closed(
                "the host closed it without an answer".to_owned(),
            ));
        }
    }
}

fn parse(body: &str) -> Result<HostStatus, ClientError> {
    let unreadable = || ClientError::Unreadable("a status that does not name a version".to_owned());
    let status: Value = serde_json::from_str(body).map_err(|_| unreadable())?;
    Ok(HostStatus {
        version: status["version"]
            .as_str()
            .ok_or_else(unreadable)?
            .to_owned(),
        pid: status["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok()),
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
        assert_eq!(
            parse(r#"{"version": "9", "new": []}"#).unwrap().clients,
            None
        );
        assert!(parse("{}").is_err() && parse("ok").is_err());
    }
}
