//! The queue: messages that wait for their turn, and when it comes (G-08).

use serde_json::{Value, json};
use testkit::pending_messages::message;
use testkit::{Kill, Scenario, ScenarioClient};

/// What the chat's own actions were since the last time.
fn chat_actions(client: &ScenarioClient) -> Vec<String> {
    let actions = client.received_actions();
    let of_chat = actions.into_iter().filter(|kind| kind.starts_with("chat/"));
    of_chat.collect()
}

/// A turn that hangs, with messages waiting behind it; the turn's id.
fn busy_with_queue(s: &mut Scenario, ann: &ScenarioClient, queue: &[&str]) -> String {
    s.model().streams(["..."]).hangs();
    let turn = ann.sends_message("busy");
    for id in queue {
        ann.queues(id, &format!("text of {id}")).unwrap();
    }
    turn
}

// G-08, H-231: after a natural end, in the order of the list
#[test]
fn queued_messages_start_one_after_the_other_when_turns_end_by_themselves() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().streams(["one"]).waits_ms(100);
    ann.starts("first");
    s.world().advance_ms(0);
    for (client, id) in [(&ann, "q1"), (&bob, "q2"), (&ann, "q3")] {
        client.dispatches(&ann.chat(), client.pending_set("queued", id, id));
        let peer = client.with(|client| client.link).unwrap();
        while s.world().carry_to_host(peer) {}
    }
    s.settles();
    assert_eq!(bob.sent_messages(), ["first", "q1", "q2", "q3"]);
    assert_eq!(s.asked(), ["first", "q1", "q2", "q3"]);
    assert!(bob.queue().is_empty());
}

// H-231: first out of the queue, then the start that names it; both are the host's own
#[test]
fn a_queued_message_leaves_the_queue_before_its_turn_starts() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().waits_ms(100);
    ann.starts("first");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "second"));
    s.settles();
    let envelopes = bob.with(|client| client.envelopes.clone());
    let of_chat: Vec<&Value> =
        envelopes.iter().filter(|envelope| envelope["channel"] == ann.chat().as_str()).collect();
    let position = of_chat
        .iter()
        .position(|envelope| envelope["action"]["type"] == "chat/pendingMessageRemoved")
        .unwrap();
    let (removed, started) = (of_chat[position], of_chat[position + 1]);
    assert_eq!(removed["action"]["kind"], "queued");
    assert_eq!(started["action"]["type"], "chat/turnStarted");
    assert_eq!(started["action"]["queuedMessageId"], "q1");
    assert_eq!(started["action"]["message"]["text"], "second");
    for envelope in [removed, started] {
        assert!(envelope.get("origin").is_none(), "{envelope}");
    }
    let ids = bob.turns();
    assert_ne!(ids[0], ids[1]);
}

// G-08: set while idle
#[test]
fn a_message_queued_in_an_idle_chat_starts_at_once() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    bob.received_actions();
    ann.queues("q1", "now").unwrap();
    assert_eq!(
        chat_actions(&bob)[..3],
        ["chat/pendingMessageSet", "chat/pendingMessageRemoved", "chat/turnStarted"]
    );
    assert_eq!(bob.sent_messages(), ["now"]);
    assert_eq!(bob.reads(), "ok");
}

// G-08: cancel holds
#[test]
fn a_cancel_holds_the_queue_until_a_turn_ends_by_itself() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1", "q2"]);
    ann.cancels(&turn).unwrap();
    assert_eq!(ann.queue(), ["q1", "q2"]);
    s.advances_in_steps(100_000, 10_000);
    assert_eq!(s.asked(), ["busy"]);
    ann.sends_message("go on");
    assert_eq!(ann.sent_messages(), ["busy", "go on", "text of q1", "text of q2"]);
}

// G-08: what VS Code does when a message is typed during a turn: cancel, then set
#[test]
fn a_cancel_and_a_new_message_start_the_head_of_the_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
    ann.dispatches(&ann.chat(), cancel);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q2", "typed"));
    s.settles();
    assert_eq!(ann.sent_messages(), ["busy", "text of q1", "typed"]);
}

// G-08: updating, even to the same value, while idle
#[test]
fn setting_the_same_message_again_starts_a_held_queue() {
    for text in ["text of q2", "other words"] {
        let (mut s, ann) = Scenario::with_chat();
        let turn = busy_with_queue(&mut s, &ann, &["q1", "q2"]);
        ann.cancels(&turn).unwrap();
        let sent = ann.dispatches(&ann.chat(), ann.pending_set("queued", "q2", text));
        s.settles();
        assert_eq!(ann.refusal(sent), None);
        assert_eq!(ann.sent_messages(), ["busy", "text of q1", text]);
        s.all_agree();
    }
}

// G-08: reorder and remove never start
#[test]
fn reordering_and_removing_start_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1", "q2", "q3"]);
    ann.cancels(&turn).unwrap();
    ann.reorders(&["q3", "q1"]).unwrap();
    ann.unqueues("q1").unwrap();
    assert_eq!(ann.queue(), ["q3", "q2"]);
    assert_eq!(s.asked(), ["busy"]);
    ann.queues("q2", "text of q2").unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "text of q3", "text of q2"]);
}

// G-08: neither do drafts and flags
#[test]
fn nothing_else_starts_a_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    ann.cancels(&turn).unwrap();
    let draft = json!({"type": "chat/draftChanged", "draft": message("dra")});
    ann.tries(&ann.chat(), draft).unwrap();
    let read = json!({"type": "chat/isReadChanged", "isRead": true});
    ann.tries(&ann.chat(), read).unwrap();
    ann.watches(&ann.chat());
    assert_eq!((s.asked().len(), ann.queue().len()), (1, 1));
}

// G-08: an error holds; a resumed turn that ends by itself lets go
#[test]
fn an_error_holds_the_queue_and_a_resumed_turn_lets_it_go() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(50).fails_resumably();
    let turn = ann.starts("risky");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "later"));
    s.settles();
    assert_eq!((ann.queue(), s.asked().len()), (vec!["q1".to_owned()], 1));
    s.model().fails_resumably();
    ann.resumes(&turn).unwrap();
    assert_eq!(ann.queue(), ["q1"]);
    s.model().streams(["fine"]);
    ann.resumes(&turn).unwrap();
    assert_eq!(ann.sent_messages(), ["risky", "later"]);
}

// G-08: a truncate of an active turn holds it
#[test]
fn a_truncate_of_a_running_turn_holds_the_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let first = ann.sends_message("first");
    busy_with_queue(&mut s, &ann, &["q1"]);
    ann.truncates(&first).unwrap();
    assert_eq!(ann.sent_messages(), ["first"]);
    assert_eq!((ann.queue().len(), s.look().models.stopped.len()), (1, 1));
    ann.sends_message("again");
    assert_eq!(ann.sent_messages(), ["first", "again", "text of q1"]);
}

// G-08: a truncate of an idle chat starts nothing either, and takes nothing out of the queue
#[test]
fn a_truncate_of_an_idle_chat_leaves_the_queue_alone() {
    let (mut s, ann) = Scenario::with_chat();
    let first = ann.sends_message("first");
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    ann.cancels(&turn).unwrap();
    ann.truncates(&first).unwrap();
    ann.truncates_all().unwrap();
    assert_eq!((ann.queue().len(), ann.sent_messages().len()), (1, 0));
}

// G-08: set while creating
#[test]
fn a_message_queued_while_the_session_is_created_starts_when_it_is_ready() {
    let mut s = Scenario::new();
    s.sessions_take_ms(500);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
    let chat = testkit::default_chat("ahp-session:/slow");
    ann.dispatches(&chat, ann.pending_set("queued", "q1", "one"));
    ann.dispatches(&chat, ann.pending_set("queued", "q2", "two"));
    s.settles();
    ann.watches(&chat);
    assert_eq!(ann.in_chat(&chat).sent_messages(), ["one", "two"]);
}

// G-08, G-09: behind a turn that waits for the session, and when there never is one
#[test]
fn a_queue_behind_a_turn_that_waits_for_its_session_stays_behind_it() {
    for fails in [false, true] {
        let mut s = Scenario::new();
        s.sessions_take_ms(500);
        if fails {
            let failure = agent_api::AgentError {
                error_type: "noAgent".to_owned(),
                message: "none".to_owned(),
                resumable: true,
            };
            s.world().starts.push_back(Err(failure));
        }
        let ann = s.client("ann").arrives();
        ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
        let chat = testkit::default_chat("ahp-session:/slow");
        ann.dispatches(&chat, ann.turn_started("t1", "first"));
        ann.dispatches(&chat, ann.pending_set("queued", "q1", "second"));
        s.settles();
        ann.watches(&chat);
        let there = ann.in_chat(&chat);
        if fails {
            assert_eq!((there.sent_messages(), there.queue().len()), (vec!["first".to_owned()], 1));
            assert!(s.asked().is_empty());
        } else {
            assert_eq!(there.sent_messages(), ["first", "second"]);
        }
        s.all_agree();
    }
}

// A session that could not be created takes no turns, whichever way they come
#[test]
fn a_failed_session_starts_no_queued_message() {
    let mut s = Scenario::new();
    let failure = agent_api::AgentError {
        error_type: "noAgent".to_owned(),
        message: "none".to_owned(),
        resumable: false,
    };
    s.world().starts.push_back(Err(failure));
    let ann = s.client("ann").opens_chat();
    let _ = ann.queues("q1", "hello?");
    assert!(s.asked().is_empty());
    assert!(ann.sees(&ann.chat()).get("activeTurn").is_none());
}

// G-08: survives a restart, held
#[test]
fn a_queue_survives_a_restart_and_is_held() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1", "q2"]);
    s.host_restarts();
    s.advances_in_steps(60_000, 5_000);
    ann.reconnects();
    assert_eq!(ann.queue(), ["q1", "q2"]);
    assert_eq!(s.asked(), ["busy"]);
    s.model().streams(["done"]);
    ann.resumes(&turn).unwrap();
    assert_eq!(ann.sent_messages(), ["busy", "text of q1", "text of q2"]);
}

// G-08: a queue that was held before the restart stays so, and a set lets it go
#[test]
fn a_held_queue_is_held_after_a_restart_until_someone_sets_it() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    ann.cancels(&turn).unwrap();
    s.host_restarts_for([&ann]);
    let bob = s.client("bob").joins(&ann);
    assert_eq!((bob.queue(), s.asked().len()), (vec!["q1".to_owned()], 1));
    bob.queues("q1", "text of q1").unwrap();
    assert_eq!(bob.sent_messages(), ["busy", "text of q1"]);
}

// A graceful stop: what ends because the host ends starts nothing
#[test]
fn a_host_that_stops_does_not_start_the_queue() {
    let (mut s, ann) = Scenario::with_chat();
    busy_with_queue(&mut s, &ann, &["q1"]);
    s.world().input(kernel::Input::Stopping);
    s.settles();
    assert_eq!((ann.queue().len(), s.asked().len()), (1, 1));
    let late = ann.dispatches(&ann.chat(), ann.pending_set("queued", "q2", "too late"));
    s.settles();
    assert_eq!(s.asked().len(), 1);
    s.host_restarts_for([&ann]);
    let expected = 1 + usize::from(ann.refusal(late).is_none());
    assert_eq!(ann.queue().len(), expected);
}

// Prepare, write, send, act: nothing is lost, nothing is sent twice
#[test]
fn a_host_that_dies_while_it_takes_a_message_neither_loses_nor_repeats_it() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        let turn = busy_with_queue(&mut s, &ann, &["q1", "q2"]);
        ann.cancels(&turn).unwrap();
        s.host_dies_at(point);
        ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "text of q1"));
        s.settles();
        assert!(!s.look().is_up(), "{point:?}");
        s.host_restarts_for([&ann]);
        let all = ann.sent_messages().len() + ann.queue().len();
        assert_eq!(all, 3, "{point:?}: {:?} {:?}", ann.sent_messages(), ann.queue());
        s.all_agree();
    }
}

// G-15: a turn that cannot be recorded does not start, and its message stays
#[test]
fn a_full_disk_holds_the_queue() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(1_000);
    ann.starts("busy");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q1", "later"));
    ann.reaches_host();
    s.faults().break_disk();
    s.settles();
    s.faults().mend_disk();
    s.advances_in_steps(10_000, 1_000);
    assert_eq!(ann.queue(), ["q1"]);
    assert_eq!(s.asked(), ["busy"]);
}

// H-230: upsert in place, else at the end
#[test]
fn a_queued_message_is_replaced_at_its_position() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    busy_with_queue(&mut s, &ann, &["q1", "q2"]);
    bob.queues("q1", "changed").unwrap();
    assert_eq!(ann.queue(), ["q1", "q2"]);
    let first = &ann.sees(&ann.chat())["queuedMessages"][0];
    assert_eq!(first["message"]["text"], "changed");
}

// H-233
#[test]
fn only_pending_messages_can_be_removed() {
    let (mut s, ann) = Scenario::with_chat();
    busy_with_queue(&mut s, &ann, &["q1"]);
    assert!(ann.unqueues("q2").is_err());
    assert!(ann.unsteers("q1").is_err());
    ann.steers("s1", "x").unwrap();
    assert!(ann.unsteers("s2").is_err());
    assert!(ann.unqueues("s1").is_err());
    ann.unqueues("q1").unwrap();
    assert!(ann.unqueues("q1").is_err());
}

// H-234, G-13: unknown ids are ignored, and the echo names everyone once
#[test]
fn the_echo_of_a_reorder_names_every_message() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    busy_with_queue(&mut s, &ann, &["z", "y", "a", "m"]);
    bob.received_actions();
    ann.reorders(&["nobody", "a", "a"]).unwrap();
    let echo = bob.with(|client| client.envelopes.last().cloned()).unwrap();
    assert_eq!(echo["action"]["order"], json!(["a", "z", "y", "m"]));
    assert_eq!(bob.queue(), ["a", "z", "y", "m"]);
}

// G-17: an order that changes nothing
#[test]
fn a_reorder_that_changes_nothing_is_answered_to_its_sender_alone() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    busy_with_queue(&mut s, &ann, &["q1", "q2"]);
    let seq = s.look().kernel().seq();
    bob.received_actions();
    ann.reorders(&["q1", "q2"]).unwrap();
    ann.reorders(&["nobody"]).unwrap();
    assert!(bob.received_actions().is_empty());
    assert_eq!(s.look().kernel().seq(), seq);
}

// H-071, G-12
#[test]
fn only_messages_that_could_be_sent_are_queued() {
    let (mut s, ann) = Scenario::with_chat();
    busy_with_queue(&mut s, &ann, &[]);
    let with = |change: fn(&mut Value)| {
        let mut action = ann.pending_set("queued", "q1", "hi");
        change(&mut action);
        action
    };
    for action in [
        with(|a| a["message"]["origin"]["kind"] = json!("agent")),
        with(|a| a["message"]["origin"]["kind"] = json!("tool")),
        with(|a| a["message"] = json!("text")),
        with(|a| a["kind"] = json!("urgent")),
        with(|a| a["message"]["model"] = json!({"id": "nobody"})),
        with(|a| {
            a.as_object_mut().unwrap().remove("id");
        }),
    ] {
        assert!(ann.tries(&ann.chat(), action.clone()).is_err(), "{action}");
    }
    let mut steering = ann.pending_set("steering", "s1", "hi");
    steering["message"]["origin"]["kind"] = json!("agent");
    assert!(ann.tries(&ann.chat(), steering).is_err());
    assert!(ann.queue().is_empty());
}

// G-12, H-181: the model that is used is recorded with the turn
#[test]
fn a_queued_message_has_its_own_model_or_the_default() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    let mut fancy = ann.pending_set("queued", "q2", "fancy");
    fancy["message"]["model"] = json!({"id": "fancy", "config": {"heat": 2}});
    fancy["message"]["_meta"] = json!({"x-mine": [1]});
    ann.tries(&ann.chat(), fancy).unwrap();
    ann.cancels(&turn).unwrap();
    ann.queues("q1", "plain").unwrap();
    let chat = ann.sees(&ann.chat());
    assert_eq!(chat["turns"][1]["message"]["model"], json!({"id": "plain"}));
    let fancy = &chat["turns"][2]["message"];
    assert_eq!(fancy["model"]["config"]["heat"], 2);
    assert_eq!(fancy["_meta"], json!({"x-mine": [1]}));
}

// H-170: a start by hand while messages wait is a start like any other
#[test]
fn a_turn_started_by_hand_goes_before_a_held_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    assert!(ann.tries(&ann.chat(), ann.turn_started("now", "no")).is_err(), "a turn runs");
    ann.cancels(&turn).unwrap();
    let mut forged = ann.turn_started("mine", "text of q1");
    forged["queuedMessageId"] = json!("q1");
    assert!(ann.tries(&ann.chat(), forged).is_err());
    assert_eq!(ann.queue(), ["q1"]);
    ann.sends_message("by hand");
    assert_eq!(ann.sent_messages(), ["busy", "by hand", "text of q1"]);
}

// H-231, G-26: ids that the host makes avoid those that clients took
#[test]
fn a_turn_from_the_queue_never_takes_an_id_that_was_used() {
    let (mut s, ann) = Scenario::with_chat();
    ann.queues("q0", "zero").unwrap();
    let made = ann.turns()[0].clone();
    let number: u64 =
        made.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    // Every id that the host could make next, taken by a client before.
    let next = s.look().kernel().seq().0;
    let digits = number.to_string();
    for seq in next..next + 120 {
        let guess = made.replace(&digits, &seq.to_string());
        ann.dispatches(&ann.chat(), ann.turn_started(&guess, "taken"));
    }
    s.settles();
    s.host_restarts_for([&ann]);
    ann.queues("q1", "one").unwrap();
    let mut ids = ann.turns();
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id was used twice");
    assert_eq!(ann.sent_messages().last().unwrap(), "one");
}

// G-24: a turn from the queue is news like any other
#[test]
fn a_turn_from_the_queue_makes_chat_and_session_unread() {
    let (mut s, ann) = Scenario::with_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    ann.cancels(&turn).unwrap();
    let read = json!({"type": "chat/isReadChanged", "isRead": true});
    ann.tries(&ann.chat(), read).unwrap();
    let read = json!({"type": "session/isReadChanged", "isRead": true});
    ann.tries(&ann.session(), read).unwrap();
    s.model().hangs();
    ann.queues("q1", "text of q1").unwrap();
    for channel in [ann.chat(), ann.session()] {
        let status = ann.sees(&channel)["status"].as_u64().unwrap();
        assert_eq!(status & 32, 0, "{channel}");
    }
}

// H-072: the sender need not watch
#[test]
fn one_who_does_not_watch_may_queue() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    bob.dispatches(&ann.chat(), bob.pending_set("queued", "q1", "from afar"));
    s.settles();
    assert_eq!(ann.sent_messages(), ["from afar"]);
}

// ADR 0004: a queue in an unloaded chat
#[test]
fn a_message_queued_in_a_chat_at_rest_wakes_it() {
    let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
    let turn = busy_with_queue(&mut s, &ann, &["q1"]);
    ann.cancels(&turn).unwrap();
    let (session, chat) = (ann.session(), ann.chat());
    ann.unwatches(&chat);
    ann.unwatches(&session);
    s.advances_in_steps(10_000, 500);
    let uri = wire::ChannelUri::parse(&chat).unwrap();
    assert!(s.look().kernel().state_of(&uri).is_none(), "it rests");
    ann.dispatches(&chat, ann.pending_set("queued", "q2", "wake"));
    s.settles();
    ann.watches(&session);
    ann.watches(&chat);
    assert_eq!(ann.sent_messages(), ["busy", "text of q1", "wake"]);
}

// G-08: it starts when the session is ready, also if the chat was not loaded meanwhile
#[test]
fn a_queue_set_while_creating_starts_though_its_chat_rests() {
    let mut s = Scenario::with(|limits| limits.channel_idle_ms = 1_000);
    s.world().start_ms_max = 30_000;
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
    let chat = testkit::default_chat("ahp-session:/slow");
    ann.dispatches(&chat, ann.pending_set("queued", "q1", "one"));
    ann.reaches_host();
    for _ in 0..100 {
        s.world().advance_ms(500);
        while s.world().batch(64) {}
    }
    s.settles();
    assert_eq!(s.asked(), ["one"]);
}
