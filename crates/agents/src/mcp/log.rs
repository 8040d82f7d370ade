//! A server's own log: its standard error, and what it logs by the protocol. Never the host's (MC-8).
//!
//! Promises: bounded; the newest is kept. It is read without the values that are secret (TR-5).

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::error::clean;
use crate::secret_values::SecretValues;

/// What is kept.
const LOG_BYTES_MAX: usize = 64 * 1_024;

const CHUNK_BYTES: usize = 4 * 1_024;

/// The newest of what a server said of itself.
#[derive(Debug, Default)]
pub(super) struct ServerLog {
    bytes: Mutex<Vec<u8>>,
    secrets: SecretValues,
}

impl ServerLog {
    /// Of a server that knows these secrets.
    pub(super) fn new(secrets: SecretValues) -> Self {
        Self { bytes: Mutex::default(), secrets }
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        let mut kept = self.bytes.lock();
        let bytes = &bytes[bytes.len().saturating_sub(LOG_BYTES_MAX)..];
        let too_many = (kept.len() + bytes.len()).saturating_sub(LOG_BYTES_MAX);
        kept.drain(..too_many);
        kept.extend_from_slice(bytes);
    }

    pub(super) fn push_line(&self, line: &str) {
        self.push(line.as_bytes());
        self.push(b"\n");
    }

    pub(super) fn text(&self) -> String {
        self.secrets.blank(String::from_utf8_lossy(&self.bytes.lock()).into_owned())
    }

    /// The last line that says something, for an error.
    pub(super) fn last_line(&self) -> String {
        let text = self.text();
        let mut lines = text.lines().rev().map(clean);
        lines.find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// Takes all that comes until the end: a server that is not read would stop.
    pub(super) async fn follow(&self, mut output: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match output.read(&mut chunk).await {
                Ok(0) | Err(_) => return, // it is closed
                Ok(read) => self.push(&chunk[..read]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept_and_the_last_words_are_found() {
        let log = ServerLog::default();
        log.push(&vec![b'a'; LOG_BYTES_MAX]);
        log.push(b"\nno \x1b[31mdatabase\x1b[0m\n  \n");
        assert_eq!(log.text().len(), LOG_BYTES_MAX);
        assert_eq!(log.last_line(), "no  [31mdatabase [0m");
        log.push(&vec![b'b'; 2 * LOG_BYTES_MAX]);
        assert_eq!(log.text().len(), LOG_BYTES_MAX);
        assert!(log.text().bytes().all(|byte| byte == b'b'));
    }
}
