//! The updates of a [`Live`](super::Live) client to its application, in the order it happened.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use wire::Action;

use crate::{ClientError, DropReason, DroppedAction, Envelope, Notification};

/// Updates that may wait for the application before the client gives up.
pub(super) const UPDATES_MAX: usize = 65_536;

/// Something happened. The state that [`Live`](super::Live) shows already has it, and may have more.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// An action was confirmed: the host's, another client's, or the echo of one's own (then its `origin` is this
    /// client's). It comes as the host recorded it.
    Changed { channel: String, envelope: Arc<Envelope> },
    /// The host refused an action of this client; what it did to the state ahead of time is undone.
    Refused { channel: String, client_seq: i64, action: Arc<Action>, reason: String },
    /// An action was dropped, after a reconnect because sending it again could do what is no longer meant (G-30). It is
    /// not known whether the host took it: the state shows. What it did ahead of time is undone.
    NotResent { channel: String, client_seq: i64, action: Arc<Action>, why: DropReason },
    /// The state of a channel was replaced by a newer snapshot: whatever was derived from actions starts over.
    Reset { channel: String },
    /// A channel that was watched is no longer there; its state is forgotten. Comes when the host says so on the
    /// session or the root channel, if that is watched, and after a reconnect.
    Gone { channel: String },
    /// A notification that is no action: `root/sessionAdded` and the like. Not replayed after a reconnect.
    Notification(Notification),
    /// The connection was lost, is tried again, or is back.
    Connection(ConnectionEvent),
}

impl From<DroppedAction> for Update {
    fn from(dropped: DroppedAction) -> Self {
        Self::NotResent {
            channel: dropped.channel,
            client_seq: dropped.client_seq,
            action: dropped.action,
            why: dropped.why,
        }
    }
}

/// A change of the connection.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectionEvent {
    /// It ended. Dispatching goes on, ahead of the host; requests fail until it is back.
    Lost { why: ClientError },
    /// The `attempt`th try (from 1) begins after this wait; `why` the one before failed, if there was one.
    Retrying { attempt: u32, wait: Duration, why: Option<ClientError> },
    /// It is back, and every channel that is still there is watched again. Notifications that were missed are not
    /// repeated: a list of sessions has to be fetched anew (H-086).
    Restored { how: Resync },
    /// It ended for good. Nothing comes after this.
    Closed { why: ClientError },
}

/// How the state was brought up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// Every action that was missed was replayed: each comes as [`Update::Changed`].
    Replay,
    /// Too much was missed: each channel comes as [`Update::Reset`].
    Snapshot,
    /// The host had forgotten this client, which sent `initialize` again: each channel comes as [`Update::Reset`].
    Reinitialized,
}

/// The updates of one client, in order.
#[derive(Debug)]
pub struct Updates {
    pub(super) receiver: mpsc::Receiver<Update>,
}

impl Updates {
    /// The next update; none once the client is closed. May be dropped and called again: nothing is lost.
    ///
    /// They are to be read: a client whose application leaves 65,536 of them unread ends with
    /// [`ClientError::Overflow`]. An application that wants none drops this.
    pub async fn next(&mut self) -> Option<Update> {
        self.receiver.recv().await
    }

    /// The next update if one is there already.
    pub fn try_next(&mut self) -> Option<Update> {
        self.receiver.try_recv().ok()
    }
}
