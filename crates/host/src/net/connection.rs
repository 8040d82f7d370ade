//! One WebSocket connection: both halves in one task, from the upgrade to the last byte.
//!
//! Promises: a blocked write does not stop reading, nor a blocked reader writing; the close handshake is bounded by
//! `CLOSE_WAIT_MS`; no log line names a token or content.
//! Must not know: what messages mean, who else is connected.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use kernel::{HolderName, Input};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::admission::Admission;
use super::outbox::{CLOSE_WAIT_MS, CloseUrgency, Outbox};
use super::reader::{Liveness, ReadEnd, SocketReader};
use super::registration::PeerRegistration;
use super::socket::SharedStream;
use super::writer::SocketWriter;
use super::ws::frame::close;
use crate::kernel_queue::{KernelQueue, QueuedInput};

/// How long a connection may take to end whose token counts no more; a socket that takes nothing is dropped after it.
const REVOKED_WAIT_MS: u64 = 500;

/// Serves an upgraded socket until it ends. `early` is what came behind the request's head.
pub(crate) async fn run<S: SharedStream>(
    socket: S,
    early: Vec<u8>,
    admission: &Admission,
    access: &Access,
    queue: KernelQueue,
    stop: &CancellationToken,
) {
    let limits = &admission.limits;
    let outbox = Arc::new(Outbox::new(limits.outbox_frames_max, limits.outbox_bytes_max));
    let (peer, role) = (admission.next_peer(), access.role());
    let revocations = queue.clone();
    let registered = PeerRegistration::register(queue, peer, role, &outbox, access.holder()).await;
    let Ok(mut registration) = registered else {
        return; // the host is going down: the socket is closed by dropping it
    };
    let counted = access.note_connection(admission);
    let peer = registration.peer();
    tracing::info!(client = peer.0, "a client connected");
    let socket = Arc::new(socket);
    let attached = outbox.attach(socket.clone(), limits.fragment_bytes);
    let close_frame = {
        let halves = run_halves(&*socket, early, admission, &outbox, &mut registration, stop);
        let mut halves = pin!(halves);
        tokio::select! {
            end = &mut halves => end,
            () = access.wait_until_revoked() => {
                // Nothing more is read from a client that was signed out, and it is sent only that.
                outbox.end(close::POLICY, access.close_reason(), CloseUrgency::AtOnce);
                tell_revoked(&revocations, access).await;
                let within = Duration::from_millis(REVOKED_WAIT_MS);
                timeout(within, halves).await.unwrap_or(CloseFrame::NotSent)
            }
        }
    };
    drop(attached);
    drop(counted);
    tracing::info!(client = peer.0, code = outbox.ending_code(), "a client disconnected");
    let socket = Arc::into_inner(socket);
    debug_assert!(socket.is_some(), "only the outbox shared it");
    if let Some(mut socket) = socket.filter(|_| close_frame == CloseFrame::Sent) {
        drain_until_closed(&mut socket).await;
    }
}

/// Has what the principal behind a connection brought along forgotten.
async fn tell_revoked(queue: &KernelQueue, access: &Access) {
    if let Some(HolderName::Principal(principal)) = access.holder() {
        let revoked = QueuedInput::from(Input::PrincipalRevoked { principal });
        // A host that goes down forgets all of it.
        let _ = queue.send(revoked).await;
    }
}

/// Whether the close frame was written.
#[derive(Debug, PartialEq, Eq)]
enum CloseFrame {
    Sent,
    NotSent,
}

async fn run_halves<S: SharedStream>(
    socket: &S,
    early: Vec<u8>,
    admission: &Admission,
    outbox: &Outbox,
    registration: &mut PeerRegistration,
    stop: &CancellationToken,
) -> CloseFrame {
    let liveness = Liveness::new();
    let liveness = &liveness;
    let mut reading = pin!(
        SocketReader { socket, outbox, liveness, admission, registration, room: None }.run(early)
    );
    let fragment_bytes = admission.limits.fragment_bytes;
    let mut writing = pin!(SocketWriter { socket, outbox, liveness, fragment_bytes }.run());
    let mut stopping = false;
    loop {
        tokio::select! {
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                let reason = "the host is going down";
                outbox.end(close::GOING_AWAY, reason, CloseUrgency::AfterQueue);
            }
            end = &mut reading => return match end {
                ReadEnd::Gone => CloseFrame::NotSent,
                ReadEnd::Closing => close_frame(writing.await),
            },
            written = &mut writing => {
                // Ends the reading too, if it was the socket that failed; what was read whole is still handed over.
                outbox.end(close::GOING_AWAY, "", CloseUrgency::AtOnce);
                reading.await;
                return close_frame(written);
            }
        }
    }
}

fn close_frame(written: io::Result<()>) -> CloseFrame {
    if written.is_ok() { CloseFrame::Sent } else { CloseFrame::NotSent }
}

/// Shuts down the sending side and waits until the other side closes too: closing a socket with unread bytes resets it,
/// and a reset can overtake the close frame.
pub(crate) async fn drain_until_closed<T: AsyncRead + AsyncWrite + Unpin>(socket: &mut T) {
    let drained = async {
        socket.shutdown().await?;
        while poll_fn(|context| poll_discard(socket, context)).await? > 0 {}
        Ok(())
    };
    let _: Result<io::Result<()>, _> = timeout(Duration::from_millis(CLOSE_WAIT_MS), drained).await;
}

fn poll_discard<T: AsyncRead + Unpin>(
    socket: &mut T,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    // On the stack of this call, not in the task: a connection must stay small.
    let mut sink = [0; 4_096];
    let mut sink = ReadBuf::new(&mut sink);
    ready!(Pin::new(socket).poll_read(context, &mut sink))?;
    Poll::Ready(Ok(sink.filled().len()))
}
