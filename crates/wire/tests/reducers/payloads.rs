//! The check of payloads against the published union of all actions: both accept the same generated
//! actions, in which one thing at any depth is missing, replaced or added.

use ahp_types::actions::StateAction;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use wire::action::check_payload;

use crate::chat_actions::{self, Hints};
use crate::dice::Dice;
use crate::{plain, session};

fn action(d: &mut Dice) -> Value {
    match d.below(8) {
        0 => session::root_action(d),
        1 | 2 => session::action(d),
        3 => plain::changeset_action(d),
        4 => plain::annotations_action(d),
        5 => plain::terminal_action(d),
        6 => plain::watch_action(d),
        _ => {
            let hints = Hints { queue: vec!["q1".to_owned()], turn: "t1".to_owned(), call: None };
            chat_actions::action(d, &hints)
        }
    }
}

/// Changes one thing at some depth of a value.
fn mutate(d: &mut Dice, value: &mut Value) {
    let goes_on = d.below(4) != 0;
    match value {
        Value::Object(fields) if goes_on && !fields.is_empty() => {
            let index = d.below(fields.len());
            let (name, inner) = fields.iter_mut().nth(index).expect("a field");
            match d.below(6) {
                0 => {
                    let name = name.clone();
                    fields.shift_remove(&name);
                }
                1 => {
                    fields.insert("x-more".to_owned(), json!({"a": [1]}));
                }
                _ => mutate(d, inner),
            }
        }
        Value::Array(items) if goes_on && !items.is_empty() => {
            let index = d.below(items.len());
            mutate(d, &mut items[index]);
        }
        _ => {
            *value = d.pick(&[
                json!(null),
                json!("unheard-of"),
                json!(7),
                json!(-1.5),
                json!(true),
                json!([]),
                json!([7, "x"]),
                json!({}),
                json!({"kind": "unheard-of", "type": "unheard-of"}),
            ]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn a_payload_is_checked_as_the_published_union_reads_it(
        seed in vec(any::<u8>(), 0..96),
        wrong in vec(any::<u8>(), 0..32),
    ) {
        let original = action(&mut Dice::new(&seed));
        prop_assert!(check_payload(&original).is_ok(), "{}", original);
        let mut mutated = original.clone();
        mutate(&mut Dice::new(&wrong), &mut mutated);
        let Value::Object(fields) = &mut mutated else {
            return Ok(());
        };
        fields.insert("type".to_owned(), original["type"].clone());
        let read = StateAction::deserialize(&mutated);
        let is_known = read.is_ok_and(|read| !matches!(read, StateAction::Unknown(_)));
        prop_assert_eq!(check_payload(&mutated).is_ok(), is_known, "{}", mutated);
    }
}
