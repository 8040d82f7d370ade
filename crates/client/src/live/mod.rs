//! The client that applications use: it shows what is dispatched at once, keeps its channels up to date, and reconnects by
//! itself when the connection is lost.
//!
//! ```no_run
//! # use client::{ConnectionEvent, Live, Options, HostLocator, Update};
//! # use wire::ChannelUri;
//! # async fn demo(chat: ChannelUri) -> Result<(), client::ClientError> {
//! let locator = HostLocator::in_data_directory("data".into());
//! let (live, mut updates) = Live::connect(locator, "my-client-id", Options::default()).await?;
//! live.subscribe(&chat).await?;
//! live.dispatch(&chat, serde_json::json!({"type": "chat/isReadChanged", "isRead": true}))?;
//! assert!(live.chat(&chat).is_some()); // the flag is set already
//! while let Some(update) = updates.next().await {
//!     match update {
//!         Update::Changed { channel, .. } | Update::Reset { channel } => println!("{channel} changed"),
//!         Update::Refused { reason, .. } => println!("no: {reason}"),
//!         Update::Connection(ConnectionEvent::Lost { why }) => println!("{why}; trying again"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Promises: the state is always readable, connected or not; when all answers have come it is the host's. Nothing is
//! sent twice that could take effect twice, nothing is dropped in silence (G-30). Actions and requests of one caller
//! reach the host in the order they were made.
//! Must not know: what the actions are for.

mod backoff;
mod locator;
mod reconnect;
mod shared;
mod supervise;
mod update;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wire::state::{ChatState, RootState, SessionState};
use wire::{Action, ChannelUri, Object};

use crate::connection::Handler;
use crate::{ClientError, Replica};

use self::shared::LiveShared;
use self::supervise::ConnectionSupervisor;

pub use self::locator::HostLocator;
pub use self::update::{ConnectionEvent, Resync, Update, Updates};

/// How a client connects and stays connected.
#[derive(Clone)]
pub struct Options {
    /// Channels to watch from the start.
    pub subscriptions: Vec<ChannelUri>,
    /// Further params of `initialize`: `locale`, `capabilities`, `_meta`.
    pub initialize_params: Object,
    /// Answers the host's own requests; without one each is answered with -32601.
    pub handler: Option<Handler>,
    /// How long the host may be silent before it is pinged; after twice that without an answer the
    /// connection counts as lost.
    pub ping_after: Duration,
    /// The longest wait before the connection is tried again.
    pub retry_max: Duration,
}

impl Default for Options {
    /// The root channel, and nothing special.
    fn default() -> Self {
        Self {
            subscriptions: vec![ChannelUri::root()],
            initialize_params: Object::new(),
            handler: None,
            ping_after: Duration::from_secs(20),
            retry_max: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("subscriptions", &self.subscriptions)
            .field("ping_after", &self.ping_after)
            .field("retry_max", &self.retry_max)
            .finish_non_exhaustive()
    }
}

/// How the host introduced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInfo {
    pub protocol_version: String,
    /// Name and version of its software, if it sent them.
    pub software: Option<String>,
}

/// A client that stays connected. Clones are the same client; when the last is dropped, the connection ends.
#[derive(Clone, Debug)]
pub struct Live {
    shared: Arc<LiveShared>,
    task: Arc<Task>,
}

/// The task behind a client; ends with its last handle.
#[derive(Debug)]
struct Task(Mutex<Option<JoinHandle<()>>>);

impl Drop for Task {
    fn drop(&mut self) {
        let task = self.0.get_mut();
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl Live {
    /// Connects and introduces the client. The state of `options.subscriptions` is there when this returns; a channel
    /// among them that does not exist is left out. Fails if the first attempt does; only later losses are mended.
    ///
    /// `client_id` names this client towards the host: one per running client, since a second connection with the same
    /// id ends the first ([`ClientError::Superseded`]).
    pub async fn connect(
        locator: impl Into<HostLocator>,
        client_id: &str,
        options: Options,
    ) -> Result<(Self, Updates), ClientError> {
        let shared = Arc::new(LiveShared::new(client_id, options.handler.clone()));
        let (supervisor, established, updates) =
            ConnectionSupervisor::start(Arc::clone(&shared), locator.into(), options).await?;
        let task = tokio::spawn(supervisor.run(established));
        let task = Arc::new(Task(Mutex::new(Some(task))));
        Ok((Self { shared, task }, updates))
    }

    pub fn client_id(&self) -> String {
        self.shared.lock().replica.client_id().to_owned()
    }

    /// The host as it introduced itself last.
    pub fn host(&self) -> HostInfo {
        self.shared.lock().host.clone()
    }

    /// Whether the host is on this machine for certain: it was found through its data directory, and proved that it knows what is
    /// there. An address that was named may lead elsewhere, one of loopback too.
    pub fn is_host_here(&self) -> bool {
        self.shared.lock().is_host_here
    }

    /// Whether the connection is there, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.shared.lock().connection.is_some()
    }

    /// Watches a channel from now on, over losses of the connection too. Its state is there when this returns, if it
    /// has any. Given up while it waits, the subscription may still come to be.
    pub async fn subscribe(&self, channel: &ChannelUri) -> Result<(), ClientError> {
        self.subscribe_with(channel, Object::new()).await
    }

    /// The same with further params, `view` and `delivery`, which are used again on later connections.
    pub async fn subscribe_with(
        &self,
        channel: &ChannelUri,
        further: Object,
    ) -> Result<(), ClientError> {
        self.shared.subscribe(channel, further).await
    }

    /// Watches a channel no more; its state is forgotten at once.
    pub async fn unsubscribe(&self, channel: &ChannelUri) {
        {
            let mut inner = self.shared.lock();
            inner.watched.remove(channel);
            inner.replica.drop_channel(channel.as_str());
            inner.cancel_subscriptions(channel);
        }
        // Without a connection there is nothing to end: the next one does not ask for the channel.
        let _ = self.notify("unsubscribe", json!({"channel": channel.as_str()})).await;
    }

    /// Dispatches an action: it shows in the state at once, and is sent now or when the connection is back. What becomes
    /// of it comes as [`Update::Changed`] with this client's id and the number returned as its `origin`, as
    /// [`Update::Refused`], or as [`Update::NotResent`].
    pub fn dispatch(&self, channel: &ChannelUri, action: Value) -> Result<i64, ClientError> {
        let action = Action::decode(action)?;
        let client_seq = {
            let mut inner = self.shared.lock();
            if let Some(why) = &inner.closed {
                return Err(why.clone());
            }
            inner.replica.dispatch(channel.as_str(), action)?
        };
        self.shared.unsent.notify_one();
        Ok(client_seq)
    }

    /// Asks the host, after everything that was dispatched before. Fails at once while there is no connection.
    ///
    /// Not for `subscribe`: its answer must be taken in order with the actions ([`Live::subscribe`] does).
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.shared.flush().await?.request(method, params).await
    }

    /// Tells the host something, after everything that was dispatched before. Fails at once while there is no
    /// connection.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        self.shared.flush().await?.notify(method, params).await
    }

    /// Sets who answers the host's own requests from now on, over losses of the connection too.
    pub fn answer_with(&self, handler: Handler) {
        let mut inner = self.shared.lock();
        if let Some(connection) = &inner.connection {
            connection.answer_with(Arc::clone(&handler));
        }
        inner.handler = Some(handler);
    }

    /// The root channel, ahead of the host by what is pending. A snapshot: cheap to take, never changes.
    pub fn root(&self) -> Option<Arc<RootState>> {
        self.read(|replica| replica.root().cloned())
    }

    /// A session, ahead of the host by what is pending. A snapshot: cheap to take, never changes.
    pub fn session(&self, channel: &ChannelUri) -> Option<Arc<SessionState>> {
        self.read(|replica| replica.session(channel.as_str()).cloned())
    }

    /// A chat, ahead of the host by what is pending. A snapshot: cheap to take, never changes. While it is held, each
    /// change has to copy the list of the active turn's parts: drop it after drawing.
    pub fn chat(&self, channel: &ChannelUri) -> Option<Arc<ChatState>> {
        self.read(|replica| replica.chat(channel.as_str()).cloned())
    }

    /// Reads anything else of the state: confirmed states, what is pending. Nothing is received or dispatched meanwhile, so
    /// it should be short and must not call this client.
    pub fn read<T>(&self, read: impl FnOnce(&Replica) -> T) -> T {
        read(&self.shared.lock().replica)
    }

    /// Why nothing comes any more, once the client is closed.
    pub fn close_reason(&self) -> Option<ClientError> {
        self.shared.lock().closed.clone()
    }

    /// The same for who knows that it is closed.
    pub(crate) fn closed_error(&self) -> ClientError {
        let reason = self.close_reason();
        reason.unwrap_or_else(|| ClientError::Closed("this client was closed".to_owned()))
    }

    /// Sends what is unsent, closes the connection and ends the client for all its handles.
    pub async fn close(self) {
        let task = {
            let mut task = self.task.0.lock();
            task.take()
        };
        if let Some(task) = task {
            self.shared.closing.notify_one();
            let _ = task.await;
        }
    }
}
