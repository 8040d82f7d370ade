//! Whether this node may speak: what its heartbeats allow, as every kernel of it asks.
//!
//! Promises: past the deadline of the last heartbeat the answer is no, whoever asks and however long it slept: the clock goes on
//! while the process is stopped and while the machine sleeps.
//! Must not know: the database, spaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::lease_table::{BootInstant, NodeId, SpaceId};
use super::node_machine::NodeStanding;
use super::successor::Successor;

/// `CLOCK_BOOTTIME`.
pub(crate) fn boot_now() -> BootInstant {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let millis = u64::try_from(time.tv_nsec / 1_000_000).unwrap_or(0);
    BootInstant(seconds * 1_000 + millis)
}

/// What the node's heartbeats allow.
pub(crate) struct NodeTrust {
    /// Until when the node may speak; 0 while it may not.
    until: AtomicU64,
    standing: watch::Sender<NodeStanding>,
    /// Counts what was decided: only who waits to speak again listens to every heartbeat.
    decisions: watch::Sender<u64>,
}

impl NodeTrust {
    pub(crate) fn new(until: BootInstant) -> Self {
        Self {
            until: AtomicU64::new(until.0),
            standing: watch::Sender::new(NodeStanding::Trusted),
            decisions: watch::Sender::new(0),
        }
    }

    /// Whether something may be said or begun now.
    pub(crate) fn may_speak(&self) -> bool {
        boot_now().0 < self.until.load(Ordering::Acquire)
    }

    /// How long it may go on so.
    pub(super) fn remaining(&self) -> Duration {
        let until = self.until.load(Ordering::Acquire);
        Duration::from_millis(until.saturating_sub(boot_now().0))
    }

    /// What the node's state machine decided.
    pub(super) fn set(&self, standing: NodeStanding, until: BootInstant) {
        let until = match standing {
            NodeStanding::Trusted => until.0,
            NodeStanding::Silent | NodeStanding::Ended => 0,
        };
        self.until.store(until, Ordering::Release);
        self.standing.send_if_modified(|current| {
            let has_changed = *current != standing;
            *current = standing;
            has_changed
        });
        self.decisions.send_modify(|count| *count += 1);
    }

    /// Waits until the node may not speak any more.
    pub(crate) async fn wait_until_silent(&self) {
        let mut standing = self.standing.subscribe();
        // The sender is this very value: it is there while anybody waits.
        let _open = standing.wait_for(|standing| *standing != NodeStanding::Trusted).await;
    }

    /// Waits until the node's place is another process's.
    pub(crate) async fn wait_until_ended(&self) {
        let mut current = self.standing.subscribe();
        let _open = current.wait_for(|current| *current == NodeStanding::Ended).await;
    }
}

/// The right of one space to be served here, as its kernel asks for it. Clones are the same.
#[derive(Clone)]
pub(crate) struct Tenure {
    trust: Arc<NodeTrust>,
    /// The space is another node's: final.
    lost: CancellationToken,
    /// Turns or terminals run: the space is not idle though nobody is connected.
    busy: Arc<AtomicBool>,
    /// Where it is served next; `None`: nowhere, until somebody wants it.
    successor: Option<Successor>,
    /// For log lines.
    pub(crate) served: ServedSpace,
}

/// What log lines about a space have: numbers, and never a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServedSpace {
    pub node: NodeId,
    pub space: SpaceId,
    pub epoch: i64,
}

impl Tenure {
    pub(crate) fn new(trust: Arc<NodeTrust>, served: ServedSpace) -> Self {
        Self {
            served,
            trust,
            lost: CancellationToken::new(),
            busy: Arc::default(),
            successor: None,
        }
    }

    pub(super) fn with_successor(mut self, successor: Successor) -> Self {
        self.successor = Some(successor);
        self
    }

    /// Has the space loaded where it goes, now that it is free.
    pub(crate) async fn load_elsewhere(&self) {
        if let Some(successor) = &self.successor {
            successor.load().await;
        }
    }

    /// Whether something may be said or begun now.
    pub(crate) fn may_speak(&self) -> bool {
        self.trust.may_speak() && !self.lost.is_cancelled()
    }

    pub(crate) fn lose(&self) {
        self.lost.cancel();
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Waits until nothing may be said.
    pub(crate) async fn wait_until_silent(&self) {
        tokio::select! {
            () = self.lost.cancelled() => {}
            () = self.trust.wait_until_silent() => {}
        }
    }

    /// Waits until the space may be spoken for again; `false`: it never will be here.
    pub(crate) async fn wait_until_heard(&self) -> bool {
        let mut decisions = self.trust.decisions.subscribe();
        loop {
            decisions.mark_unchanged();
            if self.is_lost() {
                return false;
            }
            if self.trust.may_speak() {
                return true;
            }
            tokio::select! {
                () = self.lost.cancelled() => {}
                () = self.trust.wait_until_ended() => return false,
                _decided = decisions.changed() => {}
            }
        }
    }

    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.busy.store(is_busy, Ordering::Relaxed);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
impl Tenure {
    /// That of a space on a node whose heartbeats are not answered.
    pub(crate) fn of_silent_node() -> Self {
        let served = ServedSpace { node: 1, space: 1, epoch: 1 };
        Self::new(Arc::new(NodeTrust::new(BootInstant(0))), served)
    }

    /// The node's heartbeats are answered again.
    pub(crate) fn restore_trust(&self) {
        self.trust.set(NodeStanding::Trusted, BootInstant(u64::MAX));
    }
}
