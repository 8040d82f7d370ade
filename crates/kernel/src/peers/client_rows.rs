//! What the journal holds of clients (G-20): who is remembered, whose rows are not true, and records that wait for a batch.

use std::mem::discriminant;

use super::{NegotiatedPeer, Peers};
use crate::io::PeerId;
use crate::record::{ClientRecord, FloorRecord, Record};

/// Records of clients that wait for a batch, at most.
const DEFERRED_MAX: usize = 64;

impl Peers {
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
        debug_assert!(
            !forgotten || !self.is_connected(client_id),
            "what is not true of a connected client is written again, not forgotten"
        );
        if forgotten {
            self.forgotten.insert(client_id.to_owned())
        } else {
            self.forgotten.remove(client_id)
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
    pub(crate) fn take_volatile(&mut self) -> Vec<(PeerId, NegotiatedPeer)> {
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
        // A newer one of the same kind says all that an older one says, unless something else came between them.
        let mut of_client = self.deferred.iter_mut().rev();
        if let Some((_, last)) = of_client.find(|(id, _)| id == client_id)
            && discriminant(last) == discriminant(&record)
        {
            *last = record;
            return;
        }
        // No room for more than there are: there may be thousands of kernels at rest.
        self.deferred.reserve_exact(1);
        self.deferred.push((client_id.to_owned(), record));
        debug_assert!(
            self.deferred.len() <= 2 * DEFERRED_MAX,
            "a step that leaves many behind writes them"
        );
    }

    /// Whether so many records wait that they get a batch of their own: connections that come and go write nothing else.
    pub(crate) fn has_many_deferred(&self) -> bool {
        self.deferred.len() >= DEFERRED_MAX
    }

    /// Takes the deferred records along with a batch. If that cannot be written, what is stored of those clients is not true.
    pub(crate) fn take_deferred(&mut self) -> Vec<Record> {
        let deferred = std::mem::take(&mut self.deferred).into_iter().map(|(client_id, record)| {
            self.undo.note_rewritten(&client_id);
            record
        });
        deferred.collect()
    }
}
