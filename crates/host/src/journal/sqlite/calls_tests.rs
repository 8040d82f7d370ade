//! Pieces are shared, calls come back as they were, and what is too old or too much goes.

use kernel::{Batch, ChannelId, Record, Seq};
use wire::Timestamp;

use super::*;
use crate::blobs::digest_of;
use crate::journal::{Journal, Sqlite};

const NO_BOUND: u64 = 1 << 40;

/// The Base64 of a body.
fn body(content: &[u8]) -> DocumentPiece {
    DocumentPiece::Body {
        digest: digest_of(content),
        bytes: content.len() as u64,
        content_type: "image/png".to_owned(),
    }
}

fn shared(text: &str) -> DocumentPiece {
    DocumentPiece::Shared {
        digest: digest_of(text.as_bytes()),
        bytes: Bytes::copy_from_slice(text.as_bytes()),
    }
}

fn call(chat: u64, key: u64, body: Vec<DocumentPiece>, calls_max: u64, bytes_max: u64) -> Record {
    Record::ModelCall(Box::new(ModelCallRecord {
        chat: ChannelId(chat),
        key,
        turn_id: "t".to_owned(),
        at: Timestamp(5),
        purpose: "answer".to_owned(),
        round: 0,
        api: "chat".to_owned(),
        model: "m".to_owned(),
        body_bytes: 9,
        body_digest: digest_of(b"body"),
        body,
        details: vec![DocumentPiece::Short(Bytes::from_static(b"{}"))],
        calls_max,
        bytes_max,
    }))
}

fn append(journal: &mut Sqlite, records: Vec<Record>) {
    let seq = Seq(1);
    journal.append(&Batch { seq, records }).unwrap();
}

fn numbers(journal: &Sqlite, chat: u64) -> Vec<u64> {
    of_chat(&journal.conn, chat).unwrap().iter().map(|call| call.number).collect()
}

fn count(journal: &Sqlite, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    let count = journal.conn.query_row(&sql, [], |row| row.get(0));
    count.unwrap()
}

/// The text of a call; bodies as `<type>`.
fn text(journal: &Sqlite, call: &ArchivedCall) -> String {
    let request = request(&journal.conn, call).unwrap();
    let pieces = request.body.into_iter().map(|piece| match piece {
        ArchivedPiece::Text(text) => String::from_utf8(text).unwrap(),
        ArchivedPiece::Body { content_type, .. } => format!("<{content_type}>"),
    });
    pieces.collect()
}

#[test]
fn pieces_are_stored_once_and_calls_come_back_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let short = |text: &'static str| DocumentPiece::Short(Bytes::from_static(text.as_bytes()));
    for n in 0..10_u64 {
        let mut pieces = vec![short("[")];
        pieces.extend((0..=n).flat_map(|n| [shared(&format!("message {n}")), short(",")]));
        pieces.push(body(b"picture"));
        append(&mut journal, vec![call(1, n, pieces, 50, NO_BOUND)]);
    }
    append(&mut journal, vec![call(2, 99, vec![shared("message 0")], 50, NO_BOUND)]);
    assert_eq!(count(&journal, "sent_piece"), 12, "ten messages, a body, another chat's");
    assert_eq!(count(&journal, "sent_piece_body"), 11);
    let calls = of_chat(&journal.conn, 1).unwrap();
    assert_eq!(numbers(&journal, 1), (1..=10).collect::<Vec<_>>());
    assert_eq!(text(&journal, &calls[1]), "[message 0,message 1,<image/png>");
    assert_eq!(calls[1].end, None);
    let end = ModelCallEndRecord {
        key: 1,
        at: Timestamp(8),
        json: Bytes::from_static(b"{\"outcome\":\"answered\"}"),
    };
    append(&mut journal, vec![Record::ModelCallEnd(end)]);
    let ended = of_chat(&journal.conn, 1).unwrap().remove(1);
    assert_eq!(ended.ended_at, Some(8));
    assert_eq!(ended.end, Some(json!({"outcome": "answered"})));
}

#[test]
fn the_oldest_go_and_take_along_what_only_they_had() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    let picture = digest_of(b"picture");
    let first = vec![shared("only in the first"), shared("in all"), body(b"picture")];
    append(&mut journal, vec![call(1, 0, first, 3, NO_BOUND)]);
    assert_eq!(journal.find_unreferenced(&[picture]).unwrap(), [], "a call refers to it");
    for n in 1..5 {
        let pieces = vec![shared("in all"), shared(&format!("{n}"))];
        append(&mut journal, vec![call(1, n, pieces, 3, NO_BOUND)]);
    }
    assert_eq!(numbers(&journal, 1), [3, 4, 5]);
    assert_eq!(count(&journal, "sent_piece"), 4);
    assert_eq!(count(&journal, "sent_piece_body"), 4);
    assert_eq!(journal.find_unreferenced(&[picture]).unwrap(), [picture]);
}

#[test]
fn what_takes_too_much_goes_but_the_newest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    for n in 0..5_u64 {
        let large = shared(&format!("{n}").repeat(1_000));
        append(&mut journal, vec![call(1, n, vec![large], 50, 2_500)]);
    }
    assert_eq!(numbers(&journal, 1), [4, 5]);
    let huge = shared(&"x".repeat(9_000));
    append(&mut journal, vec![call(1, 9, vec![huge], 50, 2_500)]);
    assert_eq!(numbers(&journal, 1), [6]);
    assert_eq!(count(&journal, "sent_piece_body"), 1);
}

#[test]
fn short_texts_of_a_call_count_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Sqlite::open(dir.path()).unwrap();
    for n in 0..5_u64 {
        let short = DocumentPiece::Short(Bytes::from("x".repeat(1_000)));
        append(&mut journal, vec![call(1, n, vec![short], 50, 2_500)]);
    }
    assert_eq!(numbers(&journal, 1), [4, 5]);
}
