//! Subscriptions: a snapshot and a subscription, in one step; history page by page.

use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

fn talks(client: &ScenarioClient, turns: usize) {
    for n in 0..turns {
        client.sends_message(&format!("message {n}"));
    }
}

fn turn_count(client: &ScenarioClient) -> usize {
    client.sees(&client.chat())["turns"].as_array().unwrap().len()
}

// H-040, H-041
#[test]
fn a_snapshot_is_of_the_moment_it_was_taken() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("one");
    let bob = s.client("bob").arrives();
    let seq = s.look().kernel().seq().0;
    let answer = bob.watches(&ann.chat());
    assert_eq!(answer["snapshot"]["fromSeq"], seq);
    assert_eq!(answer["snapshot"]["resource"], ann.chat().as_str());
    ann.sends_message("two");
}

// H-042
#[test]
fn the_answer_comes_before_any_action_of_the_channel() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    bob.requests("subscribe", json!({"channel": ann.chat()}));
    ann.starts("hello");
    s.settles();
    let frames = bob.received_frames();
    let answer = frames.iter().rposition(|name| name == "=").unwrap();
    assert!(frames[..answer].iter().all(|name| !name.starts_with("chat/")), "{frames:?}");
}

// H-044
#[test]
fn resubscribing_gives_a_fresh_snapshot_and_each_action_still_once() {
    let (_s, ann) = Scenario::with_chat();
    ann.watches(&ann.chat());
    ann.watches(&ann.chat());
    ann.received_actions();
    ann.sends_message("hello");
    let starts = ann.received_actions().iter().filter(|name| *name == "chat/turnStarted").count();
    assert_eq!(starts, 1);
}

// H-045, G-23
#[test]
fn missing_channels_cannot_be_subscribed_to() {
    let (_, ann) = Scenario::with_client();
    for (channel, code) in [
        ("ahp-session:/none", -32001),
        ("scripted:/none", -32001),
        ("ahp-chat:/none", -32008),
        ("ahp-terminal:/none", -32008),
        ("ahp-session:/none/annotations", -32001),
        ("ahp-session:/none/changeset/session", -32001),
        ("scripted:/none/changeset/turn/t1", -32001),
        ("ahp-resource-watch:/none", -32008),
        ("x-else:/none", -32008),
        ("no uri", -32602),
    ] {
        assert_eq!(ann.is_denied("subscribe", json!({"channel": channel})), code, "{channel}");
    }
}

// H-046
#[test]
fn unsubscribing_stops_delivery_without_an_answer() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    bob.unwatches(&ann.chat());
    bob.unwatches("ahp-chat:/never-watched");
    bob.settles();
    let before = bob.with(|client| client.frames.len());
    ann.sends_message("hello");
    assert!(bob.received_frames()[before..].iter().all(|name| !name.starts_with("chat/")));
}

// H-043
#[test]
fn only_subscribers_receive_actions() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives_watching(&[]);
    ann.sends_message("hello");
    assert_eq!(bob.received_frames(), ["="]);
}

// H-049, H-050, G-18
#[test]
fn a_view_shows_the_newest_turns_and_pages_bring_the_rest() {
    let (mut s, ann) = Scenario::with(|limits| limits.page_turns = 3).and_chat();
    talks(&ann, 10);
    let bob = s.client("bob").joins(&ann);
    assert_eq!(turn_count(&bob), 10);
    bob.watches_turns(&ann.chat(), 2);
    assert_eq!(turn_count(&bob), 2);
    s.all_agree();
    for expected in [5, 8, 10] {
        let cursor = bob.sees(&ann.chat())["turnsNextCursor"].clone();
        assert!(cursor.is_string());
        assert_eq!(
            bob.asks("fetchTurns", json!({"channel": ann.chat(), "cursor": cursor})),
            Ok(json!({}))
        );
        assert_eq!(turn_count(&bob), expected);
        s.all_agree();
    }
    assert!(bob.sees(&ann.chat()).get("turnsNextCursor").is_none());
}

// G-18: without a cursor, the page before the oldest turn this connection was sent
#[test]
fn fetching_without_a_cursor_goes_on_where_the_connection_is() {
    let (mut s, ann) = Scenario::with(|limits| limits.page_turns = 4).and_chat();
    talks(&ann, 10);
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 1);
    for expected in [5, 9, 10, 10] {
        bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
        assert_eq!(turn_count(&bob), expected);
    }
}

// H-238, H-240, G-18: the page is an action for one connection, before the answer, with a seq of its own
#[test]
fn a_page_is_for_its_asker_alone_and_uses_a_seq() {
    let (mut s, ann) = Scenario::with_chat();
    talks(&ann, 3);
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 1);
    ann.received_actions();
    let seq = s.look().kernel().seq().0;
    bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
    let frames = bob.received_frames();
    assert_eq!(frames[frames.len() - 2..], ["chat/turnsLoaded", "="]);
    assert_eq!(bob.with(|client| client.top_seq), seq + 1);
    assert!(ann.received_actions().is_empty());
    s.host_restarts();
    assert!(s.look().kernel().seq().0 > seq, "the seq of the page is never used again");
    bob.reconnects();
    ann.reconnects();
    ann.sends_message("four");
}

// H-238
#[test]
fn unknown_cursors_and_unwatched_chats_are_refused() {
    let (mut s, ann) = Scenario::with_chat();
    talks(&ann, 2);
    for cursor in ["before:nobody", "garbage", ""] {
        assert_eq!(
            ann.is_denied("fetchTurns", json!({"channel": ann.chat(), "cursor": cursor})),
            -32602
        );
    }
    let bob = s.client("bob").arrives();
    assert_eq!(bob.is_denied("fetchTurns", json!({"channel": ann.chat()})), -32602);
    assert_eq!(ann.is_denied("fetchTurns", json!({"channel": "ahp-chat:/none"})), -32008);
}

// G-18: a page ends with the turn that crosses the limit
#[test]
fn a_page_is_bounded_by_bytes_too() {
    let (mut s, ann) = Scenario::with(|limits| limits.page_bytes = 1).and_chat();
    talks(&ann, 4);
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 1);
    bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
    assert_eq!(turn_count(&bob), 2);
}

// H-049: a smaller view of another client must not shrink ours
#[test]
fn a_full_snapshot_after_a_small_one_of_a_chat_at_rest_is_full() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 2).and_chat();
    talks(&ann, 8);
    ann.loses_connection();
    s.host_restarts();
    let bob = s.client("bob").arrives();
    let answer = bob.watches_turns(&ann.chat(), 2);
    assert_eq!(answer["snapshot"]["state"]["turns"].as_array().unwrap().len(), 2);
    let cem = s.client("cem").arrives();
    let answer = cem.watches(&ann.chat());
    assert_eq!(answer["snapshot"]["state"]["turns"].as_array().unwrap().len(), 8);
    assert_eq!(answer["snapshot"]["state"].get("turnsNextCursor"), None::<&Value>);
}

// G-29: all snapshots of one response share the bound; the newest turns that fit
#[test]
fn a_snapshot_that_does_not_fit_holds_the_newest_turns_and_a_cursor() {
    let (mut s, ann) = Scenario::with(|limits| limits.message_out_bytes = 6_000).and_chat();
    talks(&ann, 20);
    let bob = s.client("bob").arrives();
    let answer = bob.watches(&ann.chat());
    let state = &answer["snapshot"]["state"];
    let turns = state["turns"].as_array().unwrap().len();
    assert!(turns > 0 && turns < 20, "{turns}");
    assert!(state["turnsNextCursor"].is_string());
}

// H-047, H-048, G-16: the window travels with the frames
#[test]
fn a_delivery_window_is_carried_on_the_frames_of_its_channel() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives_watching(&[]);
    let params = json!({"channel": ann.chat(), "delivery": {"maxLatencyMs": 25}});
    bob.asks("subscribe", params).unwrap();
    s.world().windows.clear();
    ann.sends_message("hello");
    let windows = s.look().windows.get(&bob.index()).cloned().unwrap();
    assert!(!windows.is_empty() && windows.iter().all(|window| *window == 25), "{windows:?}");
    bob.asks("ping", json!({"channel": ROOT})).unwrap();
    assert_eq!(s.look().windows[&bob.index()].last(), Some(&0));
}

// H-054
#[test]
fn a_disposed_session_ends_its_subscriptions() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    assert_eq!(bob.notifications("root/sessionRemoved").len(), 1);
    assert_eq!(bob.is_denied("subscribe", json!({"channel": ann.chat()})), -32008);
    assert_eq!(bob.is_denied("fetchTurns", json!({"channel": ann.chat()})), -32008);
}

// G-29
#[test]
fn subscriptions_have_a_bound() {
    let mut s = Scenario::with(|limits| limits.subscriptions_max = 2);
    let ann = s.client("ann").arrives().creates("ahp-session:/one");
    ann.watches(&ann.session());
    assert_eq!(ann.is_denied("subscribe", json!({"channel": ann.chat()})), -32602);
    ann.watches(&ann.session());
    s.ends_unchecked();
}
