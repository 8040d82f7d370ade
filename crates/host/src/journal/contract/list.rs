//! The session list and the sessions that nobody used.

use bytes::Bytes;
use kernel::{Answer, ChannelId, ClientRecord, EmptySessions, Query, Record, SummaryRecord};
use wire::Timestamp;

use super::{JournalUnderTest, uri};

fn summary(session: u64, modified: i64) -> SummaryRecord {
    SummaryRecord {
        session: ChannelId(session),
        uri: uri(&format!("s{session}")),
        modified: Timestamp(modified),
        created: Timestamp(modified),
        empty: false,
        creator: None,
        json: Bytes::from(format!("summary {session}")),
    }
}

fn page(book: &mut JournalUnderTest, after: Option<(i64, u64)>, limit: u32) -> Vec<SummaryRecord> {
    let after = after.map(|(modified, session)| (Timestamp(modified), ChannelId(session)));
    match book.ask(Query::Sessions { after, limit }) {
        Answer::Sessions(page) => page,
        other => panic!("{other:?}"),
    }
}

fn empty_before(book: &mut JournalUnderTest, created_before: i64, limit: u32) -> Vec<String> {
    empty_sessions(book, created_before, limit).due.iter().map(ToString::to_string).collect()
}

fn empty_sessions(book: &mut JournalUnderTest, created_before: i64, limit: u32) -> EmptySessions {
    match book.ask(Query::EmptySessions { created_before: Timestamp(created_before), limit }) {
        Answer::EmptySessions(empty) => empty,
        other => panic!("{other:?}"),
    }
}

pub(super) fn the_list_pages_through_equal_times(book: &mut JournalUnderTest) {
    book.write((1..=7).map(|n| Record::Summary(summary(n, if n == 3 { 90 } else { 50 }))));
    book.reopen();
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let found = page(book, after, 2);
        let Some(last) = found.last() else { break };
        after = Some((last.modified.0, last.session.0));
        seen.extend(found.iter().map(|summary| summary.session.0));
    }
    assert_eq!(seen, [3, 7, 6, 5, 4, 2, 1]);
}

pub(super) fn what_is_not_listed_is_only_swept(book: &mut JournalUnderTest) {
    let hidden = |session, modified| SummaryRecord {
        empty: true,
        json: Bytes::new(),
        ..summary(session, modified)
    };
    book.write([
        Record::Summary(summary(1, 50)),
        Record::Summary(hidden(2, 60)),
        Record::Summary(summary(3, 70)),
        Record::Summary(hidden(4, 40)),
    ]);
    book.reopen();
    assert_eq!(page(book, None, 9), [summary(3, 70), summary(1, 50)]);
    assert_eq!(page(book, None, 1), [summary(3, 70)]);
    assert_eq!(page(book, Some((70, 3)), 9), [summary(1, 50)]);
    assert_eq!(page(book, Some((50, 1)), 9), []);
    assert_eq!(empty_before(book, 90, 9), ["test:/s4", "test:/s2"]);
    book.write([Record::Summary(summary(2, 65))]);
    book.reopen();
    let listed = [summary(3, 70), summary(2, 65), summary(1, 50)];
    assert_eq!(page(book, None, 9), listed);
    assert_eq!(empty_before(book, 90, 9), ["test:/s4"]);
}

pub(super) fn a_summary_is_replaced_and_removed(book: &mut JournalUnderTest) {
    let creator = Some("ann".to_owned());
    let second = SummaryRecord { creator, empty: true, ..summary(1, 60) };
    book.write([Record::Summary(summary(1, 50)), Record::Summary(summary(2, 55))]);
    book.write([Record::Summary(second.clone())]);
    book.reopen();
    assert_eq!(page(book, None, 9), [second, summary(2, 55)]);
    book.write([Record::SummaryGone { session: ChannelId(1) }]);
    assert_eq!(page(book, None, 9), [summary(2, 55)]);
}

pub(super) fn empty_sessions_wait_for_their_creators(book: &mut JournalUnderTest) {
    let seen = |id: &str, last_seen_ms| {
        Record::Client(ClientRecord {
            client_id: id.to_owned(),
            version: "1.0".to_owned(),
            capabilities: None,
            locale: None,
            transform: None,
            last_seen_ms,
        })
    };
    let empty = |session, created, creator: Option<&str>| {
        let creator = creator.map(ToOwned::to_owned);
        Record::Summary(SummaryRecord { empty: true, creator, ..summary(session, created) })
    };
    book.write([seen("here", 100), seen("away", 20)]);
    book.write([
        empty(1, 10, Some("here")),
        empty(2, 12, Some("away")),
        empty(3, 11, Some("forgotten")),
        empty(4, 13, None),
        empty(5, 50, None),
        Record::Summary(summary(6, 10)),
    ]);
    book.reopen();
    assert_eq!(empty_before(book, 50, 9), ["test:/s3", "test:/s2", "test:/s4"]);
    assert_eq!(empty_before(book, 50, 1), ["test:/s3"]);
    assert_eq!(
        empty_before(book, 20, 9),
        ["test:/s3", "test:/s4"],
        "seen at the bound is seen since"
    );
    let next_since = |book: &mut JournalUnderTest, before| {
        empty_sessions(book, before, 9).next_since.map(|at| at.0)
    };
    assert_eq!(next_since(book, 11), Some(11), "when the next is as old");
    assert_eq!(next_since(book, 14), Some(20), "its creator was seen then");
    assert_eq!(next_since(book, 51), Some(100));
    assert_eq!(next_since(book, 101), None);
}
