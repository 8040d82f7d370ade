//! The window of a chat's turns: those in memory, their numbers in the journal, and how older ones are put in front.

use std::sync::Arc;

use wire::state::TurnList;

use super::{Chat, split_page};
use crate::journal_query::{StoredTurn, TurnPage};
use crate::record::Seq;

impl Chat {
    pub(crate) fn turn_count(&self) -> u32 {
        u32::try_from(self.turn_numbers.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn turn_bytes(&self) -> u64 {
        self.state.turns.as_slice().iter().map(|turn| turn.json.len() as u64).sum()
    }

    pub(crate) fn has_older(&self) -> bool {
        self.has_older
    }

    pub(crate) fn next_n(&self) -> u64 {
        self.next_n
    }

    /// The number of the oldest turn in memory.
    pub(crate) fn first_n(&self) -> u64 {
        self.turn_numbers.first().copied().unwrap_or(self.next_n)
    }

    pub(crate) fn last_n(&self) -> Option<u64> {
        self.turn_numbers.last().copied()
    }

    /// The number of the turn at an index of the state's list.
    pub(crate) fn number_at(&self, index: usize) -> Option<u64> {
        self.turn_numbers.get(index).copied()
    }

    /// The number of a turn that is in memory.
    pub(crate) fn number_of(&self, turn_id: &str) -> Option<u64> {
        self.number_at(self.state.turns.position(turn_id)?)
    }

    /// Whether more turns are wanted than are in memory, and there are more, and they may fit.
    pub(crate) fn lacks(&self, turns: u32, bytes_max: u64) -> bool {
        self.has_older && self.turn_count() < turns && self.turn_bytes() < bytes_max
    }

    /// Whether every turn this chat ever had is in memory: nothing older, nothing hidden.
    pub(crate) fn knows_all_turns(&self) -> bool {
        self.turn_numbers.len() as u64 == self.next_n
    }

    pub(crate) fn last_hidden_seq(&self) -> Seq {
        self.last_hidden_seq
    }

    /// The turns through number `n`, as far as they are in memory.
    pub(crate) fn page_through(&self, n: u64) -> TurnPage {
        let turns = self
            .turn_numbers
            .iter()
            .zip(self.state.turns.as_slice())
            .take_while(|(number, _)| **number <= n)
            .map(|(number, turn)| StoredTurn {
                n: *number,
                id: turn.id.clone(),
                outcome: turn.outcome,
                json: turn.json.clone(),
            });
        TurnPage { turns: turns.collect(), older: self.has_older }
    }

    /// Puts older turns in front that end right before number `before_n`, if that is where memory begins; an answer that
    /// came later than another one does not fit any more.
    pub(crate) fn prepend_if_adjacent(&mut self, before_n: u64, page: TurnPage) {
        if before_n == self.first_n() {
            self.prepend(page);
        }
    }

    /// Puts a page that ends with turn `n` in front. The turns between it and what is in memory are about to be cut off.
    pub(crate) fn prepend_before_cut(&mut self, n: u64, page: TurnPage) {
        if self.first_n() > n {
            self.prepend(page);
        }
    }

    fn prepend(&mut self, page: TurnPage) {
        let has_older = page.older;
        let (numbers, mut turns) = split_page(page);
        turns.extend(self.state.turns.as_slice().iter().cloned());
        self.turn_numbers.splice(0..0, numbers);
        assert_eq!(self.turn_numbers.len(), turns.len(), "every turn in memory has its number");
        debug_assert!(self.turn_numbers.is_sorted(), "older turns have lower numbers");
        self.has_older = has_older;
        Arc::make_mut(&mut self.state).turns = Arc::new(TurnList::new(turns));
    }
}
