//! Forks: a chat that sees the turns of another.

use kernel::TurnPosition;

use super::{JournalUnderTest, chat, dispose, fork, hide, numbers, sweep, turn};

/// Chat 1 with turns a0 to a4, and its fork 2 through a2 with a turn b3 of its own.
fn forked(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    book.write((0..5).map(|n| turn(1, n, &format!("a{n}"))));
    book.write([chat(2, "b"), fork(2, 1, 2, 10), turn(2, 3, "b3")]);
}

pub(super) fn a_fork_copies_nothing_and_goes_on_from_its_last_turn(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    book.write((0..5).map(|n| turn(1, n, &format!("a{n}"))));
    book.write([chat(2, "b"), fork(2, 1, 2, 10)]);
    assert_eq!(book.channel("b").next_n, 3);
    book.write([turn(2, 3, "b3"), turn(1, 5, "a5")]);
    book.reopen();
    assert_eq!(book.turns(2), ["a0", "a1", "a2", "b3"]);
    assert_eq!(book.turns(1), ["a0", "a1", "a2", "a3", "a4", "a5"]);
    assert_eq!(book.channel("b").next_n, 4);
    assert_eq!(book.find_turn(2, "a1"), Some(TurnPosition { n: 1, visible: true }));
    assert_eq!(book.find_turn(2, "a3"), None);
    assert_eq!(book.find_turn(1, "b3"), None);
    // Pages cross from own turns to inherited ones.
    let page = book.page(2, u64::MAX, 2, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![2, 3], true));
    let page = book.page(2, 2, 9, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![0, 1], false));
    let page = book.page(2, 4, 1, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![3], true));
}

pub(super) fn a_fork_survives_truncate_dispose_and_sweep_of_its_source(
    book: &mut JournalUnderTest,
) {
    forked(book);
    let all = ["a0", "a1", "a2", "b3"];
    book.write([hide(1, 1, 20)]);
    assert_eq!(book.turns(1), ["a0"]);
    assert_eq!(book.turns(2), all);
    assert_eq!(book.find_turn(2, "a2"), Some(TurnPosition { n: 2, visible: true }));
    book.write([dispose(1, 30)]);
    assert_eq!(book.turns(2), all);
    book.write([sweep(31)]);
    book.write([sweep(31)]);
    book.reopen();
    assert_eq!(book.turns(2), all);
    assert_eq!(book.channel("b").next_n, 4);
}

pub(super) fn a_fork_of_a_fork_sees_both(book: &mut JournalUnderTest) {
    forked(book);
    book.write([turn(2, 4, "b4"), turn(2, 5, "b5")]);
    book.write([chat(3, "c"), fork(3, 2, 4, 30), turn(3, 5, "c5")]);
    let all = ["a0", "a1", "a2", "b3", "b4", "c5"];
    assert_eq!(book.turns(3), all);
    book.write([hide(1, 0, 40), hide(2, 1, 41)]);
    assert_eq!(book.turns(2), ["a0"]);
    book.write([dispose(1, 50), dispose(2, 51)]);
    book.write([sweep(60)]);
    book.write([sweep(60)]);
    book.reopen();
    assert_eq!(book.turns(3), all);
    assert_eq!(book.channel("c").next_n, 6);
    let page = book.page(3, 5, 3, 1_000);
    assert_eq!((numbers(&page), page.older), (vec![2, 3, 4], true));
}

pub(super) fn a_fork_within_a_fork_s_inherited_turns_sees_only_those(book: &mut JournalUnderTest) {
    forked(book);
    book.write([chat(3, "c"), fork(3, 2, 1, 30)]);
    assert_eq!(book.turns(3), ["a0", "a1"]);
    assert_eq!(book.channel("c").next_n, 2);
    book.write([turn(3, 2, "c2")]);
    assert_eq!(book.turns(3), ["a0", "a1", "c2"]);
}

pub(super) fn truncating_a_fork_leaves_its_source_alone(book: &mut JournalUnderTest) {
    forked(book);
    book.write([hide(2, 1, 20)]);
    book.reopen();
    assert_eq!(book.turns(2), ["a0"]);
    assert_eq!(book.turns(1), ["a0", "a1", "a2", "a3", "a4"]);
    assert_eq!(book.channel("b").next_n, 4, "inherited numbers are not used again either");
    assert_eq!(book.find_turn(2, "a2"), Some(TurnPosition { n: 2, visible: false }));
    book.write([turn(2, 4, "b4")]);
    assert_eq!(book.turns(2), ["a0", "b4"]);
    // A fork of it sees what it sees.
    book.write([chat(3, "c"), fork(3, 2, 4, 30), turn(3, 5, "c5")]);
    assert_eq!(book.turns(3), ["a0", "b4", "c5"]);
    assert_eq!(book.find_turn(3, "a2"), None);
    book.write([hide(2, 0, 31)]);
    assert_eq!(book.turns(2), [""; 0]);
    assert_eq!(book.turns(3), ["a0", "b4", "c5"]);
}

pub(super) fn what_was_hidden_before_the_fork_never_belonged_to_it(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    book.write((0..4).map(|n| turn(1, n, &format!("a{n}"))));
    book.write([hide(1, 2, 10), turn(1, 4, "a4")]);
    book.write([chat(2, "b"), fork(2, 1, 4, 11)]);
    book.write([hide(1, 0, 12)]);
    assert_eq!(book.turns(2), ["a0", "a1", "a4"]);
    assert_eq!(book.find_turn(2, "a2"), None);
    assert_eq!(book.channel("b").next_n, 5);
}

pub(super) fn the_last_fork_to_go_takes_the_turns_with_it(book: &mut JournalUnderTest) {
    forked(book);
    book.write([chat(3, "c"), fork(3, 1, 1, 11)]);
    book.write([dispose(1, 30), sweep(31)]);
    book.write([dispose(2, 40), sweep(41)]);
    book.write([sweep(41)]);
    assert_eq!(book.turns(2), [""; 0]);
    assert_eq!(book.turns(3), ["a0", "a1"]);
    // Nobody refers to a2 any more, and nobody can ask for it but by the number of its chat.
    assert_eq!(book.find_turn(1, "a2"), None);
    book.write([dispose(3, 50), sweep(51)]);
    book.write([sweep(51)]);
    book.reopen();
    assert_eq!(book.find_turn(1, "a0"), None);
}

pub(super) fn the_context_of_a_side_chat_is_kept_and_not_shown(book: &mut JournalUnderTest) {
    book.write([chat(1, "a")]);
    book.write((0..3).map(|n| turn(1, n, &format!("a{n}"))));
    // It was made beside a1 and the turn that ran then.
    book.write([chat(2, "b"), fork(2, 1, 1, 10), turn(2, 2, "ran"), hide(2, 0, 11)]);
    book.write([turn(2, 3, "b3")]);
    assert_eq!(book.turns(2), ["b3"]);
    assert_eq!(numbers(&book.context(2, 2)), vec![0, 1, 2]);
    assert_eq!(numbers(&book.context(2, 0)), vec![0], "no further than asked");
    book.write([hide(1, 0, 20), dispose(1, 30)]);
    book.write([sweep(31)]);
    book.write([sweep(31)]);
    book.reopen();
    assert_eq!(book.turns(2), ["b3"]);
    assert_eq!(numbers(&book.context(2, 2)), vec![0, 1, 2]);
}
