//! A simulated AHP client: speaks JSON, mirrors what it watches, and reconnects like the published runtime.
//!
//! `last_seen` is raised by action envelopes, by `initialize`, and by what a reconnect brings; not by a subscribe in
//! the middle of a connection (H-085).

use std::collections::{BTreeMap, BTreeSet};

use kernel::{PeerId, Role};
use serde_json::{Value, json};

use crate::mirror::Mirror;
use crate::replicas::Replicas;
use crate::sent_resources::SentResources;
use crate::transform_opt_in::TransformOptIn;

pub const ROOT: &str = "ahp-root://";

/// The result of a response.
pub type Response = Result<Value, Value>;

/// A request that is out.
#[derive(Debug, Clone)]
pub struct Pending {
    pub method: String,
    pub channel: String,
}

/// One client, connected or not.
#[derive(Debug)]
pub struct Client {
    pub id: String,
    /// What its token says it may do.
    pub role: Role,
    pub versions: Vec<String>,
    pub link: Option<PeerId>,
    /// Admitted by `initialize` or `reconnect` on the present connection.
    pub ready: bool,
    /// It was admitted at least once, so it comes back with `reconnect`.
    pub known: bool,
    pub mirrors: BTreeMap<String, Mirror>,
    /// The same by other code; `None` where that is not worth the time.
    pub replicas: Option<Replicas>,
    /// The seq at which a mirror was last known to be of a channel that is there.
    pub served: BTreeMap<String, u64>,
    pub last_seen: u64,
    pub next_id: u64,
    pub pending: BTreeMap<u64, Pending>,
    pub responses: BTreeMap<u64, Response>,
    pub client_seq: i64,
    /// Actions sent on this connection, on channels it watched then (and since when), that were neither echoed nor
    /// refused yet.
    pub unconfirmed: BTreeMap<i64, (String, u64)>,
    /// Refused envelopes.
    pub refusals: Vec<Value>,
    /// Envelopes that came, refused ones left out; emptied on request.
    pub envelopes: Vec<Value>,
    pub notifications: Vec<Value>,
    /// Requests of the host that were not answered yet, in order.
    pub asked: Vec<Value>,
    /// What it ever opted in to rewrite.
    pub opted: TransformOptIn,
    /// What it ever attached.
    pub resources: SentResources,
    /// Every frame of the present connection, in order.
    pub frames: Vec<Value>,
    /// The highest seq of an envelope on the present connection.
    pub top_seq: u64,
    /// What must never happen, and did.
    pub violations: Vec<String>,
}

impl Client {
    pub fn new(id: &str, version: &str) -> Self {
        Self {
            id: id.to_owned(),
            role: Role::Owner,
            versions: vec![version.to_owned()],
            link: None,
            ready: false,
            known: false,
            mirrors: BTreeMap::new(),
            replicas: None,
            served: BTreeMap::new(),
            last_seen: 0,
            next_id: 0,
            pending: BTreeMap::new(),
            responses: BTreeMap::new(),
            client_seq: 0,
            unconfirmed: BTreeMap::new(),
            refusals: Vec::new(),
            envelopes: Vec::new(),
            notifications: Vec::new(),
            asked: Vec::new(),
            opted: TransformOptIn::default(),
            resources: SentResources::default(),
            frames: Vec::new(),
            top_seq: 0,
            violations: Vec::new(),
        }
    }

    pub fn is_old(&self) -> bool {
        self.versions.iter().all(|version| version.starts_with("0."))
    }

    /// Mirrors with the published reducers and with our own client, too; those of versions before 0.9 are held to theirs by
    /// `testing/generations`.
    pub fn with_replicas(mut self) -> Self {
        if self.is_old() && !self.versions.iter().any(|version| version.starts_with("0.9")) {
            return self;
        }
        self.replicas = Some(Replicas::new(&self.id, self.is_old()));
        self
    }

    /// The text of a request, and its id.
    pub fn request(&mut self, method: &str, params: Value) -> (u64, String) {
        self.opted.request(method, &params);
        self.resources.message(&params["initialMessage"]);
        self.next_id += 1;
        let id = self.next_id;
        let channel = params["channel"].as_str().unwrap_or("").to_owned();
        self.pending.insert(id, Pending { method: method.to_owned(), channel });
        (id, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    }

    /// The text of a `dispatchAction`, and its `clientSeq`.
    pub fn dispatch(&mut self, channel: &str, action: Value) -> (i64, String) {
        self.opted.action(&action);
        self.resources.message(&action["message"]);
        self.client_seq += 1;
        let seq = self.client_seq;
        // A rename sent to a chat is echoed on its session's channel, which the sender may not watch (G-13).
        let elsewhere =
            action["type"] == "session/titleChanged" && channel.starts_with("ahp-chat:");
        if self.mirrors.contains_key(channel) && !elsewhere {
            let served = self.served.get(channel).copied().unwrap_or(0);
            self.unconfirmed.insert(seq, (channel.to_owned(), served));
        }
        let params = json!({"channel": channel, "clientSeq": seq, "action": action});
        (seq, json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}).to_string())
    }

    pub fn initialize_params(&self, subscriptions: &[String]) -> Value {
        json!({
            "channel": ROOT,
            "clientId": self.id,
            "protocolVersions": self.versions,
            "clientInfo": {"name": "testkit"},
            "initialSubscriptions": subscriptions,
        })
    }

    pub fn reconnect_params(&self) -> Value {
        let subscriptions: Vec<&String> = self.mirrors.keys().collect();
        json!({
            "channel": ROOT,
            "clientId": self.id,
            "lastSeenServerSeq": self.last_seen,
            "subscriptions": subscriptions,
        })
    }

    /// The connection is gone, and with it what was under way.
    pub fn lost(&mut self) {
        self.link = None;
        self.ready = false;
        self.pending.clear();
        self.unconfirmed.clear();
        self.asked.clear();
        self.top_seq = 0;
    }

    pub fn connected(&mut self, link: PeerId) {
        self.lost();
        self.frames.clear();
        self.link = Some(link);
    }

    /// Takes one frame of the host.
    pub fn receive(&mut self, frame: Value) {
        self.frames.push(frame.clone());
        match frame["method"].as_str() {
            Some("action") => self.envelope(&frame["params"]),
            Some(_) if frame.get("id").is_some() => self.is_asked(frame),
            Some(_) => self.notified(frame),
            None => self.answered(frame),
        }
    }

    /// The host asks: for something it may ask, and under a numeric id.
    fn is_asked(&mut self, frame: Value) {
        let wrong = if !(self.ready && frame["id"].is_u64()) {
            Some("before anything was agreed, or under a strange id".to_owned())
        } else if frame["method"] == "resourceRead" {
            self.resources.wrong(&frame)
        } else {
            self.opted.wrong(&frame)
        };
        if let Some(wrong) = wrong {
            let id = &self.id;
            self.violations.push(format!("{id} is asked {wrong}: {frame}"));
        }
        self.asked.push(frame);
    }

    fn envelope(&mut self, envelope: &Value) {
        let seq = envelope["serverSeq"].as_u64().unwrap_or(0);
        let own = envelope["origin"]["clientId"] == self.id.as_str();
        if own && let Some(client_seq) = envelope["origin"]["clientSeq"].as_i64() {
            self.unconfirmed.remove(&client_seq);
        }
        if envelope.get("rejectionReason").is_some() {
            if !own {
                self.violations
                    .push(format!("{} received a refusal of another client: {envelope}", self.id)); // H-067
            }
            self.refusals.push(envelope.clone());
            return;
        }
        // Recorded envelopes rise strictly; an own action that changed nothing carries the seq of the moment (G-17).
        if seq < self.top_seq || (seq == self.top_seq && !own) {
            self.violations
                .push(format!("{}: seq {seq} after {}: {envelope}", self.id, self.top_seq));
        }
        self.top_seq = self.top_seq.max(seq);
        self.last_seen = self.last_seen.max(seq);
        self.envelopes.push(envelope.clone());
        if let Some(replicas) = &mut self.replicas {
            replicas.receive(envelope);
        }
        self.apply(envelope);
    }

    fn apply(&mut self, envelope: &Value) {
        let channel = envelope["channel"].as_str().unwrap_or("");
        if let Some(mirror) = self.mirrors.get_mut(channel) {
            mirror.apply(&envelope["action"]);
        }
        if envelope["action"]["type"] == "session/chatRemoved"
            && let Some(chat) = envelope["action"]["chat"].as_str()
        {
            self.forget(chat); // H-054
        }
    }

    fn forget(&mut self, gone: &str) {
        self.mirrors.remove(gone);
        self.unconfirmed.retain(|_, (channel, _)| channel != gone);
    }

    fn notified(&mut self, frame: Value) {
        if frame["method"] == "root/sessionRemoved"
            && let Some(session) = frame["params"]["session"].as_str()
        {
            self.forget_session(session);
        }
        self.notifications.push(frame);
    }

    /// A session that is gone takes its chats with it (H-054), those that the client can know to be in it.
    pub fn forget_session(&mut self, session: &str) {
        let mut gone = BTreeSet::from([session.to_owned(), crate::default_chat(session)]);
        if let Some(Mirror::Session(state)) = self.mirrors.get(session) {
            gone.extend(state.chats.iter().map(|chat| chat.resource.clone()));
        }
        for channel in gone {
            self.forget(&channel);
        }
    }

    fn answered(&mut self, frame: Value) {
        let Some(id) = frame["id"].as_u64() else { return };
        let Some(pending) = self.pending.remove(&id) else {
            self.violations
                .push(format!("{}: a response that no request waits for: {frame}", self.id)); // H-004
            return;
        };
        match (frame.get("result"), frame.get("error")) {
            (Some(result), None) => {
                self.succeeded(&pending, result);
                self.responses.insert(id, Ok(result.clone()));
            }
            (None, Some(error)) => {
                if pending.method == "reconnect" && error["code"] == -32008 {
                    self.known = false; // it starts anew, on the same connection (H-088)
                }
                self.responses.insert(id, Err(error.clone()));
            }
            _ => self.violations.push(format!("{}: neither result nor error: {frame}", self.id)),
        }
    }

    fn succeeded(&mut self, pending: &Pending, result: &Value) {
        match pending.method.as_str() {
            "initialize" => {
                self.admitted();
                self.replace_all(&result["snapshots"]);
                self.last_seen = self.last_seen.max(result["serverSeq"].as_u64().unwrap_or(0));
            }
            "reconnect" if result["type"] == "replay" => {
                self.admitted();
                let mut before = 0;
                for envelope in result["actions"].as_array().into_iter().flatten() {
                    let seq = envelope["serverSeq"].as_u64().unwrap_or(0);
                    if seq <= before {
                        self.violations
                            .push(format!("{}: the replay does not rise: {envelope}", self.id));
                    }
                    before = seq;
                    self.top_seq = self.top_seq.max(seq);
                    self.last_seen = self.last_seen.max(seq);
                    self.apply(envelope);
                }
                let missing = texts(&result["missing"]);
                for channel in &missing {
                    self.mirrors.remove(channel);
                }
                if let Some(replicas) = &mut self.replicas {
                    let actions = result["actions"].as_array();
                    replicas.replay(actions.map_or(&[], Vec::as_slice), &missing);
                }
                for channel in self.mirrors.keys() {
                    let served = self.served.entry(channel.clone()).or_default();
                    *served = self.last_seen.max(*served);
                }
            }
            "reconnect" => {
                self.admitted();
                let top = self.replace_all(&result["snapshots"]); // H-082
                self.last_seen = self.last_seen.max(top);
            }
            "subscribe" => {
                if let Some(replicas) = &mut self.replicas {
                    replicas.take_snapshot(&result["snapshot"]);
                }
                self.take_snapshots(std::slice::from_ref(&result["snapshot"]));
            }
            _ => {}
        }
    }

    fn admitted(&mut self) {
        self.ready = true;
        self.known = true;
    }

    /// What it watches is what it is served now.
    fn replace_all(&mut self, snapshots: &Value) -> u64 {
        let snapshots = snapshots.as_array().map_or(&[][..], Vec::as_slice);
        self.mirrors.clear();
        if let Some(replicas) = &mut self.replicas {
            replicas.replace_all(snapshots);
        }
        self.take_snapshots(snapshots)
    }

    fn take_snapshots(&mut self, snapshots: &[Value]) -> u64 {
        let mut top = 0;
        for snapshot in snapshots {
            if snapshot["state"].is_null() {
                continue; // a channel without state
            }
            let resource = snapshot["resource"].as_str().unwrap_or("").to_owned();
            let from = snapshot["fromSeq"].as_u64().unwrap_or(0);
            top = top.max(from);
            self.served.insert(resource.clone(), from);
            if resource.starts_with("ahp-resource-watch:") {
                continue; // its state never changes
            }
            self.mirrors.insert(resource, Mirror::from_snapshot(snapshot["state"].clone()));
        }
        top
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}
