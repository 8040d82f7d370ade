//! What turns and sessions changed in files: by turn, also in forks, as long as a turn of theirs is there.

use bytes::Bytes;
use kernel::{Answer, ChannelId, FileChangesRecord, Query, Record};

use super::{JournalUnderTest, chat, dispose, fork, session, sweep, turn};

fn changes(channel: u64, turn_id: &str, json: &'static str) -> Record {
    Record::FileChanges(FileChangesRecord {
        channel: ChannelId(channel),
        turn_id: turn_id.to_owned(),
        json: Bytes::from_static(json.as_bytes()),
    })
}

fn found(book: &mut JournalUnderTest, channel: u64, turns: &[&str]) -> Vec<(String, Bytes)> {
    let query = Query::FileChanges {
        channel: ChannelId(channel),
        turn_ids: turns.iter().map(|id| (*id).to_owned()).collect(),
    };
    match book.ask(query) {
        Answer::FileChanges(changes) => {
            changes.into_iter().map(|changes| (changes.turn_id, changes.json)).collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn changes_are_read_by_turn_and_replaced(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([changes(2, "t0", "old"), changes(1, "", "all")]);
    book.write([changes(2, "t0", "new"), changes(2, "t1", "b")]);
    book.reopen();
    let row = |turn: &str, json: &'static str| (turn.to_owned(), Bytes::from(json));
    assert_eq!(found(book, 2, &["t1", "t9", "t0"]), [row("t1", "b"), row("t0", "new")]);
    assert_eq!(found(book, 1, &[""]), [row("", "all")]);
}

pub(super) fn a_fork_has_the_changes_of_its_turns_for_as_long_as_it_shows_them(
    book: &mut JournalUnderTest,
) {
    book.write([session(1, "s"), chat(2, "c"), chat(3, "f")]);
    book.write([turn(2, 0, "t0"), changes(2, "t0", "a")]);
    book.write([fork(3, 2, 0, 5)]);
    book.write([turn(3, 1, "t1"), changes(3, "t1", "b")]);
    book.write([dispose(2, 10)]);
    book.write([sweep(20)]);
    assert_eq!(found(book, 3, &["t0", "t1"]).len(), 2);
    book.write([dispose(3, 30)]);
    book.write([sweep(40)]);
    // The chat that the fork came from is let go of by then, and goes with the next sweep.
    book.write([sweep(50)]);
    assert_eq!(found(book, 3, &["t0", "t1"]), []);
    assert_eq!(found(book, 2, &["t0"]), []);
}
