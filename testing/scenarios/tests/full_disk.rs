//! A full disk: nothing can be recorded, so nothing is spoken; reads and pings go on; then it recovers (G-15).

use agent_api::Section;
use host::journal::Fault;
use kernel::Input;
use serde_json::{Value, json};
use testkit::{ROOT, Scenario};

#[test]
fn actions_are_refused_requests_that_write_fail_and_reads_go_on() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.sends_message("before");
    s.faults().break_disk();
    for _ in 0..2 {
        let title = json!({"type": "session/titleChanged", "title": "lost"});
        let reason = ann.tries(&ann.session(), title).unwrap_err();
        assert!(reason.contains("recorded"), "{reason}");
        assert_eq!(ann.is_denied("createSession", json!({"channel": "ahp-session:/two"})), -32603);
        assert_eq!(ann.is_denied("disposeSession", json!({"channel": ann.session()})), -32603);
        assert_eq!(ann.asks("ping", json!({"channel": ROOT})), Ok(Value::Null));
        assert_eq!(
            ann.asks("listSessions", json!({})).unwrap()["items"].as_array().unwrap().len(),
            1
        );
    }
    assert_eq!(bob.sees(&ann.session())["title"], "New session");
    s.faults().mend_disk();
    s.advances_ms(1_000);
    ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": "kept"})).unwrap();
    ann.sends_message("and turns run");
}

#[test]
fn a_running_turn_is_stopped_and_its_error_recorded_when_writing_works_again() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().streams(["a"]).waits_ms(50).streams(["b"]).hangs();
    let turn = ann.starts("go");
    s.world().advance_ms(0);
    ann.reaches_host();
    s.world().take_due();
    while s.world().batch(64) {}
    s.faults().break_disk();
    s.settles();
    assert_eq!(s.look().models.stopped.len(), 1);
    assert!(bob.sees(&ann.chat())["activeTurn"].is_object());
    s.faults().mend_disk();
    s.advances_ms(1_000);
    let chat = bob.sees(&ann.chat());
    assert!(chat.get("activeTurn").is_none());
    assert_eq!(
        (&chat["turns"][0]["id"], &chat["turns"][0]["state"]),
        (&json!(turn), &json!("error"))
    );
    assert_eq!(bob.reads(), "a");
    ann.resumes(&turn).unwrap();
}

#[test]
fn a_host_that_dies_with_a_full_disk_closes_its_turns_at_boot() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["a"]).hangs();
    ann.sends_message("go");
    s.faults().break_disk();
    assert!(
        ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": "lost"}))
            .is_err()
    );
    s.host_is_killed();
    s.host_restarts();
    s.faults().mend_disk();
    s.advances_in_steps(3_000, 500);
    ann.reconnects();
    assert_eq!(ann.sees(&ann.chat())["turns"][0]["state"], "error");
}

// H-004, G-15: everything in the batch that failed is answered
#[test]
fn everything_in_a_failing_batch_is_answered() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.faults().then(Fault::Refuse);
    let lost =
        ann.dispatches(&ann.session(), json!({"type": "session/titleChanged", "title": "lost"}));
    let ping = ann.requests("ping", json!({"channel": ROOT}));
    let unknown = ann.requests("nobody", json!({"channel": ROOT}));
    let refused = ann.dispatches(&ann.session(), json!({"type": "session/ready"}));
    ann.sends_raw("{");
    let other = bob.requests("ping", json!({"channel": ROOT}));
    s.settles();
    assert!(ann.refusal(lost).is_some() && ann.refusal(refused).is_some());
    assert_eq!(ann.answer(ping), Some(Ok(Value::Null)));
    assert!(ann.answer(unknown).is_some() && bob.answer(other).is_some());
    let errors = ann.with(|client| {
        client
            .frames
            .iter()
            .filter(|frame| frame["id"].is_null() && frame.get("error").is_some())
            .count()
    });
    assert_eq!(errors, 1);
    s.advances_ms(1_000);
}

#[test]
fn a_dispose_that_failed_leaves_the_session_in_the_list() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.sends_message("before");
    s.faults().then(Fault::Refuse);
    assert_eq!(ann.is_denied("disposeSession", json!({"channel": ann.session()})), -32603);
    s.advances_ms(1_000);
    assert_eq!(bob.asks("listSessions", json!({})).unwrap()["items"].as_array().unwrap().len(), 1);
    ann.sends_message("still here");
    assert_eq!(bob.reads(), "ok");
    bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
}

#[test]
fn an_unsubscribe_in_a_failing_batch_stands() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.faults().then(Fault::Refuse);
    bob.unwatches(&ann.chat());
    s.settles();
    s.advances_ms(1_000);
    let before = bob.with(|client| client.frames.len());
    ann.sends_message("not for bob");
    assert!(bob.received_frames()[before..].iter().all(|name| !name.starts_with("chat/")));
}

#[test]
fn a_page_that_could_not_be_sent_is_the_next_one() {
    let (mut s, ann) = Scenario::with(|limits| limits.page_turns = 2).and_chat();
    ann.repeats_message(6, "hi");
    let bob = s.client("bob").joins(&ann);
    bob.watches_turns(&ann.chat(), 1);
    s.faults().then(Fault::Refuse);
    assert_eq!(bob.is_denied("fetchTurns", json!({"channel": ann.chat()})), -32603);
    s.advances_ms(1_000);
    for _ in 0..3 {
        bob.asks("fetchTurns", json!({"channel": ann.chat()})).unwrap();
    }
}

// G-09, H-112
#[test]
fn a_session_whose_start_could_not_be_recorded_becomes_ready_later() {
    let mut s = Scenario::new();
    s.sessions_take_ms(1);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
    let chat = testkit::default_chat("ahp-session:/one");
    ann.dispatches(&chat, ann.turn_started("t1", "early"));
    ann.reaches_host();
    s.faults().break_disk();
    s.settles();
    s.faults().mend_disk();
    s.advances_in_steps(3_000, 500);
    assert_eq!(s.state("ahp-session:/one")["lifecycle"], "ready");
    assert!(s.state(&chat).get("activeTurn").is_none());
}

// H-126
#[test]
fn a_grace_that_ends_while_nothing_can_be_written_ends_later() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    ann.loses_connection();
    s.settles();
    s.faults().break_disk();
    s.advances_in_steps(12_000, 1_000);
    s.faults().mend_disk();
    s.advances_in_steps(30_000, 1_000);
    assert_eq!(s.state(&ann.session())["activeClients"], json!([]));
}

// H-126
#[test]
fn a_removal_that_could_not_be_written_does_not_lose_the_grace() {
    let (mut s, ann) = Scenario::with_chat();
    ann.becomes_active().unwrap();
    s.faults().then(Fault::Refuse);
    let removal = json!({"type": "session/activeClientRemoved", "clientId": "ann"});
    assert!(ann.tries(&ann.session(), removal).is_err());
    s.advances_ms(1_000);
    ann.loses_connection();
    s.settles();
    s.advances_in_steps(30_000, 1_000);
    assert_eq!(s.state(&ann.session())["activeClients"], json!([]));
}

// G-20: what a client was served while nothing could be written is true when it comes back
#[test]
fn a_subscription_taken_while_the_disk_was_full_survives() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    s.faults().break_disk();
    assert!(
        ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": "lost"}))
            .is_err()
    );
    let watched = bob.asks("subscribe", json!({"channel": ann.chat()}));
    s.faults().mend_disk();
    s.advances_ms(1_000);
    if watched.is_err() {
        bob.watches(&ann.chat());
    }
    ann.sends_message("hello");
    bob.loses_connection();
    ann.sends_message("again");
    s.host_restarts_for([&ann, &bob]);
}

#[test]
fn a_client_that_came_and_went_while_the_disk_was_full_starts_anew() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.faults().break_disk();
    assert!(
        ann.tries(&ann.session(), json!({"type": "session/titleChanged", "title": "lost"}))
            .is_err()
    );
    bob.loses_connection();
    s.settles();
    bob.reconnects();
    bob.unwatches(&ann.session());
    bob.settles();
    bob.loses_connection();
    s.settles();
    s.faults().mend_disk();
    s.advances_ms(1_000);
    ann.sends_message("hello");
    let bob = bob.connects();
    let params = bob.with(|client| client.reconnect_params());
    if bob.asks("reconnect", params).is_err() {
        let channels = [ROOT.to_owned(), ann.session(), ann.chat()];
        let params = bob.with(|client| client.initialize_params(&channels));
        bob.asks("initialize", params).unwrap();
    }
}

// G-20: an answer that was read before its rows were removed is not believed
#[test]
fn a_client_whose_rows_are_removed_while_they_are_read_starts_anew() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.faults().break_disk();
    let lost = json!({"type": "session/titleChanged", "title": "lost"});
    assert!(ann.tries(&ann.session(), lost).is_err());
    bob.unwatches(&ann.session());
    bob.settles();
    bob.loses_connection();
    s.settles();
    s.reads_take_ms(40);
    let bob = bob.connects();
    let params = bob.with(|client| client.reconnect_params());
    let sent = bob.requests("reconnect", params);
    bob.reaches_host();
    s.faults().mend_disk();
    s.world().input(Input::Probed { writable: true });
    while s.world().batch(64) {}
    s.settles();
    let answer = bob.answer(sent).expect("it is answered");
    assert_eq!(answer.unwrap_err()["code"], -32008);
    let wanted = [ROOT.to_owned(), ann.chat()];
    let params = bob.with(|client| client.initialize_params(&wanted));
    bob.asks("initialize", params).unwrap();
}

// G-02: no agent waits for it, and it says nothing of what could not be written
#[test]
fn a_session_s_opening_prompt_is_still_rewritten() {
    let (mut s, ann) = Scenario::with_chat();
    ann.opts_in(&["tone"]).unwrap();
    let session = wire::ChannelUri::parse(&ann.session()).unwrap();
    let sections = vec![Section::new("tone", "T")];
    s.world().input(Input::OpeningPrompt { session, sections });
    s.settles();
    assert_eq!(ann.is_asked().len(), 1);
    s.faults().break_disk();
    let lost = json!({"type": "session/titleChanged", "title": "lost"});
    assert!(ann.tries(&ann.session(), lost).is_err());
    ann.rewrites([("tone", "polite")]);
    let recorded = s.world().models.recorded_render.take();
    assert_eq!(recorded.unwrap().rewritten["tone"], "polite");
    s.faults().mend_disk();
    s.advances_ms(1_000);
}

// One write fails, the next works, and fails again
#[test]
fn a_disk_that_comes_and_goes_loses_nothing() {
    for pattern in 0_u32..64 {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        for bit in 0..6 {
            s.faults().then(if pattern >> bit & 1 == 1 { Fault::Tear } else { Fault::Pass });
        }
        s.model().streams(["a"]).waits_ms(10).streams(["b"]);
        ann.starts("go");
        bob.requests("subscribe", json!({"channel": ann.chat()}));
        s.settles();
        s.advances_in_steps(4_000, 500);
        s.world().mend();
        s.advances_in_steps(2_000, 500);
        bob.loses_connection();
        ann.sends_message("more");
        bob.reconnects();
        s.all_agree();
    }
}

// A session that goes back to what the journal holds takes its chats along
#[test]
fn a_chat_outlives_a_failed_write_to_its_session() {
    let (mut s, ann) = Scenario::with_chat();
    s.faults().then(Fault::Refuse);
    let read = json!({"type": "session/isReadChanged", "isRead": true});
    assert!(ann.tries(&ann.session(), read).is_err());
    s.advances_ms(1_000);
    let archived = json!({"type": "chat/isArchivedChanged", "isArchived": true});
    ann.tries(&ann.chat(), archived).unwrap();
    ann.sends_message("hello");
    s.host_restarts_for([&ann]);
}
