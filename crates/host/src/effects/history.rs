//! The turns an agent is reminded of: read from the journal, newest first, as many as fit.

use agents::AgentError;
use kernel::{Answer, HistoryAt, Query, TurnPage};
use serde_json::Value;

use crate::journal::JournalThread;

/// Turns and bytes an agent is reminded of at most: more than any model takes.
const TURNS_MAX: u32 = 1_000;
const BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// A turn that was said before.
pub(super) struct Past {
    pub id: String,
    pub turn: Value,
}

/// What was said before a turn, oldest first: what a side chat was made from, then its own turns. What was compacted is
/// left out.
pub(super) async fn read(journal: &JournalThread, at: &HistoryAt) -> Result<Vec<Past>, AgentError> {
    let own = Query::Turns {
        chat: at.chat,
        before_n: at.before_n,
        turns_max: TURNS_MAX,
        bytes_max: BYTES_MAX,
    };
    let own = page(journal, own).await?;
    let mut pages = vec![own];
    if let Some(through_n) = at.context_n {
        let context = Query::Context {
            chat: at.chat,
            through_n,
            turns_max: TURNS_MAX,
            bytes_max: BYTES_MAX,
        };
        pages.insert(0, page(journal, context).await?);
    }
    let from_n = at
        .compacted
        .as_ref()
        .map_or(0, |compacted| compacted.from_n);
    let turns = pages.into_iter().flat_map(|page| page.turns);
    let turns = turns.filter(|turn| turn.n >= from_n);
    Ok(turns
        .filter_map(|turn| {
            let id = turn.id;
            let turn = serde_json::from_slice(&turn.json).ok()?;
            Some(Past { id, turn })
        })
        .collect())
}

async fn page(journal: &JournalThread, query: Query) -> Result<TurnPage, AgentError> {
    let unreadable = |message: String| AgentError {
        error_type: "historyUnreadable".to_owned(),
        message,
        resumable: true,
    };
    match journal.read(query).await {
        Ok(Answer::Turns(page)) => Ok(page),
        Ok(_) => Ok(TurnPage::default()),
        Err(error) => Err(unreadable(format!(
            "what was said before cannot be read: {error}; resume the turn to try again"
        ))),
    }
}
