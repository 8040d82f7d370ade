//! Turns: one at a time, watched by all, ended exactly once.

use agent_api::AgentEvent;
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};
use wire::published::state::UsageInfo;

fn last_turn(client: &ScenarioClient) -> Value {
    client.sees(&client.chat())["turns"].as_array().unwrap().last().cloned().unwrap_or(Value::Null)
}

// H-063, H-172, H-174
#[test]
fn second_client_sees_deltas_in_order() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().thinks(["hm", "m"]).streams(["Hel", "lo"]);
    ann.sends_message("greet me");
    assert_eq!(bob.reads(), "Hello");
    let turn = last_turn(&bob);
    assert_eq!(turn["state"], "complete");
    assert_eq!(turn["responseParts"][0]["content"], "hmm");
}

// H-170: a second start would destroy the running turn on every client
#[test]
fn a_second_start_is_refused_and_the_first_goes_on() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().streams(["a"]).waits_ms(100).streams(["b"]);
    ann.starts("first");
    let second = bob.dispatches(&ann.chat(), bob.turn_started("t-bob", "second"));
    s.settles();
    assert!(bob.refusal(second).is_some());
    assert_eq!(bob.reads(), "ab");
    assert_eq!(s.look().models.asked.len(), 1);
}

// H-170
#[test]
fn a_turn_id_is_never_used_twice() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    for n in 0..4 {
        ann.tries(&ann.chat(), ann.turn_started(&format!("t{n}"), "hi")).unwrap();
    }
    assert!(ann.tries(&ann.chat(), ann.turn_started("t0", "again")).is_err());
    s.host_restarts_for([&ann]);
    for n in 0..4 {
        assert!(
            ann.tries(&ann.chat(), ann.turn_started(&format!("t{n}"), "again")).is_err(),
            "t{n}"
        );
    }
    ann.tries(&ann.chat(), ann.turn_started("t4", "new")).unwrap();
}

// H-170: two submissions of one id while the journal is asked whether it was used
#[test]
fn an_id_used_while_it_is_looked_up_is_used() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    ann.repeats_message(3, "hi");
    let bob = s.client("bob").joins(&ann);
    s.host_restarts_for([&ann, &bob]);
    s.world().read_ms_max = 0;
    let first = ann.dispatches(&ann.chat(), ann.turn_started("same", "one"));
    let peer = ann.with(|client| client.link).unwrap();
    while s.world().carry_to_host(peer) {}
    s.world().read_ms_max = 40;
    s.world().batch(1);
    let second = bob.dispatches(&ann.chat(), bob.turn_started("same", "two"));
    s.settles();
    let refused = [ann.refusal(first).is_some(), bob.refusal(second).is_some()];
    assert_eq!(refused.iter().filter(|refused| **refused).count(), 1);
}

// H-170, H-171, G-11, G-12
#[test]
fn bad_starts_are_refused() {
    let (s, ann) = Scenario::with_chat();
    let with = |change: fn(&mut Value)| {
        let mut action = ann.turn_started("t1", "hi");
        change(&mut action);
        action
    };
    for action in [
        with(|a| a["startedAt"] = json!("yesterday")),
        with(|a| a["turnId"] = json!("")),
        with(|a| a["turnId"] = json!("x".repeat(300))),
        with(|a| a["queuedMessageId"] = json!("q")),
        with(|a| a["message"]["model"] = json!({"id": "nobody"})),
        with(|a| a["message"]["model"] = json!({"id": "fancy", "config": {"heat": "high"}})),
        with(|a| a["message"] = json!("text")),
        with(|a| {
            a["message"].as_object_mut().unwrap().remove("origin");
        }),
    ] {
        assert!(ann.tries(&ann.chat(), action.clone()).is_err(), "{action}");
    }
    assert!(s.look().models.asked.is_empty());
}

// G-12, H-181, H-075
#[test]
fn the_default_model_is_filled_in_before_the_record() {
    let (_s, ann) = Scenario::with_chat();
    ann.sends_message("hi");
    assert_eq!(last_turn(&ann)["message"]["model"], json!({"id": "plain"}));
    let mut action = ann.turn_started("t2", "hi");
    action["message"]["model"] = json!({"id": "fancy", "config": {"heat": 3}});
    ann.tries(&ann.chat(), action).unwrap();
    assert_eq!(last_turn(&ann)["message"]["model"]["id"], "fancy");
}

// H-177, G-11
#[test]
fn a_cancel_needs_the_running_turn_and_a_duration() {
    let (mut s, ann) = Scenario::with_chat();
    assert!(ann.cancels("none").is_err());
    s.model().hangs();
    let turn = ann.sends_message("go");
    assert!(ann.cancels("other").is_err());
    for bad in [json!(-1), json!(1.5), json!("5"), Value::Null] {
        let action = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": bad});
        assert!(ann.tries(&ann.chat(), action).is_err(), "{bad}");
    }
    ann.cancels(&turn).unwrap();
    assert_eq!(
        (&last_turn(&ann)["state"], &last_turn(&ann)["duration"]),
        (&json!("cancelled"), &json!(5))
    );
    assert_eq!(s.look().models.stopped.len(), 1);
}

// ADR 0005: events of a stopped run are dropped
#[test]
fn late_events_of_a_cancelled_turn_change_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["a"]).waits_ms(100).streams(["b"]).talks_on_after_stop();
    let turn = ann.starts("go");
    s.world().advance_ms(0);
    let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
    ann.dispatches(&ann.chat(), cancel);
    s.settles();
    let seq = s.look().kernel().seq();
    s.advances_ms(200);
    assert_eq!(s.look().kernel().seq(), seq);
    assert_eq!(last_turn(&ann)["state"], "cancelled");
    ann.sends_message("next");
}

// H-179, G-05, H-182, H-149
#[test]
fn usage_notices_titles_and_activity_are_recorded() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .emits(AgentEvent::Activity(Some("reading".into())))
        .emits(AgentEvent::Usage(UsageInfo { input_tokens: Some(3), ..UsageInfo::default() }))
        .emits(AgentEvent::Notice { text: "mind the gap".into() })
        .emits(AgentEvent::Title("about gaps".into()))
        .hangs();
    let turn = ann.sends_message("go");
    let (session, chat) = (ann.sees(&ann.session()), ann.sees(&ann.chat()));
    assert_eq!((&session["activity"], &chat["activity"]), (&json!("reading"), &json!("reading")));
    assert_eq!(session["chats"][0]["activity"], "reading");
    assert_eq!(session["title"], "about gaps");
    assert_eq!(chat["activeTurn"]["usage"], json!({"inputTokens": 3}));
    assert_eq!(chat["activeTurn"]["responseParts"][0]["kind"], "systemNotification");
    ann.cancels(&turn).unwrap();
    s.model().emits(AgentEvent::Activity(None));
    ann.sends_message("clear");
    let session = ann.sees(&ann.session());
    assert!(session.get("activity").is_none() && session["chats"][0].get("activity").is_none());
}

// H-175, H-176
#[test]
fn only_the_latest_turn_that_can_be_resumed_is_resumed() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().fails();
    let dead = ann.sends_message("one");
    assert!(ann.resumes(&dead).is_err());
    s.model().streams(["x"]).stores_checkpoint("mark").fails_resumably();
    let turn = ann.sends_message("two");
    assert_eq!(ann.sees(&ann.chat())["status"].as_u64().unwrap() & 31, 2);
    assert!(ann.resumes(&dead).is_err());
    s.model().streams(["y"]).hangs();
    ann.resumes(&turn).unwrap();
    assert!(ann.resumes(&turn).is_err());
    assert_eq!(
        s.look().models.asked.last().unwrap().resume.clone().flatten().as_deref(),
        Some(b"mark".as_slice())
    );
    ann.cancels(&turn).unwrap();
    assert!(ann.resumes(&turn).is_err());
    assert_eq!(ann.reads(), "xy");
}

// G-04: the duration of a resumed turn counts from its original start
#[test]
fn a_resumed_turn_counts_from_its_start() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(100).fails_resumably();
    let turn = ann.sends_message("go");
    s.advances_ms(1_000);
    s.model().waits_ms(100);
    ann.resumes(&turn).unwrap();
    assert_eq!(last_turn(&ann)["duration"], 1_200);
}

// G-04, H-062: resumed, failed, resumed again, over restarts
#[test]
fn a_turn_may_be_resumed_over_and_over() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().streams(["1"]).hangs();
    let turn = ann.sends_message("count");
    for n in 2..5 {
        s.host_restarts_for([&ann]);
        let text = n.to_string();
        s.model().streams([text.as_str()]).hangs();
        ann.resumes(&turn).unwrap();
    }
    bob.reconnects();
    ann.cancels(&turn).unwrap();
    assert_eq!(bob.reads(), "1234");
    assert_eq!(ann.sees(&ann.chat())["turns"].as_array().unwrap().len(), 1);
}

// G-04
#[test]
fn a_checkpoint_that_is_too_large_ends_the_turn() {
    let (mut s, ann) = Scenario::with(|limits| limits.checkpoint_bytes_max = 3).and_chat();
    s.model().stores_checkpoint("four").hangs();
    ann.sends_message("go");
    assert_eq!(last_turn(&ann)["state"], "error");
}

// H-172: text for an unopened part is dropped
#[test]
fn text_without_a_part_is_dropped() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().emits(AgentEvent::Text { part: 9, text: "lost".into() }).streams(["kept"]);
    ann.sends_message("go");
    assert_eq!(ann.reads(), "kept");
}

// A graceful stop: nothing spins while the host is down
#[test]
fn a_host_that_stops_ends_its_turns_resumably() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["half"]).hangs();
    let turn = ann.sends_message("go");
    s.world().input(kernel::Input::Stopping);
    s.settles();
    assert_eq!(last_turn(&ann)["state"], "error");
    s.host_restarts_for([&ann]);
    ann.resumes(&turn).unwrap();
}

// H-239: a turn that is named must be there
#[test]
fn a_resume_reaches_one_who_watches_no_turns() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["x"]).fails_resumably();
    let turn = ann.sends_message("go");
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 0);
    s.model().streams(["y"]).hangs();
    ann.resumes(&turn).unwrap();
}
