//! How changes of peers are noted and undone.
//!
//! Promises: what was answered before the first step that must be written stands, and so do the ends of connections and
//! subscriptions that their own clients wished.

use std::collections::BTreeSet;

use wire::ChannelUri;

use super::Peers;
use super::undo::{SubscriptionBefore, Undo};
use crate::io::PeerId;

impl Peers {
    pub(crate) fn begin_step(&mut self, step: usize) {
        self.undo.step = step;
    }

    /// What was answered before the first step that must be written stands, whatever happens to the batch.
    pub(crate) fn end_step(&mut self, wrote: bool) {
        self.undo.wrote |= wrote;
        if !self.undo.wrote {
            self.undo.subscriptions.clear();
            self.undo.admitted.clear();
        }
    }

    pub(crate) fn commit(&mut self) {
        self.undo = Undo::default();
    }

    pub(crate) fn roll_back(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        self.undo_notes(undo);
    }

    /// What some steps changed is undone; what others did stands. Returns the connections that are not admitted any more.
    pub(crate) fn undo_steps(&mut self, failed: &BTreeSet<usize>) -> Vec<PeerId> {
        let Undo { wrote, subscriptions, admitted, rewritten, step } =
            std::mem::take(&mut self.undo);
        let (subscriptions, kept_subscriptions) =
            subscriptions.into_iter().partition(|before| failed.contains(&before.step));
        let (admitted, kept_admitted): (Vec<_>, Vec<_>) =
            admitted.into_iter().partition(|(step, _)| failed.contains(step));
        let (rewritten, kept_rewritten) =
            rewritten.into_iter().partition(|(step, _)| failed.contains(step));
        let dismissed = admitted.iter().map(|(_, peer)| *peer).collect();
        self.undo_notes(Undo { subscriptions, admitted, rewritten, ..Undo::default() });
        self.undo = Undo {
            wrote,
            subscriptions: kept_subscriptions,
            admitted: kept_admitted,
            rewritten: kept_rewritten,
            step,
        };
        dismissed
    }

    /// The subscriptions that changed since the last commit, and the steps that changed them.
    pub(crate) fn changed_subscriptions(
        &self,
    ) -> impl Iterator<Item = (PeerId, &ChannelUri, usize)> {
        self.undo.subscriptions.iter().map(|before| (before.peer, &before.uri, before.step))
    }

    /// The connections that were admitted since the last commit, and the steps that admitted them.
    pub(crate) fn newly_admitted(&self) -> &[(usize, PeerId)] {
        &self.undo.admitted
    }

    fn undo_notes(&mut self, undo: Undo) {
        for before in undo.subscriptions.into_iter().rev() {
            self.restore(before);
        }
        for (_, peer) in undo.admitted {
            self.dismiss(peer);
        }
        // Only now is it known who is connected.
        for (_, client_id) in undo.rewritten {
            self.mark_stale_record(&client_id);
        }
        self.remembered.clear();
        debug_assert!(
            self.is_consistent(),
            "clients and their connections, subscriptions and watchers belong together"
        );
    }

    fn is_consistent(&self) -> bool {
        let mut clients = self.clients.iter();
        let watched = self.watchers.iter().map(|(_, watchers)| watchers.len());
        let subscribed = self.peers.values().map(|state| state.subscriptions.len());
        clients.all(|(id, peer)| self.ready(*peer).is_some_and(|ready| ready.client_id == *id))
            && watched.sum::<usize>() == subscribed.sum::<usize>()
    }

    /// What the journal holds of a client is not true.
    pub(crate) fn mark_stale_record(&mut self, client_id: &str) {
        if self.is_connected(client_id) {
            self.mark_volatile(client_id)
        } else {
            self.set_forgotten(client_id, true)
        }
    }

    fn restore(&mut self, before: SubscriptionBefore) {
        let SubscriptionBefore { peer, uri, .. } = before;
        let Some(state) = self.peers.get_mut(&peer) else {
            return; // a connection that is gone has no subscriptions to restore
        };
        match before.subscription {
            Some(subscription) => state.subscriptions.insert(uri.clone(), subscription),
            None => state.subscriptions.remove(&uri),
        };
        if !before.was_served {
            state.served.remove(&uri);
        }
        self.watchers.replace(&uri, peer, before.watcher);
    }

    /// The answer that admitted this connection is not sent: it is as new as before.
    fn dismiss(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return; // it is gone meanwhile
        };
        if let Some(ready) = state.ready.take() {
            self.clients.remove(&ready.client_id);
        }
        state.served.clear();
        let subscriptions = std::mem::take(&mut state.subscriptions);
        for uri in subscriptions.keys() {
            self.watchers.replace(uri, peer, None);
        }
    }
}
