//! The log that reconnects are replayed from.

use bytes::Bytes;
use kernel::{ChannelId, ChannelRecord, Record, Seq, StoredKind};

use super::{JournalUnderTest, action, channel, chat};

pub(super) fn the_log_is_in_seq_order_across_channels_with_their_own_floors(
    book: &mut JournalUnderTest,
) {
    book.write((1..=12).map(|seq| action(seq % 3, seq)));
    book.reopen();
    let slice = book.log_seqs(&[(2, 4), (0, 0)], 9);
    assert_eq!(slice, [(3, 0), (5, 2), (6, 0), (8, 2), (9, 0)]);
    assert_eq!(book.log_seqs(&[(1, 10)], 99), []);
    assert_eq!(book.log_seqs(&[(7, 0)], 99), []);
    assert_eq!(book.log_seqs(&[], 99), []);
    assert_eq!(book.log(&[(0, 11)], 12, 99).actions[0].2, "action 012");
}

pub(super) fn a_log_over_its_bound_says_so(book: &mut JournalUnderTest) {
    // Ten bytes each.
    book.write((1..=6).map(|seq| action(seq % 2, seq)));
    assert!(!book.log(&[(0, 0), (1, 0)], 6, 60).overflowed);
    assert!(book.log(&[(0, 0), (1, 0)], 6, 59).overflowed);
    assert!(!book.log(&[(0, 0)], 6, 30).overflowed);
    assert!(
        !book.log(&[(0, 0), (1, 0)], 3, 30).overflowed,
        "what lies above `through` does not count"
    );
}

pub(super) fn trimmed_actions_are_out_of_reach(book: &mut JournalUnderTest) {
    book.write((1..=12).map(|seq| action(seq % 3, seq)));
    book.write([Record::Trim { through: Seq(6) }]);
    book.reopen();
    assert_eq!(book.boot().log_floor, Seq(6));
    assert_eq!(book.log_seqs(&[(0, 0), (1, 0), (2, 0)], 99).first(), Some(&(7, 1)));
    book.write([Record::Trim { through: Seq(4) }]);
    assert_eq!(book.boot().log_floor, Seq(6), "the floor never sinks");
    book.write([Record::Trim { through: Seq(50) }]);
    assert_eq!(book.log_seqs(&[(0, 0), (1, 0), (2, 0)], 99), []);
}

pub(super) fn trimming_keeps_what_a_head_does_not_hold_yet(book: &mut JournalUnderTest) {
    let head_at = |seq| {
        let record = channel(1, "a", StoredKind::Chat, None);
        Record::Channel(ChannelRecord { head_seq: Seq(seq), ..record })
    };
    book.write([head_at(3), chat(2, "b")]);
    book.write((3..=6).map(|seq| action(1, seq)));
    book.write([Record::Trim { through: Seq(5) }]);
    book.reopen();
    let later: Vec<u64> = book.channel("a").later.iter().map(|(seq, _)| seq.0).collect();
    assert_eq!(later, [4, 5, 6]);
    assert_eq!(book.log_seqs(&[(1, 0)], 99), [(6, 1)], "but a replay cannot reach them");
}

pub(super) fn actions_of_all_sizes_are_replayed_and_loaded_in_order(book: &mut JournalUnderTest) {
    let of_bytes = |seq: u64, bytes: usize| Record::Action {
        seq: Seq(seq),
        channel: ChannelId(1),
        envelope: Bytes::from(vec![b'a' + u8::try_from(seq).unwrap(); bytes]),
    };
    let sizes = [10, 100_000, 16_384, 16_385, 1];
    book.write([Record::Channel(ChannelRecord {
        head_seq: Seq(2),
        ..channel(1, "a", StoredKind::Chat, None)
    })]);
    book.write((1..).zip(sizes).map(|(seq, bytes)| of_bytes(seq, bytes)));
    book.reopen();
    let replayed: Vec<(u64, usize, u8)> = book
        .log(&[(1, 0)], 99, u64::MAX)
        .actions
        .iter()
        .map(|(seq, _, envelope)| (seq.0, envelope.len(), envelope[0]))
        .collect();
    let expected: Vec<_> =
        (1_u64..).zip(sizes).zip(b'b'..).map(|((seq, bytes), byte)| (seq, bytes, byte)).collect();
    assert_eq!(replayed, expected);
    assert!(book.log(&[(1, 0)], 99, 100_000).overflowed);
    let later = |book: &mut JournalUnderTest| -> Vec<(u64, usize)> {
        book.channel("a").later.iter().map(|(seq, envelope)| (seq.0, envelope.len())).collect()
    };
    assert_eq!(later(book), [(3, 16_384), (4, 16_385), (5, 1)]);
    book.write([Record::Trim { through: Seq(4) }]);
    assert_eq!(later(book), [(3, 16_384), (4, 16_385), (5, 1)]);
    assert_eq!(book.log_seqs(&[(1, 0)], 99), [(5, 1)]);
}
