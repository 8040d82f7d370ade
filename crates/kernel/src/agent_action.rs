//! Actions that an agent causes: checked like a client's, because clients must be able to read them.

use agent_api::AgentError;
use serde_json::{Value, json};
use wire::reduce::Reduced;
use wire::{Action, ActionKind, ChannelUri, rpc};

use crate::state::Step;
use crate::turn::end::{end_turn_in_error, stop_run};
use crate::turn::size::make_room;

/// Records what an agent says. What no client could read is not sent: the turn ends, and says why (H-078). Returns whether
/// anything changed.
pub(crate) fn record_agent_action(
    step: &mut Step,
    uri: &ChannelUri,
    kind: ActionKind,
    fields: Value,
) -> bool {
    let action = Action::host(kind, fields);
    if !make_room(step, uri, rpc::json_bytes(&action.body)) {
        return false;
    }
    match Action::decode(Value::Object(action.body)) {
        Ok(action) => step.act(uri, action, None) == Reduced::Changed,
        Err(error) => {
            stop_run(step, uri);
            let failure = AgentError {
                error_type: "agentUnreadable".to_owned(),
                message: format!("the agent sent an invalid update: {error}"),
                resumable: false,
            };
            end_turn_in_error(step, uri, failure);
            debug_assert!(
                step.active_turn_id(uri).is_none(),
                "nothing more is heard of an agent that nobody can read"
            );
            false
        }
    }
}

/// Shows a system notification in the active turn.
pub(crate) fn notice(step: &mut Step, uri: &ChannelUri, turn_id: &str, text: &str) {
    let part = json!({"kind": "systemNotification", "content": text});
    let fields = json!({"turnId": turn_id, "part": part});
    step.act_as_host(uri, ActionKind::ChatResponsePart, fields);
}

/// A text of a user for a notification, with the line breaks it has: notifications are Markdown, in which a single newline
/// is none.
pub(crate) fn keep_line_breaks(text: &str) -> String {
    text.replace('\n', "  \n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_lines_and_paragraphs_stay_paragraphs() {
        assert_eq!(keep_line_breaks("one"), "one");
        assert_eq!(keep_line_breaks("one\ntwo"), "one  \ntwo");
        let paragraphs = keep_line_breaks("one\n\ntwo");
        assert!(paragraphs.lines().any(|line| line.trim().is_empty()));
    }
}
