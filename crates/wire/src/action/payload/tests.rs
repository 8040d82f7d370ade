//! Tests of the check of payloads: it agrees with the published union of all actions on samples of
//! every action and on variations of them. One of them writes the file of shapes.

use std::fmt::Write as _;

use ahp_types::actions::StateAction;
use ahp_types::state::{
    AutomationAfterDateCondition, AutomationAfterRunsCondition, AutomationCancelledRunLifecycle,
    AutomationCompletedRunLifecycle, AutomationDisableCondition, AutomationEventTrigger,
    AutomationFailedRunLifecycle, AutomationManualRunOrigin, AutomationPendingRunLifecycle,
    AutomationRunLifecycle, AutomationRunOrigin, AutomationRunningRunLifecycle,
    AutomationScheduleTrigger, AutomationTrigger, AutomationTriggeredRunOrigin, ChatInputAnswer,
    ChatInputAnswered, ChatInputSkipped, ContentRef, CustomizationDegradedState,
    CustomizationErrorState, CustomizationLoadState, CustomizationLoadedState,
    CustomizationLoadingState, PluginCustomization, TerminalClaim, TerminalClientClaim,
    TerminalExitedLifecycleState, TerminalLifecycleState, TerminalRunningLifecycleState,
    TerminalSessionClaim,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::is_readable;
use super::trace::Traces;
use super::unions::UNIONS;
use crate::action::ActionKind;
use crate::action::table::with_action_table;

/// Traces the types that occur only within unions, those that others hold first.
fn trace_variants(traces: &Traces) {
    traces.trace::<CustomizationLoadingState>();
    traces.trace::<CustomizationLoadedState>();
    traces.trace::<CustomizationDegradedState>();
    traces.trace::<CustomizationErrorState>();
    traces.trace::<PluginCustomization>();
    traces.trace::<ContentRef>();
    traces.trace::<TerminalClientClaim>();
    traces.trace::<TerminalSessionClaim>();
    traces.trace::<TerminalRunningLifecycleState>();
    traces.trace::<TerminalExitedLifecycleState>();
    traces.trace::<ChatInputAnswered>();
    traces.trace::<ChatInputSkipped>();
    traces.trace::<AutomationScheduleTrigger>();
    traces.trace::<AutomationEventTrigger>();
    traces.trace::<AutomationAfterRunsCondition>();
    traces.trace::<AutomationAfterDateCondition>();
    traces.trace::<AutomationManualRunOrigin>();
    traces.trace::<AutomationTriggeredRunOrigin>();
    traces.trace::<AutomationPendingRunLifecycle>();
    traces.trace::<AutomationRunningRunLifecycle>();
    traces.trace::<AutomationCompletedRunLifecycle>();
    traces.trace::<AutomationFailedRunLifecycle>();
    traces.trace::<AutomationCancelledRunLifecycle>();
}

/// The trace of one action: its kind, the shape of its payload and a sample.
struct TracedAction {
    kind: ActionKind,
    shape: Value,
    sample: Value,
}

/// Traces the type that a variant of the published union holds.
fn trace_action<'de, T: Deserialize<'de>>(
    traces: &Traces,
    _: impl FnOnce(T) -> StateAction,
    kind: ActionKind,
) -> TracedAction {
    let (shape, mut sample) = traces.trace::<T>();
    sample["type"] = json!(kind.name());
    TracedAction { kind, shape, sample }
}

macro_rules! define_traces {
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
        /// Traces each published action.
        fn trace_actions(traces: &Traces) -> Vec<TracedAction> {
            trace_variants(traces);
            vec![
                $($(trace_action(traces, StateAction::$kind, ActionKind::$kind),)*)*
                $($(trace_action(traces, StateAction::$o_kind, ActionKind::$o_kind),)*)*
            ]
        }
    };
}

with_action_table!(define_traces);

/// Reports if the published union reads an action as one it knows.
fn union_reads(action: &Value) -> bool {
    StateAction::deserialize(action).is_ok_and(|read| !matches!(read, StateAction::Unknown(_)))
}

/// Returns the value with one thing missing, replaced or added, at each of its places in turn.
fn variations(value: &Value) -> Vec<Value> {
    if value.is_null() {
        return Vec::new(); // The sample ends here: a type that holds itself.
    }
    let mut all = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1.5),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([7]),
        json!(["x", "y"]),
        json!({}),
        json!({"x": 7}),
        json!({"markdown": "x"}),
        json!({"kind": "unheard-of", "type": "unheard-of", "status": "unheard-of"}),
    ];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
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
            // As a list: whole, too short, too long, and with the name of the variant first.
            let listed: Vec<Value> = fields.values().cloned().collect();
            let mut named = listed.clone();
            named.rotate_right(1.min(listed.len()));
            all.extend([named, [&listed[..], &[json!(1)]].concat()].map(Value::Array));
            all.extend((1..=listed.len()).map(|length| json!(listed[..length])));
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
        Value::String(word) => {
            all.extend([json!({word: null}), json!({word: {}}), json!({word: 1})]);
            all.push(json!({word: null, "x": null}));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    all
}

/// A union that the published types read from JSON instead of serde's buffer, so that a number does
/// not name a variant there. Only the host sends it.
const PLUGIN_LOAD: &str = "/automation/customizations/0/load";

#[test]
fn a_payload_is_readable_if_the_published_union_reads_it() {
    let (mut read, mut refused) = (0, 0);
    let mut seen = Vec::new();
    // The largest union has five variants.
    for choice in 0..5 {
        let traces = Traces::with_choice(choice);
        for TracedAction { kind, sample, .. } in trace_actions(&traces) {
            if seen.contains(&sample) {
                continue; // nothing in it has a choice
            }
            assert!(is_readable(kind, &sample) && union_reads(&sample), "{sample}");
            for mut varied in variations(&sample) {
                let Value::Object(fields) = &mut varied else {
                    continue; // no action: refused before its payload is looked at
                };
                fields.insert("type".to_owned(), json!(kind.name()));
                let load = varied.pointer(PLUGIN_LOAD);
                if load.is_some_and(|load| load["kind"].is_u64() || load[0].is_u64()) {
                    continue;
                }
                let is_readable = is_readable(kind, &varied);
                assert_eq!(is_readable, union_reads(&varied), "{varied}");
                if is_readable { read += 1 } else { refused += 1 }
            }
            seen.push(sample);
        }
    }
    assert!(read > 10_000 && refused > 10_000, "{read} read, {refused} refused");
}

#[test]
fn payloads_of_extensions_and_unknown_actions_are_not_read() {
    for kind in [ActionKind::SystemMessageTransformSet, ActionKind::Unknown] {
        assert!(is_readable(kind, &json!({"anything": [1]})));
    }
}

/// Returns the error of a published union for an unknown variant: it lists the known ones.
fn complaint<T: DeserializeOwned>() -> String {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap();
    let union = UNIONS.iter().find(|union| union.name == name).unwrap();
    let unheard_of = json!({union.tag: "unheard-of"});
    let complaint = serde_json::from_value::<T>(unheard_of).err().unwrap().to_string();
    let variants = union.variants.iter().map(|(variant, _)| variant);
    let missing = variants.filter(|variant| !complaint.contains(&format!("`{variant}`")));
    assert_eq!(missing.count(), 0, "{name}: {complaint}");
    assert_eq!(complaint.matches('`').count(), 2 * (1 + union.variants.len()), "{complaint}");
    complaint
}

#[test]
fn the_unions_have_the_variants_of_the_published_types() {
    let complaints = [
        complaint::<TerminalClaim>(),
        complaint::<TerminalLifecycleState>(),
        complaint::<ChatInputAnswer>(),
        complaint::<CustomizationLoadState>(),
        complaint::<AutomationTrigger>(),
        complaint::<AutomationDisableCondition>(),
        complaint::<AutomationRunOrigin>(),
        complaint::<AutomationRunLifecycle>(),
    ];
    assert_eq!(complaints.len(), UNIONS.len());
}

/// After an update of the published types `UPDATE_EXPECT=1` in the environment writes the file.
#[test]
fn the_shapes_are_those_of_the_published_types() {
    let traces = Traces::default();
    let actions = trace_actions(&traces);
    let mut text = "{\n\"structs\": {".to_owned();
    for (index, (name, fields)) in traces.structs.borrow().iter().enumerate() {
        assert!(!fields.values().any(Value::is_null), "{name} is known in part");
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}\n{}: {}", json!(name), json!(fields)).unwrap();
    }
    text.push_str("\n},\n\"actions\": {");
    for (index, TracedAction { kind, shape, .. }) in actions.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(text, "{comma}\n{}: {shape}", json!(kind.name())).unwrap();
    }
    text.push_str("\n}\n}\n");
    expect_test::expect_file!["payloads.json"].assert_eq(&text);
}
