//! Steering: one message that reaches the agent in the middle of its turn, when it can take it.

use agent_api::AgentReply;
use testkit::{Kill, Scenario};

fn steering_replies(s: &Scenario) -> Vec<Option<String>> {
    let world = s.look();
    let steering_replies = world
        .models
        .replies
        .iter()
        .filter_map(|(_, reply)| match reply {
            AgentReply::Steered { message, .. } => Some(message.as_ref()),
            _ => None,
        });
    steering_replies
        .map(|message| message.map(|message| message["text"].as_str().unwrap_or("").to_owned()))
        .collect()
}

// H-232: consumed at a point of the agent's choice, and announced before
#[test]
fn a_steering_message_reaches_the_agent_at_its_next_steer_point() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    s.model()
        .waits_ms(100)
        .steers()
        .repeats()
        .steers()
        .repeats();
    ann.starts("go");
    s.world().advance_ms(0);
    bob.dispatches(&ann.chat(), bob.pending_set("steering", "s1", "left!"));
    s.settles();
    assert_eq!(ann.reads(), "steered left!not steered");
    assert_eq!(steering_replies(&s), [Some("left!".to_owned()), None]);
    assert!(ann.sees(&ann.chat()).get("steeringMessage").is_none());
    let envelopes = ann.with(|client| client.envelopes.clone());
    let removed = envelopes
        .iter()
        .find(|envelope| envelope["action"]["type"] == "chat/pendingMessageRemoved")
        .unwrap();
    assert_eq!(removed["action"]["id"], "s1");
    assert!(removed.get("origin").is_none());
    assert_eq!(ann.sent_messages(), ["go"], "it is no turn of its own");
    s.all_agree();
}

// H-230: one slot
#[test]
fn a_second_steering_message_replaces_the_first() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    s.model().waits_ms(100).steers();
    ann.starts("go");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "left"));
    bob.dispatches(&ann.chat(), bob.pending_set("steering", "s2", "right"));
    s.settles();
    assert_eq!(steering_replies(&s), [Some("right".to_owned())]);
    s.all_agree();
}

// H-232: stored silently while idle; G-08: what is left at the end stays for the next turn
#[test]
fn steering_waits_for_a_turn_that_takes_it() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    ann.steers("s1", "keep left").unwrap();
    assert!(s.asked().is_empty());
    ann.sends_message("does not look");
    let waiting = ann.sees(&ann.chat())["steeringMessage"].clone();
    assert_eq!(waiting["message"]["text"], "keep left");
    s.host_restarts();
    ann.reconnects();
    s.model().steers();
    ann.sends_message("looks");
    assert_eq!(steering_replies(&s), [Some("keep left".to_owned())]);
    s.all_agree();
}

// G-08: it survives a cancel, an error and a truncate as well
#[test]
fn steering_survives_every_end_of_a_turn() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    s.model().hangs();
    let turn = ann.sends_message("one");
    ann.steers("s1", "keep").unwrap();
    ann.cancels(&turn).unwrap();
    s.model().fails();
    ann.sends_message("two");
    s.model().hangs();
    ann.sends_message("three");
    ann.truncates_all().unwrap();
    assert_eq!(ann.sees(&ann.chat())["steeringMessage"]["id"], "s1");
    s.model().steers();
    ann.sends_message("four");
    assert_eq!(steering_replies(&s), [Some("keep".to_owned())]);
    s.all_agree();
}

#[test]
fn a_removed_steering_message_is_not_delivered() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    ann.steers("s1", "left").unwrap();
    ann.unsteers("s1").unwrap();
    s.model().steers();
    ann.sends_message("go");
    assert_eq!(steering_replies(&s), [None]);
    s.all_agree();
}

// Prepare, write, send, act: it steers once, or waits
#[test]
fn a_host_that_dies_at_a_steer_point_does_not_lose_the_message_before_it_was_taken() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let mut s = Scenario::new();
        let ann = s.client("ann").opens_chat();
        s.model().waits_ms(1_000).steers();
        ann.starts("go");
        s.world().advance_ms(0);
        ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "left"));
        let peer = ann.with(|client| client.link).unwrap();
        while s.world().carry_to_host(peer) {}
        while s.world().batch(64) {}
        s.host_dies_at(point);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts();
        ann.reconnects();
        let waits = ann.sees(&ann.chat()).get("steeringMessage").is_some();
        assert_eq!(waits, point == Kill::BeforeWrite, "{point:?}");
        s.all_agree();
    }
}

// G-26, H-231: an id may be used for both kinds; starting the one must not lose the other
#[test]
fn a_queued_and_a_steering_message_of_one_id_are_two_messages() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    ann.queues("same", "queued").unwrap();
    let steering = ann.steers("same", "steering");
    ann.cancels(&turn).unwrap();
    s.model().steers();
    ann.queues("same", "queued").unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "queued"]);
    if steering.is_ok() {
        assert_eq!(steering_replies(&s), [Some("steering".to_owned())]);
    }
    s.all_agree();
}
