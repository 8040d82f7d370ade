//! What the journal holds of clients for their reconnect (G-20), and what happens while it cannot be written.

use std::collections::BTreeMap;

use wire::ChannelUri;

use crate::Kernel;
use crate::io::PeerId;
use crate::peers::{Ready, Stage, Subscription};
use crate::record::{ClientRecord, FloorRecord, Record};

/// Clients that left a moment ago and are remembered in memory: most who lose a connection come back at once.
const REMEMBERED_MAX: usize = 256;

impl Kernel {
    /// Keeps what the journal holds of a client that leaves, so that its reconnect need not read it.
    pub(crate) fn remember(
        &mut self,
        ready: &Ready,
        subscriptions: &BTreeMap<ChannelUri, Subscription>,
    ) {
        if ready.volatile || self.unwritable().is_some() {
            return;
        }
        let floors = subscriptions
            .iter()
            .map(|(uri, subscription)| floor_of(uri, subscription))
            .collect();
        self.forget(&ready.client_id);
        self.remembered.push_back((self.client_of(ready), floors));
        if self.remembered.len() > REMEMBERED_MAX {
            self.remembered.pop_front();
        }
    }

    pub(crate) fn forget(&mut self, client_id: &str) {
        self.remembered
            .retain(|(client, _)| client.client_id != client_id);
    }

    fn client_of(&self, ready: &Ready) -> ClientRecord {
        ClientRecord {
            client_id: ready.client_id.clone(),
            version: ready.version.to_string(),
            capabilities: ready.capabilities.clone(),
            locale: ready.locale.clone(),
            transform: ready.transform.clone(),
            last_seen_ms: self.now.0,
        }
    }

    /// What reconnect needs is durable before the snapshot is spoken (G-20); while nothing can be written, the client
    /// is remembered only here.
    pub(crate) fn record_floor(
        &mut self,
        ready: &Ready,
        uri: &ChannelUri,
        subscription: &Subscription,
    ) {
        if self.unwritable().is_some() {
            self.mark_volatile(&ready.client_id.clone());
            return;
        }
        let floor = floor_of(uri, subscription);
        self.out.records.push(Record::Floor {
            client_id: ready.client_id.clone(),
            floor,
        });
    }

    pub(crate) fn mark_volatile(&mut self, client_id: &str) {
        let peer = self.clients.get(client_id).copied();
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(&peer))
            && let Stage::Ready(ready) = &mut peer.stage
        {
            ready.volatile = true;
        }
    }

    pub(crate) fn record_client(&mut self, ready: &Ready) {
        if self.unwritable().is_some() {
            return self.mark_volatile(&ready.client_id.clone());
        }
        let client = self.client_of(ready);
        self.out.records.push(Record::Client(client));
    }

    /// Writing works again: what could not be written of connected clients is written now.
    pub(crate) fn rewrite_volatile_clients(&mut self) {
        for client_id in std::mem::take(&mut self.forgotten) {
            self.undo.rewritten.push(client_id.clone());
            self.out.records.push(Record::ClientGone { client_id });
        }
        let volatile: Vec<PeerId> = self.clients.values().copied().collect();
        for peer in volatile {
            let Some(mut ready) = self.ready(peer).filter(|ready| ready.volatile).cloned() else {
                continue;
            };
            ready.volatile = false;
            self.undo.rewritten.push(ready.client_id.clone());
            self.out.records.push(Record::ClientGone {
                client_id: ready.client_id.clone(),
            });
            self.record_client(&ready);
            let subscriptions = self
                .peers
                .get(&peer)
                .map(|state| state.subscriptions.clone())
                .unwrap_or_default();
            for (uri, subscription) in &subscriptions {
                self.record_floor(&ready, uri, subscription);
            }
            if let Some(state) = self.peers.get_mut(&peer) {
                state.stage = Stage::Ready(ready);
            }
        }
    }
}

fn floor_of(uri: &ChannelUri, subscription: &Subscription) -> FloorRecord {
    FloorRecord {
        channel: uri.clone(),
        floor: subscription.floor,
        replaced: subscription.replaced,
        oldest_turn: subscription.oldest_turn.clone(),
        view_turns: subscription.view_turns,
        max_latency_ms: subscription.max_latency_ms,
    }
}
