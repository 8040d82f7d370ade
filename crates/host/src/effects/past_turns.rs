//! The turns before a turn as an agent gets them: with their users' messages, and what their models' servers want back.
//!
//! Must not know: what an agent makes of them.

use agent_api::{AgentError, PastTurn};
use kernel::HistoryAt;

use super::history;
use super::messages::TurnMessages;
use crate::journal::JournalHandle;

/// Reads them, oldest first.
pub(super) async fn read(
    journal: &JournalHandle,
    messages: &TurnMessages,
    at: &HistoryAt,
) -> Result<Vec<PastTurn>, AgentError> {
    let past = history::read(journal, at).await?;
    let ids: Vec<String> = past.iter().map(|past| past.id.clone()).collect();
    let mut outputs = history::read_outputs(journal, at.chat, ids.clone()).await?;
    let mut by_turn = messages.read_turns(ids).await?;
    let turns = past.into_iter().map(|past| PastTurn {
        messages: by_turn.remove(&past.id).unwrap_or_default(),
        outputs: outputs.remove(&past.id).unwrap_or_default(),
        turn: past.turn,
    });
    Ok(turns.collect())
}
