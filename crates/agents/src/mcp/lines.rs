//! MCP over pipes: one JSON message a line, bounded.
//!
//! Promises: a line over the bound ends the connection (MC-8); a line that is no message goes to the server's log and is
//! skipped; an answer that cannot be read ends the request that it answers, so that nobody waits for it.
//! Must not know: what messages mean.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::error::McpError;
use super::handler::McpShared;

/// The longest message of a server (MC-8).
pub(super) const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// What is kept of a line that is no message.
const STRAY_CHARS_MAX: usize = 200;

/// A server's pipes.
pub(super) struct LineTransport {
    output: BufReader<ChildStdout>,
    input: Arc<Mutex<Option<ChildStdin>>>,
    /// The line that is not complete yet: a read may be dropped in between.
    line: Vec<u8>,
    shared: Arc<McpShared>,
}

impl LineTransport {
    pub(super) fn new(input: ChildStdin, output: ChildStdout, shared: Arc<McpShared>) -> Self {
        Self {
            output: BufReader::new(output),
            input: Arc::new(Mutex::new(Some(input))),
            line: Vec::new(),
            shared,
        }
    }

    /// Reads on until a line is complete; false if there is none any more.
    async fn read_line(&mut self) -> bool {
        loop {
            let available = match self.output.fill_buf().await {
                Ok([]) | Err(_) => return false, // the server closed it
                Ok(available) => available,
            };
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > MESSAGE_BYTES_MAX {
                self.shared.fail(McpError::TooLarge(MESSAGE_BYTES_MAX));
                return false;
            }
            self.line.extend_from_slice(&available[..taken]);
            self.output.consume(taken);
            if end.is_some() {
                return true;
            }
        }
    }
}

impl Transport<RoleClient> for LineTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while self.read_line().await {
            let line = std::mem::take(&mut self.line);
            if let Some(message) = parse(&line, &self.shared) {
                return Some(message);
            }
        }
        None
    }

    /// Closes its input: a server goes then.
    async fn close(&mut self) -> Result<(), io::Error> {
        self.input.lock().await.take();
        Ok(())
    }
}

/// The id of an answer, whatever else is in it.
#[derive(Deserialize)]
struct AnswerHead {
    id: RequestId,
    method: Option<serde::de::IgnoredAny>,
}

fn parse(line: &[u8], shared: &McpShared) -> Option<ServerJsonRpcMessage> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(message);
    }
    if let Ok(AnswerHead { id, method: None }) = serde_json::from_slice(line) {
        let error = ErrorData::internal_error("its answer could not be read", None);
        return Some(ServerJsonRpcMessage::error(error, Some(id)));
    }
    let text = String::from_utf8_lossy(line);
    let stray: String = text.trim_end().chars().take(STRAY_CHARS_MAX).collect();
    shared.log.push_line(&format!("(no message) {stray}"));
    None
}
