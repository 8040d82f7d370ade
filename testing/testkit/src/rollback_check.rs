//! After a failed write a kernel is what a kernel would be that starts now from the same journal with the same
//! connections. A change that is not undone is found here.
//!
//! The fresh kernel fails its first write too: like the one that is checked it then serves and records nothing, so that
//! neither closes turns or moves the seq.

use std::collections::{BTreeSet, VecDeque};

use host::journal::{Journal, JournalReader};
use kernel::{Effect, Input, Kernel, Output, PeerId, ReadFailed, Role};
use serde_json::{Value, json};

use crate::client::Client;
use crate::digest::differences;
use crate::world::World;

/// Loads into the fresh kernel the channels without watchers there; it is no connection of the kernel that is checked.
const LOADER: PeerId = PeerId(u64::MAX);

impl World {
    /// Where the kernel differs from one that starts now, in words. To be asked right after a write has failed.
    pub(crate) fn rollback_differences(&self) -> Vec<String> {
        let live = self.kernel().digest();
        let fresh = self.fresh_kernel(&live);
        let mut different = differences(&live, &fresh.digest());
        different.extend(self.untrue_floors());
        different
    }

    /// Subscriptions that the journal holds otherwise, of clients that a reconnect would take at their rows.
    fn untrue_floors(&self) -> Vec<String> {
        let mut untrue = Vec::new();
        for (client_id, floors) in self.kernel().stored_floors() {
            let stored =
                self.stored_client(&client_id).map(|(_, floors)| floors).unwrap_or_default();
            let missing = floors.into_iter().filter(|floor| !stored.contains(floor));
            untrue.extend(missing.map(|floor| format!("{client_id}: {floor:?} is not stored")));
        }
        untrue
    }

    /// A kernel that starts from the journal, with the connections of this one, and the same channels in memory.
    fn fresh_kernel(&self, live: &Value) -> Kernel {
        let mut memory = self.memory.clone();
        let boot = Journal::boot(&mut memory).expect("memory boots");
        let (facts, limits) = (self.facts.clone(), self.limits.clone());
        let (mut kernel, output) =
            Kernel::boot(boot, facts, limits, self.now).expect("the root is readable");
        let output = kernel.rolled_back(vec![output], "the first write fails");
        let mut queue = VecDeque::new();
        answer_reads(&mut memory, output, &mut queue);
        for peer in self.connections.peers() {
            queue.push_back(Input::Connected { peer, role: Role::Owner });
            queue.extend(self.messages_of(peer));
        }
        queue.push_back(Input::Connected { peer: LOADER, role: Role::Owner });
        queue.extend(loader_messages(live));
        // A message waits until the one before it is done, as with a connection that asks one thing after the other.
        while let Some(input) = queue.pop_front() {
            let output = kernel.step(input, self.now);
            assert!(!output.wrote, "a kernel that cannot write records nothing");
            kernel.committed();
            answer_reads(&mut memory, output, &mut queue);
        }
        let gone = kernel.step(Input::Disconnected { peer: LOADER }, self.now);
        assert!(!gone.wrote, "a kernel that cannot write records nothing");
        kernel.committed();
        kernel
    }

    /// The requests that bring a connection to its state.
    fn messages_of(&self, peer: PeerId) -> Vec<Input> {
        let Some(admitted) = self.connections.admitted(peer) else { return Vec::new() };
        let client_id = admitted["clientId"].as_str();
        let client = self.clients.iter().find(|client| Some(client.id.as_str()) == client_id);
        let Some(client) = client else {
            return Vec::new(); // one that a checker invented, and that has left
        };
        let mut hello = client.initialize_params(&[]);
        for (name, value) in admitted.as_object().into_iter().flatten() {
            hello[name] = value.clone();
        }
        hello["initialSubscriptions"] = json!([]);
        let is_there = |uri: &str, since: u64| !self.ledger.is_gone(uri, since);
        let watched = self.connections.watched(peer, is_there);
        let subscribes = watched.into_iter().map(|params| ("subscribe", params));
        requests(peer, [("initialize", hello)].into_iter().chain(subscribes))
    }
}

/// Everything the kernel that is checked has in memory is loaded.
fn loader_messages(live: &Value) -> Vec<Input> {
    let hello = Client::new("loader", "1.0.0").initialize_params(&[]);
    let channels: BTreeSet<&String> =
        live["channels"].as_object().map(|channels| channels.keys().collect()).unwrap_or_default();
    let subscribes = channels.into_iter().map(|channel| ("subscribe", json!({"channel": channel})));
    requests(LOADER, [("initialize", hello)].into_iter().chain(subscribes))
}

fn requests<'a>(peer: PeerId, requests: impl Iterator<Item = (&'a str, Value)>) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (id, (method, params)) in (1_u64..).zip(requests) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let text = request.to_string();
        let message = wire::rpc::decode(&text, 128).expect("a message");
        let inline = (&kernel::Limits::default()).into();
        let received = kernel::Received::new(message, text.len(), inline);
        inputs.push(Input::Received { peer, received });
    }
    inputs
}

fn answer_reads(memory: &mut host::journal::Memory, output: Output, queue: &mut VecDeque<Input>) {
    // In front of what waits: a connection's messages are not to pile up behind its reads.
    for effect in output.effects.into_iter().rev() {
        if let Effect::Read { ticket, query } = effect {
            let answer =
                JournalReader::read(memory, &query).map_err(|error| ReadFailed(error.to_string()));
            queue.push_front(Input::Read { ticket, answer });
        }
    }
}
