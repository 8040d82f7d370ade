//! What requests hold of earlier turns: a summary of the oldest, and the turns after it.
//!
//! Promises: the same memory gives the same text in every turn, so that requests begin with the same bytes.
//! Must not know: how a summary comes about.

use agent_api::{PastTurn, TurnInput};
use serde_json::json;

use super::history::{self, RecalledHistory};
use super::model_view::HistoryEntry;
use super::outputs::OutputSource;
use crate::provider::ModelMessage;

/// How a summary is introduced to the model.
const BEFORE: &str = "What was said before, in short:";

/// What the model answers to it: users and assistants take turns.
const UNDERSTOOD: &str = "I keep it in mind.";

/// What requests hold of earlier turns.
#[derive(Debug, Clone)]
pub(super) struct ChatMemory<'a> {
    pub summary: Option<String>,
    /// How many rounds of the turn after it the summary covers.
    pub summarised_rounds: u64,
    /// The turns that are sent whole, but for those rounds.
    pub turns: &'a [PastTurn],
}

impl<'a> ChatMemory<'a> {
    /// As it was recorded.
    pub(super) fn of_turn(input: &'a TurnInput) -> Self {
        Self {
            summary: input.summary.clone(),
            summarised_rounds: input.summarised_rounds,
            turns: &input.history,
        }
    }

    /// How many rounds of the running turn the summary covers.
    pub(super) fn summarised_rounds_of_active(&self) -> u64 {
        if self.turns.is_empty() { self.summarised_rounds } else { 0 }
    }

    /// The last turn in which a model was asked, and how many entries tell of all through it. A turn in which none was asked, such
    /// as a command of the host or one that stopped at a limit at once, says nothing of the size of the conversation.
    pub(super) fn last_counted(&self, source: &OutputSource) -> Option<(&'a PastTurn, usize)> {
        let is_counted = |past: &PastTurn| !past.turn["usage"].is_null();
        let index = self.turns.iter().rposition(is_counted)?;
        let entries = self.count_entries(index + 1, source);
        Some((self.turns.get(index)?, entries))
    }

    /// How many entries the summary and the first turns take.
    pub(super) fn count_entries(&self, turns: usize, source: &OutputSource) -> usize {
        let first = Self { turns: self.turns.get(..turns).unwrap_or_default(), ..self.clone() };
        first.recall(u64::MAX, source).entries.len()
    }

    /// As entries of a conversation, as many of the newest turns as fit.
    pub(super) fn recall(&self, tokens_max: u64, source: &OutputSource) -> RecalledHistory {
        let turns = history::recall_turns(self.turns, self.summarised_rounds, tokens_max, source);
        let summary = self.summary.as_deref().map(summary_entries);
        let entries = summary.into_iter().flatten().chain(turns.entries);
        RecalledHistory { entries: entries.collect(), notices: turns.notices }
    }
}

/// A summary as entries of the conversation.
fn summary_entries(text: &str) -> [HistoryEntry; 2] {
    let answer =
        ModelMessage::Assistant { text: UNDERSTOOD.to_owned(), calls: Vec::new(), items: None };
    let summary = json!(format!("{BEFORE}\n{text}"));
    [HistoryEntry::Model(ModelMessage::User(summary)), HistoryEntry::Model(answer)]
}
