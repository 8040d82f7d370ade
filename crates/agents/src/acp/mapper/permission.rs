//! Questions about calls (AG-31, AG-31b).
//!
//! Promises: what is asked about is what the request says; an option is chosen by who decides, or is the narrowest that means the decision.

use agent_api::ToolReady;
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use wire::published::state::ToolCallConfirmationReason;

use super::call::Stage;
use super::call_update::{self, CallUpdate};
use super::consent::FileDiff;
use super::{Mapper, MapperStep};
use crate::acp::label::label;

/// A call that is asked about.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct AskedPermission {
    pub(in super::super) call: u64,
    pub(in super::super) kind: acp::ToolKind,
    /// Without `confirmed`.
    pub(in super::super) ready: ToolReady,
    pub(in super::super) diffs: Vec<FileDiff>,
}

/// A decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum PermissionChoice<'a> {
    Option(&'a str),
    Approve,
    Deny,
}

impl Mapper {
    /// A permission request: the call is asked about. None if the turn has more calls than it can have.
    pub(in super::super) fn ask(
        &mut self,
        call: acp::ToolCallUpdate,
        steps: &mut Vec<MapperStep>,
    ) -> Option<AskedPermission> {
        self.run.end();
        self.close_call(steps);
        let mut update = call_update::from_update(call);
        update.announce();
        self.set_aside_asked(&mut update, steps);
        self.begin_question(update, steps)
    }

    /// A call becomes one that people are asked about, as it is by these words.
    pub(super) fn begin_question(
        &mut self,
        update: CallUpdate,
        steps: &mut Vec<MapperStep>,
    ) -> Option<AskedPermission> {
        let (call, _) = self.merge_update(update, steps)?;
        call.stage = Stage::Asking;
        call.was_asked = true;
        let diffs = call.diffs();
        // A call that does not say it edits is asked about as something else.
        let edits = if call.edits() { diffs.clone() } else { Vec::new() };
        let command = call.command();
        call.consent.ask(edits, command);
        call.note_asked();
        Some(AskedPermission {
            call: call.number,
            kind: call.kind(),
            ready: call.ready(None),
            diffs,
        })
    }

    /// It was decided about a call. A decision about a call that is no longer asked about means nothing.
    pub(in super::super) fn decide(&mut self, call: u64, approved: bool) {
        if let Some(call) = self.call_mut(call)
            && call.stage == Stage::Asking
        {
            call.consent.decide(approved);
            call.stage = if approved { Stage::Running } else { Stage::Denied };
        }
        // Nothing more is asked about those, and an agent may ask again and again.
        self.earlier.retain(|(_, call)| call.stage != Stage::Denied);
    }

    /// How a call is shown that a setting has decided.
    pub(in super::super) fn ready_by_setting(ready: ToolReady) -> ToolReady {
        ToolReady { confirmed: Some(ToolCallConfirmationReason::Setting), ..ready }
    }
}

/// Options of one question that are offered: real agents have five at most.
const OPTIONS_MAX: usize = 16;

/// The options of a question that can be told from each other: of those with one id the first, and so many. Another of the same
/// id could mean the opposite of what its label says.
pub(in super::super) fn distinct_options(
    options: Vec<acp::PermissionOption>,
) -> Vec<acp::PermissionOption> {
    let mut distinct: Vec<acp::PermissionOption> = Vec::new();
    for option in options {
        let is_known = |known: &acp::PermissionOption| known.option_id == option.option_id;
        if distinct.len() < OPTIONS_MAX && !distinct.iter().any(is_known) {
            distinct.push(option);
        }
    }
    distinct
}

/// `ConfirmationOption`s: labels as they came, what is granted once before what is granted for longer.
pub(in super::super) fn confirmation_options(options: &[acp::PermissionOption]) -> Vec<Value> {
    use acp::PermissionOptionKind as K;
    let mut sorted: Vec<&acp::PermissionOption> = options.iter().collect();
    sorted.sort_by_key(|option| match option.kind {
        K::AllowOnce => 0,
        K::AllowAlways => 1,
        _ => 2,
    });
    let to_wire = |option: &acp::PermissionOption| {
        let (kind, group) = if allows(option.kind) { ("approve", 0) } else { ("deny", 1) };
        json!({
            "id": option.option_id.to_string(),
            "label": label(&option.name, 500),
            "kind": kind,
            "group": group,
        })
    };
    sorted.into_iter().map(to_wire).collect()
}

/// What is not said to allow does not.
fn allows(kind: acp::PermissionOptionKind) -> bool {
    use acp::PermissionOptionKind as K;
    matches!(kind, K::AllowOnce | K::AllowAlways)
}

/// The option that means a decision, and whether it allows. None: nothing that was offered means it.
pub(in super::super) fn option_for(
    options: &[acp::PermissionOption],
    choice: PermissionChoice<'_>,
) -> Option<(String, bool)> {
    use acp::PermissionOptionKind as K;
    let first = |kind: K| options.iter().find(|option| option.kind == kind);
    let option = match choice {
        PermissionChoice::Option(id) => options.iter().find(|option| &*option.option_id.0 == id),
        PermissionChoice::Approve => first(K::AllowOnce).or_else(|| first(K::AllowAlways)),
        PermissionChoice::Deny => first(K::RejectOnce).or_else(|| first(K::RejectAlways)),
    }?;
    Some((option.option_id.to_string(), allows(option.kind)))
}
