//! What the process of an agent behind a host last printed.
//!
//! Promises: a refusal carries the host's own message.
//! Must not know: how it is shown.

use wire::percent::encode_word;

use crate::devices::ask;
use crate::{ClientError, Destination};

/// Asks a host for it.
pub async fn read_agent_log(destination: &Destination, id: &str) -> Result<String, ClientError> {
    let path = format!("/api/agents/log?id={}", encode_word(id));
    let answer = ask(destination, "GET", &path, None).await?;
    let log = answer["log"].as_str().map(str::to_owned);
    log.ok_or_else(|| ClientError::Unreadable("its answer holds no log".to_owned()))
}
