//! References: content lives as long as what names it.

use kernel::{Answer, ChannelId, Query, Record};
use wire::Digest;

use super::{JournalUnderTest, chat, dispose, fork, hide, session, sweep, turn};

fn digest(name: u8) -> Digest {
    Digest::new([name; 32])
}

fn reference(channel: u64, turn: Option<u64>, name: u8) -> Record {
    Record::Reference {
        channel: ChannelId(channel),
        turn,
        digest: digest(name),
        content_type: None,
    }
}

fn typed(channel: u64, name: u8, content_type: &str) -> Record {
    Record::Reference {
        channel: ChannelId(channel),
        turn: None,
        digest: digest(name),
        content_type: Some(content_type.to_owned()),
    }
}

/// Which of the first ten are kept.
fn names_kept(book: &mut JournalUnderTest) -> Vec<u8> {
    let all: Vec<Digest> = (0..10).map(digest).collect();
    let unreferenced = book.journal.as_mut().unwrap().find_unreferenced(&all).unwrap();
    let kept = all.iter().filter(|digest| !unreferenced.contains(digest));
    kept.map(|digest| digest.as_bytes()[0]).collect()
}

fn type_of(book: &mut JournalUnderTest, name: u8) -> Option<String> {
    match book.ask(Query::ContentType { digest: digest(name) }) {
        Answer::ContentType(content_type) => content_type,
        other => panic!("{other:?}"),
    }
}

pub(super) fn content_is_kept_while_its_channel_is(book: &mut JournalUnderTest) {
    book.write([session(1, "s"), chat(2, "c")]);
    book.write([reference(1, None, 1), reference(2, None, 2)]);
    book.write([turn(2, 0, "t0"), reference(2, Some(0), 3)]);
    book.reopen();
    assert_eq!(names_kept(book), [1, 2, 3]);
    // A truncate hides turns but does not forget them; a disposed channel waits for its retention.
    book.write([hide(2, 0, 20), dispose(2, 30)]);
    book.write([sweep(30)]);
    assert_eq!(names_kept(book), [1, 2, 3]);
    book.write([sweep(31)]);
    book.reopen();
    assert_eq!(names_kept(book), [1]);
}

pub(super) fn one_reference_of_many_is_enough(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), chat(2, "b")]);
    for channel in [1, 2] {
        book.write([reference(channel, None, 1), reference(channel, None, 1)]);
    }
    book.write([dispose(1, 10)]);
    book.write([sweep(11)]);
    assert_eq!(names_kept(book), [1]);
    book.write([dispose(2, 20)]);
    book.write([sweep(21)]);
    assert_eq!(names_kept(book), [0; 0]);
}

pub(super) fn a_fork_keeps_what_the_turns_it_sees_refer_to(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), reference(1, None, 9)]);
    for n in 0..4_u8 {
        let number = u64::from(n);
        book.write([
            turn(1, number, &format!("a{n}")),
            reference(1, Some(number), n),
            reference(1, None, n),
        ]);
    }
    book.write([chat(2, "b"), fork(2, 1, 1, 10)]);
    book.write([chat(3, "c"), fork(3, 2, 0, 11)]);
    book.write([hide(1, 0, 20), dispose(1, 30)]);
    for _ in 0..2 {
        book.write([sweep(31)]);
    }
    book.reopen();
    assert_eq!(names_kept(book), [0, 1], "and what nobody sees is gone");
    book.write([dispose(2, 40)]);
    for _ in 0..2 {
        book.write([sweep(41)]);
    }
    assert_eq!(names_kept(book), [0]);
    book.write([dispose(3, 50)]);
    for _ in 0..2 {
        book.write([sweep(51)]);
    }
    assert_eq!(names_kept(book), [0; 0]);
}

pub(super) fn a_refused_reference_keeps_nothing(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    // The batch breaks the journal's order: nothing of it is there.
    let refused = book.try_write(vec![reference(1, None, 1), chat(2, "b"), chat(3, "b")]);
    assert!(refused.is_err());
    book.reopen();
    assert_eq!(names_kept(book), [0; 0]);
}

pub(super) fn a_type_is_known_while_someone_tells_it(book: &mut JournalUnderTest) {
    book.write([chat(1, "a"), chat(2, "b")]);
    book.write([reference(1, None, 1), typed(2, 1, "text/plain")]);
    assert_eq!(type_of(book, 1).as_deref(), Some("text/plain"));
    assert_eq!(type_of(book, 2), None);
    // Naming it once more without a type takes none away.
    book.write([reference(2, None, 1)]);
    book.reopen();
    assert_eq!(type_of(book, 1).as_deref(), Some("text/plain"));
    book.write([typed(2, 1, "text/html")]);
    assert_eq!(type_of(book, 1).as_deref(), Some("text/html"));
    book.write([dispose(2, 10)]);
    book.write([sweep(11)]);
    assert_eq!(type_of(book, 1), None);
    assert_eq!(names_kept(book), [1]);
}
