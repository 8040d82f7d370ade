//! Accepts connections and owns their tasks.
//!
//! Promises: handshakes and connections are bounded; sockets that say nothing keep nobody else waiting; a failing
//! `accept` is tried again with pauses and never spins;
//! `serve` returns only when every connection it accepted has ended.
//! Must not know: HTTP, frames, what messages mean.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::connection;
use super::handshakes::Handshakes;
use super::http::{self, HttpSocket, UpgradedSocket, UpgradedWay};
use super::outbox::CLOSE_WAIT_MS;
use super::socket::SharedStream;
use super::space_handles::{SpaceHandle, SpaceHandles};
use super::tls::{self, ConnectionSecurity, TlsIdentity};
use super::ws::frame::close;
use crate::cluster::{RelayCut, pass_on};
use crate::kernel_queue::KernelQueue;

const ACCEPT_PAUSE_MS: u64 = 10;
const ACCEPT_PAUSE_MS_MAX: u64 = 1_000;
/// A connection that misses its own deadlines while the host stops is aborted after this: one deadline for what is
/// queued, one for the peer's answer.
const STOP_WAIT_MS: u64 = 2 * CLOSE_WAIT_MS + 500;

/// Serves until `stop`; then no connection is accepted, and those that are open are closed with 1001 after the frames
/// that were pushed to them. Frames about turns that end while the host stops must be pushed before `stop`: refuse
/// new connections until then with [`Admission::set_ready`].
pub async fn serve(
    listener: TcpListener,
    admission: Arc<Admission>,
    queue: KernelQueue,
    stop: CancellationToken,
) {
    let handle = SpaceHandle::new("", admission, queue);
    let handles = SpaceHandles::new(handle, Vec::new());
    serve_spaces(listener, Arc::new(handles), stop).await;
}

/// The same for several spaces: a connection's token names the one it is for.
pub(crate) async fn serve_spaces(
    listener: TcpListener,
    handles: Arc<SpaceHandles>,
    stop: CancellationToken,
) {
    let mut tasks = JoinSet::new();
    let handshakes = Handshakes::new(handles.limits().handshakes_max);
    let mut pause_ms = ACCEPT_PAUSE_MS;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, address)) => {
                    pause_ms = ACCEPT_PAUSE_MS;
                    let handshake = tokio::select! {
                        () = stop.cancelled() => break,
                        handshake = handshakes.begin() => handshake,
                    };
                    let http_socket = HttpSocket::new(Arc::clone(&handles), address, handshake);
                    let served =
                        serve_socket(socket, http_socket, Arc::clone(&handles), stop.clone());
                    tasks.spawn(served.boxed());
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    // What is short is most likely file descriptors, and the oldest silent socket has one to give.
                    handshakes.evict_oldest();
                    tracing::warn!(%error, pause_ms, "cannot accept connections; trying again after a pause");
                    tokio::select! {
                        () = stop.cancelled() => break,
                        () = sleep(Duration::from_millis(pause_ms)) => {}
                    }
                    pause_ms = (pause_ms * 2).min(ACCEPT_PAUSE_MS_MAX);
                }
            },
        }
    }
    drop(listener);
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    if timeout(Duration::from_millis(STOP_WAIT_MS), all_ended).await.is_err() {
        tasks.shutdown().await;
    }
}

/// One socket from its first byte to its end.
async fn serve_socket(
    socket: TcpStream,
    http_socket: HttpSocket,
    handles: Arc<SpaceHandles>,
    stop: CancellationToken,
) {
    // Frames leave in batches of our own making: nothing is gained by waiting for more.
    // Without the option it is only slower.
    let _ = socket.set_nodelay(true);
    let first = handles.first().admission;
    let Some(tls) = &first.tls else { return serve_plain(socket, http_socket, &stop).await };
    // Boxed: a handshake is large, and most connections are long past theirs.
    match Box::pin(open_tls(socket, &http_socket, tls, &stop)).await {
        Some(OpenedSocket::Encrypted(socket)) => {
            serve_plain(socket, http_socket, &stop).await;
        }
        Some(OpenedSocket::Plain(socket)) => {
            serve_plain(socket, http_socket, &stop).await;
        }
        None => {}
    }
}

enum OpenedSocket {
    Encrypted(UnixStream),
    Plain(TcpStream),
}

/// `None`: there is nothing more to do with the socket.
async fn open_tls(
    mut socket: TcpStream,
    http_socket: &HttpSocket,
    tls: &TlsIdentity,
    stop: &CancellationToken,
) -> Option<OpenedSocket> {
    let opening = async {
        match tls::listen_to(&socket, http_socket.address()).await? {
            ConnectionSecurity::Tls => Ok(Some(OpenedSocket::Encrypted(tls.accept(socket).await?))),
            ConnectionSecurity::PlainFromHere => Ok(Some(OpenedSocket::Plain(socket))),
            ConnectionSecurity::PlainFromElsewhere => {
                http::refuse_plain(&mut socket).await;
                Ok(None)
            }
        }
    };
    let eviction = http_socket.eviction();
    let opened: io::Result<Option<OpenedSocket>> = tokio::select! {
        opened = opening => opened,
        () = eviction.cancelled() => return None,
        () = stop.cancelled() => return None,
        () = sleep_until(http_socket.deadline()) => return None,
    };
    opened.unwrap_or_else(|error| {
        tracing::debug!(%error, "a connection ended before it was encrypted");
        None
    })
}

async fn serve_plain<S: SharedStream>(
    socket: S,
    http_socket: HttpSocket,
    stop: &CancellationToken,
) {
    // Boxed: what HTTP needs is given back when it is over, and a connection must stay small.
    let upgraded = Box::pin(http::serve(socket, http_socket, stop)).await;
    if let Some(http::Upgraded { socket, http_socket, early }) = upgraded {
        let UpgradedSocket { slot, access, way } = http_socket;
        match way {
            UpgradedWay::Here(handle) => {
                // Held to the end: a space stays loaded while somebody has a way in.
                let queue = handle.queue.clone();
                connection::run(socket, early, &handle.admission, &access, queue, stop).await;
            }
            UpgradedWay::There(owner) => {
                let cut = RelayCut::new(stop);
                // Boxed for the same reason.
                let mut passing = Box::pin(pass_on(socket, early, *owner, &cut));
                tokio::select! {
                    () = &mut passing => {}
                    () = access.wait_until_revoked() => {
                        cut.cut(close::POLICY, access.close_reason());
                        passing.await;
                    }
                }
            }
        }
        drop(slot);
    }
}

/// The connection was gone before it was accepted: no reason to pause.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
