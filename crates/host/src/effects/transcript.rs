//! The transcript of a chat that a message refers to: texts of users and agents, the newest turns that fit.
//!
//! Promises: bounded, whatever the chat holds; a chat that is gone is an outcome, not an error; attachments of its messages
//! are not expanded (H-161).
//! Must not know: who is shown the transcript, and how.

use compositor::chat_reference::ChatReference;
use compositor::resolve::{Resolved, WhyUnavailable};
use kernel::{Answer, Query, StoredKind};
use serde_json::Value;
use wire::ChannelUri;

use crate::journal::{JournalError, JournalHandle};

/// Turns that are read at most.
const TURNS_MAX: u32 = 200;

/// Bytes of turns that are read at most: most of a turn is not text.
const READ_BYTES_MAX: u64 = 4 * 1_024 * 1_024;

/// Bytes of text that are quoted at most: as much as of a file.
const QUOTED_BYTES_MAX: usize = 64 * 1_024;

/// What stands for the rest of a turn that alone is too long.
const CUT: &str = "\n[cut]";

/// What was said in a chat, through the turn that a reference names.
pub(super) async fn read(
    journal: &JournalHandle,
    reference: &ChatReference<'_>,
) -> Result<Resolved, JournalError> {
    let Some((turns, older)) = read_turns(journal, reference).await? else {
        return Ok(Resolved::Unavailable { why: WhyUnavailable::NotFound, lines: None });
    };
    let (text, is_whole) = quote(&turns);
    let text =
        if older || !is_whole { format!("[earlier turns are left out]\n\n{text}") } else { text };
    Ok(Resolved::Text {
        size: text.len() as u64,
        label: reference.label.to_owned(),
        range: None,
        mime: "text/plain".to_owned(),
        text,
    })
}

/// The turns through the last one, oldest first, and whether there are older ones; `None` if the chat or the turn is not
/// there.
async fn read_turns(
    journal: &JournalHandle,
    reference: &ChatReference<'_>,
) -> Result<Option<(Vec<Value>, bool)>, JournalError> {
    let Ok(uri) = ChannelUri::parse(reference.uri) else {
        return Ok(None); // no chat of this host has such a name
    };
    let channel = Query::Channel { uri, turns_max: 1, bytes_max: 1 };
    let chat = match journal.read(channel).await? {
        Answer::Channel(Some(channel)) if channel.kind == StoredKind::Chat => channel.id,
        _ => return Ok(None),
    };
    let Some(turn_id) = reference.end_turn else {
        return Ok(Some((Vec::new(), false))); // nothing was said there yet
    };
    let last = Query::FindTurn { chat, turn_id: turn_id.to_owned() };
    let last = match journal.read(last).await? {
        Answer::FindTurn(Some(found)) if found.visible => found.n,
        _ => return Ok(None),
    };
    let page = Query::Turns {
        chat,
        before_n: last.saturating_add(1),
        turns_max: TURNS_MAX,
        bytes_max: READ_BYTES_MAX,
    };
    let Answer::Turns(page) = journal.read(page).await? else { return Ok(None) };
    let turns = page.turns.iter();
    // A damaged turn says nothing; the others still do.
    let turns = turns.filter_map(|turn| serde_json::from_slice(&turn.json).ok());
    Ok(Some((turns.collect(), page.older)))
}

/// The newest turns that fit, oldest first, and whether that is all of them.
fn quote(turns: &[Value]) -> (String, bool) {
    let mut quoted: Vec<String> = Vec::new();
    let mut left_bytes = QUOTED_BYTES_MAX;
    let mut is_whole = true;
    for turn in turns.iter().rev() {
        let mut words = words_of(turn);
        if words.len() > left_bytes {
            is_whole = false;
            if !quoted.is_empty() {
                break;
            }
            words.truncate(words.floor_char_boundary(left_bytes));
            words.push_str(CUT);
        }
        left_bytes = left_bytes.saturating_sub(words.len());
        if !words.is_empty() {
            quoted.push(words);
        }
    }
    quoted.reverse();
    (quoted.join("\n\n"), is_whole)
}

/// What the user and the agent said in a turn.
fn words_of(turn: &Value) -> String {
    let user = turn["message"]["text"].as_str().unwrap_or("").trim();
    let parts = turn["responseParts"].as_array().into_iter().flatten();
    let said: Vec<&str> = parts
        .filter(|part| part["kind"] == "markdown")
        .filter_map(|part| part["content"].as_str())
        .collect();
    let said = said.join("\n\n");
    let mut words = Vec::new();
    for (who, text) in [("User", user), ("Assistant", said.trim())] {
        if !text.is_empty() {
            words.push(format!("{who}:\n{text}"));
        }
    }
    words.join("\n\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(user: &str, said: &[&str]) -> Value {
        let said = said.iter().map(|text| json!({"kind": "markdown", "content": text}));
        let mut parts = vec![json!({"kind": "reasoning", "content": "hidden"})];
        parts.extend(said);
        parts.push(json!({"kind": "systemNotification", "content": "a notice"}));
        json!({"id": "t", "message": {"text": user}, "responseParts": parts})
    }

    #[test]
    fn the_words_of_both_are_quoted_in_order() {
        let turns = [turn("hi", &["a", "b"]), turn(" ", &["c"]), turn("end", &[])];
        let expected = "User:\nhi\n\nAssistant:\na\n\nb\n\nAssistant:\nc\n\nUser:\nend";
        assert_eq!(quote(&turns), (expected.to_owned(), true));
        assert_eq!(quote(&[]), (String::new(), true));
    }

    #[test]
    fn the_newest_turns_that_fit_are_quoted() {
        let long = "é".repeat(15_000);
        let turns: Vec<Value> = (0..4).map(|n| turn(&format!("{n}"), &[&long])).collect();
        let (text, is_whole) = quote(&turns);
        assert!(!is_whole && text.len() <= QUOTED_BYTES_MAX);
        assert!(text.starts_with("User:\n2\n") && text.contains("User:\n3\n"));
        let huge = turn("q", &[&"é".repeat(1_000_000)]);
        let (text, is_whole) = quote(&[turn("before", &[]), huge]);
        assert!(!is_whole && text.len() <= QUOTED_BYTES_MAX + CUT.len());
        assert!(text.starts_with("User:\nq\n") && text.ends_with(CUT));
    }
}
