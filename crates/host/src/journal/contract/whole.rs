//! Batches, channels, boot.

use bytes::Bytes;
use kernel::{Answer, Batch, BootWork, ChannelId, ChannelRecord, Query, Record, Seq, StoredKind};

use crate::journal::JournalError;

use super::{JournalUnderTest, action, channel, chat, dispose, root, session, sweep, turn, uri};

pub(super) fn batches_are_whole(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), turn(1, 0, "t0")]);
    // The last record is impossible; what stands before it must not be there either.
    let refused = book.try_write(vec![
        action(1, 2),
        chat(2, "b"),
        turn(1, 1, "t1"),
        dispose(1, 5),
        Record::SummaryGone { session: ChannelId(1) },
        turn(1, 0, "again"),
    ]);
    assert!(refused.is_err());
    book.reopen();
    assert_eq!(book.turns(1), ["t0"]);
    assert!(book.find_channel("b").is_none() && book.find_channel("a").is_some());
    assert!(book.log_seqs(&[(1, 0)], 99).is_empty());
    assert_eq!(book.boot().seq, Seq(1), "the seq of a refused batch was never used");
}

pub(super) fn a_failed_append_leaves_everything_and_a_later_one_works(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), action(1, 2)]);
    assert!(book.try_write(vec![action(1, 3), action(1, 2)]).is_err());
    assert_eq!(book.log_seqs(&[(1, 0)], 99), [(2, 1)]);
    book.write([action(1, 3)]);
    book.reopen();
    assert_eq!(book.log_seqs(&[(1, 0)], 99), [(2, 1), (3, 1)]);
}

pub(super) fn a_record_that_can_never_be_written_is_named(book: &mut JournalUnderTest) {
    let named = |refused: Result<(), JournalError>| match refused {
        Err(JournalError::BadRecord { index, .. }) => index,
        other => panic!("{other:?}"),
    };
    book.write([chat(1, "a"), action(1, 2), turn(1, 0, "t0")]);
    let refused = book.try_write(vec![action(1, 3), action(1, 2), action(1, 4)]);
    assert_eq!(named(refused), 1, "its seq was used");
    let refused = book.try_write(vec![action(1, 3), action(1, 4), turn(1, 0, "again")]);
    assert_eq!(named(refused), 2, "its number was used");
    let refused = book.try_write(vec![chat(5, "a"), action(5, 6)]);
    assert_eq!(named(refused), 0, "its URI is another's");
    book.write([action(1, 3), action(1, 4)]);
    book.reopen();
    assert_eq!(book.log_seqs(&[(1, 0)], 99), [(2, 1), (3, 1), (4, 1)]);
}

pub(super) fn seq_never_goes_back_over_reopen(book: &mut JournalUnderTest) {
    let empty = |seq| Batch { seq: Seq(seq), records: Vec::new() };
    assert_eq!(book.boot().seq, Seq(0));
    book.journal.as_mut().unwrap().append(&empty(7)).unwrap();
    book.reopen();
    assert_eq!(book.boot().seq, Seq(7));
    book.journal.as_mut().unwrap().append(&empty(5)).unwrap();
    book.reopen();
    assert_eq!(book.boot().seq, Seq(7));
}

pub(super) fn boot_work_is_reported_at_boot(book: &mut JournalUnderTest) {
    let with = |boot_work, id, name, kind, parent| {
        Record::Channel(ChannelRecord { boot_work, ..channel(id, name, kind, parent) })
    };
    let open_turn = BootWork { open_turn: true, ..BootWork::default() };
    let creating = BootWork { creating: true, active_clients: true, ..BootWork::default() };
    assert!(book.boot().root.is_none());
    book.write([
        root(),
        with(creating, 1, "s", StoredKind::Session, None),
        with(open_turn, 2, "c", StoredKind::Chat, Some(1)),
        with(open_turn, 3, "done", StoredKind::Chat, Some(1)),
        with(open_turn, 4, "gone", StoredKind::Chat, Some(1)),
        chat(3, "done"),
        dispose(4, 1),
    ]);
    book.reopen();
    let boot = book.boot();
    assert!(boot.root.is_some());
    let boot_work =
        [(uri("s"), StoredKind::Session, creating), (uri("c"), StoredKind::Chat, open_turn)];
    assert_eq!(boot.boot_work, boot_work);
}

pub(super) fn a_disposed_uri_can_be_used_as_another_channel(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), turn(1, 0, "old")]);
    book.write([dispose(1, 10)]);
    assert!(book.find_channel("a").is_none());
    book.write([chat(5, "a"), turn(5, 0, "new")]);
    book.reopen();
    let found = book.channel("a");
    assert_eq!((found.id, super::ids(&found.turns)), (ChannelId(5), vec!["new".to_owned()]));
    // The old one is swept without touching the new one.
    book.write([sweep(11)]);
    assert_eq!(book.turns(1), [""; 0]);
    assert_eq!(book.channel("a").id, ChannelId(5));
    // And in one batch.
    book.write([dispose(5, 12), chat(8, "a")]);
    assert_eq!(book.channel("a").id, ChannelId(8));
}

pub(super) fn disposing_of_a_session_disposes_of_its_chats(book: &mut JournalUnderTest) {
    book.write([
        session(1, "s"),
        Record::Channel(channel(2, "c", StoredKind::Chat, Some(1))),
        session(3, "other"),
        Record::Channel(channel(4, "d", StoredKind::Chat, Some(3))),
    ]);
    book.write([dispose(1, 10)]);
    book.reopen();
    let found = ["s", "c", "other", "d"].map(|name| book.find_channel(name).is_some());
    assert_eq!(found, [false, false, true, true]);
}

pub(super) fn what_belongs_to_a_session_comes_with_it_and_ends_with_it(
    book: &mut JournalUnderTest,
) {
    let running = BootWork { running_process: true, ..BootWork::default() };
    let kinds = [
        ("changes", StoredKind::Changeset, Some(1)),
        ("notes", StoredKind::Annotations, Some(1)),
        ("tool", StoredKind::Terminal, Some(1)),
        ("shell", StoredKind::Terminal, None),
    ];
    book.write([session(1, "s")]);
    for (id, (name, kind, parent)) in (2..).zip(kinds) {
        let record = ChannelRecord {
            boot_work: if kind == StoredKind::Terminal { running } else { BootWork::default() },
            ..channel(id, name, kind, parent)
        };
        book.write([Record::Channel(record)]);
        book.write([action(id, 10 + id)]);
    }
    book.reopen();
    let boot = book.boot();
    let mut left: Vec<_> =
        boot.boot_work.iter().map(|(uri, kind, work)| (uri.clone(), *kind, *work)).collect();
    left.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        left,
        [
            (uri("shell"), StoredKind::Terminal, running),
            (uri("tool"), StoredKind::Terminal, running)
        ]
    );
    for (name, kind, parent) in kinds {
        let found = book.channel(name);
        assert_eq!((found.kind, found.later.len()), (kind, 1), "{name}");
        let session = found.parent.map(|session| session.id.0);
        assert_eq!(session, parent, "{name}");
    }
    book.write([dispose(1, 10)]);
    book.reopen();
    let found = kinds.map(|(name, ..)| book.find_channel(name).is_some());
    assert_eq!(found, [false, false, false, true]);
}

pub(super) fn two_live_channels_never_share_a_uri(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    assert!(book.try_write(vec![chat(2, "a")]).is_err());
    assert!(book.try_write(vec![chat(3, "b"), chat(4, "b")]).is_err());
    assert_eq!(book.channel("a").id, ChannelId(1));
}

pub(super) fn a_reader_sees_what_was_committed(book: &mut JournalUnderTest) {
    let mut readers: Vec<_> =
        (0..2).map(|_| book.journal.as_ref().unwrap().reader().unwrap()).collect();
    for seq in 1..=20 {
        book.write([action(1, seq)]);
        for reader in &mut readers {
            let floors = vec![(ChannelId(1), Seq(seq - 1))];
            let query = Query::Log { floors, through: Seq(99), bytes_max: 99 };
            match reader.read(&query).unwrap() {
                Answer::Log(slice) => assert_eq!(slice.actions[0].0, Seq(seq)),
                other => panic!("{other:?}"),
            }
        }
    }
}

pub(super) fn a_channel_comes_with_its_session_and_what_came_after_its_head(
    book: &mut JournalUnderTest,
) {
    let head_at = |seq, id, name, kind, parent| {
        Record::Channel(ChannelRecord { head_seq: Seq(seq), ..channel(id, name, kind, parent) })
    };
    book.write([session(1, "s"), head_at(2, 2, "c", StoredKind::Chat, Some(1))]);
    book.write([action(2, 3), action(1, 4), action(2, 5), action(2, 6)]);
    book.write([head_at(5, 2, "c", StoredKind::Chat, Some(1))]);
    book.reopen();
    let found = book.channel("c");
    assert_eq!((found.kind, found.head_seq, found.next_n), (StoredKind::Chat, Seq(5), 0));
    assert_eq!(found.private, "private c");
    assert_eq!(found.later, [(Seq(6), Bytes::from_static(b"action 006"))]);
    let head: serde_json::Value = serde_json::from_slice(&found.head).unwrap();
    assert_eq!(head["title"], "c");
    let parent = found.parent.unwrap();
    assert_eq!((parent.id, parent.kind, parent.uri), (ChannelId(1), StoredKind::Session, uri("s")));
    assert_eq!(parent.later, [(Seq(4), Bytes::from_static(b"action 004"))]);
    assert!(book.find_channel("nowhere").is_none());
}

pub(super) fn a_checkpoint_is_replaced_and_removed(book: &mut JournalUnderTest) {
    let checkpoint = |turn_id: &str, data: Option<&'static str>| Record::Checkpoint {
        chat: ChannelId(1),
        turn_id: turn_id.to_owned(),
        data: data.map(Bytes::from),
    };
    book.write([chat(1, "a"), checkpoint("t1", Some("one"))]);
    book.write([checkpoint("t1", Some("two"))]);
    book.reopen();
    assert_eq!(book.channel("a").checkpoint, Some(("t1".to_owned(), Bytes::from("two"))));
    book.write([checkpoint("t2", Some("three")), checkpoint("t1", None)]);
    assert_eq!(book.channel("a").checkpoint, Some(("t2".to_owned(), Bytes::from("three"))));
    book.write([checkpoint("t2", None)]);
    assert_eq!(book.channel("a").checkpoint, None);
}

pub(super) fn a_probe_leaves_no_trace(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    book.journal.as_mut().unwrap().probe().unwrap();
    book.journal.as_mut().unwrap().probe().unwrap();
    book.reopen();
    assert_eq!(book.boot().seq, Seq(1));
    assert!(book.find_channel("a").is_some());
}
