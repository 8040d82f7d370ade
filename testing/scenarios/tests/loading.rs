//! Loading: sessions at rest are on disk; a message for one of them makes only its own sender wait.

use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

/// A chat with a few turns that is not in memory.
fn at_rest(s: &mut Scenario) -> (String, String) {
    let ann = s.client("old-ann").opens_chat();
    ann.repeats_message(3, "hi");
    ann.loses_connection();
    s.host_restarts();
    s.reads_take_ms(100);
    (ann.session(), ann.chat())
}

fn delivers(s: &mut Scenario, client: &ScenarioClient) {
    let peer = client.with(|client| client.link).unwrap();
    let mut world = s.world();
    while world.carry_to_host(peer) {}
    while world.batch(64) {}
    while world.carry_to_client(peer) {}
}

fn channel_reads(s: &Scenario, chat: &str) -> usize {
    let of = |query: &&kernel::Query| matches!(query, kernel::Query::Channel { uri, .. } if uri.as_str() == chat);
    s.look().reads.iter().filter(of).count()
}

// ADR 0004
#[test]
fn ping_passes_and_the_rest_of_its_sender_waits_in_order() {
    let mut s = Scenario::new();
    let (session, chat) = at_rest(&mut s);
    let ann = s.client("ann").arrives();
    let bob = s.client("bob").arrives();
    let slow = ann.requests("subscribe", json!({"channel": chat}));
    let behind = ann.requests("resolveSessionConfig", json!({"channel": ROOT}));
    let ping = ann.requests("ping", json!({"channel": ROOT}));
    let other = bob.requests("resolveSessionConfig", json!({"channel": ROOT}));
    delivers(&mut s, &ann);
    delivers(&mut s, &bob);
    assert_eq!(ann.answer(ping), Some(Ok(Value::Null)));
    assert!(ann.answer(slow).is_none() && ann.answer(behind).is_none());
    assert!(bob.answer(other).is_some());
    s.settles();
    assert!(ann.answer(slow).unwrap().is_ok() && ann.answer(behind).unwrap().is_ok());
    ann.watches(&session);
}

#[test]
fn while_too_much_is_in_memory_what_nobody_uses_leaves_it_soon() {
    let (mut s, ann) = Scenario::with(|limits| limits.loaded_bytes_max = 1).and_chat();
    let bob = s.client("bob").opens_chat();
    for writer in [&ann, &bob] {
        writer.sends_message("hi");
        writer.loses_connection();
    }
    s.host_restarts();
    let cat = s.client("cat").arrives();
    cat.watches(&ann.chat());
    cat.watches(&bob.chat());
    assert_eq!(s.look().agents_heard.unloaded, [""; 0], "both were used just now");
    s.advances_in_steps(6_000, 500);
    assert_eq!(
        s.look().agents_heard.unloaded,
        [""; 0],
        "room is made for what comes, long before it is idle"
    );
    let dan = s.client("dan").opens_chat();
    dan.sends_message("hi");
    dan.loses_connection();
    s.host_restarts();
    let cat = s.client("cat").arrives();
    cat.watches(&ann.chat());
    s.advances_in_steps(6_000, 500);
    cat.watches(&dan.chat());
    assert_eq!(s.look().agents_heard.unloaded, [ann.chat()]);
    let before = channel_reads(&s, &ann.chat());
    let back = s.client("ann").arrives();
    back.watches(&ann.chat());
    assert_eq!(channel_reads(&s, &ann.chat()) - before, 1, "it is read again");
}

// ADR 0004
#[test]
fn two_who_want_the_same_share_one_question() {
    let mut s = Scenario::new();
    let (_, chat) = at_rest(&mut s);
    let ann = s.client("ann").arrives();
    let bob = s.client("bob").arrives();
    let before = channel_reads(&s, &chat);
    ann.requests("subscribe", json!({"channel": chat}));
    bob.requests("subscribe", json!({"channel": chat}));
    delivers(&mut s, &ann);
    delivers(&mut s, &bob);
    s.settles();
    assert_eq!(channel_reads(&s, &chat) - before, 1);
}

// ADR 0004
#[test]
fn a_failed_load_is_an_error_for_a_request_and_a_refusal_for_an_action() {
    let mut s = Scenario::new();
    let (session, chat) = at_rest(&mut s);
    let ann = s.client("ann").arrives();
    s.faults().break_reads();
    assert_eq!(ann.is_denied("subscribe", json!({"channel": chat})), -32603);
    assert_eq!(ann.is_denied("listSessions", json!({})), -32603);
    assert!(ann.tries(&session, json!({"type": "session/titleChanged", "title": "x"})).is_err());
    assert_eq!(ann.asks("ping", json!({})), Ok(Value::Null));
    s.faults().mend_reads();
    ann.watches(&chat);
}

// ADR 0004: idle channels leave memory, watchers stay watchers
#[test]
fn an_idle_channel_leaves_memory_and_comes_back_equal() {
    let (mut s, ann, bob) =
        Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_shared_chat();
    ann.repeats_message(3, "hi");
    let uri = wire::ChannelUri::parse(&ann.chat()).unwrap();
    s.advances_in_steps(5_000, 500);
    assert!(s.look().kernel().state_of(&uri).is_none());
    ann.sends_message("back");
    assert_eq!(bob.sees(&ann.chat())["turns"].as_array().unwrap().len(), 4);
}

// ADR 0004: a chat with a running turn stays
#[test]
fn a_chat_whose_turn_runs_stays_in_memory() {
    let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
    s.model().streams(["a"]).waits_ms(20_000).streams(["b"]);
    ann.starts("slow");
    s.settles();
    assert_eq!(ann.reads(), "ab");
}

// ADR 0004: what was read before a session was disposed of does not bring it back
#[test]
fn a_chat_disposed_of_while_it_is_read_stays_gone() {
    let mut s = Scenario::with(|limits| limits.channel_idle_ms = 1_000);
    let (session, chat) = at_rest(&mut s);
    let ann = s.client("ann").arrives();
    let bob = s.client("bob").arrives();
    ann.watches(&session);
    s.reads_take_ms(1_000);
    let slow = ann.requests("subscribe", json!({"channel": chat}));
    delivers(&mut s, &ann);
    s.reads_take_ms(0);
    let gone = bob.requests("disposeSession", json!({"channel": session}));
    delivers(&mut s, &bob);
    assert!(bob.answer(gone).unwrap().is_ok());
    s.settles();
    assert_eq!(ann.answer(slow).unwrap().unwrap_err()["code"], -32008);
    assert_eq!(ann.is_denied("subscribe", json!({"channel": session})), -32001);
}

// G-29
#[test]
fn one_who_sends_too_much_while_waiting_is_read_no_more_until_it_is_served() {
    let mut s = Scenario::with(|limits| {
        limits.requests_in_flight_max = 4;
        limits.parked_bytes_max = 2_000;
    });
    let (session, _) = at_rest(&mut s);
    let ann = s.client("ann").arrives();
    for n in 0..30 {
        ann.dispatches(&session, json!({"type": "session/titleChanged", "title": format!("{n}")}));
    }
    let peer = ann.with(|client| client.link).unwrap();
    for _ in 0..40 {
        s.world().carry_to_host(peer);
        s.world().batch(64);
    }
    assert!(s.look().links[&peer].paused);
    s.settles();
    assert!(!s.look().links[&peer].paused);
    assert_eq!(s.state(&session)["title"], "29");
}

// Trimming: a turn that streams on is whole after its oldest actions were forgotten
#[test]
fn trimming_does_not_lose_text_of_a_running_turn() {
    let (mut s, ann) = Scenario::with(|limits| limits.retention_actions = 3).and_chat();
    let words: Vec<String> = (0..30).map(|n| format!("w{n} ")).collect();
    s.model().streams(words.iter().map(String::as_str)).hangs();
    ann.sends_message("talk");
    s.advances_ms(31_000);
    let seen = ann.reads();
    s.host_restarts();
    assert_eq!(ann.reconnects()["type"], "replay");
    assert_eq!(ann.reads(), seen);
    assert_eq!(seen, words.concat());
}

// H-062
#[test]
fn the_seq_goes_on_over_restarts() {
    let (mut s, ann) = Scenario::with_chat();
    for _ in 0..3 {
        ann.sends_message("hi");
        let seq = s.look().kernel().seq();
        s.host_restarts();
        assert!(s.look().kernel().seq() >= seq);
        ann.reconnects();
    }
}
