//! What a failed write must leave as it was of peers, for checkers.

use serde_json::{Value, json};

use super::{NegotiatedPeer, Peers};
use crate::record::FloorRecord;

impl Peers {
    /// What every peer negotiated and subscribed to, for checkers. A peer that waits for something is about to change.
    pub(crate) fn digest(&self) -> Value {
        // Every field is named: whoever adds one decides here whether it is in the digest.
        let Self {
            peers,
            watchers,
            // Which connection a client has, its own entry says.
            clients: _,
            // What the journal holds of clients is checked against the journal.
            remembered: _,
            forgotten: _,
            deferred: _,
            undo: _,
        } = self;
        let peers = peers.iter().map(|(peer, state)| {
            let subscriptions = state.subscriptions.iter().map(|(uri, subscription)| {
                assert!(
                    watchers.of(uri).iter().any(|watcher| watcher.peer == *peer),
                    "a subscription and its watcher are made and removed together"
                );
                // When it was last served is of this connection's past, and so are floors.
                let view = json!({
                    "viewTurns": subscription.view_turns,
                    "maxLatencyMs": subscription.max_latency_ms,
                });
                (uri.to_string(), view)
            });
            let value = json!({
                "client": state.ready.as_ref().map(NegotiatedPeer::digest),
                "subscriptions": Value::Object(subscriptions.collect()),
                "waiting": !self.is_drained(*peer),
            });
            (peer.0.to_string(), value)
        });
        Value::Object(peers.collect())
    }

    /// How many watch each channel, for checkers.
    pub(crate) fn watcher_counts(&self) -> Value {
        let counts =
            self.watchers.iter().map(|(uri, watchers)| (uri.to_string(), json!(watchers.len())));
        Value::Object(counts.collect())
    }

    /// What the journal must hold of every connected client whose rows count as true, for checkers.
    pub(crate) fn stored_floors(&self) -> Vec<(String, Vec<FloorRecord>)> {
        let peers = self.clients.values().filter_map(|peer| self.peers.get(peer));
        let stored = peers.filter_map(|state| {
            let ready = state.ready.as_ref().filter(|ready| !ready.volatile)?;
            let floors =
                state.subscriptions.iter().map(|(uri, subscription)| subscription.to_floor(uri));
            Some((ready.client_id.clone(), floors.collect()))
        });
        stored.collect()
    }
}

impl NegotiatedPeer {
    /// For checkers. Whether what is stored is true depends on what could be written, and is none of this.
    fn digest(&self) -> Value {
        json!({
            "id": self.client_id,
            "version": self.version.to_string(),
            "capabilities": self.capabilities,
            "locale": self.locale,
            "transform": self.transform,
        })
    }
}
