//! Our reducers against the published ones, on generated sequences of actions.
//!
//! After each action both states must be the same to the published types. What those drop is not compared here; unit
//! tests below say that ours keep it. Left out on purpose: the named quirks (see `wire::quirks`).

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "reducers/chat.rs"]
mod chat;
#[path = "reducers/chat_actions.rs"]
mod chat_actions;
#[path = "reducers/dice.rs"]
mod dice;
#[path = "reducers/payloads.rs"]
mod payloads;
#[path = "reducers/plain.rs"]
mod plain;
#[path = "reducers/session.rs"]
mod session;

use std::fmt::Debug;

use ahp::reducers::{
    apply_action_to_annotations, apply_action_to_changeset, apply_action_to_chat,
    apply_action_to_resource_watch, apply_action_to_root, apply_action_to_session,
    apply_action_to_terminal,
};
use ahp_types::actions::StateAction;
use ahp_types::state as published;
use chat_actions::Hints;
use dice::{Dice, spoiled};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::Action;
use wire::action::to_value;
use wire::reduce::{
    Reduced, reduce_annotations, reduce_changeset, reduce_chat, reduce_plain,
    reduce_resource_watch, reduce_root, reduce_session, reduce_terminal,
};
use wire::state::{
    AnnotationsState, ChangesetState, ChatState, PlainState, ResourceWatchState, RootState,
    SessionState, TerminalState,
};

/// What both sides know of a value: extension fields go, and lists that ours do not keep when empty.
fn projected<T: DeserializeOwned>(mut value: Value) -> T {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|key, _| key != "x-test");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    if let Value::Object(fields) = &mut value {
        fields.retain(|key, value| {
            !matches!(key.as_str(), "queuedMessages" | "inputNeeded") || *value != json!([])
        });
    }
    serde_json::from_value(value).expect("a state the published types read")
}

/// The same state as both sides hold it.
struct BothStates<Ours, Theirs> {
    ours: Ours,
    theirs: Theirs,
}

/// One sequence through both reducers.
fn agree<Ours, Theirs>(
    start: BothStates<Ours, Theirs>,
    seeds: &[Vec<u8>],
    generate: impl Fn(&mut Dice, &Ours) -> Value,
    value: impl Fn(&Ours) -> Value,
    reduce: impl Fn(&mut Ours, &Action) -> Reduced,
    apply: impl Fn(&mut Theirs, &StateAction),
) -> Result<(), TestCaseError>
where
    Ours: Clone + PartialEq + Debug,
    Theirs: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let BothStates { mut ours, mut theirs } = start;
    for seed in seeds {
        let mut d = Dice::new(seed);
        let json = generate(&mut d, &ours);
        let json = spoiled(&mut d, json);
        let typed: StateAction = serde_json::from_value(json.clone()).expect("any object");
        let known = !json["type"].as_str().expect("a type").starts_with("x-");
        let decoded = Action::decode(json.clone());
        if known && matches!(typed, StateAction::Unknown(_)) {
            prop_assert!(decoded.is_err(), "taken though its payload is bad: {json}");
            continue;
        }
        let action = decoded.expect("an action the published types read");
        let before = ours.clone();
        let reduced = reduce(&mut ours, &action);
        apply(&mut theirs, &typed);
        prop_assert_eq!(reduced == Reduced::Unchanged, before == ours, "after {}", json);
        let (left, right) =
            (projected::<Theirs>(value(&ours)), projected::<Theirs>(to_value(&theirs)));
        prop_assert_eq!(left, right, "after {}", json);
    }
    Ok(())
}

fn seeds() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 0..64), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_root_is_reduced_as_published(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let start = session::start_root(&mut Dice::new(&start));
        let theirs: published::RootState = serde_json::from_value(start.clone()).unwrap();
        let ours = RootState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| if d.below(16) == 15 { session::action(d) } else { session::root_action(d) },
            to_value,
            reduce_root,
            |theirs, action| { apply_action_to_root(theirs, action); },
        )?;
    }

    #[test]
    fn a_session_is_reduced_as_published(start in vec(any::<u8>(), 0..128), seeds in seeds()) {
        let start = session::start(&mut Dice::new(&start));
        let theirs: published::SessionState = serde_json::from_value(start.clone()).unwrap();
        let ours = SessionState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| {
                let hints = Hints { queue: vec![], turn: "t1".to_owned(), call: None };
                if d.below(16) == 15 { chat_actions::action(d, &hints) } else { session::action(d) }
            },
            to_value,
            reduce_session,
            |theirs, action| { apply_action_to_session(theirs, action); },
        )?;
    }

    #[test]
    fn a_chat_is_reduced_as_published(start in vec(any::<u8>(), 0..256), seeds in seeds()) {
        let start = chat::start(&mut Dice::new(&start));
        let theirs: published::ChatState = serde_json::from_value(start.clone()).unwrap();
        let ours = ChatState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, ours: &ChatState| {
                let hints = Hints::of(ours);
                if d.below(16) == 15 { session::action(d) } else { chat_actions::action(d, &hints) }
            },
            ChatState::value,
            reduce_chat,
            |theirs, action| { apply_action_to_chat(theirs, action); },
        )?;
    }

    #[test]
    fn a_changeset_is_reduced_as_published(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let start = plain::start_changeset(&mut Dice::new(&start));
        let theirs: published::ChangesetState = serde_json::from_value(start.clone()).unwrap();
        let ours = ChangesetState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| if d.below(16) == 15 { session::action(d) } else { plain::changeset_action(d) },
            to_value,
            reduce_changeset,
            |theirs, action| { apply_action_to_changeset(theirs, action); },
        )?;
    }

    #[test]
    fn annotations_are_reduced_as_published(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let start = plain::start_annotations(&mut Dice::new(&start));
        let theirs: published::AnnotationsState = serde_json::from_value(start.clone()).unwrap();
        let ours = AnnotationsState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| if d.below(16) == 15 { session::action(d) } else { plain::annotations_action(d) },
            to_value,
            reduce_annotations,
            |theirs, action| { apply_action_to_annotations(theirs, action); },
        )?;
    }

    #[test]
    fn a_terminal_is_reduced_as_published(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let start = plain::start_terminal(&mut Dice::new(&start));
        let theirs: published::TerminalState = serde_json::from_value(start.clone()).unwrap();
        let ours = TerminalState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| if d.below(16) == 15 { session::action(d) } else { plain::terminal_action(d) },
            to_value,
            reduce_terminal,
            |theirs, action| { apply_action_to_terminal(theirs, action); },
        )?;
    }

    #[test]
    fn a_watch_is_reduced_as_published(start in vec(any::<u8>(), 0..64), seeds in seeds()) {
        let start = plain::start_watch(&mut Dice::new(&start));
        let theirs: published::ResourceWatchState = serde_json::from_value(start.clone()).unwrap();
        let ours = ResourceWatchState::from_value(start).unwrap();
        agree(
            BothStates { ours, theirs },
            &seeds,
            |d, _| if d.below(16) == 15 { session::action(d) } else { plain::watch_action(d) },
            to_value,
            reduce_resource_watch,
            |theirs, action| { apply_action_to_resource_watch(theirs, action); },
        )?;
    }
}

/// Runs actions over a chat and gives it back.
fn chat_after(start: Value, actions: &[Value]) -> ChatState {
    let mut chat = ChatState::from_value(start).unwrap();
    for action in actions {
        reduce_chat(&mut chat, &Action::decode(action.clone()).unwrap());
    }
    chat
}

fn empty_chat() -> Value {
    json!({
        "resource": "ahp-chat:/1",
        "title": "t",
        "status": 1,
        "modifiedAt": "2026-01-01T00:00:00.000Z",
        "turns": [],
    })
}

fn turn_started() -> Value {
    json!({
        "type": "chat/turnStarted",
        "turnId": "t1",
        "startedAt": "2026-01-01T00:00:00Z",
        "message": {"text": "hi", "origin": {"kind": "user", "x-seat": 4}, "x-mood": "calm"},
    })
}

fn text_part(id: &str) -> Value {
    let part = json!({"kind": "markdown", "id": id, "content": "", "x-lang": "en"});
    json!({"type": "chat/responsePart", "turnId": "t1", "part": part})
}

#[test]
fn generated_actions_of_every_kind_change_something() {
    let mut changed = std::collections::BTreeSet::new();
    let mut noise = 1_u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let next = |_| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            (noise >> 32) as u8
        };
        (0..count).map(next).collect()
    };
    for _ in 0..400 {
        let seed = bytes(300);
        let mut d = Dice::new(&seed);
        let mut root = RootState::from_value(session::start_root(&mut d)).unwrap();
        let mut session = SessionState::from_value(session::start(&mut d)).unwrap();
        let mut chat = ChatState::from_value(chat::start(&mut d)).unwrap();
        let mut plain = [
            plain::start_changeset(&mut d),
            plain::start_annotations(&mut d),
            plain::start_terminal(&mut d),
        ]
        .map(|start| PlainState::read(start).unwrap().unwrap());
        for _ in 0..40 {
            let seed = bytes(64);
            let hints = Hints::of(&chat);
            for json in [
                session::root_action(&mut Dice::new(&seed)),
                session::action(&mut Dice::new(&seed)),
                chat_actions::action(&mut Dice::new(&seed), &hints),
                plain::changeset_action(&mut Dice::new(&seed)),
                plain::annotations_action(&mut Dice::new(&seed)),
                plain::terminal_action(&mut Dice::new(&seed)),
            ] {
                let action = Action::decode(json).expect("a generated action is well formed");
                let [changeset, annotations, terminal] = &mut plain;
                let reduced = [
                    reduce_plain(changeset, &action),
                    reduce_plain(annotations, &action),
                    reduce_plain(terminal, &action),
                    reduce_root(&mut root, &action),
                    reduce_session(&mut session, &action),
                    reduce_chat(&mut chat, &action),
                ];
                if reduced.contains(&Reduced::Changed) {
                    changed.insert(action.name().to_owned());
                }
            }
        }
    }
    // Four of the root, thirty of sessions, thirty-seven of chats, eight of changesets, five of annotations, and ten of
    // terminals: what is typed into one changes nothing.
    assert_eq!(changed.len(), 94, "{changed:?}");
}

#[test]
fn unknown_fields_of_clients_survive() {
    let mut session = SessionState::from_value(json!({
        "provider": "p",
        "title": "t",
        "status": 1,
        "lifecycle": "ready",
        "activeClients": [],
        "chats": [],
        "x-shelf": [1],
    }))
    .unwrap();
    let client = json!({
        "clientId": "ann",
        "tools": [],
        "systemMessageTransform": {"sections": ["safety"]},
    });
    let set = Action::decode(json!({"type": "session/activeClientSet", "activeClient": client}));
    assert_eq!(reduce_session(&mut session, set.as_ref().unwrap()), Reduced::Changed);
    assert_eq!(reduce_session(&mut session, set.as_ref().unwrap()), Reduced::Unchanged);
    let json = to_value(&session);
    assert_eq!((&json["activeClients"][0], &json["x-shelf"]), (&client, &json!([1])));
}

#[test]
fn unknown_fields_of_a_tool_call_survive_every_step() {
    let call = json!({
        "status": "streaming",
        "toolCallId": "c1",
        "toolName": "n",
        "displayName": "d",
        "contributor": {"kind": "mcp", "customizationId": "m"},
        "x-colour": "red",
    });
    let about = |name: &str, fields: Value| {
        let mut action = json!({"type": name, "turnId": "t1", "toolCallId": "c1"});
        action.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        action
    };
    let auth = json!({"reason": "expired", "resource": {"resource": "https://r"}});
    let steps = [
        about("chat/toolCallReady", json!({"invocationMessage": "i"})),
        about("chat/toolCallConfirmed", json!({"approved": true})),
        about("chat/toolCallAuthRequired", json!({"auth": auth})),
        about("chat/toolCallAuthResolved", json!({})),
        about(
            "chat/toolCallComplete",
            json!({"result": {"success": true, "pastTenseMessage": "p"}}),
        ),
    ];
    let part = json!({"kind": "toolCall", "toolCall": call, "x-shape": "round"});
    let mut actions =
        vec![turn_started(), json!({"type": "chat/responsePart", "turnId": "t1", "part": part})];
    for (step, status) in steps.into_iter().zip([
        "pending-confirmation",
        "running",
        "auth-required",
        "running",
        "completed",
    ]) {
        actions.push(step);
        let chat = chat_after(empty_chat(), &actions).value();
        let part = &chat["activeTurn"]["responseParts"][0];
        assert_eq!(part["toolCall"]["status"], status);
        assert_eq!(
            (&part["toolCall"]["x-colour"], &part["x-shape"]),
            (&json!("red"), &json!("round"))
        );
        assert_eq!(part["toolCall"].get("auth").is_some(), status == "auth-required");
    }
}

#[test]
fn a_turn_has_its_message_and_parts_after_error_and_resume() {
    let error =
        json!({"kind": "error", "error": {"errorType": "e", "message": "m"}, "resumable": true});
    let actions = [
        turn_started(),
        text_part("p1"),
        json!({"type": "chat/error", "turnId": "t1", "duration": 1_500, "part": error}),
        json!({"type": "chat/turnResume", "turnId": "t1"}),
    ];
    let ended = chat_after(empty_chat(), &actions[..3]);
    assert_eq!(ended.modified_at, "2026-01-01T00:00:01.500Z");
    assert_eq!(ended.status, wire::state::status::ERROR);
    let turn = ended.value()["turns"][0].clone();
    assert_eq!(turn["message"]["x-mood"], "calm");
    assert_eq!(turn["responseParts"][0]["x-lang"], "en");
    let resumed = chat_after(empty_chat(), &actions).value();
    assert_eq!(resumed["turns"], json!([]));
    assert_eq!(resumed["activeTurn"]["message"], turn["message"]);
    assert_eq!(resumed["activeTurn"]["responseParts"], turn["responseParts"]);
    assert_eq!(resumed["activeTurn"]["startedAt"], turn["startedAt"]);
}

#[test]
fn the_same_actions_make_the_same_bytes() {
    let config = json!({"schema": {}, "values": {"z": 1, "a": 2}});
    let start = json!({"agents": [], "config": config});
    let bytes = || {
        let mut root = RootState::from_value(start.clone()).unwrap();
        for values in [json!({"m": 3, "z": 4}), json!({"b": 5})] {
            let action = json!({"type": "root/configChanged", "config": values});
            reduce_root(&mut root, &Action::decode(action).unwrap());
        }
        serde_json::to_string(&root).unwrap()
    };
    assert!(bytes().contains(r#""values":{"z":4,"a":2,"m":3,"b":5}"#), "{}", bytes());
    assert_eq!(bytes(), bytes());
}

#[test]
fn a_delta_touches_its_part_and_no_other() {
    let before = chat_after(empty_chat(), &[turn_started(), text_part("p1"), text_part("p2")]);
    let mut after = before.clone();
    let delta = Action::delta("t1", "p2", "hello".to_owned());
    assert_eq!(reduce_chat(&mut after, &delta), Reduced::Changed);
    let part = |chat: &ChatState, id: &str| {
        let part: *const wire::state::ResponsePart = chat.active_turn.as_ref()?.parts.get(id)?;
        Some(part)
    };
    assert_eq!(part(&before, "p1"), part(&after, "p1"), "still shared");
    assert_ne!(part(&before, "p2"), part(&after, "p2"), "copied before it was changed");
    let text = &after.value()["activeTurn"]["responseParts"][1]["content"];
    assert_eq!(text, "hello");
}

#[test]
fn an_action_without_effect_changes_nothing() {
    let message = json!({"text": "d", "origin": {"kind": "user"}});
    let mut chat = empty_chat();
    chat["draft"] = message.clone();
    chat["status"] = json!(1 | 32);
    let mut chat = ChatState::from_value(chat).unwrap();
    for action in [
        json!({"type": "chat/draftChanged", "draft": message}),
        json!({"type": "chat/isReadChanged", "isRead": true}),
        json!({"type": "chat/isArchivedChanged", "isArchived": false}),
        json!({"type": "chat/activityChanged"}),
        json!({"type": "chat/truncated"}),
        json!({"type": "chat/turnsLoaded", "turns": []}),
        json!({"type": "chat/queuedMessagesReordered", "order": ["q"]}),
        json!({"type": "session/titleChanged", "title": "new"}),
    ] {
        let action = Action::decode(action).unwrap();
        assert_eq!(reduce_chat(&mut chat, &action), Reduced::Unchanged, "{}", action.name());
    }
}

#[test]
fn a_call_that_needs_auth_ends_only_by_failure_without_review() {
    let call = json!({
        "status": "auth-required",
        "toolCallId": "c1",
        "toolName": "n",
        "displayName": "d",
        "invocationMessage": "i",
        "confirmed": "not-needed",
        "content": [{"type": "text", "text": "so far"}],
        "auth": {"reason": "expired", "resource": {"resource": "https://r"}},
    });
    let part = json!({"kind": "toolCall", "toolCall": call});
    let complete = |success: bool| {
        json!({
            "type": "chat/toolCallComplete",
            "turnId": "t1",
            "toolCallId": "c1",
            "result": {"success": success, "pastTenseMessage": "p"},
            "requiresResultConfirmation": true,
        })
    };
    for (success, status) in [(true, "auth-required"), (false, "completed")] {
        let responded = json!({"type": "chat/responsePart", "turnId": "t1", "part": part});
        let chat = chat_after(empty_chat(), &[turn_started(), responded, complete(success)]);
        let after = &chat.value()["activeTurn"]["responseParts"][0]["toolCall"];
        assert_eq!((&after["status"], &after["content"]), (&json!(status), &call["content"]));
    }
}
