//! How spaces leave a node in order: all of them when it drains, one when an operator wants it elsewhere (ADR 0098).
//!
//! Promises: a turn has the time of `drain_turns_s` to end, then it ends resumable; spaces leave one after the other, and no more
//! than `CLOSED_PER_SECOND` connections are closed a second beyond those of one space; one that is ordered to a node is that
//! node's before any other may take it.
//! Must not know: how a space ends, how leases are kept.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::ClusterNode;
use super::node::lock;
use super::node_driver::{DriverInput, LoadedSpace};
use crate::journal::{MoveOrder, NodeOrders};

/// All clients of a node at once would overrun whoever takes them.
const CLOSED_PER_SECOND: u32 = 100;
/// How soon an order is noticed.
const ORDERS_EVERY: Duration = Duration::from_millis(500);
/// Between two looks at spaces whose turns are to end.
const TURNS_EVERY: Duration = Duration::from_millis(100);

impl ClusterNode {
    async fn loaded(&self) -> Vec<LoadedSpace> {
        let (done, loaded) = oneshot::channel();
        self.shared().tell(DriverInput::List(done)).await;
        // Nobody answers if the driver is gone: nothing is here then.
        loaded.await.unwrap_or_default()
    }

    pub(super) fn turns_limit(&self) -> Duration {
        Duration::from_secs(self.shared().config.limits.server.drain_turns_s)
    }

    /// Gives all spaces back, those that are at rest first; none is taken any more.
    pub(crate) async fn drain_spaces(&self) {
        if let Err(error) = self.drain().await {
            tracing::debug!(%error, "nobody was told that the node is draining");
        }
        let until = Instant::now() + self.turns_limit();
        loop {
            let loaded = self.loaded().await;
            if loaded.is_empty() {
                return;
            }
            let is_over = Instant::now() >= until;
            for space in loaded.iter().filter(|space| is_over || !space.is_busy) {
                self.give_away(space).await;
            }
            sleep(TURNS_EVERY).await;
        }
    }

    async fn give_away(&self, space: &LoadedSpace) {
        let Some(name) = &space.name else {
            return; // it is being started, and is looked at again
        };
        if let Err(error) = self.give_back(name).await {
            tracing::debug!(%error, "a space was not given back yet");
        }
        let closed = u32::try_from(space.users).unwrap_or(u32::MAX);
        sleep(Duration::from_secs(1).saturating_mul(closed) / CLOSED_PER_SECOND).await;
    }

    /// Follows what operators want until the node is gone. `on_drain` is called once, when it is to drain.
    pub(crate) async fn follow_orders(self: Arc<Self>, on_drain: impl FnOnce() + Send) {
        let mut on_drain = Some(on_drain);
        let under_way = Arc::new(Mutex::new(BTreeSet::new()));
        let mut due = interval(ORDERS_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.shared().stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _at = due.tick() => {}
            }
            let NodeOrders { is_draining, moves } =
                match self.database().read_orders(self.id()).await {
                    Ok(orders) => orders,
                    Err(error) => {
                        tracing::debug!(%error, "orders cannot be read now");
                        continue;
                    }
                };
            if is_draining && let Some(on_drain) = on_drain.take() {
                tracing::info!(node = self.id(), "the node drains");
                on_drain();
                let node = Arc::clone(&self);
                tokio::spawn(async move { node.drain_spaces().await });
            }
            for order in moves {
                if lock(&under_way).insert(order.space) {
                    let (node, under_way) = (Arc::clone(&self), Arc::clone(&under_way));
                    tokio::spawn(async move {
                        node.follow_move(&order).await;
                        lock(&under_way).remove(&order.space);
                    });
                }
            }
        }
    }

    async fn follow_move(&self, order: &MoveOrder) {
        match order.target == self.id() {
            true => self.take_in(order).await,
            false => self.move_out(order).await,
        }
    }

    /// It is this node's, or free and nobody else may take it.
    async fn take_in(&self, order: &MoveOrder) {
        match self.space(&order.name).await {
            Ok(super::SpacePlace::Here(_)) => {
                if let Err(error) = self.database().end_order(order.space, order.target).await {
                    tracing::debug!(%error, "an order that is done is still there");
                }
            }
            Ok(super::SpacePlace::At(_)) | Err(_) => {} // the order is read again
        }
    }

    async fn move_out(&self, order: &MoveOrder) {
        let until = Instant::now() + self.turns_limit();
        loop {
            let loaded = self.loaded().await;
            let Some(space) = loaded.iter().find(|space| space.id == order.space) else {
                break; // it is not here any more
            };
            if !space.is_busy || Instant::now() >= until {
                if let Err(error) = self.give_back(&order.name).await {
                    tracing::debug!(%error, "a space was not given back yet");
                }
                break;
            }
            sleep(TURNS_EVERY).await;
        }
        match self.database().hand_over(order.space).await {
            Ok(true) => tracing::info!(node = self.id(), space = order.space, "a space moved"),
            Ok(false) => {} // the target has it, or is gone
            Err(error) => tracing::debug!(%error, "a space was not handed over"),
        }
    }
}
