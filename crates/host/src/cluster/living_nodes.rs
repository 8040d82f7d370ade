//! Which nodes live, as the database last answered a heartbeat of this one.
//!
//! Promises: nothing is asked for it; a node is gone only by an answer to a heartbeat that was sent after somebody began to wait,
//! so that one that has just registered is not taken for gone; while the database is away nobody is.
//! Must not know: who waits, and why.

use std::collections::BTreeSet;

use tokio::sync::watch;

use super::heartbeat::boot_now;
use super::lease_table::{BootInstant, NodeId};

/// What the last heartbeat was answered.
pub(super) struct LivingNodes {
    heard: watch::Sender<LivingNodesAnswer>,
}

struct LivingNodesAnswer {
    asked_at: BootInstant,
    living: BTreeSet<NodeId>,
}

impl Default for LivingNodes {
    fn default() -> Self {
        let nothing = LivingNodesAnswer { asked_at: BootInstant(0), living: BTreeSet::new() };
        Self { heard: watch::Sender::new(nothing) }
    }
}

impl LivingNodes {
    /// The answer to a heartbeat that was sent at a moment.
    pub(super) fn note(&self, asked_at: BootInstant, living: &[NodeId]) {
        let living = living.iter().copied().collect();
        self.heard.send_replace(LivingNodesAnswer { asked_at, living });
    }

    /// Waits until a node that lived a moment ago does not any more.
    pub(super) async fn wait_until_gone(&self, node: NodeId) {
        let since = boot_now();
        let mut heard = self.heard.subscribe();
        // The sender is this very value: it is there while anybody waits.
        let _open =
            heard.wait_for(|heard| heard.asked_at > since && !heard.living.contains(&node)).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_node_is_gone_by_an_answer_that_was_asked_for_later_and_by_no_other() {
        let nodes = LivingNodes::default();
        let mut waiting = std::pin::pin!(nodes.wait_until_gone(7));
        assert!(waiting.as_mut().now_or_never().is_none(), "nobody said so");
        nodes.note(BootInstant(1), &[3]);
        assert!(waiting.as_mut().now_or_never().is_none(), "asked before");
        let later = boot_now().plus(1_000);
        nodes.note(later, &[3, 7]);
        assert!(waiting.as_mut().now_or_never().is_none(), "it lives");
        nodes.note(later, &[3]);
        waiting.await;
    }
}
