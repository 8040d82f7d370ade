//! What models' servers want back: by turn, also in forks, as long as a turn of theirs is there.

use bytes::Bytes;
use kernel::{Answer, ChannelId, ModelOutputRecord, Query, Record};

use super::{JournalUnderTest, chat, dispose, fork, session, sweep, turn};

fn output(chat: u64, turn_id: &str, round: u64, json: &'static str) -> Record {
    Record::ModelOutput(ModelOutputRecord {
        chat: ChannelId(chat),
        turn_id: turn_id.to_owned(),
        round,
        json: Bytes::from_static(json.as_bytes()),
    })
}

fn found(book: &mut JournalUnderTest, chat: u64, turns: &[&str]) -> Vec<(String, u64, Bytes)> {
    found_within(book, chat, turns, u64::MAX)
}

fn found_within(
    book: &mut JournalUnderTest,
    chat: u64,
    turns: &[&str],
    bytes_max: u64,
) -> Vec<(String, u64, Bytes)> {
    let query = Query::ModelOutputs {
        chat: ChannelId(chat),
        turn_ids: turns.iter().map(|id| (*id).to_owned()).collect(),
        bytes_max,
    };
    match book.ask(query) {
        Answer::ModelOutputs(outputs) => {
            outputs.into_iter().map(|output| (output.turn_id, output.round, output.json)).collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn outputs_are_read_by_turn_and_round(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c"), chat(3, "d")]);
    book.write([output(2, "t0", 1, "b"), output(2, "t0", 0, "old")]);
    book.write([output(2, "t0", 0, "a"), output(3, "t0", 0, "other")]);
    book.reopen();
    let expected = |round, json: &'static str| ("t0".to_owned(), round, Bytes::from(json));
    assert_eq!(found(book, 2, &["t0", "t1"]), [expected(0, "a"), expected(1, "b")]);
}

pub(super) fn a_fork_has_the_outputs_of_its_turns_for_as_long_as_it_shows_them(
    book: &mut JournalUnderTest,
) {
    book.write([session(1, "s"), chat(2, "c"), chat(3, "f")]);
    book.write([turn(2, 0, "t0"), output(2, "t0", 0, "a")]);
    book.write([fork(3, 2, 0, 5)]);
    book.write([turn(3, 1, "t1"), output(3, "t1", 0, "b")]);
    assert_eq!(found(book, 3, &["t0", "t1"]).len(), 2);
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

pub(super) fn outputs_of_the_newest_turns_are_read_as_far_as_there_is_room(
    book: &mut JournalUnderTest,
) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([output(2, "t0", 0, "1"), output(2, "t1", 0, "4444")]);
    book.write([output(2, "t2", 0, "22"), output(2, "t2", 1, "22")]);
    let turns = ["t0", "t1", "t2", "t3"];
    let read = |book: &mut JournalUnderTest, bytes_max| -> Vec<String> {
        found_within(book, 2, &turns, bytes_max).into_iter().map(|(turn_id, ..)| turn_id).collect()
    };
    assert_eq!(read(book, 9), ["t0", "t1", "t2", "t2"]);
    assert_eq!(read(book, 8), ["t1", "t2", "t2"]);
    // A turn is whole or not there, and no older one comes in its place.
    assert_eq!(read(book, 7), ["t2", "t2"]);
    assert_eq!(read(book, 3), [""; 0]);
}
