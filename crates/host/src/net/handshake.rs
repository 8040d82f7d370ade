//! From an accepted socket to a WebSocket: reads the heads of requests, answers them.
//!
//! Promises: at most `HEAD_BYTES_MAX` are read of each and `handshake_timeout_ms` waited for all; a refused socket is
//! answered and closed, after a proof the next request may follow; nothing of a head is stored.
//! Must not know: tokens (`http` decides), frames.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::access::Access;
use super::admission::{Admission, ConnectionSlot};
use super::connection::drain_until_closed;
use super::http::{self, HttpResponse, HttpVerdict};

/// A socket that became a WebSocket.
pub(crate) struct Upgraded {
    pub slot: ConnectionSlot,
    pub access: Access,
    /// What came behind the head.
    pub early: Vec<u8>,
}

/// Answers requests until one opens a WebSocket. `None`: it was refused, or the other side left.
pub(crate) async fn perform(
    socket: &mut TcpStream,
    admission: &Arc<Admission>,
) -> Option<Upgraded> {
    let time_limit = Duration::from_millis(admission.limits.handshake_timeout_ms);
    // One deadline for all requests of a socket: asking for proofs does not extend it.
    let deadline = Instant::now() + time_limit;
    let mut read = Vec::new();
    loop {
        let verdict = match timeout_at(deadline, read_head(socket, &mut read, admission)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => return None,
            Err(_) => HttpVerdict::Answer(HttpResponse::TOO_SLOW),
        };
        let admitted = match verdict {
            HttpVerdict::Upgrade(upgrade) => admission
                .try_admit()
                .ok_or(HttpResponse::FULL)
                .map(|slot| (slot, upgrade)),
            HttpVerdict::Answer(answer) => Err(answer),
        };
        match admitted {
            Ok((slot, upgrade)) => {
                socket
                    .write_all(&http::switching_protocols(&upgrade))
                    .await
                    .ok()?;
                read.shrink_to_fit();
                return Some(Upgraded {
                    slot,
                    access: upgrade.access,
                    early: read,
                });
            }
            Err(answer) => {
                // Small enough for the empty send buffer of a new socket, so it cannot block for long.
                let written = timeout(time_limit, socket.write_all(&answer.to_bytes())).await;
                let written = matches!(written, Ok(Ok(())));
                if written && answer.stays_open {
                    continue;
                }
                tracing::debug!(
                    status = answer.status,
                    "answered a request without a WebSocket"
                );
                if written {
                    drain_until_closed(socket).await;
                }
                return None;
            }
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
        // A second request may have come with the first.
        if let Some((len, verdict)) = http::decide(read, admission) {
            read.drain(..len.min(read.len()));
            return Ok(verdict);
        }
        if read.capacity() == read.len() {
            read.reserve(1_024);
        }
        if socket.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
