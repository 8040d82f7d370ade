//! The check of a payload agrees with the published union of all actions, on samples of every published action and on
//! what becomes of them when one thing in them is wrong.

use ahp_types::actions::StateAction;
use serde::Deserialize;
use serde_json::{Value, json};

use super::is_readable;
use super::sample::sample_of;
use crate::action::ActionKind;
use crate::action::table::with_action_table;

/// A sample of the type that a variant of the published union holds, under the name of its action.
fn sample<'de, T: Deserialize<'de>>(
    _: impl FnOnce(T) -> StateAction,
    kind: ActionKind,
) -> (ActionKind, Value) {
    let mut sample = sample_of::<T>().unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
    sample["type"] = json!(kind.name());
    (kind, sample)
}

macro_rules! define_samples {
    (
        $(channel $channel:ident: $actions:ident, $reduce:ident($state:ident) {
            $($kind:ident $name:literal $sender:ident $(($action:ident))? $since:ident $record:ident
                $reducer:path $(, message $field:literal)?;)*
        } extensions $extensions:tt)*
        others {
            $($o_channel:ident {
                $($o_kind:ident $o_name:literal $o_sender:ident $o_since:ident $o_record:ident;)*
            })*
        }
    ) => {
        /// One sample of each published action.
        fn samples() -> Vec<(ActionKind, Value)> {
            vec![
                $($(sample(StateAction::$kind, ActionKind::$kind),)*)*
                $($(sample(StateAction::$o_kind, ActionKind::$o_kind),)*)*
            ]
        }
    };
}

with_action_table!(define_samples);

/// Reports if the published union reads an action as one it knows.
fn union_reads(action: &Value) -> bool {
    StateAction::deserialize(action).is_ok_and(|read| !matches!(read, StateAction::Unknown(_)))
}

/// The value with one thing in it missing, another one, or one more, at each of its places in turn.
fn variations(value: &Value) -> Vec<Value> {
    let mut all = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(1.5),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([7]),
        json!(["x", "y"]),
        json!({}),
        json!({"x": 7}),
        json!({"kind": "unheard-of", "type": "unheard-of", "status": "unheard-of"}),
    ];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| *name != "type") {
                let mut without = fields.clone();
                without.shift_remove(name);
                all.push(Value::Object(without));
                all.extend(variations(field).into_iter().map(|varied| {
                    let mut with = fields.clone();
                    with.insert(name.clone(), varied);
                    Value::Object(with)
                }));
            }
            let mut more = fields.clone();
            more.insert("unknown".to_owned(), json!({"content": "x"}));
            all.push(Value::Object(more));
            all.push(Value::Array(fields.values().cloned().collect()));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                all.extend(variations(item).into_iter().map(|varied| {
                    let mut with = items.clone();
                    with[index] = varied;
                    Value::Array(with)
                }));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all
}

#[test]
fn a_payload_is_readable_if_the_published_union_reads_it() {
    let (mut read, mut refused) = (0, 0);
    for (kind, sample) in samples() {
        assert!(is_readable(kind, &sample) && union_reads(&sample), "{sample}");
        for mut varied in variations(&sample) {
            if let Value::Object(fields) = &mut varied {
                fields.insert("type".to_owned(), json!(kind.name()));
            } else {
                continue; // no action: refused before its payload is looked at
            }
            let is_readable = is_readable(kind, &varied);
            assert_eq!(is_readable, union_reads(&varied), "{varied}");
            if is_readable { read += 1 } else { refused += 1 }
        }
    }
    assert!(read > 1_000 && refused > 1_000, "{read} read, {refused} refused");
}

#[test]
fn payloads_of_extensions_and_unknown_actions_are_not_read() {
    for kind in [ActionKind::SystemMessageTransformSet, ActionKind::Unknown] {
        assert!(is_readable(kind, &json!({"anything": [1]})));
    }
}
