//! Who must be asked before a tool acts: the session's mode, and what was approved for the whole session.
//!
//! Promises: nothing that edits or runs does so without a mode, a memory or a person that said yes.

use std::collections::BTreeSet;

use agent_api::RenamedSetting;
use bytes::Bytes;
use serde_json::{Value, json};
use wire::Object;

use crate::locale::Locale;
use crate::tool::Nature;

/// The session setting that holds the mode (G-46). Not `mode`, `autoApprove`, `isolation` or `permissions`: editors have
/// values of their own for those, or draw nothing for them.
pub(super) const SETTING: &str = "approvals";

/// What the setting and a value of it were called in sessions and scripts of before.
const OLD_SETTING: &str = "permissions";
const OLD_PLAN: &str = "read-only";

/// What may happen without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PermissionMode {
    /// Reads.
    #[default]
    Ask,
    /// Reads and edits.
    AcceptEdits,
    /// Reads; anything else is refused without asking.
    Plan,
    FullAccess,
}

impl PermissionMode {
    pub(super) fn of(config: &Object) -> Self {
        match config.get(SETTING).and_then(Value::as_str) {
            Some("accept-edits") => Self::AcceptEdits,
            Some("plan") => Self::Plan,
            Some("full-access") => Self::FullAccess,
            _ => Self::Ask,
        }
    }
}

/// The setting as sessions offer it.
pub(super) fn schema() -> Value {
    json!({
        "type": "string",
        "title": "Approvals",
        "description": "What the agent may do without asking.",
        "enum": ["ask", "accept-edits", "plan", "full-access"],
        "enumLabels": ["Ask", "Accept edits", "Plan", "Full access"],
        "enumDescriptions": [
            "Reads freely; asks before it edits a file or runs a command.",
            "Edits files without asking; asks before it runs a command.",
            "Reads only and says what it would do; edits and commands are refused.",
            "Edits and runs without asking.",
        ],
        "default": "ask",
        "sessionMutable": true,
    })
}

/// The names of before, which are still read.
pub(super) fn renamed_setting() -> RenamedSetting {
    RenamedSetting {
        old_name: OLD_SETTING.to_owned(),
        name: SETTING.to_owned(),
        values: vec![(json!(OLD_PLAN), json!("plan"))],
    }
}

/// What is to be done about one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Run,
    Ask,
    Refuse,
}

/// Keys of calls that were approved for the whole session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Approved(BTreeSet<String>);

/// Keys remembered at most: the notes that hold them are bounded.
const APPROVED_MAX: usize = 256;

impl Approved {
    /// What the session's notes say.
    pub(super) fn read(notes: Option<&[u8]>) -> Self {
        let notes: Value = notes
            .and_then(|notes| serde_json::from_slice(notes).ok())
            .unwrap_or_default();
        let keys = notes["approved"].as_array().into_iter().flatten();
        Self(
            keys.filter_map(|key| Some(key.as_str()?.to_owned()))
                .collect(),
        )
    }

    /// Takes over what another one knows.
    pub(super) fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The notes that hold them.
    pub(super) fn notes(&self) -> Bytes {
        Bytes::from(json!({"approved": self.0}).to_string())
    }

    /// Whether something new is to be noted.
    pub(super) fn add(&mut self, key: &str) -> bool {
        self.0.len() < APPROVED_MAX && self.0.insert(key.to_owned())
    }
}

pub(super) fn verdict(
    mode: PermissionMode,
    nature: Nature,
    key: &str,
    approved: &Approved,
) -> Verdict {
    match (nature, mode) {
        (Nature::Reads, _) | (_, PermissionMode::FullAccess) => Verdict::Run,
        (Nature::Edits | Nature::Runs, PermissionMode::Plan) => Verdict::Refuse,
        (Nature::Edits, PermissionMode::AcceptEdits) => Verdict::Run,
        (Nature::Edits | Nature::Runs, PermissionMode::Ask | PermissionMode::AcceptEdits)
        | (Nature::Fetches, _) => match approved.0.contains(key) {
            true => Verdict::Run,
            false => Verdict::Ask,
        },
    }
}

pub(super) const APPROVE_IN_SESSION: &str = "approve-session";

/// The buttons under a call that asks (G-14).
pub(super) fn options(locale: Locale) -> Vec<Value> {
    let words = locale.words();
    vec![
        json!({"id": "approve", "label": words.approve, "kind": "approve", "group": 0}),
        json!({"id": APPROVE_IN_SESSION, "label": words.approve_in_session, "kind": "approve", "group": 0}),
        json!({"id": "deny", "label": words.deny, "kind": "deny", "group": 1}),
    ]
}

/// The result of a denied call, for the model.
pub(super) fn denied_text(suggestion: Option<&str>) -> String {
    match suggestion.filter(|text| !text.is_empty()) {
        Some(text) => format!("The user denied this call and says instead: {text}"),
        None => {
            "The user denied this call. Do not try it again; ask what to do instead.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_allowed_runs() {
        let mut approved = Approved::default();
        let at = |mode, nature, approved: &Approved| verdict(mode, nature, "k", approved);
        assert_eq!(
            at(PermissionMode::Plan, Nature::Reads, &approved),
            Verdict::Run
        );
        assert_eq!(
            at(PermissionMode::Ask, Nature::Edits, &approved),
            Verdict::Ask
        );
        assert_eq!(
            at(PermissionMode::AcceptEdits, Nature::Edits, &approved),
            Verdict::Run
        );
        assert_eq!(
            at(PermissionMode::AcceptEdits, Nature::Runs, &approved),
            Verdict::Ask
        );
        assert_eq!(
            at(PermissionMode::FullAccess, Nature::Runs, &approved),
            Verdict::Run
        );
        assert!(approved.add("k") && !approved.add("k"));
        assert_eq!(
            at(PermissionMode::Ask, Nature::Runs, &approved),
            Verdict::Run
        );
        // A plan may need what others wrote.
        assert_eq!(
            at(PermissionMode::Plan, Nature::Fetches, &approved),
            Verdict::Run
        );
        let none = Approved::default();
        for mode in [PermissionMode::Plan, PermissionMode::AcceptEdits] {
            assert_eq!(at(mode, Nature::Fetches, &none), Verdict::Ask);
        }
        // A mode that forbids is stronger than a memory.
        assert_eq!(
            at(PermissionMode::Plan, Nature::Runs, &approved),
            Verdict::Refuse
        );
        assert_eq!(Approved::read(Some(&approved.notes())), approved);
        assert_eq!(Approved::read(Some(b"?")), Approved::default());
    }
}
