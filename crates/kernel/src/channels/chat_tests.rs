//! A chat in memory: numbers of turns, truncation, ids, messages that wait.

use std::sync::Arc;

use serde_json::json;
use wire::state::{ChatState, Turn};
use wire::{Action, ActionKind, ChannelUri, Timestamp};

use super::*;
use crate::author::Author;
use crate::composed_message::ComposedMessage;
use crate::submission::Submitted;

fn chat() -> Chat {
    let state = ChatState::new("ahp-chat:/c", "t", 0, "2026-01-01T00:00:00Z".to_owned());
    let session = ChannelUri::parse("ahp-session:/s").unwrap();
    Chat::new(state, session, ChannelId(1))
}

fn start(chat: &mut Chat, id: &str) {
    let message = json!({"text": "x", "origin": {"kind": "user"}});
    let fields = json!({"turnId": id, "startedAt": "2026-01-01T00:00:00Z", "message": message});
    chat.reduce(&Action::host(ActionKind::ChatTurnStarted, fields));
    chat.begin_turn(Timestamp(0), None, Submitted::default());
}

fn complete(chat: &mut Chat, id: &str) -> EndedTurn {
    let fields = json!({"turnId": id, "duration": 1});
    chat.reduce(&Action::host(ActionKind::ChatTurnComplete, fields));
    chat.end_turn().unwrap()
}

#[test]
fn turns_are_numbered_as_they_end() {
    let mut chat = chat();
    assert!(chat.end_turn().is_none(), "no turn ended");
    for (n, id) in ["a", "b", "c"].into_iter().enumerate() {
        start(&mut chat, id);
        assert!(chat.end_turn().is_none(), "it still runs");
        assert_eq!(complete(&mut chat, id).n, n as u64);
    }
    assert_eq!(chat.number_of("b"), Some(1));
    assert!(chat.knows_all_turns());
    assert_eq!(chat.page_through(1).turns.len(), 2);
}

#[test]
fn a_truncate_hides_what_came_after_and_the_turn_that_ran() {
    let mut chat = chat();
    for id in ["a", "b"] {
        start(&mut chat, id);
        complete(&mut chat, id);
    }
    start(&mut chat, "c");
    let active: Option<Arc<Turn>> =
        chat.state().active_turn.as_ref().map(|turn| turn.as_if_cancelled());
    chat.reduce(&Action::host(ActionKind::ChatTruncated, json!({"turnId": "a"})));
    let cut = chat.truncate(Seq(9), Some(0), active);
    assert_eq!(cut.active.map(|(n, turn)| (n, turn.id.clone())), Some((2, "c".to_owned())));
    assert!(cut.hides);
    assert_eq!((chat.turn_count(), chat.next_n()), (1, 3));
    assert!(!chat.knows_all_turns(), "hidden turns used their numbers");
    assert_eq!(chat.last_hidden_seq(), Seq(9));
}

#[test]
fn what_a_message_means_stays_in_memory_no_longer_than_its_turn() {
    let mut chat = chat();
    start(&mut chat, "a");
    chat.begin_turn(
        Timestamp(0),
        None,
        Submitted {
            reaches_model: true,
            composed: Some(Arc::new(ComposedMessage { parts: Vec::new() })),
            ..Submitted::default()
        },
    );
    // Before an agent had it: its model is gone, the host is going down.
    let error = json!({"errorType": "hostStopped", "message": "stopped"});
    let part = json!({"kind": "error", "error": error, "resumable": true});
    let fields = json!({"turnId": "a", "duration": 1, "part": part});
    chat.reduce(&Action::host(ActionKind::ChatError, fields));
    chat.end_turn().unwrap();
    let left = chat.private().current_submission.as_ref().unwrap();
    assert!(left.reaches_model, "the turn may go on");
    assert_eq!(left.composed, None);
}

#[test]
fn ids_that_a_client_guessed_are_not_made_again() {
    let mut chat = chat();
    start(&mut chat, "t8");
    chat.note_host_like_id(7);
    assert_eq!(chat.free_turn_id(Seq(7)), "t8-1");
    chat.note_host_like_id(8);
    assert_eq!(chat.free_turn_id(Seq(8)), "t9");
    for (id, is) in [("t8", true), ("t8-1", true), ("t7", false), ("x8", false), ("t", false)] {
        assert_eq!(is_host_like(id, 7), is, "{id}");
    }
}

#[test]
fn what_is_known_of_messages_goes_with_them() {
    let mut chat = chat();
    let message = json!({"text": "x", "origin": {"kind": "user"}});
    let fields = json!({"kind": "queued", "id": "m", "message": message});
    chat.reduce(&Action::host(ActionKind::ChatPendingMessageSet, fields));
    let submitted = Submitted { id: "row".to_owned(), ..Submitted::default() };
    let author = Author { client_id: "ann".to_owned(), principal: None };
    chat.put_message("m".to_owned(), author, submitted);
    assert!(chat.holds_input() && !chat.knows_gone_messages());
    let fields = json!({"kind": "queued", "id": "m"});
    chat.reduce(&Action::host(ActionKind::ChatPendingMessageRemoved, fields));
    assert!(chat.knows_gone_messages());
    assert_eq!(chat.forget_gone_messages(), ["row"]);
    assert!(!chat.knows_gone_messages() && !chat.holds_input());
    assert!(chat.private().message_authors.is_empty());
}
