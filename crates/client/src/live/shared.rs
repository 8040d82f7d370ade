//! What the handles of a client and its task share: the replica, the current connection, and who waits for what.
//!
//! Promises: an action is taken from the replica and put on the current connection in one step, so that no two are
//! swapped and none goes to a connection that has ended.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use wire::{ChannelUri, Object};

use crate::connection::Handler;
use crate::pump::RpcResult;
use crate::{ClientError, Connection, Replica, Snapshot};

use super::{HostInfo, Update};

const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct LiveShared {
    inner: Mutex<LiveInner>,
    /// Something may have to be sent.
    pub(super) unsent: Notify,
    /// The client is to end.
    pub(super) closing: Notify,
}

pub(super) struct LiveInner {
    pub(super) replica: Replica,
    /// Every channel that is to be watched, with the further params of its subscription; not all have state.
    pub(super) watched: BTreeMap<ChannelUri, Object>,
    pub(super) connection: Option<Arc<Connection>>,
    /// Why there is no connection, while there is none.
    pub(super) disconnected_because: ClientError,
    /// Set once the client has ended for good.
    pub(super) closed: Option<ClientError>,
    pub(super) handler: Option<Handler>,
    pub(super) host: HostInfo,
    /// The last one that was connected to proved that it is on this machine.
    pub(super) is_host_here: bool,
    subscribing: HashMap<u64, Subscribing>,
}

/// A subscription that waits for its answer.
struct Subscribing {
    channel: ChannelUri,
    further: Object,
    /// Which of the client's actions were sent before.
    sent_before: i64,
    done: oneshot::Sender<Result<(), ClientError>>,
}

impl fmt::Debug for LiveShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveShared").finish_non_exhaustive()
    }
}

impl LiveShared {
    pub(super) fn new(client_id: &str, handler: Option<Handler>) -> Self {
        Self {
            inner: Mutex::new(LiveInner {
                replica: Replica::new(client_id),
                watched: BTreeMap::new(),
                connection: None,
                disconnected_because: ClientError::Closed("not connected yet".to_owned()),
                closed: None,
                handler,
                host: HostInfo { protocol_version: String::new(), software: None },
                is_host_here: false,
                subscribing: HashMap::new(),
            }),
            unsent: Notify::new(),
            closing: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LiveInner> {
        // A reader's closure may panic under this lock; it cannot have changed anything.
        self.inner.lock()
    }

    fn current(&self) -> Result<Arc<Connection>, ClientError> {
        let inner = self.lock();
        match (&inner.closed, &inner.connection) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(connection)) => Ok(Arc::clone(connection)),
            (None, None) => Err(inner.disconnected_because.clone()),
        }
    }

    /// Sends what is unsent, in dispatch order; returns the connection it was sent on.
    pub(super) async fn flush(&self) -> Result<Arc<Connection>, ClientError> {
        let connection = self.current()?;
        while self.lock().replica.has_unsent() {
            let slot = connection.reserve().await?;
            let mut inner = self.lock();
            inner.check_current(&connection)?;
            if let Some(params) = inner.replica.take_unsent() {
                slot.notify("dispatchAction", &params);
            }
        }
        Ok(connection)
    }

    pub(super) async fn subscribe(
        &self,
        channel: &ChannelUri,
        further: Object,
    ) -> Result<(), ClientError> {
        let connection = self.flush().await?;
        let slot = connection.reserve().await?;
        let (done, answer) = oneshot::channel();
        {
            let mut inner = self.lock();
            inner.check_current(&connection)?;
            let id = slot.ask("subscribe", &subscribe_params(channel, &further));
            let subscribing = Subscribing {
                channel: channel.clone(),
                further,
                sent_before: inner.replica.sent_up_to(),
                done,
            };
            inner.subscribing.insert(id, subscribing);
        }
        match tokio::time::timeout(SUBSCRIBE_TIMEOUT, answer).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(self.lock().disconnected_because.clone()),
            Err(_) => Err(ClientError::TimedOut {
                method: "subscribe".to_owned(),
                seconds: SUBSCRIBE_TIMEOUT.as_secs(),
            }),
        }
    }
}

impl LiveInner {
    fn check_current(&self, connection: &Arc<Connection>) -> Result<(), ClientError> {
        match &self.connection {
            Some(current) if Arc::ptr_eq(current, connection) => Ok(()),
            Some(_) | None => Err(self.disconnected_because.clone()),
        }
    }

    /// Applies the answer to a subscription in order with the actions; returns the channel whose state was replaced.
    pub(super) fn complete_subscription(
        &mut self,
        id: u64,
        answer: RpcResult,
    ) -> Option<ChannelUri> {
        let subscribing = self.subscribing.remove(&id)?;
        let was_held = self.replica.channels().any(|held| held == subscribing.channel.as_str());
        let taken = answer
            .map_err(ClientError::Rpc)
            .and_then(|result| self.take_snapshot(result, subscribing.sent_before));
        let is_reset = matches!(taken, Ok(true)) && was_held;
        let channel = subscribing.channel;
        if taken.is_ok() {
            self.watched.insert(channel.clone(), subscribing.further);
        }
        let _ = subscribing.done.send(taken.map(drop));
        is_reset.then_some(channel)
    }

    /// Whether the answer held a state.
    fn take_snapshot(&mut self, mut result: Value, sent_before: i64) -> Result<bool, ClientError> {
        let Some(snapshot) = Snapshot::of_subscription(&mut result)? else { return Ok(false) };
        self.replica
            .take_snapshot(snapshot, sent_before)
            .map(|()| true)
            .map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    /// Forgets a channel that the host disposed of, if it was watched; returns the updates for the application.
    pub(super) fn forget_channel(&mut self, channel: &str) -> Vec<Update> {
        let is_watched = self.watched.keys().any(|watched| watched.as_str() == channel);
        self.watched.retain(|watched, _| watched.as_str() != channel);
        let dropped = self.replica.remove_channel(channel);
        let gone = Update::Gone { channel: channel.to_owned() };
        let gone = is_watched.then_some(gone).into_iter();
        gone.chain(dropped.into_iter().map(Update::from)).collect()
    }

    /// The same for a session and its chats.
    pub(super) fn forget_session(&mut self, session: &str) -> Vec<Update> {
        let state = self.replica.confirmed_session(session);
        let chats = state.map_or(&[][..], |state| state.chats.as_slice());
        let channels: Vec<String> =
            chats.iter().map(|chat| chat.resource.clone()).chain([session.to_owned()]).collect();
        channels.iter().flat_map(|channel| self.forget_channel(channel)).collect()
    }

    /// Subscriptions to a channel that are still on their way are not wanted any more: whoever waits for one gets an error.
    pub(super) fn cancel_subscriptions(&mut self, channel: &ChannelUri) {
        let unwanted =
            self.subscribing.extract_if(|_, subscribing| subscribing.channel == *channel);
        for (_, subscribing) in unwanted {
            let why = ClientError::Closed("the channel was unsubscribed meanwhile".to_owned());
            let _ = subscribing.done.send(Err(why));
        }
    }

    /// The client has ended for good.
    pub(super) fn mark_closed(&mut self, why: &ClientError) {
        self.mark_disconnected(why);
        self.closed.get_or_insert_with(|| why.clone());
    }

    /// There is no connection any more; whoever waits on it gets the reason.
    pub(super) fn mark_disconnected(&mut self, why: &ClientError) {
        self.connection = None;
        self.disconnected_because = why.clone();
        self.subscribing.clear();
    }
}

/// The params of a `subscribe`.
pub(super) fn subscribe_params(channel: &ChannelUri, further: &Object) -> Value {
    let mut params = json!({"channel": channel.as_str()});
    for (field, value) in further {
        params[field] = value.clone();
    }
    params
}
