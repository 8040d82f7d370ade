//! Getting a connection: `initialize` for the first one, `reconnect` after a lost one, and `initialize` on the same socket
//! if the host does not know the client any more (H-088).

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::state::StateError;
use wire::{ChannelUri, Object};

use crate::{
    ClientError, Connection, Envelope, Events, Initialized, ReconnectOutcome, Reconnected, Snapshot,
};

use super::shared::{LiveInner, LiveShared, subscribe_params};
use super::supervise::{ConnectionSupervisor, Established, ListenEnd, update_of};
use super::{ConnectionEvent, HostInfo, HostLocator, Options, Resync, Update};

type WatchedChannels = BTreeMap<ChannelUri, Object>;

/// What a new connection brought.
enum MissedUpdates {
    Replay {
        actions: Vec<Envelope>,
        missing: Vec<String>,
    },
    Snapshots {
        states: RestoredChannels,
        /// Set if the client had to send `initialize` again.
        host: Option<HostInfo>,
    },
}

/// The channels that are there.
struct RestoredChannels {
    snapshots: Vec<Snapshot>,
    stateless: Vec<ChannelUri>,
}

impl RestoredChannels {
    fn has(&self, channel: &ChannelUri) -> bool {
        self.stateless.contains(channel)
            || self.snapshots.iter().any(|snapshot| snapshot.resource == channel.as_str())
    }
}

impl ConnectionSupervisor {
    /// The first connection of a client.
    pub(super) async fn initialize(
        shared: &LiveShared,
        locator: &HostLocator,
        options: &Options,
    ) -> Result<Established, ClientError> {
        let (connection, events) = open(shared, locator).await?;
        let client_id = shared.lock().replica.client_id().to_owned();
        let channels = options.subscriptions.iter().cloned();
        let watched: WatchedChannels = channels.map(|channel| (channel, Object::new())).collect();
        let (states, host) =
            initialize(&connection, &client_id, &watched, &options.initialize_params).await?;
        let connection = Arc::new(connection);
        let mut inner = shared.lock();
        inner.watched = watched;
        inner.watched.retain(|channel, _| states.has(channel));
        inner.replica.apply_snapshots(states.snapshots).map_err(unreadable)?;
        inner.host = host;
        inner.connection = Some(Arc::clone(&connection));
        drop(inner);
        Ok(Established { connection, events })
    }

    /// Tries until there is a connection; an error if the client is closed first.
    pub(super) async fn reconnect(&mut self) -> Result<Established, ClientError> {
        let shared = Arc::clone(&self.shared);
        let mut why = None;
        loop {
            let (attempt, wait) = self.backoff.next();
            let retrying = ConnectionEvent::Retrying { attempt, wait, why };
            if let Err(ListenEnd::Closed(why) | ListenEnd::Lost(why)) =
                self.emit(Update::Connection(retrying)).await
            {
                return Err(why);
            }
            let waiting = async {
                tokio::time::sleep(wait).await;
                self.attempt().await
            };
            let attempted = tokio::select! {
                attempted = waiting => attempted,
                () = shared.closing.notified() => Err(ListenEnd::closed()),
            };
            match attempted {
                Ok(established) => return Ok(established),
                Err(ListenEnd::Closed(over)) => return Err(over),
                Err(ListenEnd::Lost(failed)) => why = Some(failed),
            }
        }
    }

    async fn attempt(&self) -> Result<Established, ListenEnd> {
        let (connection, events) =
            open(&self.shared, &self.locator).await.map_err(ListenEnd::of)?;
        let (client_id, last_seen, watched) = {
            let inner = self.shared.lock();
            let replica = &inner.replica;
            let client_id = replica.client_id().to_owned();
            (client_id, replica.last_seen(), inner.watched.clone())
        };
        let channels: Vec<ChannelUri> = watched.keys().cloned().collect();
        let reconnected = connection.reconnect(&client_id, last_seen, &channels).await;
        let missed = match reconnected {
            Ok(Reconnected::Replay { actions, missing }) => {
                MissedUpdates::Replay { actions, missing }
            }
            Ok(Reconnected::Snapshot(snapshots)) => {
                let states = subscribe_rest(&connection, snapshots, &watched).await;
                MissedUpdates::Snapshots { states: states.map_err(ListenEnd::of)?, host: None }
            }
            Err(ClientError::Rpc(_)) => {
                let initialize_params = &self.options.initialize_params;
                let initialized =
                    initialize(&connection, &client_id, &watched, initialize_params).await;
                let (states, host) = initialized.map_err(ListenEnd::of)?;
                MissedUpdates::Snapshots { states, host: Some(host) }
            }
            Err(why) => return Err(ListenEnd::of(why)),
        };
        let connection = Arc::new(connection);
        let updates = {
            let mut inner = self.shared.lock();
            let updates = apply_missed(&mut inner, missed)
                .map_err(|error| ListenEnd::Lost(unreadable(error)))?;
            inner.connection = Some(Arc::clone(&connection));
            updates
        };
        self.unsubscribe_unwanted(&connection, &channels).await;
        for update in updates {
            self.emit(update).await?;
        }
        Ok(Established { connection, events })
    }

    /// Ends the subscriptions that were cancelled while they were being restored.
    async fn unsubscribe_unwanted(&self, connection: &Connection, asked: &[ChannelUri]) {
        let unwanted: Vec<&ChannelUri> = {
            let inner = self.shared.lock();
            let is_unwanted = |channel: &&ChannelUri| !inner.watched.contains_key(*channel);
            asked.iter().filter(is_unwanted).collect()
        };
        for channel in unwanted {
            let params = subscribe_params(channel, &Object::new());
            // A connection that fails is noticed by who reads from it.
            let _ = connection.notify("unsubscribe", params).await;
        }
    }
}

async fn open(
    shared: &LiveShared,
    locator: &HostLocator,
) -> Result<(Connection, Events), ClientError> {
    let destination = locator.locate()?;
    let (connection, events) = Connection::connect_to(&destination).await?;
    shared.lock().is_host_here = destination.must_prove();
    if let Some(handler) = shared.lock().handler.clone() {
        connection.answer_with(handler);
    }
    Ok((connection, events))
}

/// Sends `initialize` and watches the client's channels from where they are now.
async fn initialize(
    connection: &Connection,
    client_id: &str,
    watched: &WatchedChannels,
    initialize_params: &Object,
) -> Result<(RestoredChannels, HostInfo), ClientError> {
    // `initialize` takes no further params of a subscription.
    let plain: Vec<ChannelUri> = watched
        .iter()
        .filter(|(_, further)| further.is_empty())
        .map(|(channel, _)| channel.clone())
        .collect();
    let Initialized { protocol_version, server_info: software, snapshots, .. } =
        connection.initialize_with(client_id, &plain, initialize_params).await?;
    let states = subscribe_rest(connection, snapshots, watched).await?;
    let host = HostInfo { protocol_version, software };
    Ok((states, host))
}

/// Subscribes to what came without a snapshot: it has none, or the host left it out (H-029, H-082).
async fn subscribe_rest(
    connection: &Connection,
    snapshots: Vec<Snapshot>,
    watched: &WatchedChannels,
) -> Result<RestoredChannels, ClientError> {
    let mut states = RestoredChannels { snapshots, stateless: Vec::new() };
    for (channel, further) in watched {
        if states.has(channel) {
            continue;
        }
        let params = subscribe_params(channel, further);
        match connection.request("subscribe", params).await {
            Ok(mut result) => match Snapshot::of_subscription(&mut result)? {
                Some(snapshot) => states.snapshots.push(snapshot),
                None => states.stateless.push(channel.clone()),
            },
            Err(ClientError::Rpc(_)) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(states)
}

/// Brings the replica up to date; returns the updates for the application.
fn apply_missed(inner: &mut LiveInner, missed: MissedUpdates) -> Result<Vec<Update>, StateError> {
    let (how, changes, outcome) = match missed {
        MissedUpdates::Replay { actions, missing } => {
            let mut outcome = inner.replica.apply_replay(&actions, &missing);
            let received = actions.into_iter().zip(std::mem::take(&mut outcome.effects));
            let changes: Vec<Update> = received
                .filter_map(|(envelope, effect)| update_of(inner, envelope, effect))
                .collect();
            (Resync::Replay, changes, outcome)
        }
        MissedUpdates::Snapshots { states, host } => {
            let mut outcome = inner.replica.apply_snapshots(states.snapshots)?;
            let how = match host {
                Some(host) => {
                    inner.host = host;
                    Resync::Reinitialized
                }
                None => Resync::Snapshot,
            };
            let is_there = |channel: &ChannelUri| {
                states.stateless.contains(channel)
                    || outcome.reset.iter().any(|held| held == channel.as_str())
            };
            let lost: Vec<String> = inner
                .watched
                .keys()
                .filter(|channel| !is_there(channel))
                .map(ChannelUri::to_string)
                .collect();
            outcome.gone = lost;
            // Left while it was on its way.
            let watched = &inner.watched;
            let is_watched = |held: &String| watched.keys().any(|channel| channel.as_str() == held);
            let (reset, left): (Vec<_>, Vec<_>) = outcome.reset.into_iter().partition(is_watched);
            outcome.reset = reset;
            for channel in left {
                inner.replica.drop_channel(&channel);
            }
            (how, Vec::new(), outcome)
        }
    };
    let ReconnectOutcome { reset, gone, not_resent, effects: _ } = outcome;
    inner.watched.retain(|channel, _| !gone.iter().any(|gone| gone == channel.as_str()));
    let mut updates = vec![Update::Connection(ConnectionEvent::Restored { how })];
    updates.extend(changes);
    updates.extend(reset.into_iter().map(|channel| Update::Reset { channel }));
    updates.extend(gone.into_iter().map(|channel| Update::Gone { channel }));
    updates.extend(not_resent.into_iter().map(Update::from));
    Ok(updates)
}

fn unreadable(error: StateError) -> ClientError {
    ClientError::Unreadable(error.to_string())
}
