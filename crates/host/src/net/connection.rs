//! One WebSocket connection: both halves in one task, from the upgrade to the last byte.
//!
//! Promises: a blocked write does not stop reading, nor a blocked reader writing; the close handshake is bounded by
//! `CLOSE_WAIT_MS`; nothing said here names a token or content.
//! Must not know: what messages mean, who else is connected.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::outbox::{CLOSE_WAIT_MS, Outbox, Urgency};
use super::presence::Presence;
use super::reader::{Pulse, ReadEnd, Reader};
use super::writer::Writer;
use super::ws::frame::close;
use crate::arrival::Arrivals;

/// Serves an upgraded socket until it ends. `early` is what came behind the request's head.
pub(crate) async fn run(
    mut socket: TcpStream,
    early: Vec<u8>,
    door: &Door,
    arrivals: Arrivals,
    stop: &CancellationToken,
) {
    let limits = &door.limits;
    let outbox = Arc::new(Outbox::new(
        limits.outbox_frames_max,
        limits.outbox_bytes_max,
    ));
    let Ok(mut presence) = Presence::join(arrivals, door.next_peer(), &outbox).await else {
        return;
    };
    let peer = presence.peer();
    tracing::debug!(peer = peer.0, "connected");
    let last_word = converse(&socket, early, door, &outbox, &mut presence, stop).await;
    tracing::debug!(peer = peer.0, code = outbox.ending_code(), "disconnected");
    if last_word == LastWord::Said {
        linger(&mut socket).await;
    }
}

/// Whether the close frame was written.
#[derive(Debug, PartialEq, Eq)]
enum LastWord {
    Said,
    Unsaid,
}

async fn converse(
    socket: &TcpStream,
    early: Vec<u8>,
    door: &Door,
    outbox: &Outbox,
    presence: &mut Presence,
    stop: &CancellationToken,
) -> LastWord {
    let pulse = Pulse::new();
    let pulse = &pulse;
    let mut reading = pin!(
        Reader {
            socket,
            outbox,
            pulse,
            door,
            presence
        }
        .run(early)
    );
    let fragment_bytes = door.limits.fragment_bytes;
    let mut writing = pin!(
        Writer {
            socket,
            outbox,
            pulse,
            fragment_bytes
        }
        .run()
    );
    let mut stopping = false;
    loop {
        tokio::select! {
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                let reason = "the host is going down";
                outbox.end(close::GOING_AWAY, reason, Urgency::AfterQueue);
            }
            end = &mut reading => return match end {
                ReadEnd::Gone => LastWord::Unsaid,
                ReadEnd::Closing => last_word(writing.await),
            },
            written = &mut writing => {
                // Ends the reading too, if it was the socket that failed; what was read whole is still handed over.
                outbox.end(close::GOING_AWAY, "", Urgency::AtOnce);
                reading.await;
                return last_word(written);
            }
        }
    }
}

fn last_word(written: io::Result<()>) -> LastWord {
    if written.is_ok() {
        LastWord::Said
    } else {
        LastWord::Unsaid
    }
}

/// Says that nothing more will come and waits for the other side's end: closing a socket with unread bytes resets it,
/// and a reset can overtake the last word.
pub(crate) async fn linger(socket: &mut TcpStream) {
    let farewell = async {
        socket.shutdown().await?;
        loop {
            socket.readable().await?;
            match discard(socket) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    let _: Result<io::Result<()>, _> =
        timeout(Duration::from_millis(CLOSE_WAIT_MS), farewell).await;
}

fn discard(socket: &TcpStream) -> io::Result<usize> {
    // On the stack of this call, not in the task: a connection must stay small.
    let mut sink = [0; 4_096];
    socket.try_read(&mut sink)
}
