//! Reconnect: what was missed, exactly once, from memory or from the journal; or everything anew.

use kernel::CloseReason;
use serde_json::json;
use testkit::{Kill, ROOT, Scenario};

// H-080: an example
#[test]
fn a_client_that_lost_its_connection_in_mid_stream_catches_up() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().streams(["Hel"]).waits_ms(50).streams(["lo"]);
    ann.starts("greet me");
    s.world().advance_ms(0);
    bob.loses_connection();
    s.settles();
    let answer = bob.reconnects();
    assert_eq!((&answer["type"], &answer["missing"]), (&json!("replay"), &json!([])));
    assert_eq!(bob.reads(), "Hello");
}

// H-085: the floor of a subscribe in mid-connection counts
#[test]
fn actions_in_a_snapshot_are_not_replayed() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("one");
    let bob = s.client("bob").arrives_watching(&[]);
    s.model().streams(["a", "b"]);
    ann.sends_message("two");
    bob.watches(&ann.chat());
    bob.loses_connection();
    ann.sends_message("three");
    let answer = bob.reconnects();
    assert_eq!(answer["type"], "replay");
    assert!(
        answer["actions"]
            .as_array()
            .unwrap()
            .iter()
            .all(|envelope| envelope["channel"] == ann.chat().as_str())
    );
}

// Issue: reconnect that survives a restart; H-062, H-090
#[test]
fn after_a_kill_the_gap_is_replayed_and_the_turn_ends_in_a_resumable_error() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["half "]).stores_checkpoint("here").hangs();
    let turn = ann.sends_message("work");
    let seq = s.look().kernel().seq();
    s.host_restarts();
    assert!(s.look().kernel().seq() > seq);
    let answer = ann.reconnects();
    assert_eq!(answer["type"], "replay");
    let chat = ann.sees(&ann.chat());
    let last = chat["turns"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["id"], &last["state"]), (&json!(turn), &json!("error")));
    assert_eq!(last["responseParts"].as_array().unwrap().last().unwrap()["resumable"], true);
    s.model().streams(["whole"]);
    ann.resumes(&turn).unwrap();
    let run = s.look().models.asked.last().cloned().unwrap();
    assert_eq!(run.resume.flatten().as_deref(), Some(b"here".as_slice()));
    assert_eq!(ann.reads(), "half whole");
}

// Prepare, write, send, act: a crash between any two is safe
#[test]
fn a_host_that_dies_at_any_point_loses_nothing_that_was_seen() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        s.host_dies_at(point);
        ann.starts("hello");
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann, &bob]);
        let turns = ann.sees(&ann.chat())["turns"].as_array().unwrap().len();
        assert_eq!(turns, usize::from(point != Kill::BeforeWrite), "{point:?}");
        s.all_agree();
    }
}

// H-083, G-19
#[test]
fn a_gap_the_log_does_not_hold_any_more_is_answered_with_snapshots() {
    let (mut s, ann, bob) = Scenario::with(|limits| limits.retention_actions = 5).and_shared_chat();
    bob.loses_connection();
    ann.repeats_message(4, "more");
    s.advances_ms(31_000);
    let answer = bob.reconnects();
    assert_eq!(answer["type"], "snapshot");
    assert!(answer.get("missing").is_none());
}

// G-19: the tail in memory and the journal behind it say the same
#[test]
fn a_tail_that_does_not_reach_is_filled_from_the_journal() {
    let (mut s, ann, bob) = Scenario::with(|limits| limits.tail_bytes = 600).and_shared_chat();
    bob.loses_connection();
    ann.repeats_message(5, "more");
    s.reads_take_ms(50);
    let answer = bob.reconnects();
    assert_eq!(answer["type"], "replay");
    assert!(s.look().reads.iter().any(|query| matches!(query, kernel::Query::Log { .. })));
}

// G-19: what is recorded while the journal is read is not missed
#[test]
fn actions_that_come_while_the_gap_is_read_are_in_the_replay() {
    let (mut s, ann, bob) = Scenario::with(|limits| limits.tail_bytes = 600).and_shared_chat();
    bob.loses_connection();
    ann.repeats_message(5, "more");
    s.reads_take_ms(50);
    let bob_again = bob.clone().connects();
    let params = bob.with(|client| client.reconnect_params());
    let sent = bob_again.requests("reconnect", params);
    bob.reaches_host();
    ann.dispatches(&ann.session(), json!({"type": "session/titleChanged", "title": "meanwhile"}));
    s.settles();
    assert_eq!(bob.answer(sent).unwrap().unwrap()["type"], "replay");
    assert_eq!(bob.sees(&ann.session())["title"], "meanwhile");
}

// G-19, G-29
#[test]
fn a_replay_larger_than_a_message_becomes_snapshots() {
    let (mut s, ann, bob) =
        Scenario::with(|limits| limits.message_out_bytes = 20_000).and_shared_chat();
    bob.loses_connection();
    for _ in 0..40 {
        ann.dispatches(
            &ann.session(),
            json!({"type": "session/titleChanged", "title": "x".repeat(400)}),
        );
        ann.dispatches(
            &ann.session(),
            json!({"type": "session/titleChanged", "title": "y".repeat(400)}),
        );
    }
    s.settles();
    assert_eq!(bob.reconnects()["type"], "snapshot");
}

// H-081, G-19: gone is missing, a URI used again is another channel
#[test]
fn disposed_channels_are_missing_and_reused_uris_come_as_snapshots() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.loses_connection();
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    let answer = bob.reconnects();
    assert_eq!(answer["missing"], json!([ann.chat(), ann.session()]));
    bob.watches(ROOT);
    let cem = s.client("cem").arrives().creates("ahp-session:/ann");
    let bob2 = s.client("bob2").joins(&cem);
    bob2.loses_connection();
    cem.asks("disposeSession", json!({"channel": cem.session()})).unwrap();
    let cem = cem.creates("ahp-session:/ann");
    cem.sends_message("a new life");
    assert_eq!(bob2.reconnects()["type"], "snapshot");
}

// G-19: never served to this client id
#[test]
fn a_channel_never_served_is_answered_with_snapshots() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    bob.loses_connection();
    let params = json!({"channel": ROOT, "clientId": "bob", "subscriptions": [ROOT, ann.chat()],
        "lastSeenServerSeq": bob.with(|client| client.last_seen)});
    let bob = bob.connects();
    assert_eq!(bob.asks("reconnect", params).unwrap()["type"], "snapshot");
}

// G-19: a snapshot that replaced another counts only once the client has shown that it has it
#[test]
fn a_replaced_snapshot_that_may_not_have_arrived_is_sent_again() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    bob.stalls();
    let peer = bob.with(|client| client.link).unwrap();
    ann.sends_message("unheard by bob");
    bob.unstalls();
    bob.requests("subscribe", json!({"channel": ann.chat()}));
    while s.world().carry_to_host(peer) {}
    while s.world().batch(64) {}
    bob.loses_connection();
    assert_eq!(bob.reconnects()["type"], "snapshot");
}

// G-19: the snapshots of an initialize replace what the client had before
#[test]
fn an_initialize_whose_answer_was_lost_does_not_hide_the_gap() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    bob.loses_connection();
    ann.sends_message("missed");
    let bob = bob.connects();
    let params =
        bob.with(|client| client.initialize_params(&[ROOT.to_owned(), ann.session(), ann.chat()]));
    bob.requests("initialize", params);
    bob.reaches_host();
    bob.loses_connection();
    bob.reconnects();
}

// H-084
#[test]
fn a_client_that_saw_more_than_there_is_gets_snapshots() {
    let (_s, ann) = Scenario::with_chat();
    ann.loses_connection();
    ann.with(|client| client.last_seen = 9_999);
    assert_eq!(ann.reconnects()["type"], "snapshot");
}

// H-088, G-20
#[test]
fn an_unknown_client_gets_an_error_and_may_initialize_on_the_same_connection() {
    let mut s = Scenario::new();
    let ann = s.client("ann").connects();
    let params = ann.with(|client| client.reconnect_params());
    assert_eq!(ann.is_denied("reconnect", params), -32008);
    let params = ann.with(|client| client.initialize_params(&[ROOT.to_owned()]));
    ann.asks("initialize", params).unwrap();
    assert!(s.look().closed.is_empty());
}

// G-20
#[test]
fn a_client_not_seen_for_long_is_forgotten() {
    let (mut s, ann, bob) = Scenario::with(|limits| limits.client_ttl_s = 100).and_shared_chat();
    bob.loses_connection();
    s.advances_in_steps(150_000, 10_000);
    ann.sends_message("something moves");
    s.advances_ms(40_000);
    let bob = bob.connects();
    let params = bob.with(|client| client.reconnect_params());
    assert_eq!(bob.is_denied("reconnect", params), -32008);
}

// G-20: the time to live counts from when a client was last there, and a connected one is there
#[test]
fn a_client_that_is_connected_is_not_forgotten() {
    let (mut s, ann) = Scenario::with(|limits| limits.client_ttl_s = 100).and_chat();
    s.advances_in_steps(150_000, 10_000);
    ann.sends_message("still here");
    s.advances_ms(40_000);
    s.host_restarts();
    assert_eq!(ann.reconnects()["type"], "replay");
}

// H-036, G-20
#[test]
fn a_newer_connection_replaces_the_older() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    // Still read from the older connection: processed first.
    let action = json!({"type": "session/titleChanged", "title": "from the old one"});
    let (_, text) = bob.with(|client| client.dispatch(&ann.session(), action));
    bob.sends_raw(&text);
    let answer = bob.reconnects();
    assert_eq!(answer["type"], "replay");
    assert_eq!(s.look().closed, [(bob.index(), CloseReason::Superseded)]);
    ann.sends_message("hello");
}

// H-086, H-087
#[test]
fn notifications_and_refusals_are_not_replayed() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.loses_connection();
    assert!(ann.tries(&ann.session(), json!({"type": "session/ready"})).is_err());
    s.client("cem").opens_chat().sends_message("first");
    let answer = bob.reconnects();
    let types: Vec<&str> = answer["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["action"]["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["root/activeSessionsChanged"]);
    assert_eq!(bob.received_frames(), ["="]);
}

// H-089
#[test]
fn an_older_client_is_replayed_what_it_would_have_received() {
    let (mut s, ann) = Scenario::with_chat();
    let old = s.client_of("old", "0.9.0").joins(&ann);
    old.loses_connection();
    ann.tries(&ann.chat(), json!({"type": "chat/isReadChanged", "isRead": true})).unwrap();
    ann.sends_message("hello");
    let answer = old.reconnects();
    let knows = |e: &serde_json::Value| e["action"]["type"] != "chat/isReadChanged";
    assert!(answer["actions"].as_array().unwrap().iter().all(knows));
}

// G-20: the snapshot form uses the stored view
#[test]
fn the_view_survives_in_the_snapshot_form() {
    let (mut s, ann) = Scenario::with(|limits| limits.retention_actions = 5).and_chat();
    ann.repeats_message(6, "more");
    let bob = s.client("bob").arrives();
    bob.watches_turns(&ann.chat(), 2);
    bob.loses_connection();
    ann.repeats_message(3, "more");
    s.advances_ms(31_000);
    assert_eq!(bob.reconnects()["type"], "snapshot");
    assert_eq!(bob.sees(&ann.chat())["turns"].as_array().unwrap().len(), 2);
}

// H-240, G-18: a replay does not make the host forget how far a connection's window reaches
#[test]
fn after_a_replay_a_full_window_is_still_full() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 2).and_chat();
    ann.repeats_message(6, "more");
    s.host_restarts();
    assert_eq!(ann.reconnects()["type"], "replay");
    ann.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
}

// G-20: two attempts at once; the floors are read when it is the second one's turn
#[test]
fn two_reconnects_in_a_row_leave_one_connection() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.loses_connection();
    ann.sends_message("missed");
    s.reads_take_ms(30);
    let first = bob.clone().connects();
    let params = bob.with(|client| client.reconnect_params());
    first.requests("reconnect", params);
    bob.reaches_host();
    assert_eq!(bob.reconnects()["type"], "replay");
    ann.sends_message("heard");
}

// H-240, G-18: what was watched from the first turn on has no older turns, also after a replay
#[test]
fn a_window_that_began_empty_reaches_the_beginning() {
    let (_s, ann) = Scenario::with(|limits| limits.page_turns = 2).and_chat();
    ann.repeats_message(4, "more");
    ann.loses_connection();
    assert_eq!(ann.reconnects()["type"], "replay");
    ann.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
}

// G-19: the first snapshot of a channel that took the URI of another replaces that one's
#[test]
fn a_lost_snapshot_of_a_reused_uri_is_sent_again() {
    let (s, ann, bob) = Scenario::with_shared_chat();
    bob.unwatches(&ann.session());
    ann.sends_message("the old life");
    let peer = bob.with(|client| client.link).unwrap();
    // From here on bob receives nothing, but can send.
    ann.requests("disposeSession", json!({"channel": ann.session()}));
    ann.requests("createSession", json!({"channel": ann.session()}));
    ann.reaches_host();
    bob.requests("subscribe", json!({"channel": ann.chat()}));
    while s.world().carry_to_host(peer) {}
    while s.world().batch(64) {}
    bob.loses_connection();
    bob.reconnects();
}
