//! The log: which seq comes next, which is committed, and the newest actions in memory.
//!
//! Promises: seqs rise and none that is committed is given twice; after a failed write the log is what the journal holds.

use bytes::Bytes;

use crate::record::{ChannelId, Seq};
use crate::tail::Tail;

/// Sequence numbers, and the newest recorded actions.
pub(crate) struct Log {
    seq: Seq,
    /// The last seq that is in the journal for certain.
    committed: Seq,
    /// The seq at the end of the last step.
    stepped: Seq,
    /// No action at or below this seq can be replayed.
    floor: Seq,
    committed_floor: Seq,
    tail: Tail,
}

impl Log {
    pub(crate) fn new(seq: Seq, floor: Seq, tail_bytes: usize) -> Self {
        Self {
            seq,
            committed: seq,
            stepped: seq,
            floor,
            committed_floor: floor,
            tail: Tail::new(seq, tail_bytes),
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    pub(crate) fn committed(&self) -> Seq {
        self.committed
    }

    pub(crate) fn floor(&self) -> Seq {
        self.floor
    }

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.seq = Seq(self.seq.0 + 1);
        self.seq
    }

    /// Takes the next seq for an action and remembers its envelope, which `encode` makes from that seq.
    pub(crate) fn push<T>(
        &mut self,
        channel: ChannelId,
        encode: impl FnOnce(Seq) -> (Bytes, T),
    ) -> (Seq, Bytes, T) {
        let seq = self.next_seq();
        let (envelope, rest) = encode(seq);
        self.tail.push(seq, channel, envelope.clone());
        (seq, envelope, rest)
    }

    /// Whether every action above `seq` is in memory.
    pub(crate) fn reaches(&self, seq: Seq) -> bool {
        self.tail.reaches(seq)
    }

    /// Actions above `seq` that are in memory, oldest first.
    pub(crate) fn above(&self, seq: Seq) -> impl Iterator<Item = &(Seq, ChannelId, Bytes)> {
        self.tail.above(seq)
    }

    /// Actions up to `through` are forgotten.
    pub(crate) fn trim(&mut self, through: Seq) {
        assert!(through >= self.floor, "the floor of the log only rises");
        assert!(through <= self.seq, "only what was recorded is forgotten");
        self.floor = through;
    }

    /// Whether this step used a seq; the next step begins here.
    pub(crate) fn end_step(&mut self) -> bool {
        let used = self.stepped != self.seq;
        self.stepped = self.seq;
        used
    }

    pub(crate) fn commit(&mut self) {
        self.committed = self.seq;
        self.committed_floor = self.floor;
    }

    /// Some actions could not be written, others after them could: their seqs stay unused.
    pub(crate) fn remove(&mut self, seqs: impl Fn(Seq) -> bool) {
        self.tail.remove(seqs);
    }

    /// That actions are forgotten could not be written.
    pub(crate) fn undo_trim(&mut self) {
        self.floor = self.committed_floor;
    }

    pub(crate) fn roll_back(&mut self) {
        assert!(self.committed <= self.seq, "seqs only rise");
        self.seq = self.committed;
        self.stepped = self.committed;
        self.floor = self.committed_floor;
        self.tail.cut_back(self.committed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_write_the_log_is_what_it_was() {
        let mut log = Log::new(Seq(10), Seq(2), 10_000);
        log.push(ChannelId(1), |seq| (Bytes::from(seq.0.to_string()), ()));
        assert!(log.end_step());
        log.commit();
        log.push(ChannelId(1), |seq| (Bytes::from(seq.0.to_string()), ()));
        log.trim(Seq(5));
        assert!(log.end_step());
        log.roll_back();
        assert_eq!((log.seq(), log.floor()), (Seq(11), Seq(2)));
        assert_eq!(log.above(Seq(0)).count(), 1);
        assert!(!log.end_step(), "nothing was used since");
    }
}
