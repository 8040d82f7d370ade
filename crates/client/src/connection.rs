//! One connection to a host: requests, notifications, and what the host asks.
//!
//! Promises: notifications come in the order the host sent them, none is dropped; an application that does not read
//! them in time loses the connection, not a message. A request is answered, times out, or fails with the reason the
//! connection closed for.
//! Must not know: what the methods mean, beyond the handshake.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;
use wire::rpc;
use wire::{ChannelUri, Object, RpcError};

use crate::destination::{Destination, HostTarget, open_socket};
use crate::pump::{self, ConnectionShared, HostMessage};
use crate::{ClientError, Envelope, Snapshot};

/// Protocol versions this client speaks, the best first.
pub const PROTOCOL_VERSIONS: [&str; 1] = ["1.0.0"];

/// Notifications that may wait for the application before the connection is cut.
const EVENTS_MAX: usize = 65_536;
/// Messages that may wait for the socket; senders wait when it is full.
const OUTGOING_MAX: usize = 1_024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A notification of the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Value,
}

/// A request of the host to this client.
#[derive(Debug, Clone, PartialEq)]
pub struct HostRequest {
    pub method: String,
    pub params: Value,
}

/// Answers what the host asks. Without one every request is answered with -32601.
pub type Handler =
    Arc<dyn Fn(HostRequest) -> BoxFuture<'static, Result<Value, RpcError>> + Send + Sync>;

/// A connection. Dropping it closes the socket; [`Connection::close`] sends a close frame first.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<ConnectionShared>,
    outgoing: mpsc::Sender<Message>,
    tasks: tokio::task::JoinSet<()>,
}

/// The host's notifications, in order.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<HostMessage>,
    shared: Arc<ConnectionShared>,
}

impl Events {
    /// The next notification; an error once the connection is closed and everything before that was read.
    /// May be dropped and called again: nothing is lost.
    pub async fn next(&mut self) -> Result<Notification, ClientError> {
        loop {
            if let HostMessage::Notification(notification) = self.next_message().await? {
                return Ok(notification);
            }
        }
    }

    /// The next notification, or the answer to a request that was made by [`SendSlot::ask`].
    pub(crate) async fn next_message(&mut self) -> Result<HostMessage, ClientError> {
        match self.receiver.recv().await {
            Some(message) => Ok(message),
            None => Err(self.shared.close_error()),
        }
    }
}

/// A host's answer to `initialize`.
#[derive(Debug, Clone, PartialEq)]
pub struct Initialized {
    pub protocol_version: String,
    pub server_seq: u64,
    /// Name and version of the host's software, if it says so.
    pub server_info: Option<String>,
    pub snapshots: Vec<Snapshot>,
}

/// A host's answer to `reconnect`.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconnected {
    /// Everything that was missed, and the channels that are gone.
    Replay { actions: Vec<Envelope>, missing: Vec<String> },
    /// Too much was missed: the state as it is now.
    Snapshot(Vec<Snapshot>),
}

impl Connection {
    /// Connects to an address that is trusted as it is.
    pub async fn connect(target: &HostTarget) -> Result<(Self, Events), ClientError> {
        Self::connect_to(&target.clone().into()).await
    }

    /// Connects; sends the token only after the proof that the destination asks for.
    pub async fn connect_to(destination: &Destination) -> Result<(Self, Events), ClientError> {
        let connecting = open_socket(destination);
        let socket = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_) => {
                let url = destination.target().url.clone();
                let why = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
                return Err(ClientError::Unreachable { url, why });
            }
        };
        let (sink, stream) = socket.split();
        let (outgoing, outgoing_receiver) = mpsc::channel(OUTGOING_MAX);
        let (events, receiver) = mpsc::channel(EVENTS_MAX);
        let shared = Arc::new(ConnectionShared::default());
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(pump::write(sink, outgoing_receiver, Arc::clone(&shared)));
        tasks.spawn(pump::read(stream, events, outgoing.clone(), Arc::clone(&shared)));
        Ok((Self { shared: Arc::clone(&shared), outgoing, tasks }, Events { receiver, shared }))
    }

    /// Sets who answers the host's own requests from now on.
    pub fn answer_with(&self, handler: Handler) {
        self.shared.set_handler(handler);
    }

    pub async fn initialize(
        &self,
        client_id: &str,
        initial_subscriptions: &[ChannelUri],
    ) -> Result<Initialized, ClientError> {
        self.initialize_with(client_id, initial_subscriptions, &Object::new()).await
    }

    /// The same, with further params: `locale`, `capabilities`, `_meta`.
    pub async fn initialize_with(
        &self,
        client_id: &str,
        initial_subscriptions: &[ChannelUri],
        further: &Object,
    ) -> Result<Initialized, ClientError> {
        let subscriptions: Vec<&str> =
            initial_subscriptions.iter().map(ChannelUri::as_str).collect();
        let mut params = json!({
            "channel": ChannelUri::root().as_str(),
            "protocolVersions": PROTOCOL_VERSIONS,
            "clientId": client_id,
            "clientInfo": {"name": "greenroom", "version": env!("CARGO_PKG_VERSION")},
            "initialSubscriptions": subscriptions,
        });
        for (field, value) in further {
            params[field] = value.clone();
        }
        let mut result = self.request("initialize", params).await?;
        let info = &result["serverInfo"];
        let server_info = info["name"].as_str().map(|name| match info["version"].as_str() {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        });
        let unreadable =
            || ClientError::Unreadable("an `initialize` result without version or seq".to_owned());
        Ok(Initialized {
            protocol_version: result["protocolVersion"].as_str().ok_or_else(unreadable)?.to_owned(),
            server_seq: result["serverSeq"].as_u64().ok_or_else(unreadable)?,
            server_info,
            snapshots: Snapshot::list(&mut result, "snapshots")?,
        })
    }

    /// Takes up where an earlier connection of the same client id stopped.
    pub async fn reconnect(
        &self,
        client_id: &str,
        last_seen: u64,
        subscriptions: &[ChannelUri],
    ) -> Result<Reconnected, ClientError> {
        let subscriptions: Vec<&str> = subscriptions.iter().map(ChannelUri::as_str).collect();
        let params = json!({
            "channel": ChannelUri::root().as_str(),
            "clientId": client_id,
            "lastSeenServerSeq": last_seen,
            "subscriptions": subscriptions,
        });
        let mut result = self.request("reconnect", params).await?;
        if result["type"] == "snapshot" {
            return Ok(Reconnected::Snapshot(Snapshot::list(&mut result, "snapshots")?));
        }
        let Some(Value::Array(actions)) = result.get_mut("actions").map(Value::take) else {
            let what = "a `reconnect` result with neither actions nor snapshots".to_owned();
            return Err(ClientError::Unreadable(what));
        };
        let missing = result["missing"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Reconnected::Replay {
            actions: actions.into_iter().map(Envelope::from_value).collect::<Result<_, _>>()?,
            missing: missing.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        })
    }

    /// Subscribes to a channel; the snapshot if it has state.
    pub async fn subscribe(&self, channel: &ChannelUri) -> Result<Option<Snapshot>, ClientError> {
        let mut result = self.request("subscribe", json!({"channel": channel.as_str()})).await?;
        Snapshot::of_subscription(&mut result)
    }

    /// Asks whether the host is there.
    pub async fn ping(&self) -> Result<(), ClientError> {
        self.request("ping", json!({"channel": ChannelUri::root().as_str()})).await.map(drop)
    }

    /// Dispatches an action; returns the number under which its echo or its refusal comes back.
    pub async fn dispatch(&self, channel: &ChannelUri, action: Value) -> Result<i64, ClientError> {
        let client_seq = self.shared.next_client_seq();
        let params =
            json!({"channel": channel.as_str(), "clientSeq": client_seq, "action": action});
        self.notify("dispatchAction", params).await?;
        Ok(client_seq)
    }

    pub async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        self.send(&rpc::notification(method, &params)).await
    }

    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let (sender, answer) = oneshot::channel();
        let waiting = self.shared.expect_answer(sender)?;
        self.send(&rpc::request(waiting.id(), method, &params)).await?;
        match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(error))) => Err(ClientError::Rpc(error)),
            Ok(Err(_)) => Err(self.shared.close_error()),
            Err(_) => {
                let seconds = REQUEST_TIMEOUT.as_secs();
                Err(ClientError::TimedOut { method: method.to_owned(), seconds })
            }
        }
    }

    /// A slot among the messages to be sent, so that what fills it can be chosen at the last moment.
    pub(crate) async fn reserve(&self) -> Result<SendSlot<'_>, ClientError> {
        match self.outgoing.reserve().await {
            Ok(permit) => Ok(SendSlot { permit, shared: &self.shared }),
            Err(_) => Err(self.shared.close_error()),
        }
    }

    async fn send(&self, encoded: &[u8]) -> Result<(), ClientError> {
        let message = pump::text_message(encoded);
        self.outgoing.send(message).await.map_err(|_| self.shared.close_error())
    }

    /// Ends it for everyone who waits on it, for this reason.
    pub(crate) fn abort(&self, why: ClientError) {
        self.shared.close(why);
    }

    /// Sends a close frame, and waits a moment for what was sent before.
    pub async fn close(self) {
        let Self { outgoing, mut tasks, .. } = self;
        if outgoing.send(Message::Close(None)).await.is_ok() {
            // The writer ends when its last sender is dropped.
            drop(outgoing);
            let ended = async { while tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
        }
    }
}

/// A slot for one outgoing message.
pub(crate) struct SendSlot<'a> {
    permit: mpsc::Permit<'a, Message>,
    shared: &'a ConnectionShared,
}

impl SendSlot<'_> {
    pub(crate) fn notify(self, method: &str, params: &Value) {
        self.permit.send(pump::text_message(&rpc::notification(method, params)));
    }

    /// Asks with the answer to come as a [`HostMessage::Answer`] under the id returned.
    pub(crate) fn ask(self, method: &str, params: &Value) -> u64 {
        let id = self.shared.expect_in_event_order();
        self.permit.send(pump::text_message(&rpc::request(id, method, params)));
        id
    }
}
