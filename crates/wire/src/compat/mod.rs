//! Clients of older versions: what they are sent, and what their messages mean. The rest of the host knows 1.0 only.
//!
//! One file per step between two neighbouring versions, each a pair of pure directions: *down* makes what is sent one version
//! older, *up* makes what was received one version newer. A client of version v gets the steps from 1.0 down to v composed,
//! and its messages pass the same steps upwards. An action that no step changes for a version is sent as it is, so a stream of
//! text is encoded once for all versions.
//!
//! Must not know: who is connected, how messages are encoded.

pub mod closed_enums;
mod plain;
mod shape;
mod v0_4;
mod v0_5_0;
mod v0_5_1;
mod v0_5_2;
mod v0_6;
mod v0_7;
mod v0_8;
mod v0_9;

use serde_json::Value;

use crate::action::ChannelKind;
use crate::methods::{Call, HostNotification, Method};
use crate::state::{ChangesetState, ChatState, SessionState};
use crate::{Action, ActionKind, Generation, Object, RpcError, Timestamp};

pub use v0_4::{ONLY_CLIENT, SELECTION_META, check_selection, selection_of};
pub use v0_5_0::PAGE_LIMIT;
pub use v0_7::SESSION_ONLY;
pub use v0_8::DEFAULT_CHAT;

/// The state of a channel after an action: what some actions of older versions have to hold.
#[derive(Debug, Clone, Copy)]
pub enum AfterAction<'a> {
    Root,
    Session(&'a SessionState),
    Chat(&'a ChatState),
    Changeset(&'a ChangesetState),
}

/// What a snapshot is of.
#[derive(Debug, Clone, Copy)]
pub enum SnapshotOf<'a> {
    Root,
    /// With the session's entry in the list of sessions, which was part of its state in 0.4.
    Session {
        resource: &'a str,
        summary: &'a Object,
    },
    Chat,
    /// A channel of this kind that is its state and nothing else.
    Plain(ChannelKind),
}

/// An action as a client of an older version gets it.
#[derive(Debug, Clone, PartialEq)]
pub enum OlderForm {
    /// As everyone else.
    Same,
    /// These in its place, in this order; none if the version has no word for it.
    Instead(Vec<Object>),
}

/// What is known where an action of an older client arrives: some of their actions left out what newer ones say.
#[derive(Debug, Clone, Copy)]
pub struct Receiving<'a> {
    pub client_id: &'a str,
    pub now: Timestamp,
    /// The session or chat the action is for, if it is in memory.
    pub session: Option<&'a SessionState>,
    pub chat: Option<&'a ChatState>,
    /// The session that annotations or a changeset belong to.
    pub owner: Option<&'a str>,
    /// The first chat of the session that the action speaks of.
    pub default_chat: Option<&'a str>,
}

/// One step: from the version after `to` down to `to`, and back up.
struct VersionStep {
    to: Generation,
    /// Whether `down_action` changes anything about an action of this kind.
    touches: fn(ActionKind) -> bool,
    down_action: fn(Object, AfterAction, &mut Vec<Object>),
    down_state: fn(SnapshotOf, &mut Object),
    /// A session's entry in the list, whole or only what changed.
    down_summary: fn(&mut Object),
    up_action: fn(&mut Object, &Receiving),
    up_params: fn(Method, &mut Object),
}

/// Newest first.
const STEPS: [VersionStep; 8] = [
    v0_9::STEP,
    v0_8::STEP,
    v0_7::STEP,
    v0_6::STEP,
    v0_5_2::STEP,
    v0_5_1::STEP,
    v0_5_0::STEP,
    v0_4::STEP,
];

/// The steps between 1.0 and a version, newest first.
fn steps(generation: Generation) -> impl DoubleEndedIterator<Item = &'static VersionStep> {
    STEPS.iter().filter(move |step| step.to >= generation)
}

/// Whether clients of a version know an action by its name, so that it may be sent to them (H-026).
pub fn knows(generation: Generation, kind: ActionKind) -> bool {
    kind.since() <= generation.oldest_version()
}

/// Whether an action is the same for clients of this version as for those of 1.0. Cheap: asked for every action.
pub fn is_same(generation: Generation, kind: ActionKind) -> bool {
    generation == Generation::V1_0
        || kind != ActionKind::SessionSelectionSet
            && knows(generation, kind)
            && !steps(generation).any(|step| (step.touches)(kind))
}

/// Whether the older form of an action needs the state it leads to, which is not at hand when it is replayed.
pub fn needs_state(generation: Generation, kind: ActionKind) -> bool {
    match kind {
        ActionKind::ChatTurnResume => generation <= Generation::V0_8,
        ActionKind::SessionWorkingDirectoryReplaced => generation <= Generation::V0_7,
        ActionKind::ChangesetFilesReviewChanged => generation <= Generation::V0_5_1,
        ActionKind::SessionActiveClientSet | ActionKind::SessionActiveClientRemoved => {
            generation <= Generation::V0_4
        }
        _ => false,
    }
}

/// An action as clients of a version get it.
pub fn down_action(generation: Generation, action: &Action, after: AfterAction) -> OlderForm {
    if is_same(generation, action.kind) {
        return OlderForm::Same;
    }
    if action.kind == ActionKind::SessionSelectionSet && generation > Generation::V0_4 {
        return OlderForm::Instead(Vec::new()); // the word of 0.4 alone; others see the `_meta` that follows it
    }
    let mut actions = vec![action.body.clone()];
    for step in steps(generation) {
        let mut older = Vec::with_capacity(actions.len());
        for action in actions {
            (step.down_action)(action, after, &mut older);
        }
        older.retain(|action| knows(step.to, shape::kind_of(action)));
        actions = older;
    }
    OlderForm::Instead(actions)
}

/// A state as clients of a version get it in a snapshot.
pub fn down_state(generation: Generation, of: SnapshotOf, state: &mut Object) {
    for step in steps(generation) {
        (step.down_state)(of, state);
    }
}

/// Makes an entry of the list of sessions, whole or partial, one of an older version.
pub fn down_summary(generation: Generation, summary: &mut Object) {
    for step in steps(generation) {
        (step.down_summary)(summary);
    }
}

/// A notification as clients of a version get it; none if they have no word for it, or nothing of it that they know.
pub fn down_notification(
    generation: Generation,
    notification: HostNotification,
    mut params: Value,
) -> Option<Value> {
    match notification {
        HostNotification::SessionAdded => {
            let summary = params.get_mut("summary").and_then(Value::as_object_mut)?;
            down_summary(generation, summary);
        }
        HostNotification::SessionSummaryChanged => {
            let changes = params.get_mut("changes").and_then(Value::as_object_mut)?;
            down_summary(generation, changes);
            if changes.is_empty() {
                return None;
            }
        }
        HostNotification::AuthRequired => {
            if generation <= Generation::V0_7 {
                v0_7::down_auth_required(&mut params);
            }
        }
        HostNotification::Progress => {
            if generation <= Generation::V0_4 {
                return None; // it came with 0.5
            }
        }
        // Actions have translations of their own; the others were always as they are.
        HostNotification::Action
        | HostNotification::SessionRemoved
        | HostNotification::ExportLogs
        | HostNotification::ExportTraces
        | HostNotification::ExportMetrics => {}
    }
    Some(params)
}

/// Makes a completed turn one of an older version.
pub fn down_turn(generation: Generation, turn: Value) -> Value {
    let mut chat = Object::from_iter([("turns".to_owned(), Value::Array(vec![turn]))]);
    down_state(generation, SnapshotOf::Chat, &mut chat);
    match chat.shift_remove("turns") {
        Some(Value::Array(turns)) => turns.into_iter().next().unwrap_or_default(),
        _ => unreachable!("no step removes the turns of a chat"),
    }
}

/// The schema of settings, whose choices were texts once.
pub fn down_schema(generation: Generation, schema: &mut Value) {
    if generation <= Generation::V0_4 {
        v0_4::down_schema(schema);
    }
}

/// Makes an action of an older client one that the current types read.
pub fn up_action(generation: Generation, action: &mut Value, receiving: &Receiving) {
    if let Value::Object(action) = action {
        for step in steps(generation).rev() {
            (step.up_action)(action, receiving);
        }
    }
}

/// The same for the params of a request.
pub fn up_params(generation: Generation, method: Method, params: &mut Value) {
    if let Value::Object(params) = params {
        for step in steps(generation).rev() {
            (step.up_params)(method, params);
        }
    }
}

/// An error as clients of a version know it.
pub fn down_error(generation: Generation, call: &Call, error: &mut RpcError) {
    if generation <= Generation::V0_8 {
        v0_8::down_error(call, error);
    }
}

/// Whether a version has a method at all.
pub fn has_method(generation: Generation, method: Method) -> bool {
    match method {
        Method::MoveChat => generation >= Generation::V1_0,
        Method::ListAutomationTriggerDefinitions
        | Method::RunAutomation
        | Method::FetchAutomationRuns => generation >= Generation::V0_9,
        _ => true,
    }
}

/// Steps that have nothing to say in a direction.
mod unchanged {
    use super::{ActionKind, AfterAction, Method, Object, Receiving};

    pub(super) fn no_action(_: ActionKind) -> bool {
        false
    }

    pub(super) fn down_action(action: Object, _: AfterAction, out: &mut Vec<Object>) {
        out.push(action);
    }

    pub(super) fn down_summary(_: &mut Object) {}

    pub(super) fn up_action(_: &mut Object, _: &Receiving) {}

    pub(super) fn up_params(_: Method, _: &mut Object) {}
}

#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod tests;
