//! Truncation: history that is cut for everyone, whatever part of it they see.

use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

/// Envelopes of the chat that came since the last time.
fn chat_envelopes(client: &ScenarioClient) -> Vec<Value> {
    let chat = client.chat();
    let envelopes = client.with(|client| std::mem::take(&mut client.envelopes));
    let of_chat = envelopes.into_iter().filter(|envelope| envelope["channel"] == chat.as_str());
    of_chat.collect()
}

/// Ann's chat with so many turns, and bob, who watches only the last ones of them.
fn short_window(
    s: &mut Scenario,
    turns: usize,
    watched: u32,
) -> (ScenarioClient, ScenarioClient, Vec<String>) {
    let ann = s.client("ann").opens_chat();
    let turns = ann.sends_messages(turns);
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), watched);
    (ann, bob, turns)
}

// H-237
#[test]
fn a_truncate_removes_the_turns_after_the_named_one() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let turns = ann.sends_messages(4);
    ann.truncates(&turns[1]).unwrap();
    assert_eq!(bob.turns(), turns[..2]);
    ann.sends_message("edited");
    assert_eq!(bob.sent_messages(), ["m0", "m1", "edited"]);
    s.host_restarts_for([&ann, &bob]);
    assert_eq!(s.state(&ann.chat())["turns"].as_array().unwrap().len(), 3);
}

// H-237: none clears all, and the cursor
#[test]
fn a_truncate_without_a_turn_leaves_nothing() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 2).and_chat();
    ann.sends_messages(5);
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 2);
    assert!(bob.sees(&ann.chat()).get("turnsNextCursor").is_some());
    ann.truncates_all().unwrap();
    let seen = bob.sees(&ann.chat());
    assert_eq!(seen["turns"], json!([]));
    assert!(seen.get("turnsNextCursor").is_none());
    let envelopes: Vec<String> = bob.received_actions();
    assert!(!envelopes.contains(&"chat/turnsLoaded".to_owned()), "{envelopes:?}");
    s.host_restarts();
    assert_eq!(s.state(&ann.chat())["turns"], json!([]));
    ann.reconnects();
    bob.reconnects();
    ann.sends_message("anew");
}

// H-237: unknown turns, and the running one, cannot be named
#[test]
fn a_truncate_to_a_turn_that_is_not_completed_is_refused() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    assert!(ann.truncates("none").is_err());
    let turns = ann.sends_messages(3);
    s.model().hangs();
    let active = ann.sends_message("busy");
    assert!(ann.truncates("none").is_err());
    assert!(ann.truncates(&active).is_err());
    assert!(s.look().models.stopped.is_empty());
    ann.truncates(&turns[0]).unwrap();
    for gone in [&turns[1], &turns[2], &active] {
        assert!(ann.truncates(gone).is_err(), "{gone}");
    }
    assert_eq!(ann.turns(), turns[..1]);
}

// H-237: what runs is dropped, its agent stopped, what it still says unheard
#[test]
fn a_truncate_drops_the_running_turn_and_stops_its_agent() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let turns = ann.sends_messages(2);
    s.model().streams(["half"]).waits_ms(100).streams(["more"]).talks_on_after_stop();
    ann.starts("busy");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), json!({"type": "chat/truncated", "turnId": turns[1]}));
    s.settles();
    let seq = s.look().kernel().seq();
    s.advances_ms(500);
    assert_eq!(s.look().kernel().seq(), seq);
    assert_eq!(bob.sent_messages(), ["m0", "m1"]);
    assert_eq!(s.look().models.stopped.len(), 1);
    assert_eq!(bob.sees(&ann.chat())["status"].as_u64().unwrap() & 31, 1);
    assert_eq!(bob.listed(&ann.chat())["status"].as_u64().unwrap() & 31, 1);
    s.host_restarts_for([&ann, &bob]);
    assert_eq!(bob.sent_messages(), ["m0", "m1"]);
}

// G-17: nothing to cut
#[test]
fn a_truncate_that_cuts_nothing_is_answered_to_its_sender_alone() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    ann.truncates_all().unwrap();
    let turns = ann.sends_messages(2);
    bob.received_actions();
    let seq = s.look().kernel().seq();
    ann.truncates(&turns[1]).unwrap();
    assert!(bob.received_actions().is_empty());
    assert_eq!(s.look().kernel().seq(), seq);
}

// H-170: an id that was cut off was used all the same
#[test]
fn an_id_that_was_cut_off_is_not_used_again() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let turns = ann.sends_messages(3);
    ann.truncates(&turns[0]).unwrap();
    for restart in [false, true] {
        if restart {
            s.host_restarts_for([&ann]);
        }
        for used in [&turns[1], &turns[2]] {
            let again = ann.turn_started(used, "again");
            assert!(ann.tries(&ann.chat(), again).is_err(), "{used} {restart}");
        }
    }
}

// G-18: up to 0.5.0 no action brings a page; all that such a client has comes after the turn
#[test]
fn who_has_no_word_for_a_page_loses_what_comes_after_the_named_turn() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 3;
    })
    .and_chat();
    let turns = ann.sends_messages(10);
    for version in ["0.4.0", "0.5.0"] {
        let old = s.client_of(&format!("old-{version}"), version).arrives();
        let params = json!({"channel": ann.chat(), "view": {"turns": 2}});
        old.asks("subscribe", params).unwrap();
        ann.truncates(&turns[5]).unwrap();
        let told: Vec<Value> = old
            .with(|client| std::mem::take(&mut client.envelopes))
            .into_iter()
            .filter(|envelope| envelope["channel"] == ann.chat().as_str())
            .map(|envelope| envelope["action"].clone())
            .collect();
        let all = json!({"type": "chat/truncated"});
        let named = json!({"type": "chat/truncated", "turnId": turns[5]});
        assert_eq!(told, [all, named], "{version}");
        ann.sends_messages(10);
    }
    s.ends_unchecked();
}

// G-18, H-239: one page that ends at the named turn comes first, to those who lack it
#[test]
fn who_does_not_see_the_named_turn_is_sent_one_page_first() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 3;
    })
    .and_chat();
    let turns = ann.sends_messages(10);
    let bob = s.client("bob").joins(&ann);
    let cem = s.client("cem").joins(&ann);
    bob.watches_turns(&ann.chat(), 2);
    cem.watches_turns(&ann.chat(), 8);
    for client in [&ann, &bob, &cem] {
        chat_envelopes(client);
    }
    ann.truncates(&turns[5]).unwrap();
    let kinds = |envelopes: &[Value]| -> Vec<String> {
        let kind = |envelope: &Value| envelope["action"]["type"].as_str().unwrap().to_owned();
        envelopes.iter().map(kind).collect()
    };
    let bobs = chat_envelopes(&bob);
    assert_eq!(kinds(&bobs), ["chat/turnsLoaded", "chat/truncated"]);
    let page = bobs[0]["action"]["turns"].as_array().unwrap();
    let ids: Vec<&str> = page.iter().map(|turn| turn["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&turns[3], &turns[4], &turns[5]]);
    assert!(bobs[0]["action"].get("turnsNextCursor").is_some());
    assert!(bobs[0].get("origin").is_none());
    for client in [&ann, &cem] {
        assert_eq!(kinds(&chat_envelopes(client)), ["chat/truncated"]);
    }
    assert_eq!(bob.turns(), turns[3..6]);
    assert_eq!(cem.turns(), turns[2..6]);
    s.all_agree();
    bob.fetches_turns();
    assert_eq!(bob.turns(), turns[..6]);
    assert!(bob.sees(&ann.chat()).get("turnsNextCursor").is_none());
}

// G-18: the page reaches the beginning
#[test]
fn a_page_that_holds_the_first_turn_leaves_no_cursor() {
    let mut s = Scenario::with(|limits| limits.open_turns = 2);
    let (ann, bob, turns) = short_window(&mut s, 8, 1);
    ann.truncates(&turns[0]).unwrap();
    assert_eq!(bob.turns(), turns[..1]);
    assert!(bob.sees(&ann.chat()).get("turnsNextCursor").is_none());
}

// G-18: the window grew by a page; the named turn is in it now
#[test]
fn who_fetched_the_named_turn_gets_no_page() {
    let mut s = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 3;
    });
    let (ann, bob, turns) = short_window(&mut s, 10, 2);
    bob.fetches_turns();
    assert_eq!(bob.turns(), turns[5..]);
    chat_envelopes(&bob);
    ann.truncates(&turns[5]).unwrap();
    assert_eq!(chat_envelopes(&bob).len(), 1);
    assert_eq!(bob.turns(), turns[5..6]);
    // And again, to one below the window as it is now.
    ann.truncates(&turns[2]).unwrap();
    let envelopes = chat_envelopes(&bob);
    assert_eq!(envelopes[0]["action"]["type"], "chat/turnsLoaded");
    assert_eq!(bob.turns(), turns[..3]);
}

// G-18: it is the client's own truncate as well
#[test]
fn one_who_truncates_below_its_own_window_is_sent_the_page_before_the_echo() {
    let mut s = Scenario::with(|limits| limits.open_turns = 1);
    let (_, bob, turns) = short_window(&mut s, 6, 1);
    chat_envelopes(&bob);
    bob.truncates(&turns[2]).unwrap();
    let envelopes = chat_envelopes(&bob);
    assert_eq!(envelopes[0]["action"]["type"], "chat/turnsLoaded");
    assert_eq!(envelopes[1]["origin"]["clientId"], "bob");
    assert_eq!(bob.turns(), turns[..3]);
}

// G-18: the page's seq is used up, for good
#[test]
fn a_page_uses_a_seq_of_its_own() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let turns = ann.sends_messages(6);
    let bob = s.client("bob").joins(&ann);
    let cem = s.client("cem").joins(&ann);
    for client in [&bob, &cem] {
        client.watches_turns(&ann.chat(), 1);
        chat_envelopes(client);
    }
    ann.truncates(&turns[2]).unwrap();
    let seq = |envelope: &Value| envelope["serverSeq"].as_u64().unwrap();
    let (bobs, cems) = (chat_envelopes(&bob), chat_envelopes(&cem));
    let mut seqs: Vec<u64> = bobs.iter().chain(&cems).map(seq).collect();
    assert_eq!(bobs[1]["serverSeq"], cems[1]["serverSeq"]);
    seqs.sort_unstable();
    seqs.dedup();
    let top = s.look().kernel().seq().0;
    assert!(seqs.iter().all(|seq| *seq <= top));
    s.host_restarts();
    assert!(s.look().kernel().seq().0 >= top);
    for client in [&ann, &bob, &cem] {
        client.reconnects();
    }
}

// G-19: below the last snapshot there is no replay
#[test]
fn a_gap_that_cuts_below_the_last_snapshot_is_answered_with_snapshots() {
    let mut s = Scenario::with(|limits| limits.open_turns = 2);
    let (ann, bob, turns) = short_window(&mut s, 8, 2);
    bob.loses_connection();
    ann.truncates(&turns[3]).unwrap();
    let answer = bob.reconnects();
    assert_eq!(answer["type"], "snapshot");
    assert_eq!(bob.turns(), turns[2..4]);
}

// G-19: pages do not count: they are not replayed and may not have arrived
#[test]
fn a_page_that_was_fetched_does_not_make_the_gap_replayable() {
    let mut s = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 50;
    });
    let (ann, bob, turns) = short_window(&mut s, 8, 2);
    bob.fetches_turns();
    assert_eq!(bob.turns().len(), 8);
    bob.loses_connection();
    ann.truncates(&turns[3]).unwrap();
    assert_eq!(bob.reconnects()["type"], "snapshot");
}

// G-19: a truncate that the client saw live, with its page, and one in the gap above it
#[test]
fn a_page_that_came_with_a_truncate_does_not_count_either() {
    let mut s = Scenario::with(|limits| limits.open_turns = 2);
    let (ann, bob, turns) = short_window(&mut s, 8, 2);
    ann.truncates(&turns[4]).unwrap();
    assert_eq!(bob.turns(), turns[..5]);
    bob.loses_connection();
    ann.truncates(&turns[2]).unwrap();
    assert_eq!(bob.reconnects()["type"], "snapshot");
}

// G-19: a cut that came while the page was on its way and lost with the link
#[test]
fn a_truncate_whose_page_was_lost_on_the_way_is_not_replayed() {
    let mut s = Scenario::with(|limits| limits.open_turns = 2);
    let (ann, bob, turns) = short_window(&mut s, 8, 2);
    bob.stalls();
    ann.truncates(&turns[4]).unwrap();
    bob.loses_connection();
    assert_eq!(bob.reconnects()["type"], "snapshot");
}

// G-19: within the window, and of everything, a replay is exact
#[test]
fn a_gap_that_cuts_within_the_window_is_replayed() {
    for restart in [false, true] {
        for all in [false, true] {
            let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 2).and_chat();
            let turns = ann.sends_messages(8);
            let bob = s.client("bob").joins(&ann);
            bob.watches_turns(&ann.chat(), 4);
            bob.loses_connection();
            if all {
                ann.truncates_all().unwrap();
            } else {
                ann.truncates(&turns[5]).unwrap();
            }
            ann.sends_message("after");
            if restart {
                s.host_restarts_for([&ann]);
            }
            assert_eq!(bob.reconnects()["type"], "replay", "{restart} {all}");
            assert_eq!(bob.sent_messages().last().unwrap(), "after");
            s.all_agree();
        }
    }
}

// G-18, G-19: pages after a replay go on where the window begins, though turns in it were cut
#[test]
fn pages_after_a_replayed_truncate_go_on_where_the_window_begins() {
    let mut s = Scenario::with(|limits| {
        limits.open_turns = 2;
        limits.page_turns = 2;
    });
    let (ann, bob, turns) = short_window(&mut s, 8, 4);
    bob.loses_connection();
    ann.truncates(&turns[4]).unwrap();
    assert_eq!(bob.reconnects()["type"], "replay");
    assert_eq!(bob.turns(), turns[4..5]);
    bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
    assert_eq!(bob.turns(), turns[2..5]);
    bob.fetches_turns();
    assert_eq!(bob.turns(), turns[..5]);
}

// H-176: what was cut cannot be resumed; what is latest now, can
#[test]
fn only_a_remaining_turn_can_be_resumed() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["x"]).stores_checkpoint("first").fails_resumably();
    let first = ann.sends_message("one");
    s.model().streams(["y"]).stores_checkpoint("second").fails_resumably();
    let second = ann.sends_message("two");
    ann.truncates(&first).unwrap();
    assert!(ann.resumes(&second).is_err());
    s.model().streams(["z"]);
    ann.resumes(&first).unwrap();
    let run = s.look().models.asked.last().cloned().unwrap();
    assert_eq!(run.message["text"], "one");
    assert_ne!(
        run.resume.flatten().as_deref(),
        Some(b"second".as_slice()),
        "a checkpoint belongs to its turn"
    );
    assert_eq!(ann.reads(), "xz");
    s.host_restarts_for([&ann]);
    assert_eq!(ann.sent_messages(), ["one"]);
}

// H-237, H-176: a resumed turn is a running one
#[test]
fn a_resumed_turn_is_dropped_like_any_that_runs_and_does_not_come_back() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let first = ann.sends_message("first");
    s.model().streams(["x"]).fails_resumably();
    let turn = ann.sends_message("second");
    s.model().hangs();
    ann.resumes(&turn).unwrap();
    assert!(ann.truncates(&turn).is_err(), "it is not completed");
    ann.truncates(&first).unwrap();
    assert_eq!(bob.turns(), std::slice::from_ref(&first));
    s.host_restarts_for([&ann, &bob]);
    assert_eq!(bob.turns(), [first]);
    assert!(ann.resumes(&turn).is_err());
}

// ADR 0004: the named turn is on disk
#[test]
fn a_truncate_far_back_in_a_chat_at_rest_finds_its_turn() {
    let (mut s, ann) = Scenario::with(|limits| {
        limits.open_turns = 1;
        limits.page_turns = 2;
    })
    .and_chat();
    let turns = ann.sends_messages(9);
    s.host_restarts();
    s.reads_take_ms(30);
    ann.reconnects();
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 1);
    ann.sends_message("one more");
    bob.truncates(&turns[2]).unwrap();
    assert_eq!(s.state(&ann.chat())["turns"].as_array().unwrap().len(), 3);
}

// ADR 0004: two truncates while the journal is being read
#[test]
fn two_truncates_at_once_are_taken_one_after_the_other() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let turns = ann.sends_messages(8);
    s.host_restarts_for([&ann]);
    let bob = s.client("bob").joins(&ann);
    s.reads_take_ms(40);
    let cut = |turn: &str| json!({"type": "chat/truncated", "turnId": turn});
    let first = ann.dispatches(&ann.chat(), cut(&turns[2]));
    let second = bob.dispatches(&ann.chat(), cut(&turns[5]));
    s.settles();
    let turn_count = s.state(&ann.chat())["turns"].as_array().unwrap().len();
    // Whoever came first: t5 cannot be cut to once it is gone.
    assert_eq!(ann.refusal(first), None);
    assert_eq!(turn_count, 3);
    let _ = bob.refusal(second);
}

// G-15
#[test]
fn a_truncate_that_cannot_be_written_changes_nothing() {
    let mut s = Scenario::with(|limits| limits.open_turns = 2);
    let (ann, bob, turns) = short_window(&mut s, 5, 1);
    s.faults().break_disk();
    assert!(ann.truncates(&turns[1]).is_err());
    assert_eq!(bob.turns(), turns[4..]);
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
    ann.truncates(&turns[1]).unwrap();
    assert_eq!(ann.turns(), turns[..2]);
}

// Prepare, write, send, act
#[test]
fn a_host_that_dies_while_it_truncates_has_done_it_or_not() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 2).and_chat();
        let turns = ann.sends_messages(6);
        let bob = s.client("bob").joins(&ann);
        bob.watches_turns(&ann.chat(), 1);
        s.model().hangs();
        ann.sends_message("busy");
        s.host_dies_at(point);
        let cut = json!({"type": "chat/truncated", "turnId": turns[2]});
        ann.dispatches(&ann.chat(), cut);
        s.settles();
        assert!(!s.look().is_up(), "{point:?}");
        s.host_restarts_for([&ann, &bob]);
        let left = ann.turns().len();
        assert_eq!(left, if point == Kill::BeforeWrite { 7 } else { 3 }, "{point:?}");
        s.all_agree();
    }
}

// H-237 and the rest of the chat: draft, queue and flags stay
#[test]
fn a_truncate_takes_nothing_but_turns() {
    let (_s, ann) = Scenario::with_chat();
    ann.sends_messages(2);
    let draft = json!({"text": "dra", "origin": {"kind": "user"}});
    let action = json!({"type": "chat/draftChanged", "draft": draft});
    ann.tries(&ann.chat(), action).unwrap();
    let archived = json!({"type": "chat/isArchivedChanged", "isArchived": true});
    ann.tries(&ann.chat(), archived).unwrap();
    ann.truncates_all().unwrap();
    let chat = ann.sees(&ann.chat());
    assert_eq!(chat["draft"]["text"], "dra");
    assert_eq!(chat["status"].as_u64().unwrap() & 64, 64);
}

// An action that names a turn with something else than its id
#[test]
fn a_truncate_with_a_bad_turn_is_refused_and_does_not_clear_all() {
    let (_s, ann) = Scenario::with_chat();
    ann.sends_messages(2);
    for bad in [json!(7), json!(""), json!([]), json!({"id": "x"})] {
        let action = json!({"type": "chat/truncated", "turnId": bad});
        assert!(ann.tries(&ann.chat(), action).is_err(), "{bad}");
    }
    assert_eq!(ann.turns().len(), 2);
}

// H-170: an id that was dropped with its running turn was used all the same
#[test]
fn an_id_that_was_dropped_is_not_used_again() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["seen"]).hangs();
    let active = ann.sends_message("busy");
    ann.tries(&ann.chat(), json!({"type": "chat/truncated"})).unwrap();
    let again = ann.turn_started(&active, "again");
    assert!(ann.tries(&ann.chat(), again).is_err());
}
