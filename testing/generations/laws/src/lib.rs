//! For generated states and actions of 1.0: what an older client makes of the older action is the older form of what the action
//! makes, `reduce_v(down(state), down(action)) == down(reduce(state, action))`. The client's own types and reducers are the
//! judge; they come from whoever depends on this.
//!
//! What does not hold is in `exceptions`, by name and with its reason. A failure says its seed; `LAW_SEED=n` begins with it.
//! The generators are those of the reducers' own tests.

// The generators hold more than is used here.
#![allow(dead_code)]

#[path = "../../../../crates/wire/tests/reducers/chat.rs"]
mod chat;
#[path = "../../../../crates/wire/tests/reducers/chat_actions.rs"]
mod chat_actions;
#[path = "../../../../crates/wire/tests/reducers/dice.rs"]
mod dice;
mod exceptions;
#[path = "../../../../crates/wire/tests/reducers/plain.rs"]
mod plain;
#[path = "../../../../crates/wire/tests/reducers/session.rs"]
mod session;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::action::{ChannelKind, to_value};
use wire::compat::{self, AfterAction, OlderForm, SnapshotOf};
use wire::reduce::{
    Reduced, reduce_annotations, reduce_changeset, reduce_chat, reduce_root, reduce_session,
    reduce_terminal,
};
use wire::state::{
    AnnotationsState, ChangesetState, ChatState, RootState, SessionState, TerminalState,
};
use wire::{Action, Generation, Object, Version};

use chat_actions::Hints;
use dice::Dice;

pub use wire;

const SEQUENCES: u64 = 50;
const ACTIONS: usize = 50;
/// Fewer say that nothing was tried.
const TOLD_MIN: usize = 300;

/// One version's types and reducer for one kind of channel.
pub struct Judge<Theirs, Sent> {
    pub version: &'static str,
    pub apply: fn(&mut Theirs, &Sent),
    pub is_unknown: fn(&Sent) -> bool,
}

/// The version that a client speaks, as the host sees it.
pub fn generation_of(version: &str) -> Generation {
    let version: Version = version.parse().expect("a version");
    version.generation().expect("a version that is served")
}

/// Bytes that look random and are the same for the same seed.
struct Noise(u64);

impl Noise {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let next = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) as u8
        };
        (0..count).map(next).collect()
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("a state is an object: {other}"),
    }
}

/// A kind of channel: how its states are made, reduced by us, and told to a version.
struct ChannelLaw<Ours> {
    start: fn(&mut Dice) -> Ours,
    action: fn(&mut Dice, &Ours) -> Value,
    /// Whether a host may have such a state at all.
    is_possible: fn(&Ours) -> bool,
    reduce: fn(&mut Ours, &Action) -> Reduced,
    value: fn(&Ours) -> Value,
    older: fn(Generation, Value) -> Value,
    after: fn(&Ours) -> AfterAction,
}

/// One sequence of actions on one channel, for one version.
struct Trial<'a, Ours, Theirs, Sent> {
    law: &'a ChannelLaw<Ours>,
    judge: &'a Judge<Theirs, Sent>,
    generation: Generation,
    seed: u64,
}

impl<Ours: Clone> ChannelLaw<Ours> {
    fn holds<Theirs, Sent>(&self, judge: &Judge<Theirs, Sent>)
    where
        Theirs: Serialize + DeserializeOwned,
        Sent: DeserializeOwned,
    {
        let first: u64 = std::env::var("LAW_SEED").ok().map_or(1, |seed| seed.parse().expect("LAW_SEED is a number"));
        let mut differences = Differences::new();
        let mut told = 0;
        for seed in first..first + SEQUENCES {
            let trial = Trial { law: self, judge, generation: generation_of(judge.version), seed };
            told += trial.run(&mut differences);
        }
        let all: Vec<String> = differences.into_values().collect();
        assert!(all.is_empty(), "{}", all.join("\n\n"));
        assert!(told > TOLD_MIN, "only {told} actions were told");
    }
}

impl<Ours, Theirs, Sent> Trial<'_, Ours, Theirs, Sent>
where
    Ours: Clone,
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    /// How many actions were told. What differs is noted, and their side goes on from there as a newcomer would.
    fn run(&self, differences: &mut Differences) -> usize {
        let mut noise = Noise::of(self.seed);
        let mut ours = (self.law.start)(&mut Dice::new(&noise.bytes(256)));
        let mut theirs = self.read(&ours, "the start");
        let mut told = 0;
        for _ in 0..ACTIONS {
            let action = (self.law.action)(&mut Dice::new(&noise.bytes(64)), &ours);
            let action = Action::decode(action).expect("a generated action");
            if exceptions::untold(self.generation, &action, &(self.law.value)(&ours)).is_some() {
                continue;
            }
            let before = ours.clone();
            if (self.law.reduce)(&mut ours, &action) == Reduced::Unchanged {
                continue; // nobody but its sender hears of it
            }
            if !(self.law.is_possible)(&ours) {
                ours = before;
                continue;
            }
            for form in self.forms(&action, (self.law.after)(&ours)) {
                (self.judge.apply)(&mut theirs, &form);
                told += 1;
            }
            let older = self.read(&ours, action.name());
            if self.differ(to_value(&older), to_value(&theirs), &action, differences) {
                theirs = older;
            }
        }
        told
    }

    /// Our state as the version's own type reads it.
    fn read(&self, ours: &Ours, after: &str) -> Theirs {
        let state = (self.law.older)(self.generation, (self.law.value)(ours));
        serde_json::from_value(state.clone()).unwrap_or_else(|error| {
            panic!("{} cannot read, after {after}: {error}: {state}", self.who())
        })
    }

    /// The older form of an action, as the version's own type reads it.
    fn forms(&self, action: &Action, after: AfterAction) -> Vec<Sent> {
        let forms = match compat::down_action(self.generation, action, after) {
            OlderForm::Same => vec![action.body.clone()],
            OlderForm::Instead(forms) => forms,
        };
        let read = |form: Object| {
            let json = Value::Object(form);
            let sent: Sent = serde_json::from_value(json.clone()).expect("an action");
            assert!(!(self.judge.is_unknown)(&sent), "{} does not know {json}", self.who());
            sent
        };
        forms.into_iter().map(read).collect()
    }

    fn differ(
        &self,
        mut ours: Value,
        mut theirs: Value,
        after: &Action,
        differences: &mut Differences,
    ) -> bool {
        exceptions::take_out(self.generation, &mut ours);
        exceptions::take_out(self.generation, &mut theirs);
        let Some((place, told, made)) = first_difference(&ours, &theirs, String::new()) else { return false };
        let after = Value::Object(after.body.clone());
        differences.entry(format!("{} at {place}", after["type"])).or_insert_with(|| {
            let who = self.who();
            format!("{who}: {after} made {made:?} at {place}, and a newcomer is told {told:?}")
        });
        true
    }

    fn who(&self) -> String {
        format!("{:?} with LAW_SEED={}", self.generation, self.seed)
    }
}

/// What differed, one example each.
type Differences = BTreeMap<String, String>;

/// Where two values differ first, and how. Positions in lists are left out of the place.
fn first_difference(
    ours: &Value,
    theirs: &Value,
    place: String,
) -> Option<(String, Option<Value>, Option<Value>)> {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let fields: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            fields.into_iter().find_map(|field| {
                let place = format!("{place}/{field}");
                match (left.get(field), right.get(field)) {
                    (Some(left), Some(right)) => first_difference(left, right, place),
                    (left, right) => Some((place, left.cloned(), right.cloned())),
                }
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right);
            pairs.find_map(|(left, right)| first_difference(left, right, format!("{place}/*")))
        }
        (left, right) if left == right => None,
        (left, right) => Some((place, Some(left.clone()), Some(right.clone()))),
    }
}

/// The host gives every turn an id of its own, and refuses one that is used.
fn has_unique_turns(chat: &ChatState) -> bool {
    let ended = chat.turns.as_slice().iter().map(|turn| turn.id.as_str());
    let running = chat.active_turn.iter().map(|turn| turn.id.as_str());
    let mut seen = BTreeSet::new();
    ended.chain(running).all(|id| seen.insert(id))
}

/// What a chat does, by what is in it.
fn activity_of(chat: &Value) -> u64 {
    let Some(turn) = chat.get("activeTurn") else { return 1 };
    let mut parts = turn["responseParts"].as_array().into_iter().flatten();
    let waits = parts.any(|part| {
        let status = part["toolCall"]["status"].as_str().unwrap_or_default();
        status.starts_with("pending-")
            || part["kind"] == "inputRequest" && part.get("response").is_none()
    });
    if waits { 24 } else { 8 }
}

/// A directory that is set twice is there once.
fn has_unique_directories(session: &SessionState) -> bool {
    let mut seen = BTreeSet::new();
    let all = session.working_directories.iter().flatten();
    all.into_iter().all(|directory| seen.insert(directory))
}

fn older_session(generation: Generation, session: Value) -> Value {
    let moment = "2026-01-01T00:00:00.000Z";
    let summary = object(json!({"createdAt": moment, "modifiedAt": moment}));
    let of = SnapshotOf::Session { resource: "s:/1", summary: &summary };
    older(generation, of, session)
}

fn older(generation: Generation, of: SnapshotOf, state: Value) -> Value {
    let mut state = object(state);
    compat::down_state(generation, of, &mut state);
    Value::Object(state)
}

pub fn holds_for_root<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: |dice| RootState::from_value(session::start_root(dice)).expect("a root"),
        action: |dice, _| session::root_action(dice),
        is_possible: |_| true,
        reduce: reduce_root,
        value: to_value,
        older: |generation, root| older(generation, SnapshotOf::Root, root),
        after: |_| AfterAction::Root,
    };
    law.holds(judge);
}

pub fn holds_for_session<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: |dice| {
            let mut start = session::start(dice);
            if let Some(Value::Array(directories)) = start.get_mut("workingDirectories") {
                directories.dedup();
                directories.truncate(2);
            }
            SessionState::from_value(start).expect("a session")
        },
        action: |dice, _| session::action(dice),
        is_possible: has_unique_directories,
        reduce: reduce_session,
        value: to_value,
        older: older_session,
        after: |session| AfterAction::Session(session),
    };
    law.holds(judge);
}

pub fn holds_for_chat<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: start_chat,
        action: |dice, chat| chat_actions::action(dice, &Hints::of(chat)),
        is_possible: has_unique_turns,
        reduce: reduce_chat,
        value: ChatState::value,
        older: |generation, chat| older(generation, SnapshotOf::Chat, chat),
        after: |chat| AfterAction::Chat(chat),
    };
    law.holds(judge);
}

/// Turns have ids of their own, and the chat does what is in it.
fn start_chat(dice: &mut Dice) -> ChatState {
    let mut start = chat::start(dice);
    let turns = start["turns"].as_array_mut().into_iter().flatten();
    for (turn, id) in turns.zip(["t1", "t2"]) {
        turn["id"] = json!(id);
    }
    if let Some(turn) = start.get_mut("activeTurn") {
        turn["id"] = json!("t3");
    }
    let flags = start["status"].as_u64().unwrap_or(0) & !31;
    start["status"] = json!(activity_of(&start) | flags);
    ChatState::from_value(start).expect("a chat")
}

pub fn holds_for_changeset<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: |dice| {
            let start = plain::start_changeset(dice);
            ChangesetState::from_value(start).expect("a changeset")
        },
        action: |dice, _| plain::changeset_action(dice),
        is_possible: |_| true,
        reduce: reduce_changeset,
        value: to_value,
        older: |generation, state| older_plain(generation, ChannelKind::Changeset, state),
        after: |changeset| AfterAction::Changeset(changeset),
    };
    law.holds(judge);
}

pub fn holds_for_annotations<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: |dice| {
            let start = plain::start_annotations(dice);
            AnnotationsState::from_value(start).expect("annotations")
        },
        action: |dice, _| plain::annotations_action(dice),
        is_possible: |_| true,
        reduce: reduce_annotations,
        value: to_value,
        older: |generation, state| older_plain(generation, ChannelKind::Annotations, state),
        after: |_| AfterAction::Root,
    };
    law.holds(judge);
}

pub fn holds_for_terminal<Theirs, Sent>(judge: &Judge<Theirs, Sent>)
where
    Theirs: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    let law = ChannelLaw {
        start: |dice| {
            let start = plain::start_terminal(dice);
            TerminalState::from_value(start).expect("a terminal")
        },
        action: |dice, _| plain::terminal_action(dice),
        is_possible: |_| true,
        reduce: reduce_terminal,
        value: to_value,
        older: |generation, state| older_plain(generation, ChannelKind::Terminal, state),
        after: |_| AfterAction::Root,
    };
    law.holds(judge);
}

fn older_plain(generation: Generation, kind: ChannelKind, state: Value) -> Value {
    older(generation, SnapshotOf::Plain(kind), state)
}
