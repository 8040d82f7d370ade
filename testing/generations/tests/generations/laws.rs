//! For generated states and actions of 1.0: what an older client makes of the older action is the older form of what the action
//! makes. The client's own types and reducers are the judge.
//!
//! Exceptions, each with its reason, are taken out of both sides by `without_exceptions`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::action::to_value;
use wire::compat::{self, AfterAction, OlderForm, SnapshotOf};
use wire::reduce::{Reduced, reduce_chat, reduce_session};
use wire::state::{ChatState, SessionState};
use wire::{Action, Generation, Object};

use crate::chat_actions::{self, Hints};
use crate::dice::Dice;
use crate::{chat, session};

const SEQUENCES: u64 = 150;
const ACTIONS: usize = 40;

/// Bytes that look random and are the same every time.
struct Noise(u64);

impl Noise {
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

fn listed() -> Object {
    object(
        json!({"createdAt": "2026-01-01T00:00:00.000Z", "modifiedAt": "2026-01-01T00:00:00.000Z"}),
    )
}

fn older_chat(generation: Generation, chat: &ChatState) -> Value {
    let mut state = object(chat.value());
    compat::down_state(generation, SnapshotOf::Chat, &mut state);
    Value::Object(state)
}

fn older_session(generation: Generation, session: &SessionState) -> Value {
    let mut state = object(to_value(session));
    let summary = listed();
    let of = SnapshotOf::Session {
        resource: "s:/1",
        summary: &summary,
    };
    compat::down_state(generation, of, &mut state);
    Value::Object(state)
}

/// What remains when all that no action of the version can tell is taken away.
fn without_exceptions(generation: Generation, mut state: Value) -> Value {
    if generation <= Generation::V0_8 {
        // Reducers up to 0.8 take the time of their own clock.
        clear(&mut state, "modifiedAt");
    }
    if let Some(chat) = state
        .get_mut("status")
        .filter(|_| generation < Generation::V1_0)
    {
        // A chat's flags came with 1.0; up to 0.7 a tool that a client runs counts as waiting for the user.
        let bits = chat.as_u64().unwrap_or(0);
        *chat = json!(bits & 1);
    }
    if let Some(status) = state["summary"].get_mut("status") {
        *status = json!(0);
    }
    if generation <= Generation::V0_5_2 {
        order_questions(&mut state);
    }
    state
}

fn clear(value: &mut Value, field: &str) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != field);
            fields.values_mut().for_each(|value| clear(value, field));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| clear(value, field)),
        _ => {}
    }
}

/// Up to 0.5.2 an answered question is a part where it was answered, now it is one where it was asked.
fn order_questions(state: &mut Value) {
    let mut order = |turn: &mut Value| {
        if let Some(Value::Array(parts)) = turn.get_mut("responseParts") {
            parts.sort_by_key(|part| part["kind"] == "inputRequest");
        }
    };
    if let Some(Value::Array(turns)) = state.get_mut("turns") {
        turns.iter_mut().for_each(&mut order);
    }
    if let Some(turn) = state.get_mut("activeTurn") {
        order(turn);
    }
}

/// One version's types and reducers.
pub struct Law<Chat, Session, Sent> {
    pub generation: Generation,
    pub reduce_chat: fn(&mut Chat, &Sent),
    pub reduce_session: fn(&mut Session, &Sent),
    pub is_unknown: fn(&Sent) -> bool,
}

impl<Chat, Session, Sent> Law<Chat, Session, Sent>
where
    Chat: Serialize + DeserializeOwned,
    Session: Serialize + DeserializeOwned,
    Sent: DeserializeOwned,
{
    pub fn holds(&self) {
        let mut told = 0;
        for seed in 1..=SEQUENCES {
            let mut noise = Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            told += self.holds_for_chat(&mut noise) + self.holds_for_session(&mut noise);
        }
        assert!(told > 1_000, "only {told} actions were told");
    }

    fn read<T: DeserializeOwned>(&self, state: &Value, after: &str) -> T {
        serde_json::from_value(state.clone()).unwrap_or_else(|error| {
            panic!(
                "{:?} cannot read, after {after}: {error}: {state}",
                self.generation
            )
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
            assert!(
                !(self.is_unknown)(&sent),
                "{:?} does not know {json}",
                self.generation
            );
            sent
        };
        forms.into_iter().map(read).collect()
    }

    fn compare(&self, ours: &Value, theirs: Value, after: &Action) {
        let ours = without_exceptions(self.generation, ours.clone());
        let theirs = without_exceptions(self.generation, theirs);
        assert_eq!(
            ours,
            theirs,
            "{:?} after {}",
            self.generation,
            Value::Object(after.body.clone())
        );
    }

    fn holds_for_chat(&self, noise: &mut Noise) -> usize {
        let start = chat::start(&mut Dice::new(&noise.bytes(256)));
        let mut ours = ChatState::from_value(start).expect("a chat");
        let mut theirs: Chat = self.read(&older_chat(self.generation, &ours), "the start");
        let mut told = 0;
        for _ in 0..ACTIONS {
            let action = chat_actions::action(&mut Dice::new(&noise.bytes(64)), &Hints::of(&ours));
            let action = Action::decode(action).expect("a generated action");
            if reduce_chat(&mut ours, &action) == Reduced::Unchanged {
                continue; // nobody but its sender hears of it
            }
            for form in self.forms(&action, AfterAction::Chat(&ours)) {
                (self.reduce_chat)(&mut theirs, &form);
                told += 1;
            }
            let older: Chat = self.read(&older_chat(self.generation, &ours), action.name());
            self.compare(&to_value(&older), to_value(&theirs), &action);
        }
        told
    }

    fn holds_for_session(&self, noise: &mut Noise) -> usize {
        let start = session::start(&mut Dice::new(&noise.bytes(128)));
        let mut ours = SessionState::from_value(start).expect("a session");
        let mut theirs: Session = self.read(&older_session(self.generation, &ours), "the start");
        let mut told = 0;
        for _ in 0..ACTIONS {
            let action = session::action(&mut Dice::new(&noise.bytes(64)));
            let action = Action::decode(action).expect("a generated action");
            if reduce_session(&mut ours, &action) == Reduced::Unchanged {
                continue;
            }
            for form in self.forms(&action, AfterAction::Session(&ours)) {
                (self.reduce_session)(&mut theirs, &form);
                told += 1;
            }
            let older: Session = self.read(&older_session(self.generation, &ours), action.name());
            self.compare(&to_value(&older), to_value(&theirs), &action);
        }
        told
    }
}

macro_rules! laws {
    ($($test:ident: $generation:ident, $ahp:ident, $types:ident;)+) => {
        $(
            #[test]
            fn $test() {
                use $ahp::reducers::{apply_action_to_chat, apply_action_to_session};
                use $types::actions::StateAction;
                use $types::state::{ChatState, SessionState};
                let law = Law::<ChatState, SessionState, StateAction> {
                    generation: Generation::$generation,
                    reduce_chat: |chat, action| {
                        apply_action_to_chat(chat, action);
                    },
                    reduce_session: |session, action| {
                        apply_action_to_session(session, action);
                    },
                    is_unknown: |action| matches!(action, StateAction::Unknown(_)),
                };
                law.holds();
            }
        )+
    };
}

laws! {
    older_forms_hold_for_0_9: V0_9, ahp_0_9, ahp_types_0_9;
    older_forms_hold_for_0_8: V0_8, ahp_0_8, ahp_types_0_8;
    older_forms_hold_for_0_7: V0_7, ahp_0_7, ahp_types_0_7;
    older_forms_hold_for_0_6: V0_6, ahp_0_6, ahp_types_0_6;
    older_forms_hold_for_0_5_2: V0_5_2, ahp_0_5_2, ahp_types_0_5_2;
    older_forms_hold_for_0_4: V0_4, ahp_0_4, ahp_types_0_4;
}
