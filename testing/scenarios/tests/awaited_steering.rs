//! Steering for an agent that has no points of its own to look for it: it waits for a message, is told of it, and says when it has it.

use agent_api::AgentReply;
use serde_json::{Value, json};
use testkit::{Kill, Scenario, ScenarioClient};

/// The steering messages that agents were told of, in order.
fn told(s: &Scenario) -> Vec<String> {
    let world = s.look();
    let replies = world.models.replies.iter();
    let told = replies.filter_map(|(_, reply)| match reply {
        AgentReply::SteeringWaits { message, pending_id, message_id, .. } => {
            assert!(message_id.is_some(), "its parts are stored");
            Some(format!("{pending_id} {}", message["text"].as_str().unwrap()))
        }
        _ => None,
    });
    told.collect()
}

fn waits(client: &ScenarioClient) -> Option<String> {
    let chat = client.sees(&client.chat());
    let text = chat["steeringMessage"]["message"]["text"].as_str();
    text.map(str::to_owned)
}

fn notices(turn: &Value) -> Vec<String> {
    let parts = turn["responseParts"].as_array().unwrap().iter();
    let notices = parts.filter(|part| part["kind"] == "systemNotification");
    notices.map(|part| part["content"].as_str().unwrap().to_owned()).collect()
}

/// An agent that was told of a message and has not said that it has it; it goes on when it is answered.
fn told_and_not_taken(s: &mut Scenario, ann: &ScenarioClient) {
    s.model()
        .plays(|script| script.awaits_steering().asks_for_text("go on?"))
        .plays(testkit::Script::takes_steering);
    ann.sends_message("go");
    ann.steers("s1", "left").unwrap();
    assert_eq!(told(s), ["s1 left"]);
    assert_eq!(waits(ann), Some("left".to_owned()), "it stays until it is taken");
}

// H-232
#[test]
fn an_agent_that_waits_is_told_at_once_and_the_message_leaves_the_queue_when_it_is_taken() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    told_and_not_taken(&mut s, &ann);
    bob.answers_text("yes").unwrap();
    assert_eq!(waits(&bob), None);
    assert_eq!(bob.sent_messages(), ["go"], "it is no turn of its own");
    let turn = bob.latest_turn();
    assert_eq!(notices(&turn), ["You added: left"]);
    let part = &turn["responseParts"].as_array().unwrap()[1];
    assert_eq!(part["_meta"][wire::meta::STEERING]["text"], "left");
}

#[test]
fn a_message_that_waited_before_the_agent_did_is_told_too() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_for_text("go on?").plays(|script| script.awaits_steering().takes_steering());
    ann.sends_message("go");
    ann.steers("s1", "left").unwrap();
    assert_eq!(told(&s), [""; 0]);
    ann.answers_text("yes").unwrap();
    assert_eq!(told(&s), ["s1 left"]);
    assert_eq!((waits(&ann), ann.sent_messages().len()), (None, 1));
}

// The agent acts on what it has, whatever became of it meanwhile
#[test]
fn a_message_that_is_removed_while_the_agent_has_it_is_shown_with_a_notice() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    told_and_not_taken(&mut s, &ann);
    bob.unsteers("s1").unwrap();
    assert_eq!(waits(&ann), None);
    ann.answers_text("yes").unwrap();
    let told = notices(&ann.latest_turn());
    assert_eq!(told.len(), 2);
    assert_eq!(told[0], "You added: left");
    assert!(told[1].contains("already received") && told[1].contains("removed"), "{told:?}");
    assert_eq!(ann.sent_messages(), ["go"]);
}

#[test]
fn a_message_that_is_changed_while_the_agent_has_it_waits_on_as_it_is_now() {
    let (mut s, ann) = Scenario::with_chat();
    told_and_not_taken(&mut s, &ann);
    ann.steers("s1", "right").unwrap();
    ann.answers_text("yes").unwrap();
    // The turn is over by now, and what still waited began the next one.
    assert_eq!(ann.sent_messages(), ["go", "right"]);
    let chat = ann.sees(&ann.chat());
    let told = notices(&chat["turns"][0]);
    assert_eq!(told[0], "You added: left");
    assert!(
        told[1].contains("already received") && told[1].contains("your edit is still waiting"),
        "{told:?}"
    );
}

#[test]
fn a_second_wait_is_not_told_of_the_same_message_but_of_a_changed_one() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .plays(|script| script.awaits_steering().awaits_steering().takes_steering())
        .asks_for_text("go on?");
    ann.sends_message("go");
    ann.steers("s1", "left").unwrap();
    ann.steers("s1", "left").unwrap();
    assert_eq!(told(&s), ["s1 left"], "it was left where it is");
    ann.steers("s1", "right").unwrap();
    assert_eq!(told(&s), ["s1 left", "s1 right"]);
    assert_eq!(waits(&ann), None);
    assert_eq!(notices(&ann.sees(&ann.chat())["activeTurn"]), ["You added: right"]);
    ann.answers_text("yes").unwrap();
}

// G-08
#[test]
fn a_turn_that_ends_while_its_agent_waits_leaves_the_message_to_the_next_turn() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().plays(|script| script.awaits_steering().unattended().asks_for_text("go on?"));
    ann.sends_message("go");
    ann.answers_text("yes").unwrap();
    assert_eq!(ann.sees(&ann.chat()).get("activeTurn"), None);
    ann.steers("s1", "left").unwrap();
    assert_eq!(told(&s), [""; 0], "nobody waits any more");
    assert_eq!(ann.sent_messages(), ["go", "left"]);
}

// G-08: what an agent was told of and did not take is not lost with the host
#[test]
fn a_message_that_was_told_and_not_taken_survives_the_host() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        told_and_not_taken(&mut s, &ann);
        let id = ann.question()["id"].clone();
        s.host_dies_at(point);
        ann.dispatches(
            &ann.chat(),
            json!({"type": "chat/inputCompleted", "requestId": id, "response": "decline"}),
        );
        s.settles();
        s.host_restarts_for([&ann]);
        s.settles();
        assert_eq!(waits(&ann), None);
        assert_eq!(ann.queue(), ["s1"], "{point:?}: at the head of the held queue");
        s.all_agree();
    }
}
