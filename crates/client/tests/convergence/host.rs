//! The host of the model: it puts actions in one order, refuses some, rewrites some, and answers a client that comes back
//! with a replay or with snapshots (G-16 to G-20).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};
use wire::action::to_value;
use wire::reduce::{Reduced, reduce_chat, reduce_root, reduce_session};
use wire::state::{ChatState, RootState, SessionState};
use wire::{Action, ActionKind, Origin};

use crate::actions::{self, CHATS, ROOT, SESSION};
use crate::dice::Dice;

#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
}

impl State {
    pub fn reduce(&mut self, action: &Action) -> Reduced {
        match self {
            Self::Root(state) => reduce_root(state, action),
            Self::Session(state) => reduce_session(state, action),
            Self::Chat(state) => reduce_chat(state, action),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Root(state) => to_value(&**state),
            Self::Session(state) => to_value(&**state),
            Self::Chat(state) => state.value(),
        }
    }
}

/// What a client sends.
#[derive(Debug, Clone)]
pub enum ToHost {
    Dispatch(Value),
    Subscribe(String),
    Unsubscribe(String),
}

/// What a client is sent.
#[derive(Debug, Clone)]
pub enum ToClient {
    Action(Value),
    /// The answer to a subscription; none if there is no such channel.
    Subscribed(Option<Value>),
    Replay {
        actions: Vec<Value>,
        missing: Vec<String>,
    },
    Snapshots(Vec<Value>),
}

/// What became of a dispatch each time it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Recorded,
    Unchanged,
    Refused,
}

/// What the host knows of one client.
#[derive(Debug, Default)]
pub struct Peer {
    pub watches: BTreeSet<String>,
    /// Of each channel: the seq of the last snapshot served, and whether it was not the first.
    served: BTreeMap<String, (u64, bool)>,
    pub outbox: VecDeque<ToClient>,
}

#[derive(Debug)]
pub struct Host {
    pub states: BTreeMap<String, State>,
    seq: u64,
    log: Vec<(u64, String, Value)>,
    used_turns: BTreeSet<String>,
    fresh: usize,
    pub peers: Vec<Peer>,
    pub decisions: BTreeMap<Dispatched, Vec<Decision>>,
}

/// A client by its number, and its `clientSeq`.
pub type Dispatched = (usize, i64);

pub fn name(client: usize) -> String {
    format!("client-{client}")
}

impl Host {
    pub fn new(clients: usize) -> Self {
        let root = json!({
            "agents": [], "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
        });
        let session = json!({
            "provider": "x", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": [],
        });
        let root = RootState::from_value(root).expect("a root");
        let session = SessionState::from_value(session).expect("a session");
        let mut states = BTreeMap::from([
            (ROOT.to_owned(), State::Root(Box::new(root))),
            (SESSION.to_owned(), State::Session(Box::new(session))),
        ]);
        for chat in CHATS {
            let state = ChatState::new(chat, "", 1, "2026-01-01T00:00:00Z".to_owned());
            states.insert(chat.to_owned(), State::Chat(Box::new(state)));
        }
        Self {
            states,
            seq: 7,
            log: Vec::new(),
            used_turns: BTreeSet::new(),
            fresh: 0,
            peers: (0..clients).map(|_| Peer::default()).collect(),
            decisions: BTreeMap::new(),
        }
    }

    fn chat(&self, channel: &str) -> Option<&ChatState> {
        match self.states.get(channel)? {
            State::Chat(state) => Some(state),
            State::Root(_) | State::Session(_) => None,
        }
    }

    /// The host does something by itself.
    pub fn act(&mut self, d: &mut Dice) {
        let channel = d.pick(&CHATS);
        self.fresh += 1;
        let fresh = format!("h{}", self.fresh);
        let Some(chat) = self.chat(channel) else { return };
        let (name, fields) = actions::of_the_host(d, chat, &fresh);
        if name == "chat/turnStarted" {
            self.used_turns.insert(fresh);
        }
        self.record(channel, &Action::host(ActionKind::from_name(name), fields), None);
    }

    /// A chat is disposed of; watchers of the session are notified.
    pub fn dispose(&mut self, channel: &str) {
        if self.states.remove(channel).is_none() {
            return;
        }
        for peer in &mut self.peers {
            peer.watches.remove(channel);
        }
        // The catalogue is empty in this model, so the reducers ignore it; clients listen for it all the same.
        let action = Action::host(ActionKind::SessionChatRemoved, json!({"chat": channel}));
        self.broadcast(SESSION, &action, None);
    }

    pub fn take(&mut self, client: usize, message: ToHost, d: &mut Dice) {
        match message {
            ToHost::Dispatch(params) => self.dispatched(client, &params, d),
            ToHost::Subscribe(channel) => {
                let snapshot = self.serve(client, &channel);
                self.peers[client].outbox.push_back(ToClient::Subscribed(snapshot));
            }
            ToHost::Unsubscribe(channel) => {
                self.peers[client].watches.remove(&channel);
            }
        }
    }

    fn dispatched(&mut self, client: usize, params: &Value, d: &mut Dice) {
        let sent_to = params["channel"].as_str().expect("a channel").to_owned();
        let client_seq = params["clientSeq"].as_i64().expect("a client seq");
        let action = Action::decode(params["action"].clone()).expect("an action");
        let origin = Origin { client_id: name(client), client_seq };
        if !self.states.contains_key(&sent_to) {
            let mut refusal = self.envelope(&sent_to, &action, Some(&origin));
            refusal["rejectionReason"] = json!("there is no such channel"); // G-23a
            self.send(client, refusal);
            let decisions = self.decisions.entry((client, client_seq)).or_default();
            return decisions.push(Decision::Refused);
        }
        // G-13: what means the session acts on the session, whatever channel it was sent to.
        let channel =
            if action.name().starts_with("session/") { SESSION.to_owned() } else { sent_to };
        let is_allowed = match self.states.get(&channel) {
            Some(State::Chat(chat)) => {
                actions::is_allowed(&action, chat, |id| self.used_turns.contains(id))
            }
            Some(_) => true,
            None => return,
        };
        let decision = if !is_allowed || d.one_in(7) {
            let mut refusal = self.envelope(&channel, &action, Some(&origin));
            refusal["rejectionReason"] = json!("no");
            self.send(client, refusal);
            Decision::Refused
        } else {
            let action = normalised(action, self.chat(&channel));
            if let ("chat/turnStarted", Some(id)) = (action.name(), action.text("turnId")) {
                self.used_turns.insert(id.to_owned());
            }
            match self.record(&channel, &action, Some(&origin)) {
                Reduced::Changed => Decision::Recorded,
                Reduced::Unchanged => {
                    // G-17: to the sender alone, with the current seq.
                    let answer = self.envelope(&channel, &action, Some(&origin));
                    self.send(client, answer);
                    Decision::Unchanged
                }
            }
        };
        let decisions = self.decisions.entry((client, client_seq)).or_default();
        decisions.push(decision);
    }

    fn record(&mut self, channel: &str, action: &Action, origin: Option<&Origin>) -> Reduced {
        let state = self.states.get_mut(channel).expect("a channel that exists");
        if state.reduce(action) == Reduced::Unchanged {
            return Reduced::Unchanged;
        }
        self.broadcast(channel, action, origin);
        Reduced::Changed
    }

    fn broadcast(&mut self, channel: &str, action: &Action, origin: Option<&Origin>) {
        self.seq += 1;
        let envelope = self.envelope(channel, action, origin);
        self.log.push((self.seq, channel.to_owned(), envelope.clone()));
        for peer in &mut self.peers {
            if peer.watches.contains(channel) {
                peer.outbox.push_back(ToClient::Action(envelope.clone()));
            }
        }
    }

    fn envelope(&self, channel: &str, action: &Action, origin: Option<&Origin>) -> Value {
        let mut envelope =
            json!({"channel": channel, "serverSeq": self.seq, "action": action.body});
        if let Some(origin) = origin {
            envelope["origin"] = to_value(origin);
        }
        envelope
    }

    fn send(&mut self, client: usize, envelope: Value) {
        self.peers[client].outbox.push_back(ToClient::Action(envelope));
    }

    /// A snapshot, and the subscription that begins with it.
    fn serve(&mut self, client: usize, channel: &str) -> Option<Value> {
        let state = self.states.get(channel)?.value();
        let peer = &mut self.peers[client];
        peer.watches.insert(channel.to_owned());
        let is_another = peer.served.contains_key(channel);
        peer.served.insert(channel.to_owned(), (self.seq, is_another));
        Some(json!({"resource": channel, "state": state, "fromSeq": self.seq}))
    }

    /// The client is there again, on a new connection.
    pub fn reconnect(&mut self, client: usize, last_seen: u64, channels: &[String], d: &mut Dice) {
        let (there, missing): (Vec<String>, Vec<String>) =
            channels.iter().cloned().partition(|channel| self.states.contains_key(channel));
        let peer = &self.peers[client];
        let is_unclear = there.iter().any(|channel| match peer.served.get(channel) {
            None => true,
            Some((from_seq, is_another)) => *is_another && last_seen < *from_seq,
        }); // G-19
        let answer = if is_unclear || d.one_in(3) {
            self.peers[client].watches.clear();
            let snapshots = there.iter().filter_map(|channel| self.serve(client, channel));
            ToClient::Snapshots(snapshots.collect())
        } else {
            let floor = |channel: &String| {
                let served = peer.served.get(channel).map_or(0, |(from_seq, _)| *from_seq);
                served.max(last_seen)
            };
            let missed = self.log.iter().filter(|(seq, channel, _)| {
                there.contains(channel) && *seq > floor(channel) // H-085
            });
            let actions = missed.map(|(_, _, envelope)| envelope.clone()).collect();
            self.peers[client].watches = there.into_iter().collect();
            ToClient::Replay { actions, missing }
        };
        let peer = &mut self.peers[client];
        peer.outbox.clear();
        peer.outbox.push_back(answer);
    }
}

/// What the host makes of an action before it records it (G-12, G-13, G-22).
fn normalised(mut action: Action, chat: Option<&ChatState>) -> Action {
    match action.name() {
        "chat/turnStarted" => {
            if let Some(message) = action.body.get_mut("message") {
                message["model"] = json!({"id": "the-default"});
            }
        }
        "chat/queuedMessagesReordered" => {
            let waiting = chat.map_or(&[][..], |chat| chat.queued_messages.as_slice());
            let is_known = |id: &Value| waiting.iter().any(|message| json!(message.id) == *id);
            if let Some(Value::Array(order)) = action.body.get_mut("order") {
                order.retain(is_known);
            }
        }
        "root/configChanged" => {
            if let Some(Value::Object(config)) = action.body.get_mut("config") {
                config.shift_remove("unknown");
            }
        }
        _ => {}
    }
    action
}
