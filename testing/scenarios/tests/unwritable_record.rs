//! A record that can never be written: its step fails alone, its sender hears why, and nobody takes it for a full disk.

use host::journal::Fault;
use serde_json::{Value, json};
use testkit::{ROOT, Scenario};

/// No row takes more in these scenarios.
const BYTES_MAX: usize = 2_000;

fn title(text: &str) -> Value {
    json!({"type": "session/titleChanged", "title": text})
}

fn too_long() -> String {
    "x".repeat(BYTES_MAX)
}

#[test]
fn its_step_fails_alone_and_the_others_of_the_batch_are_sent() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let eve = s.client("eve").joins(&ann);
    s.model().streams(["a"]).waits_ms(50).streams(["b"]).hangs();
    let turn = bob.sends_message("go");
    s.faults().limit_records(BYTES_MAX);
    // One batch: before it, the step itself, and after it in the same session and in another.
    let before = ann.dispatches(&ann.session(), title("before"));
    let lost = ann.dispatches(&ann.session(), title(&too_long()));
    let other = bob.dispatches(&bob.session(), title("another session"));
    let ping = ann.requests("ping", json!({"channel": ROOT}));
    s.settles();
    assert_eq!(ann.refusal(before), None);
    let reason = ann.refusal(lost).expect("it is refused");
    assert!(reason.contains("cannot be recorded") && reason.contains("too large"), "{reason}");
    assert_eq!(bob.refusal(other), None);
    assert_eq!(ann.answer(ping), Some(Ok(Value::Null)));
    assert_eq!(eve.sees(&ann.session())["title"], "before");
    assert_eq!(bob.sees(&bob.session())["title"], "another session");
    // Nothing is to be mended: the next change is taken at once, and the other turn goes on.
    ann.tries(&ann.session(), title("after")).unwrap();
    assert_eq!(bob.sees(&bob.chat())["activeTurn"]["id"], json!(turn));
    assert_eq!(bob.reads(), "ab");
    assert_eq!(s.look().models.stopped.len(), 0);
    ann.sends_message("and turns run");
}

#[test]
fn what_rests_on_it_fails_with_it() {
    let (mut s, ann) = Scenario::with_chat();
    let eve = s.client("eve").arrives();
    s.faults().limit_records(BYTES_MAX);
    let lost = ann.dispatches(&ann.session(), title(&too_long()));
    // The same value again would be answered as one that changes nothing.
    let again = ann.dispatches(&ann.session(), title(&too_long()));
    let shown = eve.requests("subscribe", json!({"channel": ann.session()}));
    let unrelated = eve.requests("subscribe", json!({"channel": ROOT}));
    s.settles();
    assert!(ann.refusal(lost).is_some());
    assert!(ann.refusal(again).is_some());
    assert_eq!(
        eve.answer(shown).unwrap().unwrap_err()["code"],
        -32603,
        "a snapshot would show what was never recorded"
    );
    assert!(eve.answer(unrelated).unwrap().is_ok());
    eve.watches(&ann.session());
    assert_eq!(eve.sees(&ann.session())["title"], "New session");
}

#[test]
fn a_request_that_cannot_be_recorded_is_answered_with_an_error() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    s.model().hangs();
    bob.sends_message("go");
    s.faults().then(Fault::BadRecord(0));
    let params = json!({"channel": "ahp-session:/two"});
    let failed = ann.asks("createSession", params.clone()).unwrap_err();
    assert_eq!(failed["code"], -32603);
    let words = failed["message"].as_str().unwrap();
    assert!(words.contains("cannot be recorded"), "{words}");
    ann.asks("createSession", params).unwrap();
    assert!(bob.sees(&bob.chat())["activeTurn"].is_object());
}

#[test]
fn an_agent_s_turn_ends_in_an_error_that_says_why_and_other_turns_go_on() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    s.faults().limit_records(BYTES_MAX);
    s.model().streams(["a"]).waits_ms(50).streams(["b"]).hangs();
    let other = bob.sends_message("go");
    let long = too_long();
    s.model().streams(["short", &long, "more"]).hangs();
    let turn = ann.sends_message("go");
    let ended = ann.sees(&ann.chat())["turns"][0].clone();
    assert_eq!((&ended["id"], &ended["state"]), (&json!(turn), &json!("error")));
    let error = &ended["responseParts"].as_array().unwrap().last().unwrap()["error"];
    assert_eq!(error["errorType"], "notRecorded");
    assert!(error["message"].as_str().unwrap().contains("too large"), "{error}");
    assert_eq!(bob.sees(&bob.chat())["activeTurn"]["id"], json!(other));
    assert_eq!(s.look().models.stopped.len(), 1);
    s.model().streams(["short again"]);
    ann.resumes(&turn).unwrap();
    s.all_agree();
    s.host_restarts_for([&ann, &bob]);
}

#[test]
fn a_turn_whose_end_cannot_be_written_is_given_up_and_the_host_goes_on() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let piece = "0123456789".repeat(50);
    s.model().streams([piece.as_str(); 5]).hangs();
    let turn = ann.sends_message("go");
    // Its pieces were written; its row cannot be, and neither can that of its end in an error.
    s.faults().limit_records(BYTES_MAX);
    let cancelled = ann.cancels(&turn);
    let reason = cancelled.unwrap_err();
    assert!(reason.contains("cannot be recorded"), "{reason}");
    bob.sends_message("another session goes on");
    ann.tries(&ann.session(), title("and so does its own")).unwrap();
    s.faults().limit_records(usize::MAX);
    ann.watches(&ann.chat());
    assert_eq!(ann.sees(&ann.chat())["turns"][0]["state"], "error");
}

#[test]
fn a_client_s_record_that_travels_with_another_step_fails_nobody() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    bob.loses_connection();
    s.settles();
    s.faults().then(Fault::BadRecord(0));
    ann.tries(&ann.session(), title("kept")).unwrap();
    assert_eq!(ann.sees(&ann.session())["title"], "kept");
}
