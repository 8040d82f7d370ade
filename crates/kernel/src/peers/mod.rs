//! The peers: connections, what they negotiated, what they subscribed to, and which of their messages wait.
//!
//! Promises: a client id has one connection; a subscription and its watcher are made and removed together; after a failed
//! write subscriptions are what they were.

mod digest;
mod inbox;
mod messages;
mod remembered;
mod rollback;
mod subscription;
#[cfg(test)]
mod tests;
mod undo;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use wire::{ChannelUri, Generation, Version};

use inbox::Inbox;
use remembered::RememberedClients;
use undo::Undo;

pub(crate) use inbox::Offer;
pub(crate) use subscription::{Subscription, Watcher};
pub(crate) use waiting::{Message, Waiting};

use crate::frame::{Recipient, Recipients};
use crate::io::PeerId;
use crate::record::{ClientRecord, FloorRecord, Record};
use crate::role::{ClientHolder, HolderName, Role};

/// Records of clients that wait for a batch, at most.
const DEFERRED_MAX: usize = 64;

/// The principal of who is gone for good: no principal has an empty name, so nobody brought tokens for it.
const NOBODY: &str = "";

/// Connections and their clients.
#[derive(Default)]
pub(crate) struct Peers {
    peers: BTreeMap<PeerId, Peer>,
    /// Connected clients by id: one connection each (H-036).
    clients: BTreeMap<String, PeerId>,
    /// Who watches what, in memory or not.
    watchers: BTreeMap<ChannelUri, Watchers>,
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
    ready: Option<Ready>,
    subscriptions: BTreeMap<ChannelUri, Subscription>,
    /// What it was ever served and did not give up itself: a snapshot of it replaces an earlier one, also if the URI
    /// names another channel by now (G-19).
    served: BTreeSet<ChannelUri>,
    inbox: Inbox,
    /// The connection is gone; what was read from it is still processed.
    gone: bool,
}

/// What was negotiated.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
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

/// Who watches one channel.
#[derive(Default)]
struct Watchers {
    list: Vec<Watcher>,
    /// All of them as recipients, made once for all frames until somebody comes or goes.
    recipients: Option<Arc<[Recipient]>>,
}

/// A connection that is gone, and all that was read from it is processed.
pub(crate) struct RemovedPeer {
    pub holder: ClientHolder,
    pub ready: Option<Ready>,
    pub subscriptions: BTreeMap<ChannelUri, Subscription>,
}

impl Watchers {
    fn recipients(&mut self) -> Arc<[Recipient]> {
        let list = &self.list;
        let recipients = self
            .recipients
            .get_or_insert_with(|| list.iter().map(Watcher::recipient).collect());
        Arc::clone(recipients)
    }
}

impl Peers {
    // Connections and clients.

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
    pub(crate) fn ready(&self, peer: PeerId) -> Option<&Ready> {
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
    pub(crate) fn all_ready(&self) -> Vec<Ready> {
        let peers = self.clients.values();
        peers
            .filter_map(|peer| self.ready(*peer))
            .cloned()
            .collect()
    }

    /// The connection belongs to this client from now on.
    pub(crate) fn admit(&mut self, peer: PeerId, ready: Ready) {
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
            self.set_watcher(uri, peer, None);
        }
        if let Some(ready) = &state.ready {
            self.clients.remove(&ready.client_id);
        }
        if self.peers.is_empty() {
            // An empty map keeps room for eleven, and there may be thousands of kernels at rest.
            self.peers = BTreeMap::new();
            self.clients = BTreeMap::new();
        }
        if self.watchers.is_empty() {
            self.watchers = BTreeMap::new();
        }
        Some(RemovedPeer {
            holder: state.holder,
            ready: state.ready,
            subscriptions: state.subscriptions,
        })
    }

    // Subscriptions.

    pub(crate) fn watchers(&self, uri: &ChannelUri) -> &[Watcher] {
        let watchers = self.watchers.get(uri);
        watchers.map_or(&[], |watchers| watchers.list.as_slice())
    }

    /// The channels that somebody watches.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &ChannelUri> {
        self.watchers.keys()
    }

    /// The watchers of a channel who get a frame: those whose generation knows it, and its sender in any case. `None` if
    /// there are none.
    pub(crate) fn recipients(
        &mut self,
        uri: &ChannelUri,
        sender: Option<PeerId>,
        is_known: impl Fn(Generation) -> bool,
    ) -> Option<Recipients> {
        let watchers = self.watchers.get_mut(uri)?;
        let gets =
            |watcher: &&Watcher| is_known(watcher.generation) || sender == Some(watcher.peer);
        if watchers.list.iter().all(|watcher| gets(&watcher)) {
            return Some(Recipients::Many(watchers.recipients()));
        }
        let some: Arc<[Recipient]> = watchers
            .list
            .iter()
            .filter(gets)
            .map(Watcher::recipient)
            .collect();
        (!some.is_empty()).then_some(Recipients::Many(some))
    }

    /// The versions older than the current one that watch a channel, each once.
    pub(crate) fn older_generations(&self, uri: &ChannelUri) -> BTreeSet<Generation> {
        let watchers = self.watchers(uri).iter();
        let older = watchers.map(|watcher| watcher.generation);
        older.filter(|of| *of < Generation::V1_0).collect()
    }

    /// The watchers of a channel that speak one version; `None` if there are none.
    pub(crate) fn recipients_of(
        &self,
        uri: &ChannelUri,
        generation: Generation,
    ) -> Option<Recipients> {
        self.select_recipients(uri, |watcher| watcher.generation == generation)
    }

    /// Those of them that are clients of one principal.
    pub(crate) fn recipients_of_principal(
        &self,
        uri: &ChannelUri,
        generation: Generation,
        principal: Option<&str>,
    ) -> Option<Recipients> {
        self.select_recipients(uri, |watcher| {
            let holder = self.holder(watcher.peer);
            watcher.generation == generation
                && holder.is_some_and(|holder| holder.principal() == principal)
        })
    }

    fn select_recipients(
        &self,
        uri: &ChannelUri,
        is_meant: impl Fn(&Watcher) -> bool,
    ) -> Option<Recipients> {
        let watchers = self.watchers(uri).iter();
        let meant = watchers.filter(|watcher| is_meant(watcher));
        let meant: Arc<[Recipient]> = meant.map(Watcher::recipient).collect();
        (!meant.is_empty()).then_some(Recipients::Many(meant))
    }

    pub(crate) fn subscription(&self, peer: PeerId, uri: &ChannelUri) -> Option<&Subscription> {
        self.peers.get(&peer)?.subscriptions.get(uri)
    }

    pub(crate) fn subscriptions(&self, peer: PeerId) -> BTreeMap<ChannelUri, Subscription> {
        let state = self.peers.get(&peer);
        state
            .map(|state| state.subscriptions.clone())
            .unwrap_or_default()
    }

    pub(crate) fn subscription_count(&self, peer: PeerId) -> usize {
        let state = self.peers.get(&peer);
        state.map_or(0, |state| state.subscriptions.len())
    }

    pub(crate) fn was_served(&self, peer: PeerId, uri: &ChannelUri) -> bool {
        let state = self.peers.get(&peer);
        state.is_some_and(|state| state.served.contains(uri))
    }

    pub(crate) fn add_served(&mut self, peer: PeerId, uris: impl Iterator<Item = ChannelUri>) {
        if let Some(state) = self.peers.get_mut(&peer) {
            state.served.extend(uris);
        }
    }

    /// Begins a subscription, or goes on with one.
    pub(crate) fn subscribe(&mut self, peer: PeerId, uri: &ChannelUri, subscription: Subscription) {
        let Some(generation) = self.ready(peer).map(|ready| ready.generation) else {
            debug_assert!(false, "only an admitted peer subscribes");
            return;
        };
        self.note_subscription(peer, uri);
        let watcher = Watcher {
            peer,
            generation,
            window_ms: subscription.max_latency_ms.unwrap_or(0),
        };
        self.set_watcher(uri, peer, Some(watcher));
        if let Some(state) = self.peers.get_mut(&peer) {
            state.subscriptions.insert(uri.clone(), subscription);
            state.served.insert(uri.clone());
        }
    }

    /// Ends a subscription at its own peer's wish. That stands whatever happens to the batch (H-046), and nothing before it
    /// is restored; what the journal then still says of the client is made true later.
    pub(crate) fn unsubscribe(&mut self, peer: PeerId, uri: &ChannelUri) {
        self.undo.drop_notes(peer, uri);
        self.set_watcher(uri, peer, None);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.subscriptions.remove(uri);
            state.served.remove(uri);
            if let Some(ready) = &state.ready {
                self.undo.note_rewritten(&ready.client_id);
            }
        }
    }

    /// A channel is gone: so are its subscriptions (H-054).
    pub(crate) fn end_subscriptions(&mut self, uri: &ChannelUri) {
        let watching: Vec<PeerId> = self.watchers(uri).iter().map(|w| w.peer).collect();
        for peer in &watching {
            self.note_subscription(*peer, uri);
        }
        self.watchers.remove(uri);
        for peer in watching {
            if let Some(state) = self.peers.get_mut(&peer) {
                state.subscriptions.remove(uri);
            }
        }
    }

    /// A connection was sent turns from number `n` on.
    pub(crate) fn note_sent_turns(&mut self, peer: PeerId, uri: &ChannelUri, n: u64) {
        self.note_subscription(peer, uri);
        let state = self.peers.get_mut(&peer);
        let subscription = state.and_then(|state| state.subscriptions.get_mut(uri));
        if let Some(subscription) = subscription {
            subscription.oldest_n = Some(subscription.oldest_n.map_or(n, |oldest| oldest.min(n)));
        }
    }

    fn note_subscription(&mut self, peer: PeerId, uri: &ChannelUri) {
        let watcher = self.watchers(uri).iter().find(|w| w.peer == peer).cloned();
        self.undo.subscriptions.push(undo::SubscriptionBefore {
            step: self.undo.step,
            peer,
            uri: uri.clone(),
            watcher,
            subscription: self.subscription(peer, uri).cloned(),
            was_served: self.was_served(peer, uri),
        });
    }

    fn set_watcher(&mut self, uri: &ChannelUri, peer: PeerId, watcher: Option<Watcher>) {
        let watchers = self.watchers.entry(uri.clone()).or_default();
        let index = watchers
            .list
            .iter()
            .position(|watcher| watcher.peer == peer);
        watchers.recipients = None;
        match (index, watcher) {
            (Some(index), Some(watcher)) => watchers.list[index] = watcher,
            (Some(index), None) => {
                watchers.list.remove(index);
            }
            (None, Some(watcher)) => watchers.list.push(watcher),
            (None, None) => {}
        }
        if watchers.list.is_empty() {
            self.watchers.remove(uri);
        }
    }

    // What the journal holds of clients (G-20).

    /// What is remembered of a client that left a moment ago, as the journal holds it.
    pub(crate) fn remembered(&self, client_id: &str) -> Option<(ClientRecord, Vec<FloorRecord>)> {
        self.remembered.find(client_id)
    }

    pub(crate) fn remember(&mut self, client: ClientRecord, floors: Vec<FloorRecord>) {
        self.remembered.add(client, floors);
    }

    /// The journal decides who is remembered for longer.
    pub(crate) fn forget_remembered(&mut self) {
        self.remembered.clear();
    }

    pub(crate) fn is_forgotten(&self, client_id: &str) -> bool {
        self.forgotten.contains(client_id)
    }

    pub(crate) fn set_forgotten(&mut self, client_id: &str, forgotten: bool) {
        match forgotten {
            true => self.forgotten.insert(client_id.to_owned()),
            false => self.forgotten.remove(client_id),
        };
    }

    /// What the journal holds of a connected client is not true any more.
    pub(crate) fn mark_volatile(&mut self, client_id: &str) {
        let peer = self.clients.get(client_id);
        let state = peer.and_then(|peer| self.peers.get_mut(peer));
        if let Some(ready) = state.and_then(|state| state.ready.as_mut()) {
            ready.volatile = true;
        }
    }

    /// Clients whose rows are to be removed: they are not connected, and what is stored of them is not true.
    pub(crate) fn take_forgotten(&mut self) -> Vec<String> {
        let forgotten: Vec<String> = std::mem::take(&mut self.forgotten).into_iter().collect();
        for client_id in &forgotten {
            self.undo.note_rewritten(client_id);
        }
        forgotten
    }

    /// Connected clients whose rows are to be written again; from now on they count as written.
    pub(crate) fn take_volatile(&mut self) -> Vec<(PeerId, Ready)> {
        let mut taken = Vec::new();
        for (peer, state) in &mut self.peers {
            if let Some(ready) = state.ready.as_mut().filter(|ready| ready.volatile) {
                ready.volatile = false;
                self.undo.note_rewritten(&ready.client_id);
                taken.push((*peer, ready.clone()));
            }
        }
        taken
    }

    /// Keeps a record of a client for the next batch: it says when the client was last seen, or that it is known before it was
    /// served anything. A crash before that costs the client an `initialize` (G-20).
    pub(crate) fn defer_record(&mut self, client_id: &str, record: Record) {
        // No room for more than there are, as above.
        self.deferred.reserve_exact(1);
        self.deferred.push((client_id.to_owned(), record));
    }

    /// Whether so many records wait that they get a batch of their own: connections that come and go write nothing else.
    pub(crate) fn has_many_deferred(&self) -> bool {
        self.deferred.len() >= DEFERRED_MAX
    }

    /// Takes the deferred records along with a batch. If that cannot be written, what is stored of those clients is not true.
    pub(crate) fn take_deferred(&mut self) -> Vec<Record> {
        let deferred = std::mem::take(&mut self.deferred).into_iter();
        let deferred = deferred.map(|(client_id, record)| {
            self.undo.note_rewritten(&client_id);
            record
        });
        deferred.collect()
    }
}
