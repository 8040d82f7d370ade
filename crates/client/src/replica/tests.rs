//! What the replica does, case by case; `tests/convergence.rs` has them all at once.

use serde_json::{Value, json};
use wire::ActionKind;

use super::*;

const CHAT: &str = "ahp-chat:/c";
const SESSION: &str = "x:/s";

fn chat(turns: &[&str], from_seq: u64) -> Snapshot {
    let turn = |id: &&str| {
        json!({
            "id": id, "state": "complete", "startedAt": "2026-01-01T00:00:00Z", "duration": 1,
            "message": {"text": "x", "origin": {"kind": "user"}}, "responseParts": [],
        })
    };
    let turns: Vec<Value> = turns.iter().map(turn).collect();
    let state = json!({
        "resource": CHAT, "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00Z", "turns": turns,
    });
    Snapshot { resource: CHAT.to_owned(), state, from_seq }
}

fn session() -> Snapshot {
    let state = json!({
        "provider": "p", "title": "old", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": [],
    });
    Snapshot { resource: SESSION.to_owned(), state, from_seq: 5 }
}

fn watching() -> Replica {
    let mut replica = Replica::new("me");
    replica.take_snapshot(chat(&["t1"], 5), 0).unwrap();
    replica.take_snapshot(session(), 0).unwrap();
    replica
}

fn action(value: Value) -> Action {
    Action::decode(value).unwrap()
}

fn draft(text: &str) -> Action {
    action(
        json!({"type": "chat/draftChanged", "draft": {"text": text, "origin": {"kind": "user"}}}),
    )
}

fn start(id: &str) -> Action {
    action(json!({
        "type": "chat/turnStarted", "turnId": id, "startedAt": "2026-01-01T00:00:00Z",
        "message": {"text": "x", "origin": {"kind": "user"}},
    }))
}

fn envelope(channel: &str, seq: u64, action: &Action, own: Option<i64>) -> Envelope {
    let mut value = json!({"channel": channel, "serverSeq": seq, "action": action.body});
    if let Some(client_seq) = own {
        value["origin"] = json!({"clientId": "me", "clientSeq": client_seq});
    }
    Envelope::from_value(value).unwrap()
}

fn draft_text(replica: &Replica) -> Option<&str> {
    replica.chat(CHAT)?.draft.as_ref()?["text"].as_str()
}

fn send_all(replica: &mut Replica) -> Vec<i64> {
    let sent = std::iter::from_fn(|| replica.take_unsent());
    sent.map(|params| params["clientSeq"].as_i64().unwrap()).collect()
}

#[test]
fn without_pending_actions_the_visible_state_is_the_confirmed_one() {
    let mut replica = watching();
    let is_same = |replica: &Replica| {
        Arc::ptr_eq(replica.chat(CHAT).unwrap(), replica.confirmed_chat(CHAT).unwrap())
    };
    assert!(is_same(&replica));
    replica.dispatch(CHAT, draft("mine")).unwrap();
    assert!(!is_same(&replica));
    assert_eq!(draft_text(&replica), Some("mine"));
    replica.receive(&envelope(CHAT, 6, &draft("mine"), Some(1)));
    assert!(is_same(&replica));
}

#[test]
fn streaming_beside_pending_actions_copies_nothing_until_the_state_is_read() {
    let mut replica = watching();
    let part = Action::host(
        ActionKind::ChatResponsePart,
        json!({"turnId": "t2", "part": {"kind": "markdown", "id": "p", "content": ""}}),
    );
    replica.receive(&envelope(CHAT, 6, &start("t2"), None));
    replica.receive(&envelope(CHAT, 7, &part, None));
    replica.dispatch(CHAT, draft("mine")).unwrap();
    assert!(replica.chat(CHAT).is_some());
    let delta = Action::delta("t2", "p", "x".to_owned());
    let text = |replica: &Replica| {
        let chat = replica.confirmed_chat(CHAT).unwrap();
        let turn = chat.active_turn.as_ref().unwrap();
        turn.parts.get("p").unwrap() as *const wire::state::ResponsePart
    };
    let before = text(&replica);
    for seq in 8..20 {
        replica.receive(&envelope(CHAT, seq, &delta, None));
    }
    assert_eq!(text(&replica), before, "the part was copied");
    let chat = replica.chat(CHAT).unwrap();
    let turn = chat.active_turn.as_ref().unwrap();
    assert_eq!(turn.parts.get("p").unwrap().0["content"], "x".repeat(12));
    assert_eq!(draft_text(&replica), Some("mine"));
}

#[test]
fn pending_actions_are_applied_after_foreign_ones() {
    let mut replica = watching();
    replica.dispatch(CHAT, draft("mine")).unwrap();
    let effect = replica.receive(&envelope(CHAT, 6, &draft("theirs"), None));
    assert_eq!(effect, EnvelopeEffect::Foreign(ApplyOutcome::Changed));
    assert_eq!(draft_text(&replica), Some("mine"));
    let confirmed = replica.confirmed_chat(CHAT).unwrap();
    assert_eq!(confirmed.draft.as_ref().unwrap()["text"], "theirs");
}

#[test]
fn the_answer_that_nothing_changed_clears_and_changes_nothing() {
    let mut replica = watching();
    let seq = replica.dispatch(CHAT, draft("mine")).unwrap();
    // The current seq, which is that of the snapshot or of an action received since.
    let effect = replica.receive(&envelope(CHAT, 5, &draft("mine"), Some(seq)));
    assert!(matches!(effect, EnvelopeEffect::Own { client_seq: 1, .. }), "{effect:?}");
    assert_eq!((replica.pending().count(), draft_text(&replica)), (0, None));
}

#[test]
fn a_refusal_is_undone_and_anothers_is_nobodys_business() {
    let mut replica = watching();
    let first = replica.dispatch(CHAT, draft("one")).unwrap();
    replica.dispatch(CHAT, draft("two")).unwrap();
    let mut refusal = envelope(CHAT, 5, &draft("one"), Some(first));
    refusal.rejection = Some("no".to_owned());
    let effect = replica.receive(&refusal);
    assert!(matches!(effect, EnvelopeEffect::Refused { client_seq: 1, .. }), "{effect:?}");
    assert_eq!(draft_text(&replica), Some("two"));
    refusal.origin.as_mut().unwrap().client_id = "you".to_owned();
    assert_eq!(replica.receive(&refusal), EnvelopeEffect::NotForUs);
    assert_eq!(replica.pending().count(), 1);
}

#[test]
fn a_title_sent_to_a_chat_is_echoed_on_its_session() {
    let mut replica = watching();
    let title = action(json!({"type": "session/titleChanged", "title": "new"}));
    let seq = replica.dispatch(CHAT, title.clone()).unwrap();
    replica.receive(&envelope(SESSION, 6, &title, Some(seq)));
    assert_eq!(replica.session(SESSION).unwrap().title, "new");
    assert_eq!(replica.pending().count(), 0);
}

#[test]
fn an_unechoed_action_is_settled_by_a_later_answer() {
    let mut replica = watching();
    let unwatched = "ahp-chat:/elsewhere";
    replica.dispatch(unwatched, draft("there")).unwrap();
    let here = replica.dispatch(CHAT, draft("here")).unwrap();
    send_all(&mut replica);
    replica.receive(&envelope(CHAT, 6, &draft("here"), Some(here)));
    assert_eq!(replica.pending().count(), 0);
    replica.dispatch(unwatched, draft("again")).unwrap();
    send_all(&mut replica);
    let given_up = replica.apply_replay(&[], &[]).not_resent;
    assert_eq!(given_up.len(), 1);
    assert_eq!(given_up[0].why, DropReason::NotWatched);
}

#[test]
fn a_snapshot_holds_what_was_sent_before_the_subscription_only() {
    let mut replica = Replica::new("me");
    replica.dispatch(CHAT, draft("in it")).unwrap();
    assert_eq!(send_all(&mut replica), [1]);
    let sent_before = replica.sent_up_to();
    replica.dispatch(CHAT, draft("on its way")).unwrap();
    assert_eq!(send_all(&mut replica), [2]);
    replica.dispatch(CHAT, draft("unsent")).unwrap();
    assert_eq!((sent_before, replica.sent_up_to()), (1, 2));
    replica.take_snapshot(chat(&[], 5), sent_before).unwrap();
    let pending: Vec<i64> = replica.pending().map(|pending| pending.client_seq).collect();
    assert_eq!((pending, draft_text(&replica)), (vec![2, 3], Some("unsent")));
    let resumed = replica.apply_replay(&[envelope(CHAT, 6, &draft("on its way"), Some(2))], &[]);
    assert_eq!(resumed.not_resent, []);
    assert_eq!(send_all(&mut replica), [3]);
}

/// The confirmations and cuts of G-30, and some that it lets through.
fn of_every_sort() -> Vec<(Action, bool)> {
    let careful = [
        json!({"type": "chat/truncated", "turnId": "t1"}),
        json!({"type": "chat/turnCancelled", "turnId": "t2", "duration": 1}),
        json!({"type": "chat/turnResume", "turnId": "t1"}),
        json!({
            "type": "chat/toolCallConfirmed", "turnId": "t2", "toolCallId": "c",
            "approved": true, "confirmed": "user-action",
        }),
        json!({"type": "chat/toolCallResultConfirmed", "turnId": "t2", "toolCallId": "c", "approved": true}),
    ];
    let free = [
        json!({"type": "chat/isReadChanged", "isRead": true}),
        json!({"type": "chat/inputCompleted", "requestId": "r", "response": "accept"}),
        json!({
            "type": "chat/pendingMessageSet", "kind": "queued", "id": "q",
            "message": {"text": "x", "origin": {"kind": "user"}},
        }),
    ];
    let careful = careful.into_iter().map(|value| (action(value), true));
    careful
        .chain(free.into_iter().map(|value| (action(value), false)))
        .chain([(start("t3"), false), (draft("x"), false)])
        .collect()
}

#[test]
fn after_a_replay_outdated_actions_are_not_sent_again() {
    for is_quiet in [true, false] {
        for (pending, is_careful) in of_every_sort() {
            let mut replica = watching();
            let seq = replica.dispatch(CHAT, pending.clone()).unwrap();
            assert_eq!(send_all(&mut replica), [seq]);
            let elsewhere = action(json!({"type": "session/titleChanged", "title": "new"}));
            let mut replay = vec![envelope(SESSION, 6, &elsewhere, None)];
            if !is_quiet {
                let activity =
                    Action::host(ActionKind::ChatActivityChanged, json!({"activity": "x"}));
                replay.push(envelope(CHAT, 7, &activity, None));
            }
            let resumed = replica.apply_replay(&replay, &[]);
            let is_given_up = is_careful && !is_quiet;
            let expected: &[i64] = if is_given_up { &[] } else { &[seq] };
            assert_eq!(send_all(&mut replica), expected, "{}", pending.name());
            let why: Vec<DropReason> = resumed.not_resent.iter().map(|up| up.why).collect();
            let expected: &[DropReason] = if is_given_up { &[DropReason::MovedOn] } else { &[] };
            assert_eq!(why, expected, "{}", pending.name());
        }
    }
}

#[test]
fn replayed_actions_are_not_sent_again() {
    let mut replica = watching();
    for text in ["one", "two", "three"] {
        replica.dispatch(CHAT, draft(text)).unwrap();
    }
    assert_eq!(send_all(&mut replica), [1, 2, 3]);
    replica.dispatch(CHAT, draft("never sent")).unwrap();
    let resumed = replica.apply_replay(&[envelope(CHAT, 6, &draft("two"), Some(2))], &[]);
    assert_eq!(resumed.not_resent, []);
    assert_eq!(send_all(&mut replica), [1, 3, 4]);
}

#[test]
fn after_snapshots_only_an_unknown_turn_is_sent_again() {
    let mut replica = watching();
    for (action, _) in of_every_sort() {
        replica.dispatch(CHAT, action).unwrap();
    }
    let known = replica.dispatch(CHAT, start("t9")).unwrap();
    let title = json!({"type": "session/titleChanged", "title": "new"});
    let gone = replica.dispatch(SESSION, action(title)).unwrap();
    let all = send_all(&mut replica);
    let resumed = replica.apply_snapshots(vec![chat(&["t1", "t9"], 90)]).unwrap();
    let sent_again = send_all(&mut replica);
    let names: Vec<&str> = replica.pending().map(|pending| pending.action.name()).collect();
    assert_eq!((sent_again.len(), names), (1, vec!["chat/turnStarted"]));
    assert_eq!(resumed.not_resent.len(), all.len() - 1);
    let why = |seq: i64| {
        let mut given_up = resumed.not_resent.iter();
        given_up.find(|up| up.client_seq == seq).map(|up| up.why)
    };
    assert_eq!(why(known), Some(DropReason::StateReplaced));
    assert_eq!(why(gone), Some(DropReason::ChannelGone));
    assert_eq!(resumed.gone, [SESSION]);
    let active = &replica.chat(CHAT).unwrap().active_turn;
    assert_eq!(active.as_ref().map(|turn| turn.id.as_str()), Some("t3"));
    assert_eq!(replica.last_seen(), 90);
}

#[test]
fn snapshots_that_cannot_be_read_change_nothing() {
    let mut replica = watching();
    replica.dispatch(CHAT, draft("mine")).unwrap();
    let mut broken = chat(&[], 90);
    broken.state["status"] = json!("no number");
    assert!(replica.apply_snapshots(vec![broken]).is_err());
    assert_eq!((draft_text(&replica), replica.last_seen()), (Some("mine"), 5));
}

#[test]
fn an_action_that_ends_every_connection_is_given_up() {
    let mut replica = watching();
    replica.dispatch(CHAT, draft("too large")).unwrap();
    for _ in 0..4 {
        assert_eq!(send_all(&mut replica), [1]);
        assert_eq!(replica.apply_replay(&[], &[]).not_resent, []);
    }
    assert_eq!(send_all(&mut replica), [1]);
    let given_up = replica.apply_replay(&[], &[]).not_resent;
    assert_eq!(given_up[0].why, DropReason::SentTooOften);
    assert_eq!((replica.pending().count(), draft_text(&replica)), (0, None));
}

#[test]
fn the_number_of_pending_actions_is_bounded() {
    let mut replica = watching();
    for _ in 0..PENDING_MAX {
        replica.dispatch(CHAT, draft("x")).unwrap();
    }
    assert_eq!(replica.dispatch(CHAT, draft("x")), Err(TooManyPending));
}
