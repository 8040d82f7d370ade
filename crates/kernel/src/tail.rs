//! The newest actions in memory, in front of the journal: what a short reconnect is answered from (G-19).

use std::collections::VecDeque;

use bytes::Bytes;

use crate::ids::{ChannelId, Seq};

/// A bounded run of the newest recorded actions, in seq order without holes.
#[derive(Debug)]
pub(crate) struct Tail {
    items: VecDeque<(Seq, ChannelId, Bytes)>,
    bytes: usize,
    bytes_max: usize,
    /// Every recorded action above this seq is here.
    start: Seq,
}

/// What an item costs beside its bytes: the entry itself and the frame around the envelope.
const ITEM_BYTES: usize = 128;

impl Tail {
    pub(crate) fn new(start: Seq, bytes_max: usize) -> Self {
        Self { items: VecDeque::new(), bytes: 0, bytes_max, start }
    }

    pub(crate) fn push(&mut self, seq: Seq, channel: ChannelId, envelope: Bytes) {
        let last = self.items.back().map_or(self.start, |(last, ..)| *last);
        assert!(last < seq, "seqs rise: what is above one is found by halving");
        self.bytes += envelope.len() + ITEM_BYTES;
        self.items.push_back((seq, channel, envelope));
        while self.bytes > self.bytes_max {
            let Some((seq, _, envelope)) = self.items.pop_front() else { break };
            self.bytes -= envelope.len() + ITEM_BYTES;
            self.start = seq;
        }
    }

    /// Forgets what was pushed above `seq`: it could not be written.
    pub(crate) fn cut_back(&mut self, seq: Seq) {
        while self.items.back().is_some_and(|(last, ..)| *last > seq) {
            if let Some((.., envelope)) = self.items.pop_back() {
                self.bytes -= envelope.len() + ITEM_BYTES;
            }
        }
        // What fell out at the front may lie above `seq` too.
        self.start = self.start.min(seq);
        if self.items.is_empty() {
            self.start = seq;
        }
    }

    /// Forgets some that could not be written.
    pub(crate) fn remove(&mut self, seqs: impl Fn(Seq) -> bool) {
        let bytes = &mut self.bytes;
        self.items.retain(|(seq, _, envelope)| {
            let stays = !seqs(*seq);
            if !stays {
                *bytes -= envelope.len() + ITEM_BYTES;
            }
            stays
        });
    }

    /// Whether every action above `seq` is here.
    pub(crate) fn reaches(&self, seq: Seq) -> bool {
        self.start <= seq
    }

    /// Actions above `seq`, oldest first.
    pub(crate) fn above(&self, seq: Seq) -> impl Iterator<Item = &(Seq, ChannelId, Bytes)> {
        let first = self.items.partition_point(|(s, ..)| *s <= seq);
        self.items.range(first..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_fall_out_and_are_known_to_be_gone() {
        let mut tail = Tail::new(Seq(10), 3 * (ITEM_BYTES + 1));
        for seq in 11..=15 {
            tail.push(Seq(seq), ChannelId(1), Bytes::from_static(b"x"));
        }
        assert!(!tail.reaches(Seq(11)));
        assert!(tail.reaches(Seq(12)));
        assert_eq!(tail.above(Seq(13)).map(|(seq, ..)| seq.0).collect::<Vec<_>>(), [14, 15]);
        tail.remove(|seq| seq == Seq(14));
        let above: Vec<u64> = tail.above(Seq(0)).map(|(seq, ..)| seq.0).collect();
        assert_eq!(above, [13, 15]);
        tail.cut_back(Seq(13));
        assert_eq!(tail.above(Seq(0)).map(|(seq, ..)| seq.0).collect::<Vec<_>>(), [13]);
    }
}
