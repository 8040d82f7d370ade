//! What the steps since the last commit changed of peers.

use wire::ChannelUri;

use super::subscription::{Subscription, Watcher};
use crate::io::PeerId;

/// What the steps since the last commit changed.
#[derive(Default)]
pub(super) struct Undo {
    /// Some step since the last commit must be written.
    pub(super) wrote: bool,
    pub(super) subscriptions: Vec<SubscriptionBefore>,
    pub(super) admitted: Vec<(usize, PeerId)>,
    /// Clients whose rows were made true.
    pub(super) rewritten: Vec<(usize, String)>,
    /// The number of this step since the last commit: each note has that of its own.
    pub(super) step: usize,
}

/// What was true of a peer and a channel before a change.
pub(super) struct SubscriptionBefore {
    pub(super) step: usize,
    pub(super) peer: PeerId,
    pub(super) uri: ChannelUri,
    pub(super) watcher: Option<Watcher>,
    pub(super) subscription: Option<Subscription>,
    pub(super) was_served: bool,
}

impl Undo {
    pub(crate) fn note_admitted(&mut self, peer: PeerId) {
        let last = self.admitted.last();
        debug_assert!(
            last.is_none_or(|(step, _)| *step <= self.step),
            "notes are in the order of their steps"
        );
        self.admitted.push((self.step, peer));
    }

    /// What the journal holds of a client is made true by this batch, or is not true without it.
    pub(crate) fn note_rewritten(&mut self, client_id: &str) {
        self.rewritten.push((self.step, client_id.to_owned()));
    }

    /// What a peer's subscription was before is not restored.
    pub(crate) fn drop_notes(&mut self, peer: PeerId, uri: &ChannelUri) {
        self.subscriptions.retain(|before| before.peer != peer || before.uri != *uri);
    }
}
