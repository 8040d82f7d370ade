//! The page's reducers against ours, on the sequences of actions that hold ours to the published ones: after each action
//! both states are the same JSON, both say alike whether anything changed, and what the page's reducer says has changed is
//! all that has.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "../../wire/tests/reducers/chat.rs"]
mod chat;
#[path = "../../wire/tests/reducers/chat_actions.rs"]
mod chat_actions;
#[path = "../../wire/tests/reducers/dice.rs"]
mod dice;
mod engine;
#[path = "../../wire/tests/reducers/plain.rs"]
mod plain;
#[path = "../../wire/tests/reducers/session.rs"]
mod session;

use std::collections::BTreeSet;

use chat_actions::Hints;
use dice::{Dice, spoiled};
use engine::{Engine, Noise, check_recorded};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::Action;
use wire::action::{ActionKind, ChannelKind, to_value};
use wire::reduce::{Reduced, reduce_chat, reduce_plain, reduce_root, reduce_session};
use wire::state::{ChatState, PlainState, RootState, SessionState};

thread_local! {
    static ENGINE: Engine = Engine::new();
}

/// What one sequence does to a state of ours: the actions, and what both sides must say of them.
fn reduce_all<T>(
    state: &mut T,
    seeds: &[Vec<u8>],
    generate: impl Fn(&mut Dice, &T) -> Value,
    value: impl Fn(&T) -> Value,
    reduce: impl Fn(&mut T, &Action) -> Reduced,
) -> (Vec<Value>, Value) {
    let start = value(state);
    let mut actions = Vec::new();
    let mut steps = Vec::new();
    for seed in seeds {
        let mut d = Dice::new(seed);
        let json = generate(&mut d, state);
        let json = spoiled(&mut d, json);
        // What our host would refuse is never sent to a page.
        let Ok(action) = Action::decode(json.clone()) else { continue };
        let is_changed = reduce(state, &action) == Reduced::Changed;
        actions.push(json);
        steps.push(json!({"changed": is_changed, "state": value(state)}));
    }
    (actions, json!({"start": start, "steps": steps}))
}

fn agree(start: &Value, actions: &[Value], expected: &Value) -> Result<(), TestCaseError> {
    let given = json!({"start": start, "actions": actions});
    let found = ENGINE.with(|engine| engine.run("reduceAll", &given));
    if found == *expected {
        return Ok(());
    }
    prop_assert_eq!(&found["start"], &expected["start"], "{}", found["error"]);
    for (index, action) in actions.iter().enumerate() {
        let (found, expected) = (&found["steps"][index], &expected["steps"][index]);
        prop_assert_eq!(found, expected, "after {}", action);
    }
    prop_assert!(false, "{found}");
    Ok(())
}

fn root_sequence(start: &[u8], seeds: &[Vec<u8>]) -> (Value, Vec<Value>, Value) {
    let start = session::start_root(&mut Dice::new(start));
    let mut state = RootState::from_value(start.clone()).unwrap();
    let generate = |d: &mut Dice, _: &RootState| {
        if d.below(16) == 15 { session::action(d) } else { session::root_action(d) }
    };
    let (actions, expected) = reduce_all(&mut state, seeds, generate, to_value, reduce_root);
    (start, actions, expected)
}

fn session_sequence(start: &[u8], seeds: &[Vec<u8>]) -> (Value, Vec<Value>, Value) {
    let start = session::start(&mut Dice::new(start));
    let mut state = SessionState::from_value(start.clone()).unwrap();
    let hints = Hints { queue: vec![], turn: "t1".to_owned(), call: None };
    let generate = |d: &mut Dice, _: &SessionState| {
        if d.below(16) == 15 { chat_actions::action(d, &hints) } else { session::action(d) }
    };
    let (actions, expected) = reduce_all(&mut state, seeds, generate, to_value, reduce_session);
    (start, actions, expected)
}

fn chat_sequence(start: &[u8], seeds: &[Vec<u8>]) -> (Value, Vec<Value>, Value) {
    let start = chat::start(&mut Dice::new(start));
    let mut state = ChatState::from_value(start.clone()).unwrap();
    let generate = |d: &mut Dice, state: &ChatState| {
        let hints = Hints::of(state);
        if d.below(16) == 15 { session::action(d) } else { chat_actions::action(d, &hints) }
    };
    let (actions, expected) =
        reduce_all(&mut state, seeds, generate, ChatState::value, reduce_chat);
    (start, actions, expected)
}

/// A changeset, annotations, a terminal or a watch; now and then an action of another of them.
fn plain_sequence(kind: usize, start: &[u8], seeds: &[Vec<u8>]) -> (Value, Vec<Value>, Value) {
    let mut d = Dice::new(start);
    let start = match kind % 4 {
        0 => plain::start_changeset(&mut d),
        1 => plain::start_annotations(&mut d),
        2 => plain::start_terminal(&mut d),
        _ => plain::start_watch(&mut d),
    };
    let state = PlainState::read(start.clone()).unwrap();
    let mut state = state.expect("a state of one of these kinds");
    let generate = |d: &mut Dice, _: &PlainState| {
        let other = if d.below(16) == 15 { 1 } else { 0 };
        match (kind + other) % 4 {
            0 => plain::changeset_action(d),
            1 => plain::annotations_action(d),
            2 => plain::terminal_action(d),
            _ => plain::watch_action(d),
        }
    };
    let (actions, expected) = reduce_all(&mut state, seeds, generate, to_value, reduce_plain);
    (start, actions, expected)
}

fn seeds() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..64), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn a_root_is_reduced_alike(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let (start, actions, expected) = root_sequence(&start, &seeds);
        agree(&start, &actions, &expected)?;
    }

    #[test]
    fn a_session_is_reduced_alike(start in vec(any::<u8>(), 0..128), seeds in seeds()) {
        let (start, actions, expected) = session_sequence(&start, &seeds);
        agree(&start, &actions, &expected)?;
    }

    #[test]
    fn a_channel_of_state_alone_is_reduced_alike(kind in 0_usize..4, start in vec(any::<u8>(), 0..128), seeds in seeds()) {
        let (start, actions, expected) = plain_sequence(kind, &start, &seeds);
        agree(&start, &actions, &expected)?;
    }

    #[test]
    fn a_chat_is_reduced_alike(start in vec(any::<u8>(), 0..256), seeds in seeds()) {
        let (start, actions, expected) = chat_sequence(&start, &seeds);
        agree(&start, &actions, &expected)?;
    }
}

#[test]
fn every_action_of_the_table_has_a_reducer_in_the_page() {
    let names = |kind: ChannelKind| -> BTreeSet<&str> {
        let all = ActionKind::all().filter(|action| action.channel() == Some(kind));
        all.map(ActionKind::name).collect()
    };
    let of_the_page = ENGINE.with(|engine| engine.run("actionNames", &Value::Null));
    for (kind, field) in [
        (ChannelKind::Root, "root"),
        (ChannelKind::Session, "session"),
        (ChannelKind::Chat, "chat"),
        (ChannelKind::Changeset, "changeset"),
        (ChannelKind::Annotations, "annotations"),
        (ChannelKind::Terminal, "terminal"),
        (ChannelKind::ResourceWatch, "resourceWatch"),
    ] {
        let found: BTreeSet<&str> = of_the_page[field]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(found, names(kind));
    }
}

#[test]
fn what_is_no_state_is_refused_alike() {
    let chat = json!({"resource": "a:/", "title": "", "status": 1, "modifiedAt": "", "turns": []});
    let spoil = |field: &str, value: Value| {
        let mut spoiled = chat.clone();
        spoiled[field] = value;
        spoiled
    };
    for state in [
        chat.clone(),
        spoil("status", json!(-1)),
        spoil("status", json!(1.5)),
        spoil("status", json!(4_294_967_296_u64)),
        spoil("title", json!(null)),
        spoil("turns", json!([{"id": "t", "responseParts": [], "state": "new"}])),
        spoil("turns", json!("none")),
        spoil("activeTurn", json!(null)),
        spoil("activeTurn", json!({"id": "t", "startedAt": "s", "message": null})),
        spoil("queuedMessages", json!([{"id": "q"}])),
        spoil("queuedMessages", json!([])),
        spoil("steeringMessage", json!({"id": "q", "message": 1, "x": 2})),
        spoil("workingDirectories", json!(["a", 7])),
        spoil("draft", json!(null)),
        spoil("activity", json!(7)),
    ] {
        let ours = ChatState::from_value(state.clone());
        let given = json!({"start": state, "actions": []});
        let found = ENGINE.with(|engine| engine.run("reduceAll", &given));
        match ours {
            Ok(ours) => assert_eq!(found["start"], ours.value(), "{state}"),
            Err(_) => assert_eq!(found, json!({"error": "StateError"}), "{state}"),
        }
    }
}

#[test]
fn recorded_sequences_are_reduced_alike() {
    let mut noise = Noise::new(7);
    let sequences: Vec<Value> = (0..160)
        .map(|number| {
            let start = noise.bytes(128);
            let seeds: Vec<Vec<u8>> = (0..8).map(|_| noise.bytes(48)).collect();
            let (start, actions, expected) = match number % 4 {
                _ if number >= 120 => plain_sequence(number, &start, &seeds),
                0 => root_sequence(&start, &seeds),
                1 => session_sequence(&start, &seeds),
                _ => chat_sequence(&start, &seeds),
            };
            let steps = expected["steps"].as_array().expect("a list");
            let changed: Vec<&Value> = steps.iter().map(|step| &step["changed"]).collect();
            let end = steps.last().map(|step| &step["state"]);
            json!({"start": start, "actions": actions, "changed": changed, "end": end})
        })
        .collect();
    ENGINE.with(|engine| check_recorded(engine, "reducers.json", &sequences));
}
