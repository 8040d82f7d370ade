//! The agent's list of what is to be done, from one turn to the next: found in the calls that wrote it, and carried through a
//! compaction at the end of the summary.
//!
//! Must not know: how a list is shown.

use agent_api::TurnInput;
use serde_json::Value;

use crate::tool::{TODO, TodoList};

/// What a summary says before the list.
const HEADING: &str = "What was on the list to be done:";

/// The list as it stands when a turn begins, if something on it is left to do.
pub(super) fn find_open(input: &TurnInput) -> Option<TodoList> {
    find(input).filter(TodoList::is_open)
}

fn find(input: &TurnInput) -> Option<TodoList> {
    let last = |parts: &[Value]| parts.iter().rev().find_map(list_of);
    last(&input.response_parts)
        .or_else(|| {
            let turns = input.history.iter().rev();
            let mut parts = turns.filter_map(|past| past.turn["responseParts"].as_array());
            parts.find_map(|parts| last(parts))
        })
        .or_else(|| {
            let (_, list) = input.summary.as_ref()?.rsplit_once(HEADING)?;
            Some(TodoList::from_markdown(list))
        })
}

/// The list that a call wrote.
fn list_of(part: &Value) -> Option<TodoList> {
    let call = &part["toolCall"];
    let wrote =
        call["toolName"] == TODO && call["status"] == "completed" && call["success"] == true;
    wrote.then(|| TodoList::from_result(&call["structuredContent"]))?
}

/// A summary that the list goes on in.
pub(super) fn add_to_summary(summary: String, list: Option<&TodoList>) -> String {
    match list {
        Some(list) => format!("{summary}\n\n{HEADING}\n{}", list.to_markdown()),
        None => summary,
    }
}
