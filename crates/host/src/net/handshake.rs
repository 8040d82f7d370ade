//! From an accepted socket to a WebSocket: reads the request's head, answers it.
//!
//! Promises: at most `HEAD_BYTES_MAX` are read and `handshake_timeout_ms` waited; a refused socket is answered and
//! closed; nothing of the head is stored.
//! Must not know: tokens (`http` decides), frames.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::admission::{Admission, ConnectionSlot};
use super::connection::drain_until_closed;
use super::http::{self, HttpResponse, HttpVerdict};

/// A socket that became a WebSocket.
pub(crate) struct Upgraded {
    pub slot: ConnectionSlot,
    /// What came behind the head.
    pub early: Vec<u8>,
}

/// Answers the request. `None`: it was refused, or the other side left.
pub(crate) async fn perform(
    socket: &mut TcpStream,
    admission: &Arc<Admission>,
) -> Option<Upgraded> {
    let time_limit = Duration::from_millis(admission.limits.handshake_timeout_ms);
    let mut read = Vec::new();
    let verdict = match timeout(time_limit, read_head(socket, &mut read, admission)).await {
        Ok(Ok(verdict)) => verdict,
        Ok(Err(_)) => return None,
        Err(_) => HttpVerdict::Answer(HttpResponse::TOO_SLOW),
    };
    let admitted = match verdict {
        HttpVerdict::Upgrade { accept } => admission
            .try_admit()
            .ok_or(HttpResponse::FULL)
            .map(|slot| (slot, accept)),
        HttpVerdict::Answer(answer) => Err(answer),
    };
    match admitted {
        Ok((slot, accept)) => {
            socket
                .write_all(&http::switching_protocols(&accept))
                .await
                .ok()?;
            read.shrink_to_fit();
            Some(Upgraded { slot, early: read })
        }
        Err(answer) => {
            tracing::debug!(status = answer.status, "refused a connection");
            // Small enough for the empty send buffer of a new socket, so it cannot block for long.
            if let Ok(Ok(())) = timeout(time_limit, socket.write_all(&answer.to_bytes())).await {
                drain_until_closed(socket).await;
            }
            None
        }
    }
}

/// Leaves in `read` what came behind the head.
async fn read_head(
    socket: &mut TcpStream,
    read: &mut Vec<u8>,
    admission: &Admission,
) -> io::Result<HttpVerdict> {
    loop {
        if read.capacity() == read.len() {
            read.reserve(1_024);
        }
        if socket.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((len, verdict)) = http::decide(read, admission) {
            read.drain(..len.min(read.len()));
            return Ok(verdict);
        }
    }
}
