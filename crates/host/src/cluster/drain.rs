//! How spaces leave a node in order: all of them when it drains, one when an operator wants it elsewhere (ADR 0098).
//!
//! Promises: a turn has the time of `drain_turns_s` to end, then it ends resumable; a few spaces leave at a time, and no more
//! than `CLOSED_PER_SECOND` connections are closed a second beyond those of these few; one that is ordered to a node is that
//! node's before any other may take it; nobody is kept from a space by a lease that this node holds without serving it.
//! Must not know: how a space ends, how leases are kept.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::iter;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::ClusterNode;
use super::lease_table::SpaceId;
use super::node_driver::{DriverInput, LoadedSpace};
use super::successor::Successor;
use crate::journal::{MoveOrder, NodeOrders};
use crate::task;

/// All clients of a node at once would overrun whoever takes them.
const CLOSED_PER_SECOND: u32 = 100;
/// Spaces that leave at the same time: each waits for its last batch and for its lease to be free, and none for another.
const LEAVING_MAX: usize = 8;
/// How soon an order is noticed.
const ORDERS_EVERY: Duration = Duration::from_millis(500);
/// Between two looks at spaces whose turns are to end.
const TURNS_EVERY: Duration = Duration::from_millis(100);
/// Between two looks for spaces that this node is to serve because it offers what they name.
const CLAIMS_EVERY: Duration = Duration::from_secs(10);
/// Between two looks for leases of spaces that failed while the node drains: it does not load them anew.
const ORPHANS_EVERY: Duration = Duration::from_secs(1);

/// When the next connections may be closed.
struct ClosePace(Mutex<Instant>);

impl ClosePace {
    fn new() -> Self {
        Self(Mutex::new(Instant::now()))
    }

    /// Waits until so many more may be closed.
    async fn wait_for(&self, connections: usize) {
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        let time = Duration::from_secs(1).saturating_mul(connections) / CLOSED_PER_SECOND;
        let at = {
            let mut next = self.0.lock();
            let at = (*next).max(Instant::now());
            *next = at + time;
            at
        };
        sleep_until(at).await;
    }
}

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
            tracing::debug!(%error, "other nodes could not be told that this node is draining");
        }
        let until = Instant::now() + self.turns_limit();
        let pace = ClosePace::new();
        let mut freed_at: Option<Instant> = None;
        loop {
            let mut loaded = self.loaded().await;
            let is_empty = loaded.iter().all(|space| space.is_held);
            if is_empty || freed_at.is_none_or(|at| at.elapsed() >= ORPHANS_EVERY) {
                self.free_orphans(&loaded).await;
                freed_at = Some(Instant::now());
            }
            if is_empty {
                return;
            }
            loaded.retain(|space| !space.is_held);
            let is_over = Instant::now() >= until;
            let leaving: Vec<LoadedSpace> =
                loaded.into_iter().filter(|space| is_over || !space.is_busy).collect();
            iter(leaving)
                .for_each_concurrent(LEAVING_MAX, |space| self.give_away(space, &pace))
                .await;
            sleep(TURNS_EVERY).await;
        }
    }

    async fn free_orphans(&self, loaded: &[LoadedSpace]) {
        let served: Vec<SpaceId> = loaded.iter().map(|space| space.id).collect();
        match self.database().free_orphans(self.id(), &served).await {
            // Nobody else looks for it before this node is gone. Beside the rest: spaces that are served wait for their turn.
            Ok(unfinished) => {
                let successors: Vec<Successor> =
                    unfinished.into_iter().map(|space| self.successor_of(space)).collect();
                let loading =
                    iter(successors).for_each_concurrent(LEAVING_MAX, |successor| async move {
                        successor.load().await
                    });
                task::spawn(loading);
            }
            Err(error) => tracing::debug!(%error, "leases that nobody uses are still held"),
        }
    }

    async fn give_away(&self, space: LoadedSpace, pace: &ClosePace) {
        if space.name.is_none() {
            return; // it is being started, and is looked at again
        }
        pace.wait_for(space.users).await;
        self.give_back_some(Some(space.id)).await;
    }

    /// Follows what operators want until the node is gone. `on_drain` is called once, when it is to drain.
    pub(crate) async fn follow_orders(self: Arc<Self>, on_drain: impl FnOnce() + Send) {
        let mut on_drain = Some(on_drain);
        let under_way = Arc::new(Mutex::new(BTreeSet::new()));
        let mut due = interval(ORDERS_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.shared().stop.clone();
        let mut claimed_at: Option<Instant> = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _at = due.tick() => {}
            }
            if claimed_at.is_none_or(|at| at.elapsed() >= CLAIMS_EVERY) {
                self.claim_mounted().await;
                claimed_at = Some(Instant::now());
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
                task::spawn(async move { node.drain_spaces().await });
            }
            for order in moves {
                if under_way.lock().insert(order.space) {
                    let (node, under_way) = (Arc::clone(&self), Arc::clone(&under_way));
                    task::spawn(async move {
                        node.follow_move(&order).await;
                        under_way.lock().remove(&order.space);
                    });
                }
            }
        }
    }

    /// Has spaces served here that work in what this node offers, and that a node without it serves for reading.
    async fn claim_mounted(&self) {
        let mounts = self.shared().config.mounts.iter();
        let labels: Vec<String> = mounts.map(|mount| mount.label.clone()).collect();
        if labels.is_empty() {
            return; // no space can be meant for it
        }
        if let Err(error) = self.database().claim_mounted(self.id(), &labels).await {
            tracing::debug!(%error, "spaces that work in what this node offers were not looked for");
        }
    }

    pub(super) async fn follow_move(&self, order: &MoveOrder) {
        if order.target == self.id() {
            self.take_in(order).await
        } else {
            self.move_out(order).await
        }
    }

    /// It is this node's, or free and nobody else may take it.
    async fn take_in(&self, order: &MoveOrder) {
        match self.space(&order.name).await {
            Ok(super::SpaceLocation::Here(_)) => {
                if let Err(error) = self.database().end_order(order.space, order.target).await {
                    tracing::debug!(%error, "a completed order could not be removed");
                }
            }
            Ok(super::SpaceLocation::At(_)) | Err(_) => {} // the order is read again
        }
    }

    async fn move_out(&self, order: &MoveOrder) {
        let until = Instant::now() + self.turns_limit();
        loop {
            let loaded = self.loaded().await;
            let Some(space) = loaded.iter().find(|space| space.id == order.space) else {
                break; // it is not here any more, though its lease may be: it failed, or could not be given back
            };
            if space.is_held {
                return; // it stays here as long as the node runs
            }
            if !space.is_busy || Instant::now() >= until {
                self.give_back_some(Some(order.space)).await;
                break;
            }
            sleep(TURNS_EVERY).await;
        }
        match self.database().hand_over(order, self.id()).await {
            Ok(true) => tracing::info!(node = self.id(), space = order.space, "a space moved"),
            Ok(false) => {} // the target has it, or is gone
            Err(error) => tracing::debug!(%error, "a space was not handed over"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_are_closed_at_a_pace_whoever_closes_them() {
        let (pace, began) = (ClosePace::new(), Instant::now());
        // A timer may be a millisecond late.
        let is_after = |ms: u128| (ms..=ms + 2).contains(&began.elapsed().as_millis());
        pace.wait_for(50).await;
        assert!(is_after(0), "those of the first space");
        tokio::join!(pace.wait_for(10), pace.wait_for(0), pace.wait_for(1));
        // Half a second for the first, a tenth for the next; one without connections takes no time.
        assert!(is_after(600));
        sleep(Duration::from_secs(5)).await;
        pace.wait_for(1).await;
        assert!(is_after(5_600), "nothing is saved up or owed");
    }
}
