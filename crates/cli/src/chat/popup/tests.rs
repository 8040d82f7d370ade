//! What is proposed, and which keys take it.

use super::*;

#[test]
fn an_argument_is_taken_unless_it_is_there_already() {
    let arguments = |texts: &[&str]| {
        let texts = texts.iter();
        let proposal = texts.map(|text| ArgumentProposal {
            replaces: 7..8,
            text: (*text).to_owned(),
            about: String::new(),
        });
        proposal.collect::<Vec<_>>()
    };
    let mut popup = Popup::default();
    popup.typed_argument("/model ", 7, arguments(&["ab", "a"]));
    assert!(popup.is_open());
    assert!(popup.proposal_for_enter().is_none(), "the list is wanted");
    popup.typed_argument("/model a", 8, arguments(&["ab", "a"]));
    assert!(popup.proposal_for_enter().is_none(), "that is one");
    popup.step();
    popup.step();
    let taken = popup.proposal_for_enter().unwrap();
    assert_eq!(popup.text_with(&taken).unwrap(), ("/model ab".to_owned(), 9));
    popup.typed_argument("/model b", 8, arguments(&["ab"]));
    assert!(popup.proposal_for_enter().is_some());
    // An answer to what was typed before changes nothing.
    let query = PopupQuery { text: "/m".to_owned(), cursor: 2 };
    assert_eq!(popup.accept_answer(&query, Vec::new()), None);
    assert!(popup.is_open());
    popup.dismiss();
    popup.typed_argument("/model b", 8, arguments(&["ab"]));
    assert!(!popup.is_open(), "it was closed for this word");
}

fn completion(insert_text: &str, replaces: std::ops::Range<usize>) -> Completion {
    Completion {
        insert_text: insert_text.to_owned(),
        replaces,
        attachment: None,
        argument_hint: "FILE".to_owned(),
        description: "Does\u{7} it".to_owned(),
    }
}

fn labels(popup: &Popup) -> Vec<String> {
    let menu = popup.menu.as_ref();
    menu.map_or(Vec::new(), |menu| menu.items().map(|item| item.label.clone()).collect())
}

fn query(text: &str) -> PopupQuery {
    PopupQuery { text: text.to_owned(), cursor: text.len() }
}

#[test]
fn our_own_commands_are_there_at_once_and_the_hosts_join_them() {
    let mut popup = Popup::default();
    assert_eq!(popup.update_text("/re", 3), Some(query("/re")));
    assert_eq!(labels(&popup), ["/rename", "/resume"], "those with it inside come last");
    let host = vec![completion("/review ", 0..3), completion("/rename ", 0..3)];
    assert_eq!(popup.accept_answer(&query("/re"), host), None);
    assert_eq!(labels(&popup), ["/rename", "/resume", "/review"], "ours win");
    assert_eq!(popup.update_text("/rev", 4), Some(query("/rev")));
    assert_eq!(labels(&popup), ["/review"], "narrowed before the host answers");
    let taken = popup.proposal_for_enter().unwrap();
    assert_eq!(popup.text_with(&taken), Some(("/review ".to_owned(), 8)));
}

#[test]
fn one_question_at_a_time_and_stale_answers_are_dropped() {
    let mut popup = Popup::default();
    assert!(popup.update_text("see @a", 6).is_some());
    assert_eq!(popup.update_text("see @al", 7), None, "one is on its way");
    assert_eq!(popup.update_text("see @alp", 8), None);
    let next = popup.accept_answer(&query("see @a"), vec![completion("@file:a ", 4..6)]);
    assert_eq!(next, Some(query("see @alp")));
    assert!(!popup.is_open(), "that was for another text");
    popup.accept_answer(&query("see @alp"), vec![completion("@file:alpha ", 4..8)]);
    assert_eq!(labels(&popup), ["@file:alpha"]);
    assert!(popup.lines(60)[0].text().contains("FILE  Does\\x07 it"));
    assert_eq!(popup.update_text("see @alp ", 9), None);
    assert!(!popup.is_open());
    assert!(popup.update_text("/x", 2).is_some());
    assert_eq!(popup.note_failure(), None);
    assert!(popup.update_text("/xy", 3).is_some(), "asked again");
}

#[test]
fn closed_stays_closed_for_the_word() {
    let mut popup = Popup::default();
    popup.update_text("/", 1);
    popup.dismiss();
    popup.update_text("/h", 2);
    assert!(!popup.is_open());
    popup.update_text("", 0);
    popup.update_text("/", 1);
    assert!(popup.is_open());
}

#[test]
fn enter_takes_only_what_is_meant() {
    let enter = |text: &str, proposed: &str| {
        let mut popup = Popup::default();
        let start = query(text).word_start();
        popup.update_text(text, text.len());
        popup.accept_answer(&query(text), vec![completion(proposed, start..text.len())]);
        popup.proposal_for_enter().map(|taken| taken.label())
    };
    assert_eq!(enter("/hel", "/x "), Some("/help".to_owned()));
    assert_eq!(enter("/help", "/x "), None, "typed whole");
    assert_eq!(enter("see @a", "@file:a "), Some("@file:a".to_owned()));
    assert_eq!(enter("see (@a", "@file:a "), Some("@file:a".to_owned()));
    assert_eq!(enter("see @file:a", "@file:a "), None, "typed whole");
    assert_eq!(enter("issue #12", "#file:12.txt "), None, "may be anything");
    assert_eq!(enter("ann@example", "@file:example "), None);
    let mut popup = Popup::default();
    popup.update_text("issue #12", 9);
    popup.accept_answer(&query("issue #12"), vec![completion("#file:12.txt ", 6..9)]);
    popup.step();
    assert!(popup.proposal_for_enter().is_some(), "chosen with the arrows");
}

#[test]
fn tab_takes_the_only_one_when_it_is_there() {
    let mut popup = Popup::default();
    assert!(popup.want_first("@al", 3).is_some());
    assert!(popup.take_wanted().is_none());
    popup.accept_answer(&query("@al"), vec![completion("@file:alpha ", 0..3)]);
    assert!(popup.take_wanted().is_some());
    let mut popup = Popup::default();
    popup.want_first("@al", 3);
    popup.accept_answer(&query("@al"), Vec::new());
    assert!(popup.take_found_nothing());
    assert!(!popup.take_found_nothing(), "said once");
    let bad = vec![completion("\u{1b}[2J", 0..3)];
    popup.update_text("@al", 3);
    popup.accept_answer(&query("@al"), bad);
    assert!(!popup.is_open(), "what would control the terminal is not proposed");
}
