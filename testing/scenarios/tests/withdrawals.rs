//! An agent that does not ask any more: nobody can say yes to what nobody waits for.

use agent_api::AgentEvent;
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};

/// How far the model waits before it takes back what it asked.
const WAIT_MS: u64 = 100;

/// Everything that is sent arrives, and no time passes.
fn delivers(s: &mut Scenario) {
    let mut world = s.world();
    for _ in 0..20 {
        world.advance_ms(0);
        for peer in world.links.keys().copied().collect::<Vec<_>>() {
            while world.carry_to_host(peer) {}
        }
        while world.batch(64) {}
        for peer in world.links.keys().copied().collect::<Vec<_>>() {
            while world.carry_to_client(peer) {}
        }
    }
}

fn request(client: &ScenarioClient) -> Value {
    let parts = client.latest_turn()["responseParts"].clone();
    let parts = parts.as_array().unwrap().iter();
    let mut requests = parts.filter(|part| part["kind"] == "inputRequest");
    requests.next().unwrap().clone()
}

// G-10, H-190
#[test]
fn a_call_whose_question_is_withdrawn_is_skipped_and_cannot_be_confirmed() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().plays(|script| script.withdraws_tool("shell", WAIT_MS)).asks_for_text("and now?");
    ann.starts("go");
    delivers(&mut s);
    assert_eq!(ann.needed_kinds(), ["toolConfirmation"]);
    let late = bob.confirmation(json!({}));
    s.advances_ms(WAIT_MS);
    assert_eq!(ann.call_that_is("cancelled")["reason"], "skipped");
    assert_eq!(ann.needed_kinds(), ["chatInput"], "the call needs nobody");
    let refused = bob.tries(&ann.chat(), late).unwrap_err();
    assert!(refused.contains("waits for no confirmation"), "{refused}");
    assert!(s.tool_decisions().is_empty() && s.executed().is_empty());
    ann.answers_text("go on").unwrap();
    assert_eq!(ann.latest_turn()["state"], "complete");
}

// The user was faster: what was decided stays decided
#[test]
fn a_withdrawal_after_the_decision_changes_nothing() {
    for approved in [true, false] {
        let (mut s, ann) = Scenario::with_chat();
        s.model()
            .announces(7, "shell")
            .readies(7, json!({"invocationMessage": "run", "toolInput": "{}"}))
            .asks_for_text("go on?")
            .emits(AgentEvent::ConfirmationWithdrawn { call: 7 })
            .emits(AgentEvent::ConfirmationWithdrawn { call: 8 })
            .asks_for_text("and now?");
        ann.sends_message("go");
        if approved {
            ann.confirms().unwrap()
        } else {
            ann.denies().unwrap()
        }
        let before = ann.calls();
        ann.answers_text("yes").unwrap();
        assert_eq!(ann.calls(), before);
        assert_eq!(s.tool_decisions(), [approved]);
        ann.answers_text("end").unwrap();
        s.all_agree();
    }
}

// H-217
#[test]
fn a_question_that_is_withdrawn_is_cancelled_and_cannot_be_answered() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model()
        .plays(|script| script.withdraws_question("which?", WAIT_MS))
        .runs_tool("shell", "ls")
        .asks_tool("shell", "more");
    ann.starts("go");
    delivers(&mut s);
    let id = bob.question()["id"].clone();
    let answer = json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept", "answers": {
        "q": testkit::consent::text_answer("submitted", "this"),
    }});
    assert_eq!(ann.needed_kinds(), ["chatInput"]);
    s.advances_ms(WAIT_MS);
    assert_eq!(request(&ann)["response"], "cancel");
    assert_eq!(ann.needed_kinds(), ["toolConfirmation"]);
    let refused = bob.tries(&ann.chat(), answer).unwrap_err();
    assert!(refused.contains("no input request"), "{refused}");
    let draft = json!({"type": "chat/inputAnswerChanged", "requestId": id, "questionId": "q", "answer": null});
    assert!(bob.tries(&ann.chat(), draft).is_err());
    let answered = s
        .look()
        .models
        .replies
        .iter()
        .any(|(_, reply)| matches!(reply, agent_api::AgentReply::Answered { .. }));
    assert!(!answered, "nobody heard an answer");
    ann.confirms().unwrap();
}

#[test]
fn a_question_that_was_answered_before_it_is_withdrawn_stays_answered() {
    let (mut s, ann) = Scenario::with_chat();
    s.model()
        .asks_for_text("which?")
        .plays(|script| {
            let ask = 1;
            script.emits(AgentEvent::QuestionWithdrawn { ask })
        })
        .asks_tool("shell", "ls");
    ann.sends_message("go");
    ann.answers_text("this").unwrap();
    assert_eq!(request(&ann)["response"], "accept");
    ann.confirms().unwrap();
}
