//! Who is connected and watches what, as the host's own answers say: what a fresh host needs to have the same
//! connections.
//!
//! Promises: only what was answered counts. A request whose answer was never spoken changed nothing; an `unsubscribe` has no
//! answer and stands whatever happens to its batch (H-046).
//! Must not know: what the kernel holds.

use std::collections::BTreeMap;

use kernel::{ClientRecord, FloorRecord, Input, PeerId};
use serde_json::{Value, json};
use wire::Incoming;
use wire::ext::system_message_transform::X_METHOD;

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
    /// The seq of the journal when it was served.
    since: u64,
}

/// What the journal holds of a client, if it knows it.
pub type StoredClient = Option<(ClientRecord, Vec<FloorRecord>)>;

/// All connections of a running host.
#[derive(Debug, Default)]
pub struct Connections {
    peers: BTreeMap<PeerId, Connection>,
}

impl Connections {
    /// The host is gone, and every connection with it.
    pub fn lose_all(&mut self) {
        self.peers.clear();
    }

    /// Notes an input that the kernel is about to get.
    pub fn note_input(&mut self, input: &Input) {
        match input {
            Input::Connected { peer, .. } => {
                self.peers.insert(*peer, Connection::default());
            }
            Input::Disconnected { peer } => {
                self.peers.remove(peer);
            }
            Input::Received { peer, received } => {
                if let Some(connection) = self.peers.get_mut(peer) {
                    connection.note_message(&received.message);
                }
            }
            _ => {}
        }
    }

    /// Notes what the host says at the end of a step with this seq. `stored`: what the journal holds of a client by now; a
    /// reconnect goes on with that without saying it again.
    pub fn note_frame(
        &mut self,
        peer: PeerId,
        frame: &[u8],
        seq: u64,
        stored: impl Fn(&str) -> StoredClient,
    ) {
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
        match method.as_str() {
            "subscribe" => connection.watch(&result["snapshot"], params),
            "initialize" => connection.note_initialized(params, result),
            _ => {
                let stored = stored(params["clientId"].as_str().unwrap_or(""));
                connection.note_reconnected(&params, result, seq, stored);
            }
        }
        if method != "subscribe" {
            self.end_older_connections(peer);
        }
    }

    /// A client has one connection: the newest (H-036).
    fn end_older_connections(&mut self, newest: PeerId) {
        let client_of = |connection: &Connection| {
            let admitted = connection.admitted.as_ref()?;
            Some(admitted["clientId"].clone())
        };
        let client = self.peers.get(&newest).and_then(client_of);
        self.peers.retain(|peer, connection| *peer == newest || client_of(connection) != client);
    }

    pub fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }

    /// The parameters of `initialize` for a connection, if it was admitted.
    pub fn admitted(&self, peer: PeerId) -> Option<&Value> {
        self.peers.get(&peer)?.admitted.as_ref()
    }

    /// Parameters of `subscribe` for what a connection watches. `is_there` knows channels by URI and the seq from which
    /// one was watched.
    pub fn watched(&self, peer: PeerId, is_there: impl Fn(&str, u64) -> bool) -> Vec<Value> {
        let Some(connection) = self.peers.get(&peer) else { return Vec::new() };
        let watched = connection.watched.iter();
        let watched = watched.filter(|(uri, watched)| is_there(uri, watched.since));
        watched.map(|(_, watched)| watched.params.clone()).collect()
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
                let channel = &params["channel"];
                self.watched.remove(channel.as_str().unwrap_or(""));
                // It has left again when it hears that it watches.
                self.asked.retain(|_, (method, asked)| {
                    method != "subscribe" || asked["channel"] != *channel
                });
            }
            Incoming::Notification { .. } | Incoming::Response { .. } => {}
        }
    }

    fn watch(&mut self, snapshot: &Value, params: Value) {
        let channel = snapshot["resource"].as_str().unwrap_or("").to_owned();
        let since = snapshot["fromSeq"].as_u64().unwrap_or(0);
        self.watched.insert(channel, Watched { params, since });
    }

    fn note_initialized(&mut self, params: Value, result: &Value) {
        for snapshot in result["snapshots"].as_array().into_iter().flatten() {
            self.watch(snapshot, json!({"channel": snapshot["resource"]}));
        }
        self.admitted = Some(params);
    }

    fn note_reconnected(&mut self, params: &Value, result: &Value, seq: u64, stored: StoredClient) {
        let (record, floors) = stored.expect("only a client that is stored reconnects");
        let params_of = |channel: &Value| {
            let floor = floors.iter().find(|floor| *channel == *floor.channel.as_str());
            subscribe_params(channel, floor)
        };
        for snapshot in result["snapshots"].as_array().into_iter().flatten() {
            self.watch(snapshot, params_of(&snapshot["resource"]));
        }
        if result["type"] == "replay" {
            let missing = result["missing"].as_array().cloned().unwrap_or_default();
            let asked = params["subscriptions"].as_array().into_iter().flatten();
            for channel in asked.filter(|channel| !missing.contains(channel)) {
                let snapshot = json!({"resource": channel, "fromSeq": seq});
                self.watch(&snapshot, params_of(channel));
            }
        }
        self.admitted = Some(initialize_params(&record));
    }
}

/// The subscription that the journal holds, as it would be asked for anew.
fn subscribe_params(channel: &Value, floor: Option<&FloorRecord>) -> Value {
    let mut params = json!({"channel": channel});
    if let Some(turns) = floor.and_then(|floor| floor.view_turns) {
        params["view"] = json!({"turns": turns});
    }
    if let Some(ms) = floor.and_then(|floor| floor.max_latency_ms) {
        params["delivery"] = json!({"maxLatencyMs": ms});
    }
    params
}

/// The client that the journal holds, as it would introduce itself anew.
fn initialize_params(record: &ClientRecord) -> Value {
    let mut params = json!({
        "channel": ROOT,
        "clientId": record.client_id,
        "protocolVersions": [record.version],
    });
    if let Some(capabilities) = &record.capabilities {
        params["capabilities"] = capabilities.clone();
    }
    if let Some(locale) = &record.locale {
        params["locale"] = json!(locale);
    }
    if let Some(sections) = &record.transform {
        params["_meta"] = json!({X_METHOD: {"sections": sections}});
    }
    params
}
