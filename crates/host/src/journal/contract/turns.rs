//! Completed turns: pages, tails, truncates.

use kernel::TurnPosition;
use wire::state::Outcome;

use super::{JournalUnderTest, chat, hide, ids, numbers, turn};

fn chat_of(book: &mut JournalUnderTest, turns: u64) {
    book.write([chat(1, "a")]);
    book.write((0..turns).map(|n| turn(1, n, &format!("t{n}"))));
}

pub(super) fn turns_page_newest_first_with_the_crossing_turn_included(book: &mut JournalUnderTest) {
    chat_of(book, 10);
    book.reopen();
    let page = book.page(1, 8, 3, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![5, 6, 7], true));
    let page = book.page(1, 3, 50, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![0, 1, 2], false));
    // Every turn has ten bytes: the third crosses 25, the second reaches 20.
    assert_eq!(numbers(&book.page(1, 8, 50, 25)), [5, 6, 7]);
    assert_eq!(numbers(&book.page(1, 8, 50, 20)), [6, 7]);
    assert_eq!(numbers(&book.page(1, 8, 50, 0)), [7]);
    let page = book.page(1, 0, 50, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![], false));
    let turn = &book.page(1, 8, 1, 1_000).turns[0];
    assert_eq!((turn.id.as_str(), &turn.json[..]), ("t7", &b"        t7"[..]));
    assert_eq!(turn.outcome, Outcome::Error { resumable: true });
}

pub(super) fn a_long_chat_opens_by_its_tail(book: &mut JournalUnderTest) {
    chat_of(book, 2_000);
    book.reopen();
    let opened = book.find_channel_within("a", 3, 1_000).unwrap();
    assert_eq!((numbers(&opened.turns), opened.turns.older), (vec![1_997, 1_998, 1_999], true));
    assert_eq!(opened.next_n, 2_000);
    // What opens a chat fits its bound, but for a single turn that does not.
    assert_eq!(numbers(&book.find_channel_within("a", 50, 25).unwrap().turns), [1_998, 1_999]);
    assert_eq!(numbers(&book.find_channel_within("a", 50, 5).unwrap().turns), [1_999]);
}

pub(super) fn hidden_turns_are_invisible_but_their_ids_are_used(book: &mut JournalUnderTest) {
    chat_of(book, 6);
    book.write([hide(1, 4, 20)]);
    book.reopen();
    assert_eq!(book.turns(1), ["t0", "t1", "t2", "t3"]);
    assert_eq!(ids(&book.channel("a").turns), ["t0", "t1", "t2", "t3"]);
    assert_eq!(book.find_turn(1, "t3"), Some(TurnPosition { n: 3, visible: true }));
    assert_eq!(book.find_turn(1, "t4"), Some(TurnPosition { n: 4, visible: false }));
    assert_eq!(book.find_turn(1, "never"), None);
    assert_eq!(book.find_turn(2, "t3"), None, "an id counts in its own chat only");
    book.write([hide(1, 0, 21)]);
    assert_eq!(book.turns(1), [""; 0]);
    assert!(!book.page(1, u64::MAX, 0, 0).older);
}

pub(super) fn a_resumed_turn_is_found_where_it_is_visible(book: &mut JournalUnderTest) {
    chat_of(book, 3);
    book.write([hide(1, 2, 20), turn(1, 3, "t2")]);
    assert_eq!(book.find_turn(1, "t2"), Some(TurnPosition { n: 3, visible: true }));
    assert_eq!(book.turns(1), ["t0", "t1", "t2"]);
}

pub(super) fn turn_numbers_are_never_used_twice(book: &mut JournalUnderTest) {
    chat_of(book, 5);
    book.write([hide(1, 2, 20)]);
    book.reopen();
    assert_eq!(book.channel("a").next_n, 5);
    assert!(book.try_write(vec![turn(1, 3, "x")]).is_err(), "a hidden number stays used");
    book.write([turn(1, 5, "t5")]);
    assert_eq!(book.turns(1), ["t0", "t1", "t5"]);
    assert_eq!(book.channel("a").next_n, 6);
    let page = book.page(1, 5, 1, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![1], true));
}
