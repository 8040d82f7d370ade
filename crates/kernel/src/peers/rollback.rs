//! How changes of peers are noted and undone.
//!
//! Promises: what was answered before the first step that must be written stands, and so do the ends of connections and
//! subscriptions that their own clients wished.

use super::Peers;
use super::undo::{SubscriptionBefore, Undo};
use crate::io::PeerId;

impl Peers {
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
        for before in undo.subscriptions.into_iter().rev() {
            self.restore(before);
        }
        for peer in undo.admitted {
            self.dismiss(peer);
        }
        // Only now is it known who is connected.
        for client_id in undo.rewritten {
            match self.is_connected(&client_id) {
                true => self.mark_volatile(&client_id),
                false => self.set_forgotten(&client_id, true),
            }
        }
        self.remembered.clear();
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
        self.set_watcher(&uri, peer, before.watcher);
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
            self.set_watcher(uri, peer, None);
        }
    }
}
