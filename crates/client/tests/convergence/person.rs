//! A client of the model: the replica under test, the messages it sends, and a second opinion about what it should do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use client::{
    DropReason, DroppedAction, Envelope, EnvelopeEffect, PendingAction, ReconnectOutcome, Snapshot,
};
use serde_json::Value;
use wire::Action;
use wire::action::ChannelKind;

use crate::actions::{self, CHATS, ROOT, SESSION};
use crate::dice::Dice;
use crate::host::{Host, State, ToClient, ToHost, name};
use crate::recorded::RecordedReplica;

/// Connections that an action may go down with before it is given up.
const SENDS_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    /// A reconnect waits for its answer.
    Coming,
    Up,
}

/// What the application learned about an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Confirmed,
    Refused,
    Dropped,
}

/// A subscription on its way.
struct Subscribing {
    channel: String,
    sent_before: i64,
    is_given_up: bool,
}

pub struct Person {
    number: usize,
    pub replica: RecordedReplica,
    link: Link,
    pub to_host: VecDeque<ToHost>,
    /// How often each action was sent.
    sends: BTreeMap<i64, usize>,
    pub fates: BTreeMap<i64, Fate>,
    /// Actions whose outcome need not be reported: sent where the person does not watch, or does not watch any more.
    unheard: BTreeSet<i64>,
    /// What was dispatched, and where.
    dispatched: BTreeMap<i64, (String, String)>,
    subscribing: VecDeque<Subscribing>,
    fresh: usize,
}

impl Person {
    /// Someone who watches everything, or all but the second chat.
    pub fn new(number: usize, host: &mut Host, d: &mut Dice) -> Self {
        let mut person = Self {
            number,
            replica: RecordedReplica::new(&name(number)),
            link: Link::Up,
            to_host: VecDeque::new(),
            sends: BTreeMap::new(),
            fates: BTreeMap::new(),
            unheard: BTreeSet::new(),
            dispatched: BTreeMap::new(),
            subscribing: VecDeque::new(),
            fresh: 0,
        };
        for channel in [ROOT, SESSION, CHATS[0], CHATS[1]] {
            if channel != CHATS[1] || !d.one_in(3) {
                let subscribe = person.subscribe(channel);
                host.take(number, subscribe, d);
            }
        }
        person.listen(host, usize::MAX);
        person
    }

    fn is_held(&self, channel: &str) -> bool {
        self.replica.channels().any(|held| held == channel)
    }

    /// Whether the echo of an action comes this way.
    fn is_echoed(&self, channel: &str, action: &Action) -> bool {
        let kind = match channel {
            ROOT => ChannelKind::Root,
            SESSION => ChannelKind::Session,
            _ => ChannelKind::Chat,
        };
        self.is_held(channel) && action.kind.channel() == Some(kind)
    }

    pub fn acts(&mut self, d: &mut Dice) {
        let (channel, action) = if d.one_in(4) {
            actions::elsewhere(d)
        } else {
            let channel = d.pick(&CHATS);
            self.fresh += 1;
            let fresh = format!("t{}-{}", self.number, self.fresh);
            let chat = self.replica.chat(channel);
            let action = actions::of_a_person(d, chat.map(|chat| &**chat), &fresh);
            (channel.to_owned(), action)
        };
        let action = Action::decode(action).expect("an action that clients may send");
        let mut subscribing = self.subscribing.iter();
        let is_coming = subscribing.any(|on| on.channel == channel && !on.is_given_up);
        let is_chats = action.name().starts_with("chat/");
        let is_echoed = self.is_echoed(&channel, &action) || (is_coming && is_chats);
        let name = action.name().to_owned();
        let client_seq =
            self.replica.dispatch(&channel, action).expect("fewer pending actions than the bound");
        self.dispatched.insert(client_seq, (name, channel));
        if !is_echoed {
            self.unheard.insert(client_seq);
        }
        self.flush();
    }

    /// Sends what is unsent, if there is a connection that is ready for it.
    fn flush(&mut self) {
        if self.link != Link::Up {
            return;
        }
        let mut before = None;
        while let Some(params) = self.replica.take_unsent() {
            let client_seq = params["clientSeq"].as_i64().expect("a client seq");
            assert!(before < Some(client_seq), "sent out of order");
            assert!(
                !self.fates.contains_key(&client_seq),
                "sent again though its fate is known: {params}"
            );
            before = Some(client_seq);
            *self.sends.entry(client_seq).or_default() += 1;
            self.to_host.push_back(ToHost::Dispatch(params));
        }
    }

    /// Starts or stops watching a chat.
    pub fn looks_elsewhere(&mut self, d: &mut Dice) {
        let channel = d.pick(&CHATS).to_owned();
        if self.link != Link::Up {
            return;
        }
        if self.is_held(&channel) && d.one_in(3) {
            self.leave(&channel);
            for subscribing in &mut self.subscribing {
                subscribing.is_given_up |= subscribing.channel == channel;
            }
            self.to_host.push_back(ToHost::Unsubscribe(channel));
        } else {
            let subscribe = self.subscribe(&channel);
            self.to_host.push_back(subscribe);
        }
    }

    fn subscribe(&mut self, channel: &str) -> ToHost {
        self.subscribing.push_back(Subscribing {
            channel: channel.to_owned(),
            sent_before: self.replica.sent_up_to(),
            is_given_up: false,
        });
        ToHost::Subscribe(channel.to_owned())
    }

    fn leave(&mut self, channel: &str) {
        self.replica.drop_channel(channel);
        let there = self.dispatched.iter().filter(|(_, (_, on))| on == channel);
        self.unheard.extend(there.map(|(client_seq, _)| *client_seq));
    }

    /// The connection is lost: of what is on its way, this much arrives.
    pub fn loses_connection(&mut self, host: &mut Host, d: &mut Dice) {
        if self.link == Link::Down {
            return;
        }
        self.listen(host, d.below(4));
        for _ in 0..d.below(4) {
            if let Some(message) = self.to_host.pop_front() {
                host.take(self.number, message, d);
            }
        }
        self.to_host.clear();
        for subscribing in std::mem::take(&mut self.subscribing) {
            if !self.is_held(&subscribing.channel) {
                self.leave(&subscribing.channel);
            }
        }
        host.peers[self.number].watches.clear();
        host.peers[self.number].outbox.clear();
        self.link = Link::Down;
    }

    pub fn comes_back(&mut self, host: &mut Host, d: &mut Dice) {
        if self.link == Link::Down {
            let channels: Vec<String> = self.replica.channels().map(str::to_owned).collect();
            host.reconnect(self.number, self.replica.last_seen(), &channels, d);
            self.link = Link::Coming;
        }
    }

    /// Receives up to so many messages.
    pub fn listen(&mut self, host: &mut Host, most: usize) {
        for _ in 0..most {
            let Some(message) = host.peers[self.number].outbox.pop_front() else { return };
            self.receive(message);
        }
    }

    fn receive(&mut self, message: ToClient) {
        match message {
            ToClient::Action(envelope) => {
                let (envelope, effect) = self.replica.receive(envelope);
                self.note(&effect);
                if envelope.action.name() == "session/chatRemoved" {
                    let chat = envelope.action.text("chat").expect("a chat");
                    let given_up = self.replica.remove_channel(chat);
                    assert!(given_up.iter().all(|gone| gone.why == DropReason::ChannelGone));
                    self.note_given_up(&given_up);
                }
            }
            ToClient::Subscribed(snapshot) => {
                let subscribing = self.subscribing.pop_front().expect("a subscription");
                match snapshot {
                    Some(snapshot) if !subscribing.is_given_up => {
                        let taken = self.replica.take_snapshot(snapshot, subscribing.sent_before);
                        taken.expect("a state");
                    }
                    Some(_) | None => {
                        let channel = &subscribing.channel;
                        if !self.is_held(channel) {
                            self.leave(channel);
                        }
                    }
                }
            }
            ToClient::Replay { actions, missing } => self.receive_replay(actions, &missing),
            ToClient::Snapshots(snapshots) => self.receive_snapshots(snapshots),
        }
        self.flush();
    }

    fn note(&mut self, effect: &EnvelopeEffect) {
        let (client_seq, fate) = match effect {
            EnvelopeEffect::Own { client_seq, .. } => (*client_seq, Fate::Confirmed),
            EnvelopeEffect::Refused { client_seq, .. } => (*client_seq, Fate::Refused),
            EnvelopeEffect::Foreign(_) | EnvelopeEffect::NotForUs => return,
        };
        let before = self.fates.insert(client_seq, fate);
        assert_eq!(before, None, "{client_seq} was answered twice");
    }

    /// What must become of each pending action after a replay, by the letter of G-30.
    fn after_replay(&self, envelopes: &[Envelope], missing: &[String]) -> Expected {
        let me = name(self.number);
        let own = |client_seq| envelopes.iter().any(|envelope| envelope.is_from(&me, client_seq));
        let newest_own = self.dispatched.keys().rev().find(|seq| own(**seq)).copied();
        let mut expected = Expected::default();
        for pending in self.replica.pending() {
            let is_echoed = self.is_echoed(&pending.channel, &pending.action);
            let sends = self.sends.get(&pending.client_seq).copied().unwrap_or(0);
            if own(pending.client_seq) {
                continue;
            }
            if !is_echoed && sends > 0 && newest_own > Some(pending.client_seq) {
                continue; // arrived before something that arrived, and is never answered
            }
            let only_if_quiet = [
                "chat/truncated",
                "chat/turnCancelled",
                "chat/turnResume",
                "chat/toolCallConfirmed",
                "chat/toolCallResultConfirmed",
            ];
            let moved_on = envelopes.iter().any(|envelope| envelope.channel == pending.channel);
            let why = if missing.contains(&pending.channel) {
                Some(DropReason::ChannelGone)
            } else if !is_echoed {
                (sends > 0).then_some(DropReason::NotWatched)
            } else if moved_on && only_if_quiet.contains(&pending.action.name()) {
                Some(DropReason::MovedOn)
            } else {
                None
            };
            expected.add(pending, sends, why);
        }
        expected
    }

    /// The same after snapshots.
    fn after_snapshots(&self, snapshots: &[Snapshot]) -> Expected {
        let mut expected = Expected::default();
        for pending in self.replica.pending() {
            let sends = self.sends.get(&pending.client_seq).copied().unwrap_or(0);
            let snapshot = snapshots.iter().find(|snapshot| snapshot.resource == pending.channel);
            let why = match snapshot {
                None if self.is_held(&pending.channel) => Some(DropReason::ChannelGone),
                None => Some(DropReason::NotWatched),
                Some(snapshot) => {
                    let id = pending.action.get("turnId");
                    let turns = snapshot.state["turns"].as_array();
                    let is_known = turns
                        .is_some_and(|turns| turns.iter().any(|turn| Some(&turn["id"]) == id))
                        || Some(&snapshot.state["activeTurn"]["id"]) == id;
                    let is_sent_again = pending.action.name() == "chat/turnStarted" && !is_known;
                    (!is_sent_again).then_some(DropReason::StateReplaced)
                }
            };
            expected.add(pending, sends, why);
        }
        expected
    }

    fn receive_replay(&mut self, actions: Vec<Value>, missing: &[String]) {
        let envelopes = actions.iter().cloned().map(Envelope::from_value);
        let envelopes: Vec<Envelope> = envelopes.collect::<Result<_, _>>().expect("envelopes");
        let expected = self.after_replay(&envelopes, missing);
        let resumed = self.replica.apply_replay(actions, missing);
        for effect in &resumed.effects {
            self.note(effect);
        }
        self.check_resumed(expected, resumed);
    }

    fn receive_snapshots(&mut self, snapshots: Vec<Value>) {
        let read: Vec<Snapshot> = snapshots
            .iter()
            .cloned()
            .map(Snapshot::from_value)
            .collect::<Result<_, _>>()
            .expect("snapshots");
        let expected = self.after_snapshots(&read);
        let resumed = self.replica.apply_snapshots(snapshots).expect("states");
        self.check_resumed(expected, resumed);
    }

    fn check_resumed(&mut self, expected: Expected, resumed: ReconnectOutcome) {
        self.link = Link::Up;
        let pending = self.replica.pending();
        let pending: Vec<i64> = pending.map(|pending| pending.client_seq).collect();
        assert_eq!(pending, expected.resent, "what is sent again");
        let given_up = resumed.not_resent.iter();
        let given_up: Vec<(i64, DropReason)> =
            given_up.map(|given_up| (given_up.client_seq, given_up.why)).collect();
        assert_eq!(given_up, expected.given_up, "what is given up");
        self.note_given_up(&resumed.not_resent);
    }

    fn note_given_up(&mut self, given_up: &[DroppedAction]) {
        for given_up in given_up {
            let before = self.fates.insert(given_up.client_seq, Fate::Dropped);
            assert_eq!(before, None, "{given_up:?} was answered");
        }
    }

    /// The visible state is the confirmed one with all pending actions applied.
    pub fn check_ahead(&self) {
        for channel in self.replica.channels() {
            let Some(mut expected) = self.confirmed(channel) else { continue };
            for pending in self.replica.pending() {
                if pending.channel == channel && self.is_echoed(channel, &pending.action) {
                    expected.reduce(&pending.action);
                }
            }
            assert_eq!(self.visible_state(channel), Some(expected), "{channel} ahead of the host");
        }
    }

    /// All answers have come: everybody agrees, and every action met its fate once.
    pub fn check_quiet(&self, host: &Host) {
        assert_eq!(self.link, Link::Up);
        for pending in self.replica.pending() {
            let is_echoed = self.is_echoed(&pending.channel, &pending.action);
            assert!(!is_echoed, "{} still pending", pending.client_seq);
        }
        for channel in self.replica.channels() {
            let state = host.states.get(channel).cloned();
            assert_eq!(self.confirmed(channel), state, "confirmed {channel}");
            assert_eq!(self.visible_state(channel), state, "shown {channel}");
        }
        for (client_seq, (name, _)) in &self.dispatched {
            use crate::host::Decision::{Recorded, Refused, Unchanged};
            let decisions =
                host.decisions.get(&(self.number, *client_seq)).map_or(&[][..], Vec::as_slice);
            let recorded = decisions.iter().filter(|made| **made == Recorded).count();
            assert!(recorded <= 1, "{client_seq} took effect {recorded} times");
            let last = decisions.last();
            // A turn that was cut away again is not in the snapshot; the host knows its id all the same, and refuses it
            // each time the connection is lost before the refusal came.
            let mut since_recorded = decisions.iter().rev().take_while(|made| **made != Recorded);
            let is_cut_away =
                name == "chat/turnStarted" && since_recorded.all(|made| *made == Refused);
            assert!(
                recorded == 0 || last == Some(&Recorded) || is_cut_away,
                "{client_seq} was sent again after it was recorded: {decisions:?}"
            );
            match self.fates.get(client_seq) {
                Some(Fate::Confirmed) => {
                    assert!(matches!(last, Some(Recorded | Unchanged)), "{client_seq}");
                }
                Some(Fate::Refused) => assert_eq!(last, Some(&Refused), "{client_seq}"),
                Some(Fate::Dropped) => {}
                None => assert!(
                    self.unheard.contains(client_seq),
                    "the outcome of {client_seq} was never reported"
                ),
            }
        }
    }

    fn confirmed(&self, channel: &str) -> Option<State> {
        let replica = &self.replica;
        match channel {
            ROOT => replica.confirmed_root().map(|state| State::Root(boxed(state))),
            SESSION => {
                let state = replica.confirmed_session(channel);
                state.map(|state| State::Session(boxed(state)))
            }
            _ => replica.confirmed_chat(channel).map(|state| State::Chat(boxed(state))),
        }
    }

    fn visible_state(&self, channel: &str) -> Option<State> {
        let replica = &self.replica;
        match channel {
            ROOT => replica.root().map(|state| State::Root(boxed(state))),
            SESSION => replica.session(channel).map(|state| State::Session(boxed(state))),
            _ => replica.chat(channel).map(|state| State::Chat(boxed(state))),
        }
    }
}

fn boxed<T: Clone>(state: &Arc<T>) -> Box<T> {
    Box::new((**state).clone())
}

/// What a reconnect must do with what is pending.
#[derive(Debug, Default)]
struct Expected {
    resent: Vec<i64>,
    given_up: Vec<(i64, DropReason)>,
}

impl Expected {
    fn add(&mut self, pending: &PendingAction, sends: usize, why: Option<DropReason>) {
        let why = why.or((sends >= SENDS_MAX).then_some(DropReason::SentTooOften));
        match why {
            Some(why) => self.given_up.push((pending.client_seq, why)),
            None => self.resent.push(pending.client_seq),
        }
    }
}
