//! The lease of one space, as its writer knows it: epoch, batch numbers, and what is not known yet.
//!
//! A pure state machine: `PostgresJournal` runs it over a database, the simulation over a model of the table (ADR 0096).
//!
//! Promises: one batch is under way at a time; a number is given again only if its batch was not written; once lost it stays
//! lost.
//! Must not know: how anything is sent, what a batch holds, the time.

/// What a writer may do with its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Held,
    /// Nobody knows whether the last batch was written. `is_told`: its sender was told that it was not.
    Unresolved {
        is_told: bool,
    },
    Lost,
    Closed,
}

/// A lease that was taken.
#[derive(Debug, Clone)]
pub(crate) struct SpaceLease {
    epoch: i64,
    /// The number of the next batch.
    batch: i64,
    /// Times the lease was taken anew without an answer: each may have raised the epoch.
    unanswered: i64,
    state: LeaseState,
}

/// What is to be done for the next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseStep {
    /// Write it under this epoch and number.
    Write {
        epoch: i64,
        number: i64,
    },
    /// First find out about the one before: take the lease anew, if its epoch is one of these.
    Renew(EpochRange),
    Lost,
    Closed,
}

/// Epochs that can only be this writer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochRange {
    pub first: i64,
    pub last: i64,
}

/// The outcome of a batch whose answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewedLease {
    /// It is in the journal.
    Written,
    /// It is not, and never will be: it may be sent again.
    NotWritten,
    /// The space is another's; or the journal has a batch that was told not to be there.
    Lost,
}

impl SpaceLease {
    /// A lease as its row was answered.
    pub(crate) fn from_row(epoch: i64, batch: i64) -> Self {
        Self { epoch, batch, unanswered: 0, state: LeaseState::Held }
    }

    /// What must be done before the next batch is written.
    pub(crate) fn next(&self) -> LeaseStep {
        match self.state {
            LeaseState::Held => LeaseStep::Write { epoch: self.epoch, number: self.batch },
            LeaseState::Unresolved { .. } => LeaseStep::Renew(EpochRange {
                first: self.epoch,
                last: self.epoch + self.unanswered,
            }),
            LeaseState::Lost => LeaseStep::Lost,
            LeaseState::Closed => LeaseStep::Closed,
        }
    }

    /// The batch is in the journal.
    pub(crate) fn note_written(&mut self) {
        self.batch += 1;
    }

    /// The table refused the epoch or the number.
    pub(crate) fn lose(&mut self) {
        self.state = LeaseState::Lost;
    }

    /// The answer was lost.
    pub(crate) fn note_unknown(&mut self) {
        self.state = LeaseState::Unresolved { is_told: false };
    }

    /// The sender of the batch is told that it was not written, as on a full disk.
    pub(crate) fn give_up(&mut self) {
        if let LeaseState::Unresolved { is_told } = &mut self.state {
            *is_told = true;
        }
    }

    /// The lease is about to be taken anew; until it is answered that may have happened or not.
    pub(crate) fn begin_renewal(&mut self) {
        self.unanswered += 1;
    }

    /// The lease was taken anew: its row, or none if the epoch was another's.
    pub(crate) fn apply_renewal(&mut self, row: Option<(i64, i64)>) -> RenewedLease {
        let is_told = matches!(self.state, LeaseState::Unresolved { is_told: true });
        let Some((epoch, batch)) = row else {
            self.state = LeaseState::Lost;
            return RenewedLease::Lost;
        };
        let is_written = batch > self.batch;
        (self.epoch, self.batch, self.unanswered) = (epoch, batch, 0);
        // The kernel took that batch back, so it is not what the journal says: it must begin anew.
        if is_written && is_told {
            self.state = LeaseState::Lost;
            return RenewedLease::Lost;
        }
        self.state = LeaseState::Held;
        if is_written { RenewedLease::Written } else { RenewedLease::NotWritten }
    }

    /// Ends it; the epoch to give back, if it is held. One that was taken anew without an answer is not given back: the node
    /// may have the space again, under the next epoch, when that arrives.
    pub(crate) fn close(&mut self) -> Option<i64> {
        let was_held = !matches!(self.state, LeaseState::Lost | LeaseState::Closed);
        if was_held {
            self.state = LeaseState::Closed;
        }
        (was_held && self.unanswered == 0).then_some(self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_turns_out_to_be_written_is_not_sent_again() {
        let mut lease = SpaceLease::from_row(3, 10);
        assert_eq!(lease.next(), LeaseStep::Write { epoch: 3, number: 10 });
        lease.note_unknown();
        assert_eq!(lease.next(), LeaseStep::Renew(EpochRange { first: 3, last: 3 }));
        // The first renewal is not answered either, so the epoch may be one higher.
        lease.begin_renewal();
        assert_eq!(lease.next(), LeaseStep::Renew(EpochRange { first: 3, last: 4 }));
        lease.begin_renewal();
        assert_eq!(lease.apply_renewal(Some((5, 11))), RenewedLease::Written);
        assert_eq!(lease.next(), LeaseStep::Write { epoch: 5, number: 11 });
    }

    #[test]
    fn a_batch_that_was_told_to_have_failed_and_is_there_ends_the_writer() {
        let mut lease = SpaceLease::from_row(1, 0);
        lease.note_unknown();
        lease.give_up();
        lease.begin_renewal();
        assert_eq!(lease.apply_renewal(Some((2, 1))), RenewedLease::Lost);
        assert_eq!((lease.next(), lease.close()), (LeaseStep::Lost, None));
        let mut lease = SpaceLease::from_row(1, 0);
        lease.note_unknown();
        lease.give_up();
        lease.begin_renewal();
        assert_eq!(lease.apply_renewal(Some((2, 0))), RenewedLease::NotWritten);
        assert_eq!(lease.close(), Some(2));
        assert_eq!(lease.next(), LeaseStep::Closed);
    }

    #[test]
    fn what_may_be_another_epoch_by_now_is_not_given_back() {
        let mut lease = SpaceLease::from_row(1, 0);
        lease.note_unknown();
        lease.begin_renewal();
        assert_eq!((lease.close(), lease.next()), (None, LeaseStep::Closed));
    }
}
