//! Who is connected and watches what, as the host's own answers say: what a fresh host needs to have the same
//! connections.
//!
//! Promises: only what was answered counts. A request whose answer was never spoken changed nothing.
//! Must not know: what the kernel holds.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Input, PeerId};
use serde_json::{Value, json};
use wire::Incoming;

use crate::client::ROOT;

/// One connection.
#[derive(Debug, Default)]
struct Connection {
    /// Requests that were not answered yet, by id.
    asked: BTreeMap<u64, (String, Value)>,
    /// The parameters it was admitted with.
    admitted: Option<Value>,
    watched: BTreeMap<String, Watched>,
}

/// A channel that a connection watches.
#[derive(Debug, Clone)]
struct Watched {
    params: Value,
    /// The seq of the journal when it was answered.
    since: u64,
    /// It asked to leave the channel. That has no answer, and a failed write may undo it.
    may_have_left: bool,
}

/// All connections of a running host.
#[derive(Debug, Default)]
pub struct Connections {
    peers: BTreeMap<PeerId, Connection>,
    /// How each client last subscribed to each channel: a reconnect asks for the same without saying it again.
    subscribed: BTreeMap<(String, String), Value>,
}

impl Connections {
    /// The host is gone, and every connection with it. What clients subscribed to is in the journal.
    pub fn lose_all(&mut self) {
        self.peers.clear();
    }

    /// Notes an input that the kernel is about to get.
    pub fn note_input(&mut self, input: &Input) {
        match input {
            Input::Connected { peer } => {
                self.peers.insert(*peer, Connection::default());
            }
            Input::Disconnected { peer } => {
                self.peers.remove(peer);
            }
            Input::Received { peer, message, .. } => {
                if let Some(connection) = self.peers.get_mut(peer) {
                    connection.note_message(message);
                }
            }
            _ => {}
        }
    }

    /// Notes what the host says. `seq`: of the journal by now.
    pub fn note_frame(&mut self, peer: PeerId, frame: &[u8], seq: u64) {
        if !frame.starts_with(br#"{"jsonrpc":"2.0","id":"#) {
            return;
        }
        let answer: Value = serde_json::from_slice(frame).expect("frames are JSON");
        let Some(connection) = self.peers.get_mut(&peer) else {
            return; // it is gone: nothing is delivered
        };
        let asked = answer["id"].as_u64();
        let Some((method, params)) = asked.and_then(|id| connection.asked.remove(&id)) else {
            return; // a question of the host's own, or noted before
        };
        let Some(result) = answer.get("result") else {
            return; // a refused request changes nothing
        };
        connection.note_answer(&method, params, result, seq);
        self.remember_params(peer, &method);
        if matches!(method.as_str(), "initialize" | "reconnect") {
            self.end_older_connections(peer);
        }
    }

    /// Fills in what a reconnect did not say, and notes what anything else did.
    fn remember_params(&mut self, peer: PeerId, method: &str) {
        let Some(connection) = self.peers.get_mut(&peer) else {
            return; // no answer is noted for a connection that is gone
        };
        let client = connection
            .admitted
            .as_ref()
            .map(|params| &params["clientId"]);
        let client = client.and_then(Value::as_str).unwrap_or("").to_owned();
        for (channel, watched) in &mut connection.watched {
            let key = (client.clone(), channel.clone());
            match self.subscribed.get(&key) {
                Some(params) if method == "reconnect" => watched.params = params.clone(),
                _ => {
                    self.subscribed.insert(key, watched.params.clone());
                }
            }
        }
    }

    /// A client has one connection: the newest (H-036).
    fn end_older_connections(&mut self, newest: PeerId) {
        let client_of = |connection: &Connection| {
            let admitted = connection.admitted.as_ref()?;
            Some(admitted["clientId"].clone())
        };
        let client = self.peers.get(&newest).and_then(client_of);
        self.peers
            .retain(|peer, connection| *peer == newest || client_of(connection) != client);
    }

    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// The parameters of `initialize` for a connection, if it was admitted.
    pub fn admitted(&self, peer: PeerId) -> Option<&Value> {
        self.peers.get(&peer)?.admitted.as_ref()
    }

    /// Parameters of `subscribe` for what a connection watches. `is_there` knows channels by URI and the seq from which
    /// one was watched; `watches` says of a channel that was perhaps left whether it is still watched.
    pub fn watched(
        &self,
        peer: PeerId,
        is_there: impl Fn(&str, u64) -> bool,
        watches: impl Fn(&str) -> bool,
    ) -> Vec<Value> {
        let Some(connection) = self.peers.get(&peer) else {
            return Vec::new();
        };
        let watched = connection.watched.iter().filter(|(uri, watched)| {
            is_there(uri, watched.since) && (!watched.may_have_left || watches(uri))
        });
        watched.map(|(_, watched)| watched.params.clone()).collect()
    }

    /// Every channel that anybody watches.
    pub fn channels(&self) -> BTreeSet<String> {
        let connections = self.peers.values();
        connections
            .flat_map(|connection| connection.watched.keys().cloned())
            .collect()
    }
}

impl Connection {
    fn note_message(&mut self, message: &Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                let id = json!(id).as_u64();
                let known = ["initialize", "reconnect", "subscribe"];
                if let Some(id) = id.filter(|_| known.contains(&method.as_str())) {
                    self.asked.insert(id, (method.clone(), params.clone()));
                }
            }
            Incoming::Notification { method, params } if method == "unsubscribe" => {
                let channel = params["channel"].as_str().unwrap_or("");
                if let Some(watched) = self.watched.get_mut(channel) {
                    watched.may_have_left = true;
                }
            }
            Incoming::Notification { .. } | Incoming::Response { .. } => {}
        }
    }

    fn note_answer(&mut self, method: &str, params: Value, result: &Value, seq: u64) {
        let mut watch = |channel: &str, params: Value| {
            let watched = Watched {
                params,
                since: seq,
                may_have_left: false,
            };
            self.watched.insert(channel.to_owned(), watched);
        };
        let named = |list: &Value, channel: fn(&Value) -> &Value| -> BTreeSet<String> {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|entry| channel(entry).as_str().map(str::to_owned))
                .collect()
        };
        match method {
            "subscribe" => {
                let channel = params["channel"].as_str().unwrap_or("").to_owned();
                watch(&channel, params);
            }
            "initialize" => {
                for channel in named(&result["snapshots"], |snapshot| &snapshot["resource"]) {
                    watch(&channel, json!({"channel": channel}));
                }
                self.admitted = Some(params);
            }
            "reconnect" => {
                let missing = named(&result["missing"], |channel| channel);
                let asked = named(&params["subscriptions"], |channel| channel);
                for channel in asked.difference(&missing) {
                    watch(channel, json!({"channel": channel}));
                }
                self.admitted = Some(json!({"clientId": params["clientId"], "channel": ROOT}));
            }
            _ => {}
        }
    }
}
