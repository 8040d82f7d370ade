//! Peers: connections, what they negotiated, what they watch, and which of their messages wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;
use wire::methods::{self, Call};
use wire::rpc::code;
use wire::{ChannelUri, Generation, Id, Incoming, RpcError, Version};

use crate::Kernel;
use crate::channel::Watcher;
use crate::io::{CloseReason, Effect, Owed, PeerId, ReadFailed, Ticket, Timer};
use crate::load::{Flow, Memo, Waiter, Waiting};
use crate::record::{Answer, Query, Seq};

/// A connection.
pub(crate) struct Peer {
    pub stage: Stage,
    pub subscriptions: BTreeMap<ChannelUri, Subscription>,
    /// What it was ever served and did not give up itself: a snapshot of it replaces an earlier one, also if the URI
    /// names another channel by now (G-19).
    pub served: BTreeSet<ChannelUri>,
    pub waiting: Option<Box<Waiting>>,
    /// Messages that wait behind `waiting`, in order.
    pub parked: VecDeque<(Incoming, usize)>,
    pub parked_bytes: usize,
    pub paused: bool,
    /// The connection is gone; what was read from it is still processed.
    pub gone: bool,
}

pub(crate) enum Stage {
    New,
    Ready(Ready),
}

/// What was negotiated.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub client_id: String,
    pub version: Version,
    pub generation: Generation,
    pub capabilities: Option<Value>,
    pub locale: Option<String>,
    /// Sections it wants to rewrite wherever it is active and its entry says nothing (G-34).
    pub transform: Option<Vec<String>>,
    /// What the journal holds of this client is not true: it could not be written when it changed.
    pub volatile: bool,
}

/// What a peer watches, as the kernel needs it.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub floor: Seq,
    pub replaced: bool,
    pub oldest_turn: Option<String>,
    pub view_turns: Option<u32>,
    pub max_latency_ms: Option<u32>,
    /// The number of the oldest turn this connection was sent.
    pub oldest_n: Option<u64>,
}

impl Peer {
    pub fn new() -> Self {
        Self {
            stage: Stage::New,
            subscriptions: BTreeMap::new(),
            served: BTreeSet::new(),
            waiting: None,
            parked: VecDeque::new(),
            parked_bytes: 0,
            paused: false,
            gone: false,
        }
    }
}

impl Kernel {
    pub(crate) fn ready(&self, peer: PeerId) -> Option<&Ready> {
        match &self.peers.get(&peer)?.stage {
            Stage::Ready(ready) => Some(ready),
            Stage::New => None,
        }
    }

    /// Handles a message now, or lets it wait behind what its peer already waits for.
    pub(crate) fn take_or_park(&mut self, peer: PeerId, message: Incoming, bytes: usize) {
        let (in_flight_max, bytes_max) = (
            self.limits.requests_in_flight_max,
            self.limits.parked_bytes_max,
        );
        let Some(state) = self.peers.get_mut(&peer) else {
            return;
        };
        if state.waiting.is_none() {
            state.waiting = Some(Box::new(Waiting::new(message, &self.limits)));
            return self.go_on(peer);
        }
        if state.parked.len() >= in_flight_max
            && let Incoming::Request { id, .. } = &message
        {
            let error = RpcError::new(
                code::INVALID_REQUEST,
                format!("more than {in_flight_max} requests in flight"),
            );
            let id = id.clone();
            return self.fail(peer, &id, &error);
        }
        state.parked.push_back((message, bytes));
        state.parked_bytes += bytes;
        if !state.paused && (state.parked_bytes > bytes_max || state.parked.len() > in_flight_max) {
            state.paused = true;
            self.out.effects.push(Effect::Pause { peer });
        }
    }

    /// Handles the message a peer stands at, as far as it goes; then those behind it.
    pub(crate) fn go_on(&mut self, peer: PeerId) {
        loop {
            let Some(waiting) = self
                .peers
                .get_mut(&peer)
                .and_then(|state| state.waiting.as_mut())
            else {
                return;
            };
            if !waiting.tickets.is_empty() || waiting.after.is_some() {
                return;
            }
            let message = waiting.message.clone();
            let mut memo = std::mem::take(&mut waiting.memo);
            memo.lifted = waiting.lifted.clone();
            match self.handle(peer, message, &memo) {
                Flow::Ask(queries) => {
                    self.ask(queries, Waiter::Peer(peer), memo);
                    return;
                }
                Flow::Errand(errand) => return self.send_on(errand, peer, memo),
                Flow::Ready(()) | Flow::Failed(_) => {
                    let Some(state) = self.peers.get_mut(&peer) else {
                        return;
                    };
                    if let Some(waiting) = &mut state.waiting
                        && waiting.after.is_some()
                    {
                        // Waits for an older connection of the same client, which may still change what was read.
                        waiting.memo = Memo::default();
                        return;
                    }
                    state.waiting = None;
                    let next = state.parked.pop_front();
                    if let Some((_, bytes)) = &next {
                        state.parked_bytes -= bytes;
                    }
                    if state.paused && state.parked.len() < self.limits.requests_in_flight_max / 2 {
                        state.paused = false;
                        self.out.effects.push(Effect::Resume { peer });
                    }
                    match next {
                        Some((message, _)) => {
                            let waiting = Waiting::new(message, &self.limits);
                            state.waiting = Some(Box::new(waiting));
                        }
                        None if state.gone => return self.farewell(peer),
                        None => return,
                    }
                }
            }
        }
    }

    pub(crate) fn peer_heard(
        &mut self,
        peer: PeerId,
        ticket: Ticket,
        query: &Query,
        answer: Option<&Result<Answer, ReadFailed>>,
    ) {
        let Some(waiting) = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.waiting.as_mut())
        else {
            return;
        };
        waiting.tickets.retain(|other| *other != ticket);
        if let Some(answer) = answer {
            waiting.memo.push(query.clone(), answer.clone());
        }
        self.go_on(peer);
    }

    fn handle(&mut self, peer: PeerId, message: Incoming, memo: &Memo) -> Flow<()> {
        match message {
            Incoming::Request { id, method, params } => {
                let flow = self.call(peer, &id, &method, params, memo);
                if let Flow::Failed(failed) = &flow {
                    let error = RpcError::new(code::INTERNAL_ERROR, failed.to_string());
                    self.fail(peer, &id, &error);
                }
                let waiting = self
                    .peers
                    .get(&peer)
                    .and_then(|state| state.waiting.as_ref());
                let deferred = waiting.is_some_and(|waiting| waiting.after.is_some());
                if !matches!(flow, Flow::Ask(_) | Flow::Errand(_)) && !deferred {
                    self.owe(Owed::Answer { peer, id });
                }
                flow
            }
            // Nothing can be answered to a notification: what is malformed or unknown is ignored (H-009).
            Incoming::Notification { method, params } => match method.as_str() {
                "dispatchAction" => match methods::decode_dispatch(params) {
                    Ok(dispatch) => self.dispatch(peer, dispatch, memo),
                    Err(_) => Flow::Ready(()),
                },
                "unsubscribe" => self.unsubscribe(peer, &params, memo),
                _ => Flow::Ready(()),
            },
            Incoming::Response { .. } => Flow::Ready(()),
        }
    }

    fn call(
        &mut self,
        peer: PeerId,
        id: &Id,
        method: &str,
        mut params: Value,
        memo: &Memo,
    ) -> Flow<()> {
        let generation = self.ready(peer).map(|ready| ready.generation);
        if method == "createSession"
            && let Some(generation) = generation
        {
            wire::compat::up_create_session(generation, &mut params);
        }
        let call = match methods::decode_call(method, params) {
            Ok(call) => call,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let admitted = generation.is_some();
        match call {
            Call::Initialize(_) | Call::Reconnect(_) if admitted => {
                let error = RpcError::new(
                    code::INVALID_REQUEST,
                    "this connection is initialized already",
                ); // G-21
                self.answer_error(peer, id, &error)
            }
            Call::Initialize(params) => self.initialize(peer, id, &params, memo),
            Call::Reconnect(params) => self.reconnect(peer, id, &params, memo),
            Call::Ping => {
                self.respond(peer, id, &Value::Null);
                Flow::Ready(())
            }
            _ if !admitted => {
                let error = RpcError::new(
                    code::INVALID_REQUEST,
                    "send `initialize` or `reconnect` first",
                ); // H-020
                self.answer_error(peer, id, &error)
            }
            Call::Subscribe(params) => self.subscribe(peer, id, &params, memo),
            Call::CreateSession(params, raw) => self.create_session(peer, id, &params, &raw, memo),
            Call::CreateChat(params, raw) => self.create_chat(peer, id, &params, &raw, memo),
            Call::DisposeChat(params) => self.dispose_chat_call(peer, id, &params, memo),
            Call::DisposeSession(params) => self.dispose_session_call(peer, id, &params, memo),
            Call::ListSessions(params) => self.list_sessions(peer, id, &params, memo),
            Call::ResourceRead(params) => self.resource_read(peer, id, &params, memo),
            Call::FetchTurns(params) => self.fetch_turns(peer, id, &params, memo),
            Call::Completions(params) => self.completions(peer, id, &params, memo),
            Call::ResolveSessionConfig(params) => self.resolve_session_config(peer, id, &params),
            Call::SessionConfigCompletions(params) => {
                self.session_config_completions(peer, id, &params)
            }
        }
    }

    pub(crate) fn answer_error(&mut self, peer: PeerId, id: &Id, error: &RpcError) -> Flow<()> {
        self.fail(peer, id, error);
        Flow::Ready(())
    }

    /// Sets or removes what a peer watches.
    pub(crate) fn set_watcher(&mut self, uri: &ChannelUri, peer: PeerId, watcher: Option<Watcher>) {
        let watchers = self.watchers.entry(uri.clone()).or_default();
        let place = watchers.iter().position(|watcher| watcher.peer == peer);
        match (place, watcher) {
            (Some(place), Some(watcher)) => watchers[place] = watcher,
            (Some(place), None) => {
                watchers.remove(place);
            }
            (None, Some(watcher)) => watchers.push(watcher),
            (None, None) => {}
        }
        if watchers.is_empty() {
            self.watchers.remove(uri);
        }
    }

    /// Notes what a peer watched before this step changes it.
    pub(crate) fn remember_watch(&mut self, peer: PeerId, uri: &ChannelUri) {
        let watcher = self
            .watchers
            .get(uri)
            .and_then(|all| all.iter().find(|w| w.peer == peer))
            .cloned();
        let subscription = self
            .peers
            .get(&peer)
            .and_then(|state| state.subscriptions.get(uri))
            .cloned();
        self.undo
            .watched
            .push((uri.clone(), peer, watcher, subscription));
    }

    /// Begins a subscription that was just answered with a snapshot (H-041).
    pub(crate) fn watch(&mut self, peer: PeerId, uri: &ChannelUri, subscription: Subscription) {
        if let Some(ready) = self.ready(peer).cloned() {
            self.record_floor(&ready, uri, &subscription);
            self.watch_again(peer, uri, subscription);
        }
    }

    /// Goes on with a subscription that the journal already holds as it is.
    pub(crate) fn watch_again(
        &mut self,
        peer: PeerId,
        uri: &ChannelUri,
        subscription: Subscription,
    ) {
        let Some(generation) = self.ready(peer).map(|ready| ready.generation) else {
            return;
        };
        let window_ms = subscription.max_latency_ms.unwrap_or(0);
        self.remember_watch(peer, uri);
        let watcher = Watcher {
            peer,
            generation,
            window_ms,
        };
        self.set_watcher(uri, peer, Some(watcher));
        if let Some(state) = self.peers.get_mut(&peer) {
            state.subscriptions.insert(uri.clone(), subscription);
            state.served.insert(uri.clone());
        }
    }

    /// A channel is gone: so are its subscriptions (H-054).
    pub(crate) fn end_subscriptions(&mut self, uri: &ChannelUri) {
        let watching: Vec<PeerId> = self
            .watchers
            .get(uri)
            .into_iter()
            .flatten()
            .map(|w| w.peer)
            .collect();
        for peer in watching {
            self.remember_watch(peer, uri);
        }
        for watcher in self.watchers.remove(uri).unwrap_or_default() {
            if let Some(state) = self.peers.get_mut(&watcher.peer) {
                state.subscriptions.remove(uri);
            }
        }
    }

    /// The place of an older connection with the same client id is taken: it is closed, and what was read from it is
    /// processed first (G-20). Returns whether the newer one has to wait for that.
    pub(crate) fn supersede(&mut self, peer: PeerId, client_id: &str) -> bool {
        let Some(older) = self
            .clients
            .get(client_id)
            .copied()
            .filter(|older| *older != peer)
        else {
            return false;
        };
        let closing = self.peers.get(&older).is_some_and(|state| state.gone);
        if !closing {
            self.out.effects.push(Effect::Close {
                peer: older,
                why: CloseReason::Superseded,
            });
        }
        if let Some(waiting) = self
            .peers
            .get_mut(&peer)
            .and_then(|state| state.waiting.as_mut())
        {
            waiting.after = Some(older);
        }
        true
    }

    pub(crate) fn disconnected(&mut self, peer: PeerId) {
        let Some(state) = self.peers.get_mut(&peer) else {
            return;
        };
        state.gone = true;
        let idle = state.waiting.is_none();
        self.end_requests(peer);
        if idle {
            self.farewell(peer);
        }
    }

    /// Everything that was read from a connection is processed: now it is really gone.
    fn farewell(&mut self, peer: PeerId) {
        let Some(state) = self.peers.remove(&peer) else {
            return;
        };
        self.out.effects.push(Effect::Forget { peer });
        for uri in state.subscriptions.keys() {
            self.set_watcher(uri, peer, None);
        }
        if let Stage::Ready(ready) = state.stage {
            self.clients.remove(&ready.client_id);
            self.remember(&ready, &state.subscriptions);
            if self.unwritable().is_none() {
                self.record_client(&ready);
            } else if ready.volatile {
                self.forgotten.insert(ready.client_id.clone());
            }
            let sessions = self
                .active
                .get(&ready.client_id)
                .cloned()
                .unwrap_or_default();
            if !sessions.is_empty() {
                self.lost.insert(ready.client_id.clone(), self.now);
            }
            for session in sessions {
                let timer = Timer::Grace {
                    session,
                    client_id: ready.client_id.clone(),
                };
                self.wake_in(timer, self.limits.active_client_grace_ms);
            }
        }
        let behind: Vec<PeerId> = self
            .peers
            .iter()
            .filter(|(_, state)| {
                state
                    .waiting
                    .as_ref()
                    .is_some_and(|waiting| waiting.after == Some(peer))
            })
            .map(|(other, _)| *other)
            .collect();
        for other in behind {
            if let Some(waiting) = self
                .peers
                .get_mut(&other)
                .and_then(|state| state.waiting.as_mut())
            {
                waiting.after = None;
            }
            self.go_on(other);
        }
    }
}
