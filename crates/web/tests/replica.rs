//! The page's replica against that of `client`: the same schedule of dispatching, hearing, losing the connection and coming back,
//! call by call. What each call gives, what is sent again, what is reported, and every state are the same JSON.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "../../client/tests/convergence/actions.rs"]
mod actions;
#[path = "../../client/tests/convergence/dice.rs"]
mod dice;
mod engine;
#[path = "../../client/tests/convergence/host.rs"]
mod host;
#[path = "../../client/tests/convergence/person.rs"]
mod person;
#[path = "../../client/tests/convergence/recorded.rs"]
mod recorded;
#[path = "../../client/tests/convergence/story.rs"]
mod story;

use engine::{Engine, Noise, check_recorded};
use proptest::collection::vec;
use proptest::prelude::*;
use recorded::RecordedReplica;
use serde_json::{Value, json};
use wire::Action;

thread_local! {
    static ENGINE: Engine = Engine::new();
}

fn agree(client_id: &str, calls: &[Value]) -> Result<(), TestCaseError> {
    let given = json!({"clientId": client_id, "calls": calls});
    let found = ENGINE.with(|engine| engine.run("callAll", &given));
    let found = found.as_array().expect("a list");
    prop_assert_eq!(found.len(), calls.len());
    for (index, (found, expected)) in found.iter().zip(calls).enumerate() {
        let name = &expected["call"];
        prop_assert_eq!(&found["gives"], &expected["gives"], "call {}, {}", index, name);
        prop_assert_eq!(&found["after"], &expected["after"], "after call {}, {}", index, name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn both_replicas_do_the_same(
        first in vec(any::<u8>(), 0..4),
        steps in vec(vec(any::<u8>(), 0..14), 0..100),
    ) {
        let people = recorded::recording(|| story::tell(&first, &steps));
        for person in &people {
            agree(person.replica.client_id(), person.replica.calls())?;
        }
    }
}

#[test]
fn an_action_that_every_connection_ends_at_is_given_up_alike() {
    let chat =
        json!({"resource": "ahp-chat:/1", "title": "", "status": 1, "modifiedAt": "", "turns": []});
    let mut replica = recorded::recording(|| RecordedReplica::new("me"));
    let snapshot = json!({"resource": "ahp-chat:/1", "state": chat, "fromSeq": 3});
    replica.take_snapshot(snapshot, 0).expect("a state");
    let read = json!({"type": "chat/isReadChanged", "isRead": true});
    let read = Action::decode(read).expect("an action");
    replica.dispatch("ahp-chat:/1", read).expect("room");
    let sent_on = |replica: &mut RecordedReplica| {
        let is_sent = replica.take_unsent().is_some();
        replica.apply_replay(Vec::new(), &[]);
        is_sent
    };
    let sends = (0..7).filter(|_| sent_on(&mut replica)).count();
    assert_eq!(sends, 5);
    agree("me", replica.calls()).expect("both do the same");
}

#[test]
fn recorded_schedules_go_alike() {
    let mut noise = Noise::new(11);
    let mut sequences = Vec::new();
    while sequences.len() < 80 {
        let first = noise.bytes(4);
        let steps: Vec<Vec<u8>> = (0..24).map(|_| noise.bytes(12)).collect();
        for person in &recorded::recording(|| story::tell(&first, &steps)) {
            let mut calls = person.replica.calls().to_vec();
            let end = calls.last().map(|call| call["after"].clone());
            for call in calls.iter_mut().filter_map(Value::as_object_mut) {
                call.remove("after");
            }
            let id = person.replica.client_id();
            sequences.push(json!({"clientId": id, "calls": calls, "end": end}));
        }
    }
    sequences.truncate(80);
    ENGINE.with(|engine| check_recorded(engine, "replicas.json", &sequences));
}
