//! The reducer cases that the proposal of `systemMessageTransform` names: the opt-in is part of an active client's entry
//! and lives and goes with it.

#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]

use serde_json::{Value, json};
use wire::ext::system_message_transform::{Carrier, OptIn, X_METHOD, of_entry};
use wire::reduce::{Reduced, reduce_session};
use wire::state::SessionState;
use wire::{Action, ActionKind};

fn session(active: Value) -> SessionState {
    let state = json!({"provider": "p", "title": "t", "status": 1, "lifecycle": "ready",
        "activeClients": active, "chats": []});
    SessionState::from_value(state).expect("a session")
}

fn set(state: &mut SessionState, entry: &Value) -> Reduced {
    let action = json!({"type": "session/activeClientSet", "activeClient": entry});
    reduce_session(state, &Action::decode(action).expect("an action"))
}

fn opted_in(state: &SessionState, at: usize) -> Option<OptIn> {
    of_entry(&state.active_clients[at])
}

fn entry(client: &str, sections: Option<Value>) -> Value {
    let mut entry = json!({"clientId": client, "tools": []});
    if let Some(sections) = sections {
        entry["systemMessageTransform"] = json!({"sections": sections});
    }
    entry
}

fn wants(sections: &[&str]) -> Option<OptIn> {
    Some(OptIn {
        carrier: Carrier::Field,
        sections: sections.iter().map(|id| (*id).to_owned()).collect(),
    })
}

#[test]
fn an_opt_in_is_set_with_the_entry() {
    let mut state = session(json!([]));
    let with = entry("a", Some(json!(["tone"])));
    assert_eq!(set(&mut state, &with), Reduced::Changed);
    assert_eq!(opted_in(&state, 0), wants(&["tone"]));
}

#[test]
fn an_entry_without_one_has_none() {
    let mut state = session(json!([]));
    set(&mut state, &entry("a", None));
    assert_eq!(opted_in(&state, 0), None);
}

#[test]
fn a_later_entry_replaces_or_withdraws_it_in_the_same_position() {
    let mut state = session(json!([entry("a", Some(json!(["tone"]))), entry("b", None)]));
    set(&mut state, &entry("a", Some(json!(["safety", "unknown"]))));
    assert_eq!(opted_in(&state, 0), wants(&["safety", "unknown"]));
    assert_eq!(set(&mut state, &entry("a", None)), Reduced::Changed);
    assert_eq!(opted_in(&state, 0), None);
    assert_eq!(state.active_clients[1]["clientId"], "b");
}

#[test]
fn it_goes_with_the_client_that_is_released() {
    let mut state = session(json!([entry("a", Some(json!(["tone"])))]));
    let removed = json!({"type": "session/activeClientRemoved", "clientId": "a"});
    reduce_session(&mut state, &Action::decode(removed).expect("an action"));
    assert!(state.active_clients.is_empty());
}

#[test]
fn an_entry_is_seen_as_it_was_sent() {
    let mut state = session(json!([]));
    let mut sent = entry("a", Some(json!(["tone", "no-such-section"])));
    sent["_meta"] =
        json!({X_METHOD: {"sections": ["identity"], "more": {"kept": true}}, "other": 1});
    sent["systemMessageTransform"]["future"] = json!([1, 2]);
    set(&mut state, &sent);
    assert_eq!(state.active_clients[0], sent);
    assert_eq!(set(&mut state, &sent), Reduced::Unchanged);
}

#[test]
fn the_action_alone_changes_no_mirror() {
    let mut state = session(json!([entry("a", None)]));
    let action =
        json!({"type": ActionKind::SystemMessageTransformSet.name(), "sections": ["tone"]});
    let action = Action::decode(action).expect("an action");
    assert_eq!(reduce_session(&mut state, &action), Reduced::Unchanged);
}
