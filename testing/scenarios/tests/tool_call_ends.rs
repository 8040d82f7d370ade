//! Tool calls that do not go as planned: stopped, late, misreported, interrupted; nothing runs that should not.

use agent_api::{AgentEvent, ToolResult};
use serde_json::{Value, json};
use testkit::{Kill, Scenario, Script, Tool};

// VS Code dialect 11: stop while a confirmation is pending is cancel, then approve
#[test]
fn a_confirmation_after_a_stop_runs_nothing() {
    for one_batch in [true, false] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().asks_tool("shell", "rm -rf").streams(["oops"]);
        let turn = ann.sends_message("clean");
        let confirm = ann.confirmation(json!({}));
        let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
        ann.dispatches(&ann.chat(), cancel);
        if !one_batch {
            s.settles();
        }
        let late = ann.dispatches(&ann.chat(), confirm);
        s.settles();
        assert!(ann.refusal(late).is_some());
        assert!(s.executed().is_empty() && s.tool_decisions().is_empty());
        let call = ann.call_that_is("cancelled");
        assert_eq!(call["reason"], "skipped");
        assert_eq!((ann.reads().as_str(), ann.chat_status()), ("", 1));
        assert!(ann.needs().is_empty());
        s.all_agree();
    }
}

// VS Code dialect 12, G-08: and a message typed then is sent
#[test]
fn a_message_typed_during_a_confirmation_starts_and_the_tool_does_not() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("shell", "rm -rf");
    let turn = ann.sends_message("clean");
    let confirm = ann.confirmation(json!({}));
    let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
    ann.dispatches(&ann.chat(), cancel);
    ann.dispatches(&ann.chat(), confirm);
    ann.dispatches(&ann.chat(), ann.pending_set("queued", "q", "rather this"));
    s.settles();
    assert!(s.executed().is_empty());
    assert_eq!(ann.sent_messages(), ["clean", "rather this"]);
    assert_eq!(ann.reads(), "ok");
}

// The other way round: allowed and stopped in one batch; it must not be running on
#[test]
fn a_stop_right_after_a_confirmation_stops_the_tool() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("shell", "rm -rf").streams(["oops"]);
    let turn = ann.sends_message("clean");
    let confirm = ann.confirmation(json!({}));
    ann.dispatches(&ann.chat(), confirm);
    let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
    ann.dispatches(&ann.chat(), cancel);
    s.settles();
    assert!(s.executed().is_empty());
    assert_eq!(ann.call_that_is("cancelled")["reason"], "skipped");
}

// H-174: a turn that ends closes its calls, whatever their state
#[test]
fn the_end_of_a_turn_closes_open_calls() {
    for end in ["complete", "cancel", "error", "restart"] {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        let ask = |script: Script, call: u64, fields: Value| {
            script.announces(call, "tool").readies(call, fields)
        };
        s.model()
            .plays(|script| {
                let script = ask(script, 101, json!({"invocationMessage": "a"}));
                let running = json!({"invocationMessage": "b", "confirmed": "not-needed"});
                let script = ask(script, 102, running.clone());
                let script = ask(script, 103, running).emits(AgentEvent::ToolCompleted {
                    call: 103,
                    result: ToolResult::new(true, "did"),
                    review: true,
                });
                script.announces(104, "tool")
            })
            .waits_ms(10)
            .plays(|script| match end {
                "complete" => script.completes(),
                "error" => script.fails(true),
                _ => script.hangs(),
            });
        let turn = ann.sends_message("go");
        match end {
            "cancel" => ann.cancels(&turn).unwrap(),
            "restart" => {
                s.host_restarts_for([&ann, &bob]);
            }
            _ => {}
        }
        let calls = bob.calls();
        assert_eq!(calls.len(), 4);
        for call in calls {
            assert_eq!(
                (&call["status"], &call["reason"]),
                (&json!("cancelled"), &json!("skipped")),
                "{end}: {call}"
            );
        }
        assert!(bob.needs().is_empty(), "{end}");
        s.all_agree();
    }
}

// ADR 0005: events of a stopped run are dropped
#[test]
fn late_events_of_a_tool_change_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .plays(|script| script.calls(Tool::running("shell", "ls").shows("x")))
        .waits_ms(100)
        .plays(|script| script.calls(Tool::asking("shell", "rm")))
        .talks_on_after_stop();
    let turn = ann.starts("go");
    s.world().advance_ms(0);
    let cancel = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 5});
    ann.dispatches(&ann.chat(), cancel);
    s.settles();
    let seq = s.look().kernel().seq();
    s.advances_ms(500);
    assert_eq!(s.look().kernel().seq(), seq);
    assert!(ann.needs().is_empty());
}

// No event out of order breaks anything, or is sent in a form that clients cannot read (H-078)
#[test]
fn nonsense_about_calls_leaves_the_turn_in_order() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let result = json!({"success": true, "pastTenseMessage": "did"});
    s.model()
        .emits(AgentEvent::ToolInput { call: 50, text: "nobody".into() })
        .readies(50, json!({"invocationMessage": "x"}))
        .emits(AgentEvent::ToolContent { call: 50, content: vec![] })
        .reports(50, result.clone())
        .announces(51, "a")
        .reports(51, result.clone()) // not ready yet
        .emits(AgentEvent::ToolContent {
            call: 51,
            content: vec![json!({"type": "text", "text": "t"})],
        })
        .readies(51, json!({"invocationMessage": "x", "confirmed": "not-needed"}))
        .emits(AgentEvent::ToolInput { call: 51, text: "late".into() })
        .reports(51, result.clone())
        .reports(51, result.clone())
        .readies(51, json!({"invocationMessage": "x"}))
        .streams(["still here"]);
    ann.sends_message("go");
    assert_eq!(bob.call_that_is("completed")["toolName"], "a");
    assert_eq!(bob.calls().len(), 1);
    assert_eq!(bob.reads(), "still here");
    assert!(bob.needs().is_empty());
}

// H-208, H-078: what lacks what it must have is not sent as it is
#[test]
fn an_unreadable_result_is_not_sent() {
    let (mut s, ann) = Scenario::with_chat();
    for result in [
        json!({}),
        json!({"success": true}),
        json!("text"),
        json!({"success": "yes", "pastTenseMessage": 1}),
    ] {
        s.model().calls(Tool::running("shell", "ls").results_in(result.clone())).streams(["end"]);
        ann.sends_message("go");
        assert!(ann.latest_turn()["state"].is_string(), "{result}");
        for call in ann.calls() {
            let status = call["status"].as_str().unwrap();
            assert!(matches!(status, "completed" | "cancelled"), "{call}");
        }
        s.all_agree();
    }
}

// H-078: the same for what a call asks
#[test]
fn an_unreadable_ready_event_is_not_sent() {
    for fields in [
        json!({}),
        json!({"invocationMessage": 7}),
        json!({"invocationMessage": "m", "options": "none"}),
    ] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().announces(5, "tool").readies(5, fields.clone()).streams(["end"]);
        ann.sends_message("go");
        assert!(ann.sees(&ann.chat()).get("activeTurn").is_none(), "{fields}");
        assert!(ann.needs().is_empty());
        s.all_agree();
    }
}

// docs/rules/protocol.md, Tool calls: complete from pending-confirmation; a late decision finds nothing
#[test]
fn an_agent_that_reports_without_waiting_needs_no_decision_any_more() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .announces(5, "tool")
        .readies(5, json!({"invocationMessage": "m"}))
        .waits_ms(100)
        .reports(5, json!({"success": false, "pastTenseMessage": "gave up"}))
        .hangs();
    ann.starts("go");
    s.world().advance_ms(0);
    s.world().batch(64);
    s.settles();
    assert_eq!(ann.call_that_is("completed")["success"], false);
    assert!(ann.needs().is_empty());
    assert_eq!(ann.chat_status(), 8);
    assert!(s.tool_decisions().is_empty());
}

// G-04, G-26: a resumed turn keeps its old calls and numbers its new ones apart
#[test]
fn a_resumed_turn_does_not_mix_its_calls_up() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("one", "a").fails_resumably();
    let turn = ann.sends_message("go");
    let stale = ann.confirmation(json!({}));
    s.host_restarts_for([&ann]);
    assert!(ann.tries(&ann.chat(), stale.clone()).is_err(), "G-10: its turn is over");
    s.model().asks_tool("two", "b").streams(["end"]);
    ann.resumes(&turn).unwrap();
    assert!(ann.tries(&ann.chat(), stale).is_err(), "that call is over");
    let calls = ann.calls();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["toolCallId"], calls[1]["toolCallId"]);
    assert_eq!(
        (&calls[0]["status"], &calls[1]["status"]),
        (&json!("cancelled"), &json!("pending-confirmation"))
    );
    ann.confirms().unwrap();
    assert_eq!(s.executed(), ["b"]);
}

// G-15: a decision that could not be written is none
#[test]
fn a_confirmation_that_cannot_be_written_runs_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("shell", "ls");
    ann.sends_message("list");
    s.faults().break_disk();
    assert!(ann.confirms().is_err());
    assert!(s.executed().is_empty() && s.tool_decisions().is_empty());
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
}

// Prepare, write, send, act: never twice, never without its record
#[test]
fn a_host_that_dies_at_a_confirmation_never_runs_the_tool_twice() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().asks_tool("shell", "ls").streams(["x"]);
        let turn = ann.sends_message("list");
        s.host_dies_at(point);
        ann.dispatches(&ann.chat(), ann.confirmation(json!({})));
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        assert!(s.executed().is_empty(), "{point:?}: the agent has no reply yet");
        assert_eq!(ann.latest_turn()["state"], "error");
        assert_eq!(ann.calls()[0]["status"], "cancelled");
        s.model().streams(["resumed"]);
        ann.resumes(&turn).unwrap();
        assert!(s.executed().is_empty());
        s.all_agree();
    }
}

// An agent's fields are fields: they do not make another action of it
#[test]
fn an_agent_cannot_smuggle_another_action_in() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .announces(5, "t")
        .readies(5, json!({"type": "chat/turnComplete", "duration": 1, "invocationMessage": "m"}))
        .streams(["still running"])
        .hangs();
    ann.sends_message("go");
    if ann.sees(&ann.chat()).get("activeTurn").is_some() {
        assert_eq!(ann.call_that_is("pending-confirmation")["invocationMessage"], "m");
    }
}
