//! What peers subscribe to, and who gets a channel's frames.
//!
//! Promises: a subscription and its watcher are made and removed together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wire::{ChannelUri, Generation};

use super::Peers;
use super::subscription::{Subscription, Watcher};
use super::undo::SubscriptionBefore;
use crate::frame::{Recipient, Recipients};
use crate::io::PeerId;

impl Peers {
    pub(crate) fn watchers(&self, uri: &ChannelUri) -> &[Watcher] {
        self.watchers.of(uri)
    }

    /// The channels that somebody watches.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &ChannelUri> {
        self.watchers.iter().map(|(uri, _)| uri)
    }

    /// The watchers of a channel who get a frame: those whose generation knows it, and its sender in any case. `None` if
    /// there are none.
    pub(crate) fn recipients(
        &mut self,
        uri: &ChannelUri,
        sender: Option<PeerId>,
        is_known: impl Fn(Generation) -> bool,
    ) -> Option<Recipients> {
        let recipients = self.watchers.recipients(uri, |watcher| {
            is_known(watcher.generation) || sender == Some(watcher.peer)
        });
        recipients.map(Recipients::Many)
    }

    /// The versions older than the current one that watch a channel, each once.
    pub(crate) fn older_generations(&self, uri: &ChannelUri) -> BTreeSet<Generation> {
        let older = self.watchers(uri).iter().map(|watcher| watcher.generation);
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
        let meant: Arc<[Recipient]> =
            watchers.filter(|watcher| is_meant(watcher)).map(Watcher::recipient).collect();
        (!meant.is_empty()).then_some(Recipients::Many(meant))
    }

    pub(crate) fn subscription(&self, peer: PeerId, uri: &ChannelUri) -> Option<&Subscription> {
        self.peers.get(&peer)?.subscriptions.get(uri)
    }

    pub(crate) fn subscriptions(&self, peer: PeerId) -> BTreeMap<ChannelUri, Subscription> {
        let state = self.peers.get(&peer);
        state.map(|state| state.subscriptions.clone()).unwrap_or_default()
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
        let watcher =
            Watcher { peer, generation, window_ms: subscription.max_latency_ms.unwrap_or(0) };
        self.watchers.replace(uri, peer, Some(watcher));
        let Some(state) = self.peers.get_mut(&peer) else {
            unreachable!("an admitted peer is connected");
        };
        state.subscriptions.insert(uri.clone(), subscription);
        state.served.insert(uri.clone());
    }

    /// Ends a subscription at its own peer's wish. That stands whatever happens to the batch (H-046), and nothing before it
    /// is restored; what the journal then still says of the client is made true later.
    pub(crate) fn unsubscribe(&mut self, peer: PeerId, uri: &ChannelUri) {
        self.undo.drop_notes(peer, uri);
        self.watchers.replace(uri, peer, None);
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
        for peer in watching {
            self.note_subscription(peer, uri);
            self.watchers.replace(uri, peer, None);
            let state = self.peers.get_mut(&peer);
            let ended = state.and_then(|state| state.subscriptions.remove(uri));
            assert!(ended.is_some(), "who watches a channel is subscribed to it");
        }
    }

    /// A connection was sent turns from number `n` on.
    pub(crate) fn note_sent_turns(&mut self, peer: PeerId, uri: &ChannelUri, n: u64) {
        self.note_subscription(peer, uri);
        let state = self.peers.get_mut(&peer);
        let subscription = state.and_then(|state| state.subscriptions.get_mut(uri));
        // Whoever fetches turns of a chat need not be subscribed to it.
        if let Some(subscription) = subscription {
            subscription.oldest_n = Some(subscription.oldest_n.map_or(n, |oldest| oldest.min(n)));
        }
    }

    fn note_subscription(&mut self, peer: PeerId, uri: &ChannelUri) {
        let watcher = self.watchers(uri).iter().find(|w| w.peer == peer).cloned();
        self.undo.subscriptions.push(SubscriptionBefore {
            step: self.undo.step,
            peer,
            uri: uri.clone(),
            watcher,
            subscription: self.subscription(peer, uri).cloned(),
            was_served: self.was_served(peer, uri),
        });
    }
}
