//! Reads the turns before a turn from the journal, newest first, as many as fit.
//!
//! Must not know: what an agent makes of them.

use agent_api::{AgentError, ModelOutput};
use kernel::{Answer, ChannelId, HistoryAt, Query, TurnPage};
use serde_json::Value;

use crate::journal::JournalHandle;
use crate::sorted_map::SortedMap;

/// Turns and bytes an agent gets at most: more than any model takes.
const TURNS_MAX: u32 = 1_000;
const BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// A completed turn of the journal.
pub(super) struct HistoryTurn {
    pub id: String,
    pub turn: Value,
}

/// The turns before a turn, oldest first: those that a side chat was made from, then its own. Those that were compacted
/// are left out.
pub(super) async fn read(
    journal: &JournalHandle,
    at: &HistoryAt,
) -> Result<Vec<HistoryTurn>, AgentError> {
    let own = Query::Turns {
        chat: at.chat,
        before_n: at.before_n,
        turns_max: TURNS_MAX,
        bytes_max: BYTES_MAX,
    };
    let own = read_page(journal, own).await?;
    let mut pages = vec![own];
    if let Some(through_n) = at.context_n {
        let context =
            Query::Context { chat: at.chat, through_n, turns_max: TURNS_MAX, bytes_max: BYTES_MAX };
        pages.insert(0, read_page(journal, context).await?);
    }
    let from_n = at.compacted.as_ref().map_or(0, |compacted| compacted.from_n);
    let turns = pages.into_iter().flat_map(|page| page.turns).filter(|turn| turn.n >= from_n);
    let read = turns.filter_map(|turn| match serde_json::from_slice(&turn.json) {
        Ok(json) => Some(HistoryTurn {
            id: turn.id,
            turn: json,
        }),
        Err(error) => {
            // One damaged turn must not keep the chat from going on.
            tracing::error!(turn = turn.n, %error, "a turn of the journal is damaged; the agent goes on without it");
            None
        }
    });
    Ok(read.collect())
}

/// What was recorded of models' answers in some turns, by turn; of the newest, as many as fit.
pub(super) async fn read_outputs(
    journal: &JournalHandle,
    chat: ChannelId,
    turn_ids: Vec<String>,
) -> Result<SortedMap<String, Vec<ModelOutput>>, AgentError> {
    let query = Query::ModelOutputs { chat, turn_ids, bytes_max: BYTES_MAX };
    let stored = match journal.read(query).await {
        Ok(Answer::ModelOutputs(stored)) => stored,
        Ok(_) => return Err(unreadable("the journal answered something else")),
        Err(error) => return Err(unreadable(&error.to_string())),
    };
    let mut by_turn = SortedMap::default();
    for record in stored {
        let output = ModelOutput { round: record.round, json: record.json };
        by_turn.get_or_insert_with(record.turn_id, Vec::new).push(output);
    }
    Ok(by_turn)
}

/// One page of turns.
pub(super) async fn read_page(
    journal: &JournalHandle,
    query: Query,
) -> Result<TurnPage, AgentError> {
    match journal.read(query).await {
        Ok(Answer::Turns(page)) => Ok(page),
        Ok(_) => Err(unreadable("the journal answered something else")),
        Err(error) => Err(unreadable(&error.to_string())),
    }
}

pub(super) fn unreadable(why: &str) -> AgentError {
    AgentError {
        error_type: "historyUnreadable".to_owned(),
        message: format!("earlier turns cannot be read: {why}; resume the turn to try again"),
        resumable: true,
    }
}
