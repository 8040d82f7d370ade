//! Messages: typed rows beside turns, as they were written, as long as a turn of theirs is there.

use bytes::Bytes;
use kernel::{
    Answer, ChannelId, FrozenRecord, MessageRecord, PartRecord, Query, Record, StoredMessage,
};
use wire::{Digest, Timestamp};

use super::{JournalUnderTest, chat, dispose, fork, session, sweep, turn};

/// A part whose keys are in no order, with a number that no float holds.
const STRANGE: &str = r#"{"type":"poll","z":1,"a":12345678901234567890,"text":"é"}"#;

fn message(chat: u64, id: u8, turn_id: Option<&str>, parts: &[&str]) -> Record {
    let parts = parts.iter().enumerate().map(|(index, json)| PartRecord {
        id: format!("prt_{id}{index}"),
        kind: "text".to_owned(),
        json: Bytes::from((*json).to_owned()),
    });
    Record::Message(MessageRecord {
        id: format!("msg_{id}"),
        session: ChannelId(1),
        chat: ChannelId(chat),
        turn_id: turn_id.map(str::to_owned),
        metadata: Bytes::from_static(br#"{"schema_version":1}"#),
        parts: parts.collect(),
        at: Timestamp(7),
    })
}

fn started(id: &str, turn_id: &str) -> Record {
    Record::MessageStarted { id: id.to_owned(), turn_id: turn_id.to_owned() }
}

fn found(book: &mut JournalUnderTest, chat: u64, turns: &[&str]) -> Vec<StoredMessage> {
    let query = Query::Messages {
        chat: ChannelId(chat),
        turn_ids: turns.iter().map(|id| (*id).to_owned()).collect(),
    };
    match book.ask(query) {
        Answer::Messages(messages) => messages,
        other => panic!("{other:?}"),
    }
}

fn ids(book: &mut JournalUnderTest, chat: u64, turns: &[&str]) -> Vec<String> {
    found(book, chat, turns).into_iter().map(|message| message.id).collect()
}

// C-006, C-081
pub(super) fn a_message_is_read_as_it_was_written(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, Some("t0"), &[STRANGE, "{\"type\":\"text\"}"])]);
    book.reopen();
    let messages = found(book, 2, &["t0", "t1"]);
    assert_eq!(messages.len(), 1);
    let parts: Vec<&[u8]> = messages[0].parts.iter().map(|(part, _)| &part.json[..]).collect();
    assert_eq!(parts, [STRANGE.as_bytes(), b"{\"type\":\"text\"}"]);
    assert_eq!(&messages[0].metadata[..], br#"{"schema_version":1}"#);
    match book.ask(Query::Message { id: "msg_1".to_owned() }) {
        Answer::Messages(found) => assert_eq!(found, messages),
        other => panic!("{other:?}"),
    }
}

pub(super) fn a_message_that_waits_belongs_to_its_turn_when_it_starts(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, None, &["{}"]), message(2, 2, None, &["{}"])]);
    book.write([message(2, 3, Some("t0"), &["{}"])]);
    assert_eq!(ids(book, 2, &["t0"]), ["msg_3"]);
    let gone = Record::MessageGone { id: "msg_2".to_owned() };
    book.write([started("msg_1", "t0"), gone]);
    book.reopen();
    assert_eq!(ids(book, 2, &["t0"]), ["msg_1", "msg_3"]);
}

// C-021
pub(super) fn a_part_is_frozen_once(book: &mut JournalUnderTest) {
    let freeze = |json: &'static str, digest| {
        Record::Frozen(FrozenRecord {
            part_id: "prt_10".to_owned(),
            json: Bytes::from_static(json.as_bytes()),
            digest,
        })
    };
    let digest = Digest::new([5; 32]);
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, Some("t0"), &[STRANGE])]);
    book.write([freeze("first", Some(digest))]);
    book.write([freeze("second", None)]);
    book.reopen();
    let (part, frozen) = found(book, 2, &["t0"])[0].parts[0].clone();
    assert_eq!(&part.json[..], STRANGE.as_bytes());
    assert_eq!(frozen.as_deref(), Some(&b"first"[..]));
    let journal = book.journal.as_mut().unwrap();
    assert!(journal.find_unreferenced(&[digest]).unwrap().is_empty());
}

pub(super) fn a_fork_finds_the_messages_of_the_turns_it_sees(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, Some("t0"), &["{}"]), turn(2, 0, "t0")]);
    book.write([message(2, 2, Some("t1"), &["{}"]), turn(2, 1, "t1")]);
    book.write([chat(10, "f"), fork(10, 2, 0, 9)]);
    // The same name again, in the fork.
    book.write([message(10, 3, Some("t1"), &["{}"]), turn(10, 1, "t1")]);
    book.reopen();
    assert_eq!(ids(book, 10, &["t0", "t1"]), ["msg_1", "msg_3"]);
    assert_eq!(ids(book, 2, &["t0", "t1"]), ["msg_1", "msg_2"]);
    book.write([dispose(2, 20)]);
    book.write([sweep(21)]);
    book.write([sweep(21)]);
    assert_eq!(ids(book, 10, &["t0", "t1"]), ["msg_1", "msg_3"]);
    assert_eq!(ids(book, 2, &["t1"]), [""; 0]);
}

pub(super) fn messages_go_with_their_chat(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, Some("t0"), &["{}"]), turn(2, 0, "t0")]);
    book.write([message(2, 2, None, &["{}"])]);
    book.write([dispose(2, 20)]);
    book.write([sweep(21)]);
    book.reopen();
    assert_eq!(ids(book, 2, &["t0"]), [""; 0]);
    for id in ["msg_1", "msg_2"] {
        match book.ask(Query::Message { id: id.to_owned() }) {
            Answer::Messages(found) => assert_eq!(found, [], "{id}"),
            other => panic!("{other:?}"),
        }
    }
}

fn freeze(part_id: &str, name: u8) -> Record {
    Record::Frozen(FrozenRecord {
        part_id: part_id.to_owned(),
        json: Bytes::from_static(b"{}"),
        digest: Some(Digest::new([name; 32])),
    })
}

/// Which of some bodies are kept.
fn names_kept(book: &mut JournalUnderTest, names: &[u8]) -> Vec<u8> {
    let digests: Vec<Digest> = names.iter().map(|name| Digest::new([*name; 32])).collect();
    let unreferenced = book.journal.as_mut().unwrap().find_unreferenced(&digests).unwrap();
    let kept = digests.iter().filter(|digest| !unreferenced.contains(digest));
    kept.map(|digest| digest.as_bytes()[0]).collect()
}

// G-52
pub(super) fn bodies_of_messages_are_kept_while_a_turn_shows_them(book: &mut JournalUnderTest) {
    let names = |part_id: &str, name: u8| Record::PartReference {
        part_id: part_id.to_owned(),
        digest: Digest::new([name; 32]),
    };
    book.write([session(1, "s"), chat(2, "c")]);
    for (id, turn_id) in [(1, "t0"), (2, "t1"), (3, "t2")] {
        let n = u64::from(id) - 1;
        book.write([message(2, id, Some(turn_id), &["{}", "{}"])]);
        // The one is named by the message as it was sent, the other was found when it was first shown to a model.
        book.write([names(&format!("prt_{id}0"), id), turn(2, n, turn_id)]);
        book.write([freeze(&format!("prt_{id}1"), id + 10)]);
    }
    book.write([names("prt_none", 20), freeze("prt_none", 21)]);
    assert_eq!(
        names_kept(book, &[1, 2, 3, 11, 12, 13, 20, 21]),
        [1, 2, 3, 11, 12, 13],
        "a part that is not there keeps nothing"
    );
    book.write([chat(10, "f"), fork(10, 2, 1, 9)]);
    // A fork of the fork sees the first turn only, and is the first to show a model what the second part is.
    book.write([chat(11, "g"), fork(11, 10, 0, 10)]);
    book.write([dispose(2, 20)]);
    book.write([sweep(21)]);
    book.write([sweep(21)]);
    book.reopen();
    assert_eq!(names_kept(book, &[1, 2, 3, 11, 12, 13]), [1, 2, 11, 12]);
    let part = found(book, 11, &["t0"])[0].parts[1].clone();
    assert_eq!(part.1.as_deref(), Some(&b"{}"[..]), "it is still frozen");
    book.write([dispose(10, 30)]);
    book.write([sweep(31)]);
    book.write([sweep(31)]);
    assert_eq!(names_kept(book, &[1, 2, 3, 11, 12, 13]), [1, 11]);
    book.write([dispose(11, 40)]);
    book.write([sweep(41)]);
    book.write([sweep(41)]);
    book.reopen();
    assert_eq!(names_kept(book, &[1, 2, 3, 11, 12, 13]), [0; 0]);
}

// G-52
pub(super) fn what_a_fork_was_first_to_look_at_outlives_the_fork(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([message(2, 1, Some("t0"), &["{}"]), turn(2, 0, "t0")]);
    book.write([message(2, 2, None, &["{}"])]);
    book.write([chat(10, "f"), fork(10, 2, 0, 9)]);
    book.write([freeze("prt_10", 1), freeze("prt_20", 2)]);
    book.write([freeze("prt_10", 3)]);
    book.write([dispose(10, 20)]);
    book.write([sweep(21)]);
    book.write([sweep(21)]);
    book.reopen();
    assert_eq!(names_kept(book, &[1, 2, 3]), [1, 2], "the first time counts");
    let gone = Record::MessageGone { id: "msg_2".to_owned() };
    book.write([gone]);
    assert_eq!(names_kept(book, &[1, 2]), [1], "a message that was taken back");
}
