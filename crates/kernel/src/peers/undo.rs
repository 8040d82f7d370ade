//! What the steps since the last commit changed of peers, and how it is undone.
//!
//! Promises: what was answered before the first step that must be written stands, and so do the ends of connections and
//! subscriptions that their own clients wished.

use wire::ChannelUri;

use super::{Peers, Subscription, Watcher};
use crate::io::PeerId;

/// What the steps since the last commit changed.
#[derive(Default)]
pub(super) struct Undo {
    /// Some step since the last commit must be written.
    wrote: bool,
    subscriptions: Vec<Before>,
    admitted: Vec<PeerId>,
    /// Clients whose rows were made true.
    rewritten: Vec<String>,
}

/// What was true of a peer and a channel before a change.
struct Before {
    peer: PeerId,
    uri: ChannelUri,
    watcher: Option<Watcher>,
    subscription: Option<Subscription>,
    was_served: bool,
}

impl Undo {
    pub fn note_admitted(&mut self, peer: PeerId) {
        self.admitted.push(peer);
    }

    /// What the journal holds of a client is made true by this batch, or is not true without it.
    pub fn note_rewritten(&mut self, client_id: &str) {
        self.rewritten.push(client_id.to_owned());
    }

    /// What a peer's subscription was before is not restored.
    pub fn drop_notes(&mut self, peer: PeerId, uri: &ChannelUri) {
        self.subscriptions
            .retain(|before| before.peer != peer || before.uri != *uri);
    }
}

impl Peers {
    pub(super) fn note_subscription(&mut self, peer: PeerId, uri: &ChannelUri) {
        let watcher = self.watchers(uri).iter().find(|w| w.peer == peer).cloned();
        self.undo.subscriptions.push(Before {
            peer,
            uri: uri.clone(),
            watcher,
            subscription: self.subscription(peer, uri).cloned(),
            was_served: self.was_served(peer, uri),
        });
    }

    /// What was answered before the first step that must be written stands, whatever happens to the batch.
    pub fn end_step(&mut self, wrote: bool) {
        self.undo.wrote |= wrote;
        if !self.undo.wrote {
            self.undo.subscriptions.clear();
            self.undo.admitted.clear();
        }
    }

    pub fn commit(&mut self) {
        self.undo = Undo::default();
    }

    pub fn roll_back(&mut self) {
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

    fn restore(&mut self, before: Before) {
        let Before { peer, uri, .. } = before;
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
