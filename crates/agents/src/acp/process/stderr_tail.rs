//! What an agent printed last beside the protocol.
//!
//! Promises: bounded; leaves memory only as a log that its user asks for or as one short line, without the values that are secret (AG-18).
//! Must not know: where it is shown.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::secret_values::SecretValues;

/// Held of each process.
const TAIL_BYTES_MAX: usize = 64 * 1_024;

/// Characters of the line that an error quotes.
const LINE_CHARS_MAX: usize = 300;

/// The last of what a process printed. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct StderrTail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    secrets: SecretValues,
}

impl StderrTail {
    pub(in super::super) fn new(secrets: Vec<String>) -> Self {
        Self { bytes: Arc::default(), secrets: SecretValues::new(secrets) }
    }

    pub(in super::super) fn push(&self, printed: &[u8]) {
        let mut bytes = self.bytes.lock();
        let printed = &printed[printed.len().saturating_sub(TAIL_BYTES_MAX)..];
        let beyond = (bytes.len() + printed.len()).saturating_sub(TAIL_BYTES_MAX);
        bytes.drain(..beyond);
        bytes.extend(printed);
    }

    pub(in super::super) fn push_line(&self, line: &[u8]) {
        self.push(line);
        self.push(b"\n");
    }

    /// All that is held, without secrets.
    pub(in super::super) fn text(&self) -> String {
        let text = {
            let mut bytes = self.bytes.lock();
            String::from_utf8_lossy(bytes.make_contiguous()).into_owned()
        };
        self.blank(text)
    }

    /// The last line that says something.
    pub(in super::super) fn last_line(&self) -> Option<String> {
        let text = self.text();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        // What a terminal would obey is no text.
        let readable = line.trim().chars().filter(|c| !c.is_control());
        Some(readable.take(LINE_CHARS_MAX).collect())
    }

    /// A text of the agent's that is shown, without secrets.
    pub(in super::super) fn blank(&self, text: String) -> String {
        self.secrets.blank(text)
    }

    /// Reads to the end.
    pub(in super::super) async fn follow(self, mut output: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 4 * 1_024];
        loop {
            match output.read(&mut buffer).await {
                // An output that cannot be read any more has nothing more to say.
                Ok(0) | Err(_) => return,
                Ok(bytes) => self.push(buffer.get(..bytes).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_is_held() {
        let tail = StderrTail::default();
        tail.push(&vec![b'z'; 3 * TAIL_BYTES_MAX]);
        for _ in 0..1_000 {
            tail.push(&[b'b'; 100]);
        }
        tail.push(b"\nlast\n\n");
        assert_eq!(tail.text().len(), TAIL_BYTES_MAX);
        assert!(!tail.text().contains('z'));
        assert_eq!(tail.last_line().as_deref(), Some("last"));
    }

    #[test]
    fn secrets_are_blanked_and_lines_are_short() {
        let secrets = ["abcd".to_owned(), "abcdef".to_owned(), "x".to_owned()];
        let tail = StderrTail::new(secrets.to_vec());
        tail.push_line(b"key abcdef, x and \x1b[31mabcd");
        assert_eq!(tail.last_line().as_deref(), Some("key ***, x and [31m***"));
        assert!(!tail.text().contains("abcd"));
        tail.push_line("ä".repeat(1_000).as_bytes());
        assert_eq!(tail.last_line().unwrap().chars().count(), LINE_CHARS_MAX);
        assert_eq!(StderrTail::default().last_line(), None);
    }
}
