//! Makes a conversation short enough to be summarised.
//!
//! Promises: what is left is still a conversation: it begins with a user, and every result stands after its call.
//! Must not know: why it is too long.

use super::context::estimate_tokens;
use super::model_view::HistoryEntry;
use crate::provider::ModelMessage;

/// What is left of the result of a call, in bytes.
const RESULT_BYTES_MAX: usize = 1_000;

/// Stands where the oldest part was.
const LEFT_OUT: &str = "(What was before this did not fit and is left out.)";

/// Cuts the results of calls, and leaves out what only servers can read.
pub(super) fn cut_results(entries: &mut [HistoryEntry]) {
    for entry in entries {
        match entry {
            HistoryEntry::Model(ModelMessage::ToolResult { text, blocks, .. }) => {
                blocks.clear();
                cut(text);
            }
            HistoryEntry::Model(ModelMessage::Assistant { items, .. }) => *items = None,
            HistoryEntry::Result { id, text, .. } => {
                let (id, mut text) = (std::mem::take(id), std::mem::take(text));
                cut(&mut text);
                *entry = HistoryEntry::result(id, text, Vec::new());
            }
            HistoryEntry::User(_) | HistoryEntry::Model(ModelMessage::User(_)) => {}
        }
    }
}

fn cut(text: &mut String) {
    if text.len() > RESULT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(RESULT_BYTES_MAX));
        text.push_str("\n[the rest is left out]");
    }
}

/// Leaves out the oldest part, so that the rest takes at most so many tokens; whether anything was left out.
pub(super) fn drop_oldest(entries: &mut Vec<HistoryEntry>, tokens_max: u64) -> bool {
    if estimate_tokens(entries) <= tokens_max {
        return false;
    }
    let begins_part = |entry: &HistoryEntry| {
        matches!(
            entry,
            HistoryEntry::User(_)
                | HistoryEntry::Model(ModelMessage::User(_) | ModelMessage::Assistant { .. })
        )
    };
    let starts: Vec<usize> =
        (1..entries.len()).filter(|start| entries.get(*start).is_some_and(begins_part)).collect();
    let fits = |start: &&usize| {
        let rest = entries.get(**start..).unwrap_or_default();
        estimate_tokens(rest) <= tokens_max
    };
    // If not even the last part fits, it is sent all the same: the server decides.
    let Some(start) = starts.iter().find(fits).or(starts.last()).copied() else { return false };
    entries.splice(..start, [HistoryEntry::user(LEFT_OUT)]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ToolUse;

    fn calling(id: &str) -> HistoryEntry {
        let call = ToolUse { id: id.to_owned(), name: "read".to_owned(), input: "{}".to_owned() };
        HistoryEntry::Model(ModelMessage::Assistant {
            text: String::new(),
            calls: vec![call],
            items: None,
        })
    }

    fn result(id: &str, bytes: usize) -> HistoryEntry {
        HistoryEntry::result(id.to_owned(), "x".repeat(bytes), Vec::new())
    }

    #[test]
    fn results_stay_after_their_calls() {
        let mut entries = vec![
            HistoryEntry::user("hi"),
            calling("a"),
            result("a", 40_000),
            calling("b"),
            result("b", 40_000),
        ];
        cut_results(&mut entries);
        assert!(estimate_tokens(&entries) < 1_000);
        assert!(!drop_oldest(&mut entries, 1_000));
        assert!(drop_oldest(&mut entries, 400));
        let rest = [HistoryEntry::user(LEFT_OUT), calling("b")];
        assert_eq!(entries[..2], rest);
        assert_eq!(entries.len(), 3);
        assert!(drop_oldest(&mut entries, 1), "as far as it goes");
        assert_eq!(entries.len(), 3);
    }
}
