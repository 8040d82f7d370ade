//! What reconnect needs, and for how long.

use kernel::{Answer, ClientRecord, FloorRecord, Query, Record, Seq};
use serde_json::json;
use wire::Timestamp;

use super::{JournalUnderTest, uri};

fn client(id: &str, last_seen_ms: i64) -> ClientRecord {
    ClientRecord {
        client_id: id.to_owned(),
        version: "1.0".to_owned(),
        capabilities: None,
        locale: None,
        transform: None,
        last_seen_ms,
    }
}

fn floor(name: &str, seq: u64) -> FloorRecord {
    FloorRecord {
        channel: uri(name),
        floor: Seq(seq),
        replaced: false,
        oldest_turn: None,
        view_turns: None,
        max_latency_ms: None,
    }
}

fn put(id: &str, floor: &FloorRecord) -> Record {
    Record::Floor { client_id: id.to_owned(), floor: floor.clone() }
}

fn find(book: &mut JournalUnderTest, id: &str) -> Option<(ClientRecord, Vec<FloorRecord>)> {
    match book.ask(Query::Client { client_id: id.to_owned() }) {
        Answer::Client(found) => found,
        other => panic!("{other:?}"),
    }
}

fn sweep(clients_before: i64, clients_max: u32) -> Record {
    let disposed_before = Timestamp(0);
    Record::Sweep { disposed_before, clients_before: Timestamp(clients_before), clients_max }
}

pub(super) fn clients_and_floors_round_trip(book: &mut JournalUnderTest) {
    let full = ClientRecord {
        capabilities: Some(json!({"x": [1, null], "a": {}})),
        locale: Some("de-CH".to_owned()),
        transform: Some(vec!["tone".to_owned(), "\"".to_owned()]),
        ..client("ann", 7)
    };
    let served = FloorRecord {
        replaced: true,
        oldest_turn: Some("t1".to_owned()),
        view_turns: Some(20),
        max_latency_ms: Some(5),
        ..floor("b", 9)
    };
    book.write([Record::Client(client("ann", 1)), put("ann", &served), put("ann", &floor("a", 3))]);
    book.write([Record::Client(full.clone()), put("ann", &floor("a", 4)), put("bob", &served)]);
    book.reopen();
    assert_eq!(find(book, "ann"), Some((full.clone(), vec![floor("a", 4), served.clone()])));
    assert_eq!(find(book, "bob"), None, "floors alone make no client");
    book.write([Record::FloorGone { client_id: "ann".to_owned(), channel: uri("a") }]);
    assert_eq!(find(book, "ann"), Some((full, vec![served])));
}

pub(super) fn a_client_that_is_gone_takes_its_floors_along(book: &mut JournalUnderTest) {
    book.write([Record::Client(client("ann", 1)), put("ann", &floor("a", 3))]);
    book.write([Record::ClientGone { client_id: "ann".to_owned() }]);
    book.reopen();
    assert_eq!(find(book, "ann"), None);
    book.write([Record::Client(client("ann", 2))]);
    assert_eq!(find(book, "ann"), Some((client("ann", 2), vec![])));
}

pub(super) fn clients_are_evicted_by_age(book: &mut JournalUnderTest) {
    book.write((0..4).map(|n| Record::Client(client(&format!("c{n}"), n * 10))));
    book.write([put("c1", &floor("a", 1)), sweep(20, 100)]);
    let found = [0, 1, 2, 3].map(|n| find(book, &format!("c{n}")).is_some());
    assert_eq!(found, [false, false, true, true]);
    book.write([Record::Client(client("c1", 50))]);
    assert_eq!(find(book, "c1"), Some((client("c1", 50), vec![])));
}

pub(super) fn clients_over_the_maximum_go_oldest_first(book: &mut JournalUnderTest) {
    book.write((0..5).map(|n| Record::Client(client(&format!("c{n}"), 100 - n * 10))));
    book.write([sweep(0, 2)]);
    book.reopen();
    let found = [0, 1, 2, 3, 4].map(|n| find(book, &format!("c{n}")).is_some());
    assert_eq!(found, [true, true, false, false, false]);
}
