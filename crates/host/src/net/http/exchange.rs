//! One socket while it speaks HTTP: hyper reads and writes, this watches the clock, the place and the host's end.
//!
//! Promises: a head has `HEAD_BYTES_MAX` and `handshake_timeout_ms`; a socket that showed no secret is sent away when its
//! place is needed or its time is over; whoever does not take an answer is cut after `http_stall_ms`; an upgraded socket is
//! given back bare, with the bytes that came behind the head (ADR 0006, ADR 0079).
//! Must not know: what is answered.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1::{Builder, Connection, Parts};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::{AnswerBody, HttpResponse};
use super::http_socket::{HttpSocket, UpgradedSocket};
use super::routes;
use crate::net::connection::drain_until_closed;
use crate::net::stall::StallGuard;

/// The longest request head that is read.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
const HEADERS_MAX: usize = 64;

/// A socket that became a WebSocket.
pub(crate) struct Upgraded<T> {
    pub socket: T,
    pub http_socket: UpgradedSocket,
    /// What came behind the head.
    pub early: Vec<u8>,
}

/// Answers requests until one opens a WebSocket. `None`: there is nothing more to do with the socket.
pub(crate) async fn serve<T>(
    socket: T,
    http_socket: HttpSocket,
    stop: &CancellationToken,
) -> Option<Upgraded<T>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (http_socket, stall) = {
        let stall = Duration::from_millis(http_socket.handles.limits().http_stall_ms);
        (Arc::new(http_socket), stall)
    };
    let socket = TokioIo::new(StallGuard::new(socket, stall));
    let head_time = Duration::from_millis(http_socket.handles.limits().handshake_timeout_ms);
    let mut http = Builder::new()
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .serve_connection(socket, AnswerRequests(Arc::clone(&http_socket)));
    let end = converse(&mut http, &http_socket, stop).await;
    let Parts { io, read_buf, service, .. } = http.into_parts();
    drop(service);
    let mut socket = io.into_inner().into_inner();
    // The one other owner was hyper's.
    let upgraded = Arc::into_inner(http_socket).and_then(HttpSocket::into_upgraded);
    match (end, upgraded) {
        (ExchangeEnd::Over, Some(http_socket)) => {
            return Some(Upgraded { socket, http_socket, early: read_buf.to_vec() });
        }
        (ExchangeEnd::Over, None) => drain_until_closed(&mut socket).await,
        (ExchangeEnd::Refused(refusal), _) => say_last(&mut socket, refusal).await,
        (ExchangeEnd::Gone, _) => {}
    }
    None
}

/// Answers a machine elsewhere that did not encrypt, without reading what it asks.
pub(crate) async fn refuse_plain<T: AsyncRead + AsyncWrite + Unpin>(socket: &mut T) {
    let text = "this host is reached by https and wss from other machines\n";
    say_last(socket, HttpResponse::new(400, text)).await;
}

/// If it does not fit into the empty send buffer, nobody reads it anyway.
async fn say_last<T: AsyncRead + AsyncWrite + Unpin>(socket: &mut T, refusal: HttpResponse) {
    let bytes = refusal.into_bytes();
    if timeout(Duration::ZERO, socket.write_all(&bytes)).await.is_ok() {
        drain_until_closed(socket).await;
    }
}

enum ExchangeEnd {
    /// Everything was answered, or the socket was upgraded.
    Over,
    /// No request is being answered, and this is the last that is said.
    Refused(HttpResponse),
    /// Nothing can be said any more.
    Gone,
}

async fn converse<T>(
    http: &mut Connection<TokioIo<StallGuard<T>>, AnswerRequests>,
    http_socket: &HttpSocket,
    stop: &CancellationToken,
) -> ExchangeEnd
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let evicted = http_socket.eviction();
    let (mut stopping, mut is_waiting) = (false, true);
    loop {
        tokio::select! {
            biased;
            ended = poll_fn(|context| Pin::new(&mut *http).poll(context)) => return match ended {
                Ok(()) => ExchangeEnd::Over,
                // A connection that waits for its next request just ends.
                Err(error) if error.is_timeout() && !http_socket.has_asked() => {
                    ExchangeEnd::Refused(HttpResponse::too_slow())
                }
                // hyper has answered it.
                Err(error) if error.is_parse() => ExchangeEnd::Over,
                Err(_) => ExchangeEnd::Gone,
            },
            () = stop.cancelled(), if !stopping => {
                if !http_socket.has_asked() {
                    return ExchangeEnd::Gone;
                }
                stopping = true;
                // What is being answered is answered.
                Pin::new(&mut *http).graceful_shutdown();
            }
            () = evicted.cancelled() => return if http_socket.has_asked() {
                ExchangeEnd::Gone
            } else {
                ExchangeEnd::Refused(HttpResponse::too_many_handshakes())
            },
            () = sleep_until(http_socket.deadline), if is_waiting => {
                if !http_socket.has_asked() {
                    return ExchangeEnd::Refused(HttpResponse::too_slow());
                }
                // From its first request on, `routes` looks at the time.
                is_waiting = false;
            }
        }
    }
}

/// What hyper calls for each request.
struct AnswerRequests(Arc<HttpSocket>);

impl Service<Request<Incoming>> for AnswerRequests {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let http_socket = Arc::clone(&self.0);
        http_socket.note_request();
        Box::pin(async move { Ok(routes::answer(request, &http_socket).await) })
    }
}
