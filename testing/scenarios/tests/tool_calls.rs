//! Tool calls: announced, asked about, run, reported; and nothing runs that was not allowed.

use agent_api::AgentReply;
use serde_json::{Value, json};
use testkit::script::Question;
use testkit::{Scenario, ScenarioClient, Tool};

// docs/rules/protocol.md, Tool calls: start, delta, ready, confirmed, complete
#[test]
fn a_tool_that_is_allowed_runs_and_everyone_sees_each_step() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().calls(Tool::asking("shell", "ls -l").streamed(&["ls", " -l"])).streams(["done"]);
    ann.sends_message("list");
    let call = bob.call_that_is("pending-confirmation");
    assert_eq!(call["toolName"], "shell");
    assert_eq!(call["displayName"], "SHELL");
    assert_eq!(call["toolInput"], "ls -l");
    assert_eq!((bob.chat_status(), s.executed().len()), (24, 0));
    let actions = bob.received_actions();
    let of_call: Vec<&str> =
        actions.iter().filter_map(|kind| kind.strip_prefix("chat/toolCall")).collect();
    assert_eq!(of_call, ["Start", "Delta", "Delta", "Ready"]);
    bob.confirms().unwrap();
    assert_eq!(s.executed(), ["ls -l"]);
    let call = ann.call_that_is("completed");
    assert_eq!(call["confirmed"], "user-action");
    assert_eq!((&call["success"], &call["content"][0]["text"]), (&json!(true), &json!("ls -l")));
    assert_eq!((ann.reads().as_str(), ann.chat_status()), ("done", 1));
}

// docs/rules/protocol.md, Tool calls: ready with `confirmed`
#[test]
fn a_tool_that_needs_no_leave_runs_at_once() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .plays(|script| script.calls(Tool::running("shell", "ls").shows("half").shows("whole")))
        .hangs();
    ann.sends_message("list");
    let call = ann.call_that_is("completed");
    assert_eq!(call["confirmed"], "not-needed");
    assert_eq!(ann.chat_status(), 8);
    let changed = ann.received_actions();
    let updates = changed.iter().filter(|kind| *kind == "chat/toolCallContentChanged");
    assert_eq!(updates.count(), 2); // H-206
    assert!(ann.needs().is_empty());
}

// docs/rules/protocol.md, Tool calls: denied
#[test]
fn a_tool_that_is_denied_does_not_run_and_the_turn_goes_on() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("shell", "rm").streams(["then not"]);
    ann.sends_message("clean up");
    let suggestion = json!({"text": "list instead", "origin": {"kind": "user"}});
    ann.denies_with(json!({"userSuggestion": suggestion, "reasonMessage": "too risky"})).unwrap();
    assert!(s.executed().is_empty());
    let call = ann.call_that_is("cancelled");
    assert_eq!(call["reason"], "denied");
    assert_eq!(call["reasonMessage"], "too risky");
    assert_eq!(call["userSuggestion"]["text"], "list instead");
    assert_eq!((ann.reads().as_str(), ann.chat_status()), ("then not", 1));
    let world = s.look();
    let Some((
        _,
        AgentReply::ToolDecided {
            approved: false,
            suggestion: Some(suggestion),
            reason: Some(reason),
            ..
        },
    )) = world.models.replies.first()
    else {
        panic!("{:?}", world.models.replies)
    };
    assert_eq!((&suggestion["text"], reason), (&json!("list instead"), &json!("too risky")));
    drop(world);
}

// H-190, H-191, G-10: every other state, every other name
#[test]
fn only_a_call_that_waits_can_be_confirmed() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("old", "x");
    let old_turn = ann.sends_message("before");
    let old = ann.confirmation(json!({}));
    ann.confirms().unwrap();
    assert!(ann.tries(&ann.chat(), old.clone()).is_err(), "completed, and its turn over");
    s.model()
        .announces(91, "streams")
        .announces(92, "runs")
        .readies(92, json!({"invocationMessage": "r", "confirmed": "setting"}))
        .asks_tool("waits", "y");
    ann.sends_message("now");
    for status in ["streaming", "running"] {
        let call = ann.call_that_is(status);
        for approved in [true, false] {
            let fields =
                json!({"approved": approved, "confirmed": "user-action", "reason": "denied"});
            let action = ann.about(&call, "chat/toolCallConfirmed", fields);
            assert!(ann.tries(&ann.chat(), action).is_err(), "{status}");
        }
        let review = ann.about(&call, "chat/toolCallResultConfirmed", json!({"approved": true}));
        assert!(ann.tries(&ann.chat(), review).is_err(), "{status}");
    }
    let right = ann.confirmation(json!({}));
    let with = |field: &str, value: Value| {
        let mut action = right.clone();
        action[field] = value;
        action
    };
    for wrong in [
        old,
        with("turnId", json!(old_turn)),
        with("turnId", json!("none")),
        with("toolCallId", json!("none")),
        with("toolCallId", json!("")),
        with("approved", json!("yes")),
        with("approved", Value::Null),
        with("type", json!("chat/toolCallResultConfirmed")),
    ] {
        assert!(ann.tries(&ann.chat(), wrong.clone()).is_err(), "{wrong}");
    }
    assert_eq!((s.executed().len(), s.tool_decisions().len()), (1, 1));
    ann.tries(&ann.chat(), right.clone()).unwrap();
    assert!(ann.tries(&ann.chat(), right).is_err());
    assert_eq!(s.executed(), ["x", "y"]);
}

// H-073: the first decides
#[test]
fn of_two_confirmations_the_first_one_counts() {
    for (first, second) in [(true, false), (false, true), (true, true)] {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        s.model().asks_tool("shell", "ls");
        ann.sends_message("list");
        let decision = |client: &ScenarioClient, approved: bool| {
            let call = client.call_that_is("pending-confirmation");
            let fields =
                json!({"approved": approved, "confirmed": "user-action", "reason": "denied"});
            client.about(&call, "chat/toolCallConfirmed", fields)
        };
        let one = ann.dispatches(&ann.chat(), decision(&ann, first));
        let two = bob.dispatches(&ann.chat(), decision(&bob, second));
        s.settles();
        assert_eq!(ann.refusal(one), None);
        assert!(bob.refusal(two).is_some());
        assert_eq!(s.tool_decisions(), [first]);
        assert_eq!(s.executed().len(), usize::from(first));
        s.all_agree();
    }
}

// H-194
#[test]
fn a_chosen_option_must_be_one_of_those_offered_and_mean_the_same() {
    let (mut s, ann) = Scenario::with_chat();
    let options = [("once", "approve"), ("always", "approve"), ("no", "deny")];
    s.model().calls(Tool::asking("shell", "ls").offers(&options));
    ann.sends_message("list");
    let labels = &ann.call_that_is("pending-confirmation")["options"];
    assert_eq!(labels[1]["label"], "always!");
    assert!(ann.confirms_with(json!({"selectedOptionId": "never"})).is_err());
    assert!(ann.confirms_with(json!({"selectedOptionId": "no"})).is_err());
    assert!(ann.denies_with(json!({"selectedOptionId": "once"})).is_err());
    assert!(s.tool_decisions().is_empty());
    ann.confirms_with(json!({"selectedOptionId": "always"})).unwrap();
    assert_eq!(ann.call_that_is("completed")["selectedOption"]["id"], "always");
    let reply = s.look().models.replies.first().cloned().unwrap().1;
    let AgentReply::ToolDecided { selected_option: Some(option), .. } = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(option["kind"], "approve");
    s.model().calls(Tool::asking("shell", "ls").offers(&options));
    ann.sends_message("again");
    ann.denies_with(json!({"selectedOptionId": "no"})).unwrap();
    assert_eq!(ann.call_that_is("cancelled")["selectedOption"]["id"], "no");
    s.model().asks_tool("shell", "ls");
    ann.sends_message("plain");
    assert!(ann.confirms_with(json!({"selectedOptionId": "once"})).is_err(), "none offered");
    ann.confirms().unwrap();
}

// H-195
#[test]
fn edited_input_runs_if_it_is_editable() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().calls(Tool::asking("shell", "rm a").editable());
    ann.sends_message("clean");
    ann.confirms_with(json!({"editedToolInput": "rm b"})).unwrap();
    assert_eq!(s.executed(), ["rm b"]);
    assert_eq!(bob.call_that_is("completed")["toolInput"], "rm b");
    s.model().asks_tool("shell", "rm c");
    ann.sends_message("again");
    assert!(ann.confirms_with(json!({"editedToolInput": "rm d"})).is_err());
    s.model().calls(Tool::asking("shell", "rm e").with("editable", json!(false)));
    ann.confirms().unwrap();
    ann.sends_message("once more");
    assert!(ann.confirms_with(json!({"editedToolInput": "rm f"})).is_err());
    ann.confirms().unwrap();
    assert_eq!(s.executed(), ["rm b", "rm c", "rm e"]);
}

// H-192: asked again in mid-run
#[test]
fn a_tool_that_asks_again_waits_again() {
    for allowed in [true, false] {
        let (mut s, ann) = Scenario::with_chat();
        s.model()
            .calls(Tool::asking("shell", "ls").asks_again("really?").editable())
            .streams(["end"]);
        ann.sends_message("list");
        ann.confirms().unwrap();
        assert!(s.executed().is_empty());
        let call = ann.call_that_is("pending-confirmation");
        assert_eq!(call["invocationMessage"], "really?");
        assert_eq!(call["toolInput"], "ls", "what is not sent again stays");
        assert_eq!((ann.chat_status(), ann.needed_kinds().len()), (24, 1));
        if allowed {
            ann.confirms().unwrap();
        } else {
            ann.denies().unwrap();
        }
        assert_eq!(s.tool_decisions(), [true, allowed]);
        assert_eq!(s.executed().len(), usize::from(allowed));
        assert_eq!(ann.reads(), "end");
        s.all_agree();
    }
}

// H-192: a first edit is what is asked about again
#[test]
fn edited_input_survives_being_asked_again() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().calls(Tool::asking("shell", "rm a").asks_again("really?").editable());
    ann.sends_message("clean");
    ann.confirms_with(json!({"editedToolInput": "rm b"})).unwrap();
    assert_eq!(ann.call_that_is("pending-confirmation")["toolInput"], "rm b");
    // Editing was offered for the first confirmation; the second did not offer it.
    assert!(ann.confirms_with(json!({"editedToolInput": "rm c"})).is_err());
    ann.confirms().unwrap();
    assert_eq!(s.executed(), ["rm b"]);
}

/// What somebody decides about cannot become something else under the same name: a yes may be on its way to what was seen.
#[test]
fn a_call_that_is_asked_about_cannot_become_another() {
    let edits =
        |after: &str| json!({"items": [{"after": {"uri": after, "content": {"uri": after}}}]});
    let asked =
        json!({"invocationMessage": "runs", "toolInput": "ls", "edits": edits("file:///a")});
    for (changed, is_other) in [
        (json!({"toolInput": "rm -rf ."}), true),
        (json!({"edits": edits("file:///b")}), true),
        (json!({"toolInput": "rm -rf .", "confirmed": "not-needed"}), true),
        (json!({"toolInput": "ls", "intention": "to see"}), false),
    ] {
        let (mut s, ann) = Scenario::with_chat();
        let mut fields = json!({"invocationMessage": "runs"});
        for (field, value) in changed.as_object().unwrap() {
            fields[field] = value.clone();
        }
        s.model()
            .announces(7, "shell")
            .readies(7, asked.clone())
            .readies(7, fields)
            .plays(|script| script.awaits(Question::Decision(7)).repeats());
        ann.sends_message("list");
        if !is_other {
            ann.confirms().unwrap();
            assert_eq!(ann.reads(), "decided true");
            continue;
        }
        let call = ann.call_that_is("cancelled");
        assert_eq!(call["toolInput"], "ls", "{changed}");
        let yes = json!({"approved": true, "confirmed": "user-action"});
        let yes = ann.about(&call, "chat/toolCallConfirmed", yes);
        assert!(ann.tries(&ann.chat(), yes).is_err(), "{changed}");
        assert!(s.tool_decisions().is_empty(), "{changed}");
        let chat = ann.sees(&ann.chat()).to_string();
        assert!(chat.contains("callChanged"), "{chat}");
        s.all_agree();
    }
}

// H-205: updated while it waits; still one decision
#[test]
fn updates_of_a_waiting_call_are_sent_and_it_still_waits() {
    let (mut s, ann) = Scenario::with_chat();
    let judged = json!({"invocationMessage": "runs", "riskAssessment":
        {"kind": "model", "status": "complete", "reason": "harmless", "safety": 0.9}});
    s.model()
        .announces(7, "shell")
        .readies(
            7,
            json!({"invocationMessage": "runs", "toolInput": "ls", "editable": true,
            "riskAssessment": {"kind": "model", "status": "loading"}}),
        )
        .readies(7, judged)
        .plays(|script| script.awaits(Question::Decision(7)).repeats());
    ann.sends_message("list");
    let call = ann.call_that_is("pending-confirmation");
    assert_eq!(call["riskAssessment"]["safety"], 0.9);
    assert_eq!((&call["editable"], &call["toolInput"]), (&json!(true), &json!("ls")));
    assert_eq!(ann.needs()[0]["toolCall"], call, "the session has it as well");
    assert_eq!(ann.needs().len(), 1);
    ann.confirms().unwrap();
    assert_eq!(s.tool_decisions(), [true]);
    assert_eq!(ann.reads(), "decided true");
}

// H-193
#[test]
fn who_executes_never_changes() {
    let (mut s, ann) = Scenario::with_chat();
    let mcp = json!({"kind": "mcp", "customizationId": "c1"});
    let forged = json!({"kind": "client", "clientId": "ann"});
    let tool = Tool::asking("search", "x").contributed_by(mcp.clone()).with("contributor", forged);
    s.model().calls(tool);
    ann.sends_message("find");
    assert_eq!(ann.call_that_is("pending-confirmation")["contributor"], mcp);
    ann.confirms().unwrap();
    assert_eq!(ann.call_that_is("completed")["contributor"], mcp);
}

// H-200: the result is looked at first
#[test]
fn a_result_under_review_is_used_only_if_it_is_allowed() {
    for approved in [true, false] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().calls(Tool::running("shell", "ls").reviewed()).repeats();
        ann.sends_message("list");
        let call = ann.call_that_is("pending-result-confirmation");
        assert_eq!((call["success"].clone(), ann.chat_status()), (json!(true), 24));
        assert_eq!(ann.needed_kinds(), ["toolConfirmation"]);
        let confirm = ann.about(&call, "chat/toolCallConfirmed", json!({"approved": true}));
        assert!(ann.tries(&ann.chat(), confirm).is_err());
        ann.reviews(approved).unwrap();
        let (status, reads) =
            if approved { ("completed", "reviewed true") } else { ("cancelled", "reviewed false") };
        let call = ann.call_that_is(status);
        if !approved {
            assert_eq!(call["reason"], "result-denied");
        }
        assert_eq!(ann.reads(), reads);
        assert!(ann.needs().is_empty());
        s.all_agree();
    }
}

// Two at once: each decision finds its own
#[test]
fn calls_that_wait_side_by_side_are_decided_one_by_one() {
    let (mut s, ann) = Scenario::with_chat();
    let ready = |input: &str| json!({"invocationMessage": "m", "toolInput": input});
    s.model()
        .announces(5, "t")
        .readies(5, ready("five"))
        .announces(6, "t")
        .readies(6, ready("six"))
        .hangs();
    ann.sends_message("go");
    let calls = ann.calls();
    assert_ne!(calls[0]["toolCallId"], calls[1]["toolCallId"]);
    assert_eq!(ann.needs().len(), 2);
    let second = ann.about(
        &calls[1],
        "chat/toolCallConfirmed",
        json!({"approved": true, "confirmed": "user-action"}),
    );
    ann.tries(&ann.chat(), second).unwrap();
    assert_eq!((ann.chat_status(), ann.needs().len()), (24, 1));
    ann.denies().unwrap();
    assert_eq!((ann.chat_status(), ann.needs().len()), (8, 0));
    let world = s.look();
    let replies: Vec<(u64, bool, Option<String>)> = world
        .models
        .replies
        .iter()
        .filter_map(|(_, reply)| match reply {
            AgentReply::ToolDecided { call, approved, input, .. } => {
                Some((*call, *approved, input.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!((replies[0].0, replies[0].1, replies[0].2.as_deref()), (6, true, Some("six")));
    assert_eq!((replies[1].0, replies[1].1), (5, false));
    drop(world);
}

// H-197: only the host completes its own tools
#[test]
fn a_client_cannot_report_for_a_tool_of_the_host() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["shell"]).unwrap();
    s.model().asks_tool("shell", "ls").hangs();
    ann.sends_message("list");
    let result = json!({"success": true, "pastTenseMessage": "forged"});
    let call = ann.call_that_is("pending-confirmation");
    let complete = ann.about(&call, "chat/toolCallComplete", json!({"result": result}));
    assert!(ann.tries(&ann.chat(), complete).is_err());
    let content = ann.about(&call, "chat/toolCallContentChanged", json!({"content": []}));
    assert!(ann.tries(&ann.chat(), content).is_err());
}

// H-072: one who watches only the session can decide
#[test]
fn one_who_watches_only_the_session_can_confirm() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    let bob = s.client("bob").arrives_watching(&[&session]);
    s.model().asks_tool("shell", "ls");
    ann.sends_message("list");
    let entry = bob.sees(&session)["inputNeeded"][0].clone();
    assert_eq!(entry["kind"], "toolConfirmation");
    let action = json!({
        "type": "chat/toolCallConfirmed",
        "turnId": entry["turnId"],
        "toolCallId": entry["toolCall"]["toolCallId"],
        "approved": true,
        "confirmed": "user-action",
    });
    bob.dispatches(entry["chat"].as_str().unwrap(), action);
    s.settles();
    assert_eq!(s.executed(), ["ls"]);
}

// Who joins or comes back in the middle sees what waits
#[test]
fn a_confirmation_can_be_given_by_one_who_came_later() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_tool("shell", "ls");
    ann.sends_message("list");
    ann.loses_connection();
    let bob = s.client_of("bob", "0.9.0").joins(&ann);
    bob.confirms().unwrap();
    assert_eq!(s.executed(), ["ls"]);
    ann.reconnects();
    assert_eq!(ann.calls()[0]["status"], "completed");
}

// H-077: what a client adds to its decision is stored
#[test]
fn metadata_of_a_decision_survives() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().asks_tool("shell", "ls").hangs();
    ann.sends_message("list");
    bob.received_actions();
    ann.confirms_with(json!({"_meta": {"x-why": "trust"}, "x-more": 1})).unwrap();
    let seen = bob.with(|client| client.envelopes.clone());
    let echo = seen
        .iter()
        .find(|envelope| envelope["action"]["type"] == "chat/toolCallConfirmed")
        .unwrap();
    assert_eq!(echo["action"]["x-more"], 1);
    assert_eq!(bob.calls()[0]["_meta"], json!({"x-why": "trust"}));
}

// H-078: a decision of the wrong shape is refused, not half taken
#[test]
fn a_decision_that_does_not_decode_is_refused() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().calls(Tool::asking("shell", "ls").editable());
    ann.sends_message("list");
    for bad in
        [json!({"editedToolInput": 7}), json!({"selectedOptionId": {}}), json!({"_meta": "text"})]
    {
        assert!(ann.confirms_with(bad.clone()).is_err(), "{bad}");
    }
    assert!(s.tool_decisions().is_empty());
}
