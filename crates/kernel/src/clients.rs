//! What the journal holds of clients for their reconnect (G-20), what happens while it cannot be written, and what follows when
//! a connection ends.

use crate::follow_up::FollowUp;
use crate::io::{Effect, PeerId, Timer};
use crate::peers::{NegotiatedPeer, RemovedPeer, Subscription};
use crate::record::{ClientRecord, Record};
use crate::resource_watch;
use crate::reverse_request;
use crate::role::ClientHolder;
use crate::state::{Kernel, Step};
use crate::terminal;
use wire::ChannelUri;

/// A client as the journal stores it.
fn client_record(kernel: &Kernel, ready: &NegotiatedPeer) -> ClientRecord {
    ClientRecord {
        client_id: ready.client_id.clone(),
        version: ready.version.to_string(),
        capabilities: ready.capabilities.clone(),
        locale: ready.locale.clone(),
        transform: ready.transform.clone(),
        last_seen_ms: kernel.now().0,
    }
}

/// What reconnect needs is durable before the snapshot is sent (G-20); while nothing can be written, the client is remembered
/// only in memory.
pub(crate) fn record_floor(
    step: &mut Step,
    client_id: &str,
    uri: &ChannelUri,
    subscription: &Subscription,
) {
    if step.unwritable().is_some() {
        return step.peers_mut().mark_volatile(client_id);
    }
    step.record(Record::Floor {
        client_id: client_id.to_owned(),
        floor: subscription.to_floor(uri),
    });
}

pub(crate) fn record_client(step: &mut Step, ready: &NegotiatedPeer) {
    if step.unwritable().is_some() {
        return step.peers_mut().mark_volatile(&ready.client_id);
    }
    let record = client_record(step, ready);
    step.record(Record::Client(record));
}

/// The same, with the next batch: it need not be durable before anything is sent.
pub(crate) fn record_client_later(step: &mut Step, ready: &NegotiatedPeer) {
    if step.unwritable().is_some() {
        return step.peers_mut().mark_volatile(&ready.client_id);
    }
    let record = client_record(step, ready);
    let record = Record::Client(record);
    step.peers_mut().defer_record(&ready.client_id, record);
}

/// Writing works again: what could not be written of clients is written now.
pub(crate) fn rewrite_volatile(step: &mut Step) {
    let forgotten = step.peers_mut().take_forgotten();
    if !forgotten.is_empty() {
        step.outdate_reads(); // an answer on its way may still show their rows
    }
    for client_id in forgotten {
        step.record(Record::ClientGone { client_id });
    }
    for (peer, ready) in step.peers_mut().take_volatile() {
        let client_id = ready.client_id.clone();
        step.record(Record::ClientGone { client_id });
        record_client(step, &ready);
        for (uri, subscription) in step.peers().subscriptions(peer) {
            record_floor(step, &ready.client_id, &uri, &subscription);
        }
    }
}

/// A connection is gone. What was read from it is still processed.
pub(crate) fn disconnect(step: &mut Step, peer: PeerId) {
    step.peers_mut().set_gone(peer);
    reverse_request::end_requests_of(step, peer);
    if step.peers().is_drained(peer) {
        remove_peer(step, peer);
    }
}

/// Everything that was read from a connection is processed: now it is removed.
pub(crate) fn remove_peer(step: &mut Step, peer: PeerId) {
    debug_assert!(
        step.peers().is_gone(peer) && step.peers().is_drained(peer),
        "what was read from a connection is processed before it is removed"
    );
    let Some(removed) = step.peers_mut().remove(peer) else {
        return; // a peer that never connected
    };
    step.effect(Effect::Forget { peer });
    // This client may have been the only reason to keep a session without turns (G-28).
    step.upkeep_mut().note_released();
    let watched = removed.subscriptions.keys().cloned();
    resource_watch::end_unused_of(step, watched.collect());
    if let Some(ready) = &removed.ready {
        remember(step, ready, &removed);
        start_grace(step, &ready.client_id, &removed.holder);
        terminal::start_grace(step, &ready.client_id);
    }
    for successor in step.peers_mut().release_successors(peer) {
        step.follow_up(FollowUp::ResumePeer(successor));
    }
}

/// What is stored of a client that leaves, so that its reconnect need not be read.
fn remember(step: &mut Step, ready: &NegotiatedPeer, removed: &RemovedPeer) {
    if step.unwritable().is_some() {
        if ready.volatile {
            step.peers_mut().set_forgotten(&ready.client_id, true);
        }
        return;
    }
    if !ready.volatile {
        let subscriptions = removed.subscriptions.iter();
        let floors = subscriptions.map(|(uri, subscription)| subscription.to_floor(uri)).collect();
        let record = client_record(step, ready);
        step.peers_mut().remember(record, floors);
    }
    record_client_later(step, ready);
}

/// A client that is active somewhere has a time of grace to come back (H-126).
fn start_grace(step: &mut Step, client_id: &str, holder: &ClientHolder) {
    let sessions: Vec<ChannelUri> = step.active_clients().sessions_of(client_id).cloned().collect();
    if !sessions.is_empty() {
        step.lose_active_client(client_id, Some(holder.clone()));
    }
    let grace_ms = step.limits().active_client_grace_ms;
    for session in sessions {
        let timer = Timer::Grace { session, client_id: client_id.to_owned() };
        step.wake_in(timer, grace_ms);
    }
}
