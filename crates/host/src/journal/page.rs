//! When a page of turns is full: one rule for every backend.
//!
//! Must not know: where turns come from. They are offered newest first, by size.

/// Whether the turn that crosses the byte bound is in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CrossingTurn {
    /// It ends the page from inside (G-18).
    Included,
    /// It stays out, unless the page would be empty: what opens a channel has to fit a message.
    LeftOut,
}

/// A page being filled.
#[derive(Debug)]
pub(super) struct PageBuilder {
    turns_max: u64,
    bytes_max: u64,
    crossing: CrossingTurn,
    turns: u64,
    bytes: u64,
}

impl PageBuilder {
    pub(super) fn new(turns_max: u32, bytes_max: u64, crossing: CrossingTurn) -> Self {
        let turns_max = match crossing {
            CrossingTurn::Included => u64::from(turns_max),
            // An opened chat shows at least one turn if it has any.
            CrossingTurn::LeftOut => u64::from(turns_max.max(1)),
        };
        Self { turns_max, bytes_max, crossing, turns: 0, bytes: 0 }
    }

    /// Takes the next older turn if there is room for it. Once refused, nothing older is offered.
    pub(super) fn takes(&mut self, size: u64) -> bool {
        let room = match self.crossing {
            _ if self.turns >= self.turns_max => false,
            _ if self.turns == 0 => true,
            CrossingTurn::Included => self.bytes < self.bytes_max,
            CrossingTurn::LeftOut => self.bytes.saturating_add(size) <= self.bytes_max,
        };
        if room {
            self.turns += 1;
            self.bytes = self.bytes.saturating_add(size);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(turns_max: u32, bytes_max: u64, crossing: CrossingTurn) -> usize {
        let mut page = PageBuilder::new(turns_max, bytes_max, crossing);
        [10, 10, 10, 10].iter().take_while(|size| page.takes(**size)).count()
    }

    #[test]
    fn a_page_ends_with_the_turn_that_crosses_the_bound() {
        assert_eq!(taken(9, 15, CrossingTurn::Included), 2);
        assert_eq!(
            taken(9, 20, CrossingTurn::Included),
            2,
            "a bound that is reached is not passed"
        );
        assert_eq!(taken(9, 0, CrossingTurn::Included), 1);
        assert_eq!(taken(3, 99, CrossingTurn::Included), 3);
        assert_eq!(taken(0, 99, CrossingTurn::Included), 0);
    }

    #[test]
    fn what_opens_a_chat_fits_unless_one_turn_alone_does_not() {
        assert_eq!(taken(9, 15, CrossingTurn::LeftOut), 1);
        assert_eq!(taken(9, 20, CrossingTurn::LeftOut), 2);
        assert_eq!(taken(9, 0, CrossingTurn::LeftOut), 1);
        assert_eq!(taken(0, 99, CrossingTurn::LeftOut), 1);
    }
}
