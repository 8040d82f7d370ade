//! The peers: connections, what they negotiated, what they subscribed to, and which of their messages wait.
//!
//! Promises: a client id has one connection; a subscription and its watcher are made and removed together; after a failed
//! write subscriptions are what they were.

mod client_rows;
mod digest;
mod inbox;
mod messages;
mod remembered;
mod rollback;
mod subscription;
mod subscriptions;
#[cfg(test)]
mod tests;
mod undo;
mod waiting;
mod watchers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wire::{ChannelUri, Generation, Version};

use inbox::Inbox;
use remembered::RememberedClients;
use undo::Undo;
use watchers::Watchers;

pub(crate) use inbox::InboxOutcome;
pub(crate) use subscription::Subscription;
pub(crate) use waiting::{Message, ParkedMessage};

use crate::io::PeerId;
use crate::record::Record;
use crate::role::{ClientHolder, HolderName, Role};

/// The principal of who is gone for good: no principal has an empty name, so nobody brought tokens for it.
const NOBODY: &str = "";

/// Connections and their clients.
#[derive(Default)]
pub(crate) struct Peers {
    peers: BTreeMap<PeerId, Peer>,
    /// Connected clients by id: one connection each (H-036).
    clients: BTreeMap<String, PeerId>,
    watchers: Watchers,
    remembered: RememberedClients,
    /// Clients whose stored floors are not true any more: they must initialize again.
    forgotten: BTreeSet<String>,
    /// Records of clients that need no commit of their own: they go with the next one.
    deferred: Vec<(String, Record)>,
    undo: Undo,
}

/// A connection.
struct Peer {
    holder: ClientHolder,
    ready: Option<NegotiatedPeer>,
    subscriptions: BTreeMap<ChannelUri, Subscription>,
    /// What it was ever served and did not give up itself: a snapshot of it replaces an earlier one, also if the URI
    /// names another channel by now (G-19).
    served: BTreeSet<ChannelUri>,
    inbox: Inbox,
    /// The connection is gone; what was read from it is still processed.
    gone: bool,
}

/// What a connection negotiated.
#[derive(Debug, Clone)]
pub(crate) struct NegotiatedPeer {
    pub client_id: String,
    pub version: Version,
    pub generation: Generation,
    pub capabilities: Option<Value>,
    pub locale: Option<String>,
    /// Sections it wants to rewrite wherever it is active and its entry says nothing (G-34).
    pub transform: Option<Vec<String>>,
    /// What the journal holds of this client is not true: it could not be written when it changed.
    pub volatile: bool,
}

/// A connection that is gone, and all that was read from it is processed.
pub(crate) struct RemovedPeer {
    pub holder: ClientHolder,
    pub ready: Option<NegotiatedPeer>,
    pub subscriptions: BTreeMap<ChannelUri, Subscription>,
}

impl Peers {
    pub(crate) fn connect(&mut self, peer: PeerId, role: Role) {
        let state = Peer {
            holder: ClientHolder { name: None, role },
            ready: None,
            subscriptions: BTreeMap::new(),
            served: BTreeSet::new(),
            inbox: Inbox::default(),
            gone: false,
        };
        let before = self.peers.insert(peer, state);
        assert!(before.is_none(), "a peer's number is used once");
    }

    /// Which device or principal is behind a connection.
    pub(crate) fn identify(&mut self, peer: PeerId, holder: HolderName) {
        match self.peers.get_mut(&peer) {
            Some(state) => state.holder.name = Some(holder),
            None => debug_assert!(false, "a holder is named right after its connection"),
        }
    }

    /// Who is behind a connection; nobody once it is gone for good.
    pub(crate) fn holder(&self, peer: PeerId) -> Option<&ClientHolder> {
        self.peers.get(&peer).map(|state| &state.holder)
    }

    /// Whose tokens the one behind a connection brings and uses (H-318).
    pub(crate) fn principal(&self, peer: PeerId) -> Option<String> {
        match self.peers.get(&peer) {
            Some(state) => state.holder.principal().map(str::to_owned),
            None => Some(NOBODY.to_owned()),
        }
    }

    /// The same of a connected client.
    pub(crate) fn principal_of(&self, client_id: &str) -> Option<String> {
        match self.peer_of(client_id) {
            Some(peer) => self.principal(peer),
            None => Some(NOBODY.to_owned()),
        }
    }

    pub(crate) fn contains(&self, peer: PeerId) -> bool {
        self.peers.contains_key(&peer)
    }

    /// What the one behind a connection may do; of one that is gone for good, nothing but read.
    pub(crate) fn role(&self, peer: PeerId) -> Role {
        let state = self.peers.get(&peer);
        state.map_or(Role::Viewer, |state| state.holder.role)
    }

    /// What a peer negotiated; `None` before that.
    pub(crate) fn ready(&self, peer: PeerId) -> Option<&NegotiatedPeer> {
        self.peers.get(&peer)?.ready.as_ref()
    }

    pub(crate) fn is_gone(&self, peer: PeerId) -> bool {
        self.peers.get(&peer).is_none_or(|state| state.gone)
    }

    pub(crate) fn set_gone(&mut self, peer: PeerId) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.gone = true;
        }
    }

    pub(crate) fn peer_of(&self, client_id: &str) -> Option<PeerId> {
        self.clients.get(client_id).copied()
    }

    pub(crate) fn is_connected(&self, client_id: &str) -> bool {
        self.clients.contains_key(client_id)
    }

    /// What every connected client negotiated.
    pub(crate) fn all_ready(&self) -> Vec<NegotiatedPeer> {
        self.clients.values().filter_map(|peer| self.ready(*peer)).cloned().collect()
    }

    /// The connection belongs to this client from now on.
    pub(crate) fn admit(&mut self, peer: PeerId, ready: NegotiatedPeer) {
        let Some(state) = self.peers.get_mut(&peer) else {
            debug_assert!(false, "a message is handled while its peer is known");
            return;
        };
        assert!(state.ready.is_none(), "a connection is admitted once");
        self.remembered.forget(&ready.client_id);
        let before = self.clients.insert(ready.client_id.clone(), peer);
        assert!(before.is_none(), "a client id has one connection");
        self.undo.note_admitted(peer);
        state.ready = Some(ready);
    }

    /// Everything that was read from a connection is processed: now it is removed.
    pub(crate) fn remove(&mut self, peer: PeerId) -> Option<RemovedPeer> {
        let state = self.peers.remove(&peer)?;
        for uri in state.subscriptions.keys() {
            self.watchers.replace(uri, peer, None);
        }
        if let Some(ready) = &state.ready {
            self.clients.remove(&ready.client_id);
        }
        if self.peers.is_empty() {
            // An empty map keeps room for eleven, and there may be thousands of kernels at rest.
            self.peers = BTreeMap::new();
            self.clients = BTreeMap::new();
        }
        Some(RemovedPeer {
            holder: state.holder,
            ready: state.ready,
            subscriptions: state.subscriptions,
        })
    }
}
