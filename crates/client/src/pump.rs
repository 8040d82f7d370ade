//! The two tasks of a connection, and what they share with it: one reads the socket, one writes to it.
//!
//! Promises: reading never waits for writing or for the application. The first reason to close is the one that is reported.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use wire::rpc::{self, code};
use wire::{Id, Incoming, RpcError};

use crate::ClientError;
use crate::connection::{Handler, HostRequest, Notification};

type Socket = WebSocketStream<TcpStream>;
pub(crate) type RpcResult = Result<Value, RpcError>;

/// Deeper nesting than any host sends.
const DEPTH_MAX: usize = 256;
/// Requests of the host that are being answered at once.
const HOST_REQUESTS_MAX: usize = 64;

/// Who gets an answer.
enum ReplyTo {
    /// Whoever asked, as soon as it is there.
    Asker(oneshot::Sender<RpcResult>),
    /// The events, in order with the notifications.
    Events,
}

/// A message of the host, in order.
#[derive(Debug)]
pub(crate) enum HostMessage {
    Notification(Notification),
    /// The answer to a request whose id came from [`ConnectionShared::expect_in_event_order`].
    Answer(u64, RpcResult),
}

/// What the connection and its tasks share.
#[derive(Default)]
pub(crate) struct ConnectionShared {
    inner: Mutex<ConnectionInner>,
    last_id: AtomicU64,
    last_client_seq: AtomicI64,
}

#[derive(Default)]
struct ConnectionInner {
    waiting: HashMap<u64, ReplyTo>,
    closed: Option<ClientError>,
    handler: Option<Handler>,
}

impl fmt::Debug for ConnectionShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionShared").finish_non_exhaustive()
    }
}

/// A request that waits for its answer; forgotten when dropped.
pub(crate) struct PendingRequest<'a> {
    id: u64,
    shared: &'a ConnectionShared,
}

impl PendingRequest<'_> {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.shared.inner.lock().waiting.remove(&self.id);
    }
}

impl ConnectionShared {
    pub(crate) fn set_handler(&self, handler: Handler) {
        self.inner.lock().handler = Some(handler);
    }

    pub(crate) fn next_client_seq(&self) -> i64 {
        self.last_client_seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn expect_answer(
        &self,
        sender: oneshot::Sender<RpcResult>,
    ) -> Result<PendingRequest<'_>, ClientError> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut inner = self.inner.lock();
        if let Some(why) = &inner.closed {
            return Err(why.clone());
        }
        inner.waiting.insert(id, ReplyTo::Asker(sender));
        Ok(PendingRequest { id, shared: self })
    }

    /// The id of a request whose answer is ordered with the events.
    pub(crate) fn expect_in_event_order(&self) -> u64 {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.inner.lock().waiting.insert(id, ReplyTo::Events);
        id
    }

    pub(crate) fn close_error(&self) -> ClientError {
        let closed = self.inner.lock().closed.clone();
        closed.unwrap_or_else(|| ClientError::Closed("this client ended it".to_owned()))
    }

    /// Records the first reason; waiting requests fail with it.
    pub(crate) fn close(&self, why: ClientError) {
        let mut inner = self.inner.lock();
        inner.closed.get_or_insert(why);
        inner.waiting.clear();
    }

    /// Hands an answer to who asked, or back if it belongs among the events.
    fn route_answer(&self, id: &Id, answer: RpcResult) -> Option<HostMessage> {
        let Id::Number(number) = id else { return None };
        let id = number.as_u64()?;
        let waiter = self.inner.lock().waiting.remove(&id)?;
        match waiter {
            ReplyTo::Asker(sender) => {
                let _ = sender.send(answer);
                None
            }
            ReplyTo::Events => Some(HostMessage::Answer(id, answer)),
        }
    }
}

/// Writes what is there, then flushes once.
pub(crate) async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outgoing: mpsc::Receiver<Message>,
    shared: Arc<ConnectionShared>,
) {
    while let Some(message) = outgoing.recv().await {
        let mut result = sink.feed(message).await;
        while let (Ok(()), Ok(message)) = (&result, outgoing.try_recv()) {
            result = sink.feed(message).await;
        }
        if result.is_ok() {
            result = sink.flush().await;
        }
        if let Err(error) = result {
            shared.close(ClientError::Closed(error.to_string()));
            return; // nothing more can be sent
        }
    }
}

pub(crate) async fn read(
    mut stream: SplitStream<Socket>,
    events: mpsc::Sender<HostMessage>,
    outgoing: mpsc::Sender<Message>,
    shared: Arc<ConnectionShared>,
) {
    let mut answers = JoinSet::new();
    let why = loop {
        while answers.try_join_next().is_some() {}
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => break ClientError::Closed(error.to_string()),
            None => break ClientError::Closed("the host ended it".to_owned()),
        };
        let text = match message {
            Message::Text(text) => text,
            Message::Close(frame) => break read_close_frame(frame),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                continue;
            }
        };
        let message = match rpc::decode(&text, DEPTH_MAX) {
            Ok(Incoming::Response { id, result }) => shared.route_answer(&id, result),
            Ok(Incoming::Notification { method, params }) => {
                Some(HostMessage::Notification(Notification { method, params }))
            }
            Ok(Incoming::Request { id, method, params }) => {
                let handler = shared.inner.lock().handler.clone();
                let busy = answers.len() >= HOST_REQUESTS_MAX;
                let outgoing = outgoing.clone();
                answers.spawn(async move {
                    let answer = match handler {
                        None => Err(RpcError::new(
                            code::METHOD_NOT_FOUND,
                            format!("`{method}` is not served"),
                        )),
                        Some(_) if busy => {
                            Err(RpcError::new(code::INTERNAL_ERROR, "too many requests at once"))
                        }
                        Some(handler) => handler(HostRequest { method, params }).await,
                    };
                    let response = match answer {
                        Ok(result) => rpc::response(&id, &result),
                        Err(error) => rpc::error_response(&id, &error),
                    };
                    let _ = outgoing.send(text_message(&response)).await;
                });
                None
            }
            Err(malformed) => break ClientError::Unreadable(malformed.error.message),
        };
        match message.map(|message| events.try_send(message)) {
            // An application that dropped the events does not want them.
            None | Some(Ok(()) | Err(TrySendError::Closed(_))) => {}
            Some(Err(TrySendError::Full(_))) => {
                break ClientError::Overflow { events: events.max_capacity() };
            }
        }
    };
    shared.close(why);
}

/// Why the host closed the connection, by its close frame.
fn read_close_frame(frame: Option<CloseFrame>) -> ClientError {
    let Some(frame) = frame else { return ClientError::Closed("the host closed it".to_owned()) };
    // H-036. Limits have the same code, so the reason must distinguish them.
    if frame.code == CloseCode::Policy && frame.reason.contains("client id") {
        return ClientError::Superseded;
    }
    ClientError::Closed(format!("{} (code {})", frame.reason, frame.code))
}

/// A text frame of what `rpc` encoded, which is UTF-8 by construction.
pub(crate) fn text_message(encoded: &[u8]) -> Message {
    Message::Text(Utf8Bytes::from(String::from_utf8_lossy(encoded).into_owned()))
}
