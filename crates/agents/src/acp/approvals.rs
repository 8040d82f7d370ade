//! The session's setting that answers an agent's questions for the user (AG-33).
//!
//! Promises: only what a mode names is answered; a question to the user (AG-34) never is.
//! Must not know: how questions are asked.

use agent_client_protocol_schema::v1::ToolKind;
use serde_json::{Value, json};
use wire::Object;

/// The same setting as the native agent's (G-46).
pub(super) const SETTING: &str = "approvals";

/// What the agent and the user are told of what [`ApprovalVerdict::Refuse`] is about.
pub(super) const ONLY_READS: &str =
    "Refused: this session only reads (its approvals are set to plan).";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalVerdict {
    Ask,
    Allow,
    Refuse,
}

pub(super) fn schema() -> Value {
    json!({
        "type": "string",
        "title": "Approvals",
        "description": "What is answered for you when the agent asks. It binds only what the agent asks about: what its own settings or \
            sandbox allow, it does without asking.",
        "enum": ["ask", "accept-edits", "plan", "full-access"],
        "enumLabels": ["Ask", "Accept edits", "Plan", "Full access"],
        "enumDescriptions": [
            "Every question of the agent is yours to answer.",
            "Edits of files are allowed without asking you.",
            "Everything but reading and thinking is refused.",
            "Everything the agent asks for is allowed.",
        ],
        "default": "ask",
        "sessionMutable": true,
    })
}

/// What a session's settings say about a call of this kind. What they do not say is asked.
pub(super) fn verdict(config: &Object, kind: ToolKind) -> ApprovalVerdict {
    use ToolKind as K;
    match (config.get(SETTING).and_then(Value::as_str), kind) {
        (Some("full-access"), _) => ApprovalVerdict::Allow,
        (Some("accept-edits"), K::Edit) => ApprovalVerdict::Allow,
        (Some("plan"), K::Read | K::Search | K::Think | K::Fetch) => ApprovalVerdict::Ask,
        (Some("plan"), _) => ApprovalVerdict::Refuse,
        (None | Some(_), _) => ApprovalVerdict::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_answers_what_it_names() {
        let verdict = |mode: &str, kind| {
            let config = json!({SETTING: mode});
            verdict(config.as_object().unwrap(), kind)
        };
        assert_eq!(verdict("full-access", ToolKind::Execute), ApprovalVerdict::Allow);
        assert_eq!(verdict("accept-edits", ToolKind::Edit), ApprovalVerdict::Allow);
        for kind in [ToolKind::Delete, ToolKind::Move, ToolKind::Execute, ToolKind::Other] {
            assert_eq!(verdict("accept-edits", kind), ApprovalVerdict::Ask);
            assert_eq!(verdict("plan", kind), ApprovalVerdict::Refuse);
        }
        assert_eq!(verdict("plan", ToolKind::Read), ApprovalVerdict::Ask);
        assert_eq!(verdict("ask", ToolKind::Edit), ApprovalVerdict::Ask);
        assert_eq!(verdict("nonsense", ToolKind::Edit), ApprovalVerdict::Ask);
    }
}
