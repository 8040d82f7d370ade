//! Tools that clients offer: who is called, who may answer, and what happens without an answer (G-07).

use agent_api::{AgentEvent, ToolExecutor, ToolReady, ToolResult, ToolStart};
use serde_json::{Value, json};
use testkit::pending_messages::message;
use testkit::script::Question;
use testkit::{Scenario, ScenarioClient, Script};

fn owner_of(client: &ScenarioClient) -> Value {
    client.calls().last().unwrap()["contributor"]["clientId"].clone()
}

/// A chat of ann's that bob joined, with a tool of his.
fn bob_offers_open(s: &mut Scenario) -> (ScenarioClient, ScenarioClient) {
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    bob.offers(&["open"]).unwrap();
    (ann, bob)
}

/// Every turn calls the tool, and its agent waits for ten minutes.
fn calls_open_for_long(s: &mut Scenario) {
    s.model().plays(|script| script.calls_client("open", json!({}), 600_000)).repeats();
}

// H-196, H-221
#[test]
fn a_client_is_asked_to_run_its_tool_and_its_result_reaches_the_agent() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.offers(&["edit", "open"]).unwrap();
    s.model().calls_client("open").repeats();
    let turn = ann.sends_message("open it");
    let call = ann.call_that_is("running");
    assert_eq!(call["toolName"], "open");
    assert_eq!(call["contributor"], json!({"kind": "client", "clientId": "bob"}));
    assert_eq!(call["confirmed"], "not-needed");
    let input: Value = serde_json::from_str(call["toolInput"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"path": "a"}));
    let needed = &ann.needs()[0];
    assert_eq!(needed["kind"], "toolClientExecution");
    assert_eq!(needed["clientId"], "bob");
    assert_eq!((&needed["chat"], &needed["turnId"]), (&json!(ann.chat()), &json!(turn)));
    assert_eq!(needed["toolCall"]["status"], "running");
    let status = |channel: &str| ann.sees(channel)["status"].as_u64().unwrap() & 31;
    assert_eq!(status(&ann.chat()), 8);
    assert_ne!(status(&ann.session()), 24);
    bob.completes_tool("opened a").unwrap();
    assert_eq!(ann.reads(), "ended true opened a");
    assert_eq!(ann.call_that_is("completed")["success"], true);
    assert!(ann.needs().is_empty());
}

// H-197, H-191
#[test]
fn only_the_executing_client_may_complete_its_tool_call() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.offers(&["open"]).unwrap();
    bob.offers(&["other"]).unwrap();
    s.model().calls_client("open");
    ann.sends_message("open it");
    assert!(bob.completes_tool("forged").is_err());
    assert!(bob.fails_tool("forged").is_err());
    let call = bob.call_that_is("running");
    let fields = json!({"content": [{"type": "text", "text": "forged"}]});
    let content = bob.about(&call, "chat/toolCallContentChanged", fields.clone());
    assert!(bob.tries(&ann.chat(), content).is_err());
    let denied = json!({"approved": false, "reason": "denied"});
    for client in [&ann, &bob] {
        let denial = client.about(&call, "chat/toolCallConfirmed", denied.clone());
        assert!(client.tries(&ann.chat(), denial).is_err(), "H-199: it runs already");
    }
    let content = ann.about(&call, "chat/toolCallContentChanged", fields);
    ann.tries(&ann.chat(), content).unwrap();
    assert_eq!(bob.call_that_is("running")["content"][0]["text"], "forged");
    for (field, value) in [
        ("turnId", json!("none")),
        ("toolCallId", json!("none")),
        ("result", json!({"success": true})), // H-208
        ("result", json!("text")),
    ] {
        let result = json!({"success": true, "pastTenseMessage": "did"});
        let mut action = ann.about(&call, "chat/toolCallComplete", json!({"result": result}));
        action[field] = value;
        assert!(ann.tries(&ann.chat(), action.clone()).is_err(), "{action}");
    }
    assert!(s.tool_results().is_empty());
    ann.completes_tool("mine").unwrap();
    assert_eq!(s.tool_results().len(), 1);
}

// H-073: once
#[test]
fn a_tool_is_completed_once() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open").hangs();
    ann.sends_message("open it");
    let call = ann.call_that_is("running");
    let report = |text: &str| {
        let result = json!({"success": true, "pastTenseMessage": text});
        ann.about(&call, "chat/toolCallComplete", json!({"result": result}))
    };
    let one = ann.dispatches(&ann.chat(), report("one"));
    let two = ann.dispatches(&ann.chat(), report("two"));
    s.settles();
    assert_eq!(ann.refusal(one), None);
    assert!(ann.refusal(two).is_some());
    assert_eq!(s.tool_results().len(), 1);
    assert_eq!(ann.call_that_is("completed")["pastTenseMessage"], "one");
}

// G-07: no client offers it
#[test]
fn a_tool_that_no_client_offers_fails_at_once_and_the_turn_goes_on() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.offers(&["edit"]).unwrap();
    s.model().calls_client("open").repeats();
    ann.sends_message("open it");
    assert!(ann.reads().starts_with("ended false"), "{}", ann.reads());
    assert_eq!(s.tool_results()[0]["success"], false);
    assert!(s.tool_results()[0]["pastTenseMessage"].is_string(), "H-208");
    let call = ann.call_that_is("completed");
    assert_eq!((&call["toolName"], &call["success"]), (&json!("open"), &json!(false)));
    assert!(ann.needs().is_empty());
}

// H-199, H-207: a failed completion is how a client says no
#[test]
fn a_client_may_fail_its_tool_call() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open").streams(["then not"]);
    ann.sends_message("open it");
    ann.fails_tool("no such file").unwrap();
    assert_eq!(s.tool_results()[0]["error"]["message"], "no such file");
    assert_eq!(ann.reads(), "then not");
}

// H-127: who started the turn goes first
#[test]
fn the_client_that_started_the_turn_is_preferred() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let cem = s.client("cem").joins(&ann);
    ann.offers(&["open"]).unwrap();
    bob.offers(&["open"]).unwrap();
    cem.offers(&[]).unwrap();
    for (client, owner) in [(&bob, "bob"), (&ann, "ann")] {
        s.model().calls_client("open");
        client.sends_message("open it");
        assert_eq!(owner_of(&ann), owner);
        let owner = if owner == "bob" { &bob } else { &ann };
        owner.completes_tool("done").unwrap();
    }
    // The client that started it offers nothing: another executes it.
    s.model().calls_client("open");
    cem.sends_message("open it");
    let owner = if owner_of(&ann) == "ann" { &ann } else { &bob };
    owner.completes_tool("done").unwrap();
    // A turn from the queue is of the one who put it there (G-35).
    for (client, owner) in [(&bob, "bob"), (&ann, "ann")] {
        s.model().calls_client("open");
        let mut action = client.pending_set("queued", owner, "open it");
        action["message"] = message("open it");
        client.tries(&ann.chat(), action).unwrap();
        assert_eq!(owner_of(&ann), owner);
        client.completes_tool("done").unwrap();
    }
}

// G-07: `timeout_ms`
#[test]
fn a_silent_owner_is_given_up() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model()
        .plays(|script| script.calls_client("open", json!({}), 5_000))
        .streams(["gave up"])
        .hangs();
    ann.sends_message("open it");
    let call = ann.call_that_is("running");
    s.advances_ms(4_900);
    assert!(s.tool_results().is_empty());
    s.advances_ms(200);
    assert_eq!(s.tool_results()[0]["success"], false);
    assert_eq!(ann.reads(), "gave up");
    assert_eq!(ann.call_that_is("completed")["success"], false);
    let result = json!({"success": true, "pastTenseMessage": "late"});
    let late = ann.about(&call, "chat/toolCallComplete", json!({"result": result}));
    assert!(ann.tries(&ann.chat(), late).is_err());
    assert_eq!(s.tool_results().len(), 1);
}

// G-07: a timer that is not needed any more does nothing, to this call or the next
#[test]
fn a_deadline_of_a_completed_call_has_no_effect() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().plays(|script| {
        script.calls_client("open", json!({}), 5_000).calls_client("open", json!({}), 60_000)
    });
    ann.sends_message("open two");
    s.advances_ms(3_000);
    ann.completes_tool("one").unwrap();
    s.advances_ms(10_000);
    assert_eq!(s.tool_results().len(), 1);
    ann.completes_tool("two").unwrap();
    assert_eq!(ann.latest_turn()["state"], "complete");
    s.advances_ms(100_000);
    assert_eq!(s.tool_results().len(), 2);
}

// G-07: the owner comes back in time
#[test]
fn an_owner_that_comes_back_in_time_goes_on() {
    let mut s = Scenario::new();
    let (ann, bob) = bob_offers_open(&mut s);
    s.model().calls_client("open").repeats();
    ann.sends_message("open it");
    bob.loses_connection();
    s.settles();
    s.advances_ms(9_000);
    bob.reconnects();
    s.advances_ms(9_000);
    assert!(s.tool_results().is_empty());
    assert_eq!(bob.needed_kinds(), ["toolClientExecution"]);
    bob.completes_tool("at last").unwrap();
    assert_eq!(ann.reads(), "ended true at last");
}

// G-07, H-126: it does not
#[test]
fn an_owner_that_stays_away_fails_its_calls() {
    let mut s = Scenario::new();
    let (ann, bob) = bob_offers_open(&mut s);
    calls_open_for_long(&mut s);
    ann.sends_message("open it");
    bob.loses_connection();
    s.settles();
    s.advances_ms(9_900);
    assert!(s.tool_results().is_empty());
    s.advances_ms(200);
    assert!(ann.reads().starts_with("ended false"), "{}", ann.reads());
    assert_eq!(ann.sees(&ann.session())["activeClients"], json!([]));
    assert!(ann.needs().is_empty());
    bob.reconnects();
}

// G-07, H-125, H-126: every way of ceasing to be active
#[test]
fn an_owner_that_ceases_to_be_active_fails_its_calls_at_once() {
    for way in ["removed", "unsubscribed"] {
        let mut s = Scenario::new();
        let (ann, bob) = bob_offers_open(&mut s);
        calls_open_for_long(&mut s);
        ann.sends_message("open it");
        let session = ann.session();
        match way {
            "removed" => {
                let action = json!({"type": "session/activeClientRemoved", "clientId": "bob"});
                bob.tries(&session, action).unwrap();
            }
            _ => bob.unwatches(&session),
        }
        s.settles();
        assert!(ann.reads().starts_with("ended false"), "{way}: {}", ann.reads());
        assert!(ann.needs().is_empty(), "{way}");
        s.all_agree();
    }
}

// An owner that offers something else now was asked all the same
#[test]
fn a_tool_that_is_withdrawn_while_it_runs_can_be_completed() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open").repeats();
    ann.sends_message("open it");
    ann.offers(&["edit"]).unwrap();
    if s.tool_results().is_empty() {
        ann.completes_tool("done").unwrap();
        assert_eq!(ann.reads(), "ended true done");
    }
}

// H-072: the owner need not watch the chat
#[test]
fn an_owner_that_watches_only_the_session_is_enough() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    let bob = s.client("bob").arrives_watching(&[&session]);
    let entry = json!({"clientId": "bob", "tools": [{"name": "open"}]});
    let action = json!({"type": "session/activeClientSet", "activeClient": entry});
    bob.tries(&session, action).unwrap();
    s.model().calls_client("open").repeats();
    ann.sends_message("open it");
    let needed = bob.sees(&session)["inputNeeded"][0].clone();
    let result = json!({"success": true, "pastTenseMessage": "did",
        "content": [{"type": "text", "text": "from afar"}]});
    let action = json!({"type": "chat/toolCallComplete", "turnId": needed["turnId"],
        "toolCallId": needed["toolCall"]["toolCallId"], "result": result});
    bob.dispatches(needed["chat"].as_str().unwrap(), action);
    s.settles();
    assert_eq!(ann.reads(), "ended true from afar");
}

// H-174: the turn is over
#[test]
fn a_turn_that_ends_takes_the_work_from_its_owner() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open");
    let turn = ann.sends_message("open it");
    let call = ann.call_that_is("running");
    let result = json!({"success": true, "pastTenseMessage": "late"});
    let late = ann.about(&call, "chat/toolCallComplete", json!({"result": result}));
    ann.cancels(&turn).unwrap();
    assert!(ann.needs().is_empty());
    assert_eq!(ann.call_that_is("cancelled")["reason"], "skipped");
    assert!(ann.tries(&ann.chat(), late).is_err());
    s.advances_ms(60_000);
    assert!(s.tool_results().is_empty());
}

// H-090: the host dies
#[test]
fn a_restart_ends_the_call_with_its_turn() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open");
    let turn = ann.sends_message("open it");
    s.host_restarts_for([&ann]);
    assert_eq!(ann.call_that_is("cancelled")["reason"], "skipped");
    assert!(ann.needs().is_empty());
    s.model().calls_client("open").repeats();
    ann.resumes(&turn).unwrap();
    ann.completes_tool("again").unwrap();
    assert_eq!(ann.reads(), "ended true again");
}

// H-200: an owner may want its result looked at before the model sees it
#[test]
fn a_result_that_its_owner_wants_reviewed_waits_for_the_review() {
    for approved in [true, false] {
        let (mut s, ann) = Scenario::with_chat();
        ann.offers(&["open"]).unwrap();
        s.model().plays(|script| script.calls_client("open", json!({}), 5_000)).repeats();
        ann.sends_message("open it");
        let call = ann.call_that_is("running");
        let result = json!({"success": true, "pastTenseMessage": "did",
            "content": [{"type": "text", "text": "secret"}]});
        let fields = json!({"result": result, "requiresResultConfirmation": true});
        let action = ann.about(&call, "chat/toolCallComplete", fields);
        if ann.tries(&ann.chat(), action).is_err() {
            continue; // a host need not serve it (MAY)
        }
        assert!(s.tool_results().is_empty(), "the model must not see it yet");
        assert_eq!(ann.needed_kinds(), ["toolConfirmation"]);
        s.advances_ms(60_000);
        assert!(s.tool_results().is_empty(), "the owner was not silent");
        ann.reviews(approved).unwrap();
        assert_eq!(s.tool_results()[0]["success"], approved);
        if !approved {
            assert!(!s.tool_results()[0].to_string().contains("secret"));
        }
        s.all_agree();
    }
}

// G-23: clients of 0.9 have tools as well
#[test]
fn an_older_client_runs_its_tools() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client_of("bob", "0.9.0").joins(&ann);
    bob.offers(&["open"]).unwrap();
    s.model().calls_client("open").repeats();
    ann.sends_message("open it");
    bob.completes_tool("old school").unwrap();
    assert_eq!(ann.reads(), "ended true old school");
}

// G-07 in time: an owner that is away when it is called has what is left of its grace
#[test]
fn a_call_to_an_owner_that_is_away_does_not_wait_for_ever() {
    let mut s = Scenario::new();
    let (ann, bob) = bob_offers_open(&mut s);
    bob.loses_connection();
    s.settles();
    calls_open_for_long(&mut s);
    ann.sends_message("open it");
    s.advances_in_steps(11_000, 1_000);
    assert!(ann.reads().starts_with("ended false"), "{}", ann.reads());
}

// G-15: a report that could not be written can be sent again
#[test]
fn a_report_that_cannot_be_written_is_refused() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open");
    ann.sends_message("open it");
    s.faults().break_disk();
    assert!(ann.completes_tool("lost").is_err());
    assert!(s.tool_results().is_empty());
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
}

// H-126, H-042: what the end of its own activity causes must reach the client that came back
#[test]
fn one_that_comes_back_without_its_session_sees_its_calls_fail_in_the_chat() {
    let mut s = Scenario::new();
    let (ann, bob) = bob_offers_open(&mut s);
    calls_open_for_long(&mut s);
    ann.sends_message("open it");
    bob.loses_connection();
    bob.with(|client| client.mirrors.remove(&ann.session()));
    assert_eq!(bob.reconnects()["type"], "replay");
    assert!(ann.reads().starts_with("ended false"), "{}", ann.reads());
}

fn native_like() -> Script {
    Script::new().asks_client_tool(1, "open")
}

// G-73: a call that somebody approves first
#[test]
fn a_client_begins_when_the_call_is_approved_and_may_be_quicker_than_the_agent() {
    for quick in [false, true] {
        let mut s = Scenario::new();
        let (ann, bob) = bob_offers_open(&mut s);
        s.model().plays(|_| {
            let script = native_like();
            let script = if quick { script.asks_for_text("go on?") } else { script };
            script.awaits_client_tool(1, 60_000).repeats()
        });
        ann.sends_message("open it");
        let call = ann.call_that_is("pending-confirmation");
        assert_eq!(call["contributor"]["clientId"], "bob");
        let early = json!({"success": true, "pastTenseMessage": "did"});
        let early = ann.about(&call, "chat/toolCallComplete", json!({"result": early}));
        assert!(ann.tries(&ann.chat(), early).is_err(), "only who carries it out");
        let approval = json!({"approved": true, "confirmed": "user-action"});
        let approval = ann.about(&call, "chat/toolCallConfirmed", approval);
        ann.tries(&ann.chat(), approval).unwrap();
        assert!(bob.needed_kinds().contains(&"toolClientExecution".to_owned()));
        bob.completes_tool("opened").unwrap();
        if quick {
            assert!(s.tool_results().is_empty(), "the agent does not wait yet");
            ann.answers_text("yes").unwrap();
        }
        assert_eq!(s.tool_results().len(), 1);
        assert_eq!(ann.reads(), "ended true opened");
        s.all_agree();
    }
}

// G-07
#[test]
fn a_call_whose_client_left_before_the_agent_waited_fails() {
    let mut s = Scenario::new();
    let (ann, bob) = bob_offers_open(&mut s);
    s.model()
        .plays(|_| native_like().asks_for_text("go on?").awaits_client_tool(1, 60_000).repeats());
    ann.sends_message("open it");
    let call = ann.call_that_is("pending-confirmation");
    let approval = json!({"approved": true, "confirmed": "user-action"});
    let approval = ann.about(&call, "chat/toolCallConfirmed", approval);
    ann.tries(&ann.chat(), approval).unwrap();
    let removed = json!({"type": "session/activeClientRemoved", "clientId": "bob"});
    bob.tries(&bob.session(), removed).unwrap();
    assert_eq!(ann.call_that_is("completed")["success"], false);
    assert!(s.tool_results().is_empty(), "nobody waits for it yet");
    ann.answers_text("yes").unwrap();
    assert_eq!(s.tool_results()[0]["success"], false);
}

// G-07: a silent client, and one that denies
#[test]
fn an_approved_call_has_a_deadline_and_a_denied_one_is_over() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().plays(|_| native_like().awaits_client_tool(1, 5_000).repeats());
    ann.sends_message("open it");
    let call = ann.call_that_is("pending-confirmation");
    let approval = json!({"approved": true, "confirmed": "user-action"});
    let approval = ann.about(&call, "chat/toolCallConfirmed", approval);
    ann.tries(&ann.chat(), approval).unwrap();
    s.advances_ms(5_100);
    assert_eq!(s.tool_results()[0]["success"], false);
    s.model().plays(|_| native_like().streams(["denied"]));
    ann.sends_message("open it");
    let call = ann.call_that_is("pending-confirmation");
    let denial = json!({"approved": false, "reason": "denied"});
    let denial = ann.about(&call, "chat/toolCallConfirmed", denial);
    ann.tries(&ann.chat(), denial).unwrap();
    assert_eq!(ann.reads(), "denied");
    assert_eq!(ann.call_that_is("cancelled")["reason"], "denied");
}

#[test]
fn a_refused_call_is_over_before_anybody_could_carry_it_out() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    let start = Box::new(ToolStart {
        name: "open".to_owned(),
        display_name: "open".to_owned(),
        executor: ToolExecutor::Client,
        ..ToolStart::default()
    });
    let refused = AgentEvent::ToolRefused {
        call: 1,
        ready: Box::new(ToolReady::unconfirmed("open", "{}".to_owned())),
        result: ToolResult::failed("not now", "not now"),
    };
    s.model().plays(|script| {
        script
            .emits(AgentEvent::ToolStarted { call: 1, start: start.clone() })
            .emits(refused.clone())
            .streams(["well"])
    });
    ann.sends_message("open it");
    let call = ann.call_that_is("completed");
    assert_eq!(call["success"], false);
    assert_eq!(ann.reads(), "well");
    assert!(ann.needs().is_empty());
}

// H-127
#[test]
fn an_agent_hears_of_each_tool_once() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.offers(&["open", "edit"]).unwrap();
    bob.offers(&["open", "close"]).unwrap();
    s.model().plays(|script| {
        script
            .emits(AgentEvent::ClientToolsRequested { ask: 1 })
            .awaits(Question::ClientTools(1))
            .repeats()
    });
    ann.sends_message("which?");
    assert_eq!(ann.reads(), "tools close edit open");
}
