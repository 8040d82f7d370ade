//! Serving channels to a connection: snapshots, all within one message (G-29), and the subscriptions to them.

use std::sync::Arc;

use wire::ChannelUri;

use crate::changesets;
use crate::clients::record_floor;
use crate::frame::ChannelSnapshot;
use crate::io::PeerId;
use crate::peers::Subscription;
use crate::state::Step;
use crate::telemetry;

/// How snapshots relate to what the client may hold from before (G-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SnapshotMode {
    /// They take the place of everything: until the client shows that it has them, nothing is replayed onto what it had
    /// before.
    Replacing,
    /// One more channel on a connection that goes on.
    Additional,
}

/// A channel to be served, with its view and its delivery window.
pub(super) struct WantedChannel {
    pub uri: ChannelUri,
    pub view_turns: Option<u32>,
    pub max_latency_ms: Option<u32>,
}

/// A subscription to a channel without state: from now on, and nothing of before.
pub(super) fn subscribe_stateless(
    step: &mut Step,
    peer: PeerId,
    uri: &ChannelUri,
    max_latency_ms: Option<u32>,
) {
    let subscription = Subscription {
        floor: step.seq(),
        replaced: false,
        oldest_turn: None,
        view_turns: None,
        max_latency_ms,
        oldest_n: None,
    };
    if let Some(ready) = step.ready(peer) {
        let client_id = ready.client_id.clone();
        record_floor(step, &client_id, uri, &subscription);
    }
    step.peers_mut().subscribe(peer, uri, subscription);
}

/// Snapshots of channels that are in memory, and subscriptions to them (H-041).
pub(super) fn serve_snapshots(
    step: &mut Step,
    peer: PeerId,
    wanted: &[WantedChannel],
    serving: SnapshotMode,
) -> Vec<Arc<ChannelSnapshot>> {
    let mut bytes_left = step.limits().message_out_bytes;
    let mut snapshots = Vec::with_capacity(wanted.len());
    for WantedChannel { uri, view_turns, max_latency_ms } in wanted {
        if telemetry::signal_of(uri).is_some() {
            subscribe_stateless(step, peer, uri, *max_latency_ms);
            continue;
        }
        let Some(window) = step.snapshot(uri, *view_turns, bytes_left) else {
            debug_assert!(false, "{uri} was found in memory before");
            continue;
        };
        bytes_left = bytes_left.saturating_sub(window.snapshot.size_hint());
        let replaced = serving == SnapshotMode::Replacing || step.peers().was_served(peer, uri);
        let subscription = Subscription {
            floor: window.snapshot.from_seq,
            replaced,
            oldest_turn: window.oldest_turn(),
            view_turns: *view_turns,
            max_latency_ms: *max_latency_ms,
            oldest_n: window.oldest_n,
        };
        if let Some(ready) = step.ready(peer) {
            let client_id = ready.client_id.clone();
            record_floor(step, &client_id, uri, &subscription);
        }
        step.peers_mut().subscribe(peer, uri, subscription);
        snapshots.push(window.snapshot);
        changesets::refresh(step, uri);
    }
    snapshots
}
