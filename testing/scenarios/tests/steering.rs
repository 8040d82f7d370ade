//! Steering: one message that reaches the agent in the middle of its turn, when it can take it.

use agent_api::{AgentError, AgentReply};
use kernel::Input;
use serde_json::{Value, json};
use testkit::pending_messages::message;
use testkit::{Kill, Scenario, ScenarioClient};

fn steering_replies(s: &Scenario) -> Vec<Option<String>> {
    let world = s.look();
    let steering_replies = world.models.replies.iter().filter_map(|(_, reply)| match reply {
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
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().waits_ms(100).steers().repeats().steers().repeats();
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
}

// H-230: one slot
#[test]
fn a_second_steering_message_replaces_the_first() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().waits_ms(100).steers();
    ann.starts("go");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "left"));
    bob.dispatches(&ann.chat(), bob.pending_set("steering", "s2", "right"));
    s.settles();
    assert_eq!(steering_replies(&s), [Some("right".to_owned())]);
}

/// What was recorded in the chat since the last time: kind of action, and the message it is about.
fn chat_actions(client: &ScenarioClient) -> Vec<(String, String)> {
    let envelopes = client.with(|client| std::mem::take(&mut client.envelopes));
    let of_chat = envelopes.iter().filter(|envelope| envelope["channel"] == client.chat().as_str());
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let entries = of_chat.map(|envelope| {
        let action = &envelope["action"];
        let about = match action["type"].as_str() {
            Some("chat/turnStarted") => text(&action["queuedMessageId"]),
            Some("chat/queuedMessagesReordered") => text(&action["order"][0]),
            _ => format!("{}{}", text(&action["kind"]), text(&action["id"])),
        };
        (text(&action["type"]), about)
    });
    entries.collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(kind, about): &(&str, &str)| ((*kind).to_owned(), (*about).to_owned());
    expected.iter().map(pair).collect()
}

/// A turn that does not look for steering, with a steering message and a queue behind it; the turn's id.
fn busy_with_steering(s: &mut Scenario, ann: &ScenarioClient, queue: &[&str]) -> String {
    s.model().streams(["..."]).hangs();
    let turn = ann.sends_message("busy");
    for id in queue {
        ann.queues(id, &format!("text of {id}")).unwrap();
    }
    ann.steers("s1", "keep left").unwrap();
    chat_actions(ann);
    turn
}

/// Steering became the head of the queue, under its own id, and nothing runs.
fn assert_heads_the_held_queue(s: &Scenario, ann: &ScenarioClient, queue: &[&str]) {
    let chat = ann.sees(&ann.chat());
    assert!(chat.get("steeringMessage").is_none(), "{chat}");
    assert!(chat.get("activeTurn").is_none(), "{chat}");
    assert_eq!(ann.queue(), queue);
    assert_eq!(chat["queuedMessages"][0]["message"]["text"], "keep left");
    assert_eq!(s.asked().last().map(String::as_str), Some("busy"));
}

// G-08: at a natural end it is the next turn, before the queue
#[test]
fn steering_that_no_turn_took_starts_the_next_turn_before_the_queue() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().waits_ms(100);
    ann.starts("first");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "queued"));
    bob.dispatches(&ann.chat(), bob.pending_set("steering", "s1", "keep left"));
    s.settles();
    let actions = chat_actions(&bob);
    let ended = |(kind, _): &(String, String)| kind == "chat/turnComplete";
    let end = actions.iter().position(ended).unwrap();
    assert_eq!(actions[end + 1], pairs(&[("chat/turnStarted", "s1")])[0]);
    assert_eq!(bob.sent_messages(), ["first", "keep left", "queued"]);
    assert_eq!(s.asked(), ["first", "keep left", "queued"]);
    let chat = bob.sees(&ann.chat());
    assert!(chat.get("steeringMessage").is_none() && bob.queue().is_empty());
}

// G-08: cancelled
#[test]
fn a_cancel_puts_steering_at_the_head_of_the_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_steering(&mut s, &ann, &["q1", "q2"]);
    ann.cancels(&turn).unwrap();
    let expected = [
        ("chat/turnCancelled", ""),
        ("chat/pendingMessageRemoved", "steerings1"),
        ("chat/pendingMessageSet", "queueds1"),
        ("chat/queuedMessagesReordered", "s1"),
    ];
    assert_eq!(chat_actions(&ann), pairs(&expected));
    assert_heads_the_held_queue(&s, &ann, &["s1", "q1", "q2"]);
    s.advances_in_steps(100_000, 10_000);
    assert_heads_the_held_queue(&s, &ann, &["s1", "q1", "q2"]);
    ann.queues("q2", "text of q2").unwrap();
    let sent = ["busy", "keep left", "text of q1", "text of q2"];
    assert_eq!(ann.sent_messages(), sent);
}

// G-08: alone it needs no order
#[test]
fn steering_that_is_queued_alone_is_removed_and_set() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_steering(&mut s, &ann, &[]);
    ann.cancels(&turn).unwrap();
    let expected = [
        ("chat/turnCancelled", ""),
        ("chat/pendingMessageRemoved", "steerings1"),
        ("chat/pendingMessageSet", "queueds1"),
    ];
    assert_eq!(chat_actions(&ann), pairs(&expected));
    ann.unqueues("s1").unwrap();
    assert_eq!(s.asked(), ["busy"]);
}

// G-08: an error
#[test]
fn an_error_puts_steering_at_the_head_of_the_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(100).fails_resumably();
    let turn = ann.starts("busy");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "queued"));
    ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "keep left"));
    s.settles();
    assert_heads_the_held_queue(&s, &ann, &["s1", "q1"]);
    s.model().streams(["fine now"]);
    ann.resumes(&turn).unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "keep left", "queued"]);
}

// G-08, H-237: what it was meant for is cut off
#[test]
fn a_truncate_of_the_running_turn_puts_steering_at_the_head_of_the_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    busy_with_steering(&mut s, &ann, &["q1"]);
    ann.truncates_all().unwrap();
    assert_heads_the_held_queue(&s, &ann, &["s1", "q1"]);
    ann.sends_message("again");
    assert_eq!(ann.sent_messages(), ["again", "keep left", "text of q1"]);
}

// G-08, G-09: the session never comes to be
#[test]
fn a_session_that_fails_puts_steering_at_the_head_of_the_held_queue() {
    let mut s = Scenario::new();
    s.sessions_take_ms(500);
    s.world().starts.push_back(Err(AgentError {
        error_type: "noAgent".to_owned(),
        message: "the agent did not start".to_owned(),
        resumable: false,
    }));
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
    let chat = testkit::default_chat("ahp-session:/slow");
    let started = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-01-01T00:00:00Z",
        "message": message("first")});
    ann.dispatches(&chat, started);
    ann.dispatches(&chat, ann.pending_set("steering", "s1", "keep left"));
    s.settles();
    let state = s.state(&chat);
    assert_eq!(state["turns"][0]["state"], "error");
    assert!(state.get("steeringMessage").is_none());
    assert_eq!(state["queuedMessages"][0]["id"], "s1");
}

// G-08: nothing runs, so it begins
#[test]
fn steering_set_in_an_idle_chat_starts_a_turn_at_once() {
    let (_s, ann) = Scenario::with_chat();
    chat_actions(&ann);
    ann.steers("s1", "keep left").unwrap();
    let actions = chat_actions(&ann);
    let expected = [("chat/pendingMessageSet", "steerings1"), ("chat/turnStarted", "s1")];
    assert_eq!(actions[..2], pairs(&expected)[..]);
    assert_eq!((ann.sent_messages(), ann.reads()), (vec!["keep left".to_owned()], "ok".to_owned()));
}

// G-08: before a queue that is held, which goes on after it
#[test]
fn steering_set_in_an_idle_chat_goes_before_a_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    ann.queues("q1", "queued").unwrap();
    ann.cancels(&turn).unwrap();
    ann.steers("s1", "keep left").unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "keep left", "queued"]);
}

// G-08, G-09: recorded while the session is created, run when it is ready
#[test]
fn steering_set_while_the_session_is_created_is_its_first_turn() {
    let mut s = Scenario::new();
    s.sessions_take_ms(500);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
    let chat = testkit::default_chat("ahp-session:/slow");
    ann.dispatches(&chat, ann.pending_set("steering", "s1", "keep left"));
    ann.dispatches(&chat, ann.pending_set("queued", "q1", "then"));
    ann.reaches_host();
    assert!(s.asked().is_empty(), "its agent is not there yet");
    s.settles();
    assert_eq!(s.asked(), ["keep left", "then"]);
}

// G-08: a host that dies or stops leaves it in the queue
#[test]
fn steering_survives_a_restart_at_the_head_of_the_held_queue() {
    for stops in [false, true] {
        let (mut s, ann) = Scenario::with_chat();
        busy_with_steering(&mut s, &ann, &["q1"]);
        if stops {
            s.world().input(Input::Stopping);
            s.settles();
            assert!(ann.steers("s2", "nothing starts any more").is_err());
        }
        s.host_restarts_for([&ann]);
        assert_heads_the_held_queue(&s, &ann, &["s1", "q1"]);
        s.all_agree();
        ann.sends_message("go on");
        let sent = ["busy", "go on", "keep left", "text of q1"];
        assert_eq!(ann.sent_messages(), sent);
        s.all_agree();
    }
}

// C-040: in an idle chat it is a message like any other, for a turn that runs no command is
#[test]
fn a_host_command_steers_no_turn_but_begins_one() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    let refused = ann.steers("s1", "/archive").unwrap_err();
    assert!(refused.contains("/archive"), "{refused}");
    ann.cancels(&turn).unwrap();
    ann.steers("s1", "/archive").unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "/archive"]);
    assert_eq!(s.asked(), ["busy"], "no agent hears of it");
}

#[test]
fn a_removed_steering_message_is_not_delivered() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(100).steers();
    ann.starts("go");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "left"));
    ann.dispatches(&ann.chat(), ann.pending_removed("steering", "s1"));
    s.settles();
    assert_eq!(steering_replies(&s), [None]);
    assert_eq!(ann.sent_messages(), ["go"]);
}

// Prepare, write, send, act: it steers once, or waits
#[test]
fn a_host_that_dies_at_a_steer_point_does_not_lose_the_message_before_it_was_taken() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().waits_ms(1_000).steers();
        ann.starts("go");
        s.world().advance_ms(0);
        ann.dispatches(&ann.chat(), ann.pending_set("steering", "s1", "left"));
        ann.reaches_host();
        s.host_dies_at(point);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        let waits = ann.queue() == ["s1"]; // its turn was interrupted
        assert_eq!(waits, point == Kill::BeforeWrite, "{point:?}");
        s.all_agree();
    }
}

// H-231: one id cannot wait in both places; the one would be lost when the other starts
#[test]
fn a_queued_and_a_steering_message_cannot_share_an_id() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    ann.queues("same", "queued").unwrap();
    assert!(ann.steers("same", "steering").is_err());
    ann.cancels(&turn).unwrap();
    assert!(ann.steers("same", "steering").is_err());
    ann.queues("same", "queued").unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "queued"]);
}
