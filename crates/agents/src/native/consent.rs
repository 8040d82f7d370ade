//! Who must be asked before a tool acts: the session's mode, and the rules of the user.
//!
//! Promises: nothing that edits or runs does so without a mode, a rule or a person that said yes. What a rule denies is not
//! done in any mode. While the rules cannot be read, everything is asked.
//! Must not know: how rules are stored, which call is decided on.

use agent_api::RenamedSetting;
use serde_json::{Value, json};
use wire::Object;

use crate::locale::Locale;
use crate::permission::Pattern;
use crate::tool::ToolEffect;

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

    /// Its name as a value of the setting.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::FullAccess => "full-access",
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
            "Edits files without asking, except those that steer tools and agents; asks before it runs a command.",
            "Reads only and makes a plan, which you approve before anything is done.",
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Run,
    Ask,
    /// The reason, for the model.
    Refuse(String),
}

/// What the user's rules say about one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RuleDecision {
    None,
    Allow,
    Ask,
    /// The rule that denies it.
    Deny(Pattern),
    /// The rules cannot be read: one of them may deny it.
    Unknown,
}

/// The text for a model whose call is refused because the session's mode is to plan.
pub(super) const PLAN_MODE: &str = "The user wants a plan, and nothing changed yet: this session only reads, and the call \
     was refused. Say what you would do instead, and call `exit_plan` with the plan when it is complete.";

/// Decides about a call. A protected file is one that steers tools or agents (G-63).
pub(super) fn verdict(
    mode: PermissionMode,
    nature: ToolEffect,
    is_protected: bool,
    rules: &RuleDecision,
) -> Verdict {
    match (rules, nature, mode) {
        (RuleDecision::Deny(rule), _, _) => Verdict::Refuse(denied_by_rule(rule)),
        (_, ToolEffect::Edits | ToolEffect::Runs, PermissionMode::Plan) => {
            Verdict::Refuse(PLAN_MODE.to_owned())
        }
        (RuleDecision::Unknown | RuleDecision::Ask, _, _) => Verdict::Ask,
        (RuleDecision::Allow, _, _)
        | (RuleDecision::None, ToolEffect::Reads, _)
        | (RuleDecision::None, _, PermissionMode::FullAccess) => Verdict::Run,
        (RuleDecision::None, ToolEffect::Edits, PermissionMode::AcceptEdits) if !is_protected => {
            Verdict::Run
        }
        (RuleDecision::None, ToolEffect::Edits | ToolEffect::Runs | ToolEffect::Fetches, _) => {
            Verdict::Ask
        }
    }
}

fn denied_by_rule(rule: &Pattern) -> String {
    format!(
        "A rule of the user denies this: {rule}. Do not try to get around it; find another way, or say what you would need."
    )
}

pub(super) const APPROVE_IN_SESSION: &str = "approve-session";
pub(super) const APPROVE_IN_PROJECT: &str = "approve-project";

/// A rule that may be agreed to with a call, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedRule {
    pub pattern: Pattern,
    /// Whether it may hold in later sessions, too.
    pub for_project: bool,
}

/// The buttons under a call that asks (G-14). An option that remembers names the rule that is stored, letter by letter.
pub(super) fn options(locale: Locale, rule: Option<&OfferedRule>) -> Vec<Value> {
    let words = locale.words();
    let approve =
        |id: &str, label: String| json!({"id": id, "label": label, "kind": "approve", "group": 0});
    let mut options = vec![approve("approve", words.approve.to_owned())];
    if let Some(OfferedRule { pattern, for_project }) = rule {
        let pattern = pattern.as_str();
        options.push(approve(APPROVE_IN_SESSION, words.allow_in_session(pattern)));
        if *for_project {
            options.push(approve(APPROVE_IN_PROJECT, words.allow_in_project(pattern)));
        }
    }
    options.push(json!({"id": "deny", "label": words.deny, "kind": "deny", "group": 1}));
    options
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
        use PermissionMode::{AcceptEdits, Ask, FullAccess, Plan};
        use RuleDecision::{Allow, None, Unknown};
        use ToolEffect::{Edits, Fetches, Reads, Runs};
        let deny = RuleDecision::Deny(Pattern::parse("bash(rm:*)").unwrap());
        let at = |mode, nature, rules: &RuleDecision| match verdict(mode, nature, false, rules) {
            Verdict::Run => "run",
            Verdict::Ask => "ask",
            Verdict::Refuse(_) => "refuse",
        };
        for (mode, expected) in [
            (Ask, ["run", "ask", "ask"]),
            (AcceptEdits, ["run", "run", "ask"]),
            (Plan, ["run", "refuse", "refuse"]),
            (FullAccess, ["run", "run", "run"]),
        ] {
            assert_eq!([Reads, Edits, Runs].map(|nature| at(mode, nature, &None)), expected);
            for nature in [Reads, Edits, Runs] {
                assert_eq!(at(mode, nature, &deny), "refuse", "{mode:?}");
                let strict = match (mode, nature) {
                    (Plan, Edits | Runs) => "refuse",
                    _ => "ask",
                };
                assert_eq!(at(mode, nature, &Unknown), strict, "{mode:?}");
                assert_eq!(at(mode, nature, &RuleDecision::Ask), strict, "{mode:?}");
            }
        }
        assert_eq!(at(Ask, Runs, &Allow), "run");
        assert_eq!(at(Plan, Runs, &Allow), "refuse", "a mode is stronger than a rule");
        // A plan may need what others wrote.
        for (mode, expected) in
            [(Ask, "ask"), (AcceptEdits, "ask"), (Plan, "ask"), (FullAccess, "run")]
        {
            assert_eq!(at(mode, Fetches, &None), expected, "{mode:?}");
            assert_eq!(at(mode, Fetches, &Allow), "run", "{mode:?}");
        }
        assert_eq!(verdict(AcceptEdits, Edits, true, &None), Verdict::Ask);
        assert_eq!(verdict(FullAccess, Edits, true, &None), Verdict::Run);
    }
}
