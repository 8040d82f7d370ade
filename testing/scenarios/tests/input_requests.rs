//! Questions to the user: asked in the transcript, answered by anyone, once.

use agent_api::AgentReply;
use serde_json::{Value, json};
use testkit::consent::text_answer;
use testkit::{Kill, Scenario, ScenarioClient};

/// Replies that agents got: response and answers.
fn answered(s: &Scenario) -> Vec<(String, Value)> {
    let world = s.look();
    let replies = world.models.replies.iter().filter_map(|(_, reply)| match reply {
        AgentReply::Answered { response, answers, .. } => {
            let response = json!(response);
            Some((response.as_str()?.to_owned(), json!(answers)))
        }
        _ => None,
    });
    replies.collect()
}

fn part(client: &ScenarioClient) -> Value {
    let parts = client.latest_turn()["responseParts"].as_array().cloned().unwrap();
    parts.into_iter().find(|part| part["kind"] == "inputRequest").unwrap()
}

fn value(kind: &str, value: Value) -> Value {
    json!({"state": "submitted", "value": {"kind": kind, "value": value}})
}

/// One question of each kind.
fn every_kind() -> Value {
    let options = json!([{"id": "r", "label": "Red"}, {"id": "g", "label": "Green"}]);
    json!({"message": "all kinds", "url": "https://example.org/terms", "questions": [
        {"kind": "text", "id": "t", "message": "name?", "required": true, "min": 2, "max": 5},
        {"kind": "number", "id": "n", "message": "how much?"},
        {"kind": "integer", "id": "i", "message": "how many?", "min": 0, "max": 9},
        {"kind": "boolean", "id": "b", "message": "sure?"},
        {"kind": "single-select", "id": "s", "message": "which?", "options": options},
        {"kind": "multi-select", "id": "m", "message": "which ones?", "options": options},
    ]})
}

// H-215, H-216, H-218
#[test]
fn a_question_waits_in_the_transcript_and_its_answer_reaches_the_agent() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().asks_for_text("name?").repeats();
    ann.sends_message("go");
    let chat = bob.sees(&ann.chat());
    assert!(chat.get("activeTurn").is_some());
    assert_eq!(chat["status"].as_u64().unwrap() & 31, 24);
    let question = bob.question();
    assert_eq!(question["questions"][0]["message"], "name?");
    assert!(!question["id"].as_str().unwrap().is_empty());
    assert_eq!(bob.needed_kinds(), ["chatInput"]);
    bob.answers_text("greenroom").unwrap();
    let (response, answers) = answered(&s)[0].clone();
    assert_eq!(
        (response.as_str(), &answers["q"]["value"]["value"]),
        ("accept", &json!("greenroom"))
    );
    assert_eq!(part(&ann)["response"], "accept");
    assert_eq!(part(&ann)["request"]["answers"]["q"]["state"], "submitted");
    assert!(ann.needs().is_empty());
    assert_eq!(ann.latest_turn()["state"], "complete");
}

// H-218: declined, dismissed
#[test]
fn a_question_can_be_declined_or_dismissed() {
    for response in ["decline", "cancel"] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().asks_for_text("name?").streams(["then not"]);
        ann.sends_message("go");
        ann.answers(response, Value::Null).unwrap();
        assert_eq!(answered(&s)[0].0, response);
        assert_eq!(part(&ann)["response"], response);
        assert_eq!(ann.reads(), "then not");
        s.all_agree();
    }
}

// H-217: the wrong request
#[test]
fn only_an_open_question_can_be_answered() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().asks_for_text("one?").asks_for_text("two?");
    ann.sends_message("go");
    let complete = |id: &Value| {
        let answers = json!({"q": text_answer("submitted", "x")});
        json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept", "answers": answers})
    };
    let change = |id: &Value| {
        let answer = text_answer("draft", "x");
        json!({"type": "chat/inputAnswerChanged", "requestId": id, "questionId": "q", "answer": answer})
    };
    let first = ann.question()["id"].clone();
    for action in [complete(&json!("none")), change(&json!("none")), complete(&json!(""))] {
        assert!(ann.tries(&ann.chat(), action).is_err());
    }
    // Two at once: the first decides (H-073).
    let one = ann.dispatches(&ann.chat(), complete(&first));
    let two = bob.dispatches(&ann.chat(), complete(&first));
    s.settles();
    assert_eq!(ann.refusal(one), None);
    assert!(bob.refusal(two).is_some());
    assert!(ann.tries(&ann.chat(), change(&first)).is_err(), "it is answered");
    let second = ann.question()["id"].clone();
    assert_ne!(first, second, "G-10: request ids are never reused");
    assert_eq!(answered(&s).len(), 1);
    ann.answers_text("y").unwrap();
    assert!(ann.tries(&ann.chat(), complete(&second)).is_err(), "its turn is over");
    assert_eq!(answered(&s).len(), 2);
}

// H-217: every kind takes its own values, and no other's
#[test]
fn answers_must_be_of_the_kind_that_was_asked_for() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    let right = json!({
        "t": value("text", json!("name")),
        "n": value("number", json!(1.5)),
        "i": value("number", json!(3)),
        "b": value("boolean", json!(false)),
        "s": value("selected", json!("r")),
        "m": value("selected-many", json!(["r", "g"])),
    });
    let with = |question: &str, answer: Value| {
        let mut answers = right.clone();
        answers[question] = answer;
        answers
    };
    for wrong in [
        with("t", value("number", json!(1))),
        with("t", json!({"state": "submitted"})),
        with("t", json!({"state": "submitted", "value": "bare"})),
        with("t", value("text", json!(7))),
        with("n", value("text", json!("1,5"))),
        with("i", value("boolean", json!(true))),
        with("i", value("number", json!(1.5))),
        with("b", value("text", json!("yes"))),
        with("s", value("selected-many", json!(["r"]))),
        with("s", value("selected", json!("blue"))),
        with("m", value("selected", json!("r"))),
        with("m", value("selected-many", json!(["r", "blue"]))),
        with("nobody", value("text", json!("x"))),
        with("t", json!({"state": "perhaps", "value": {"kind": "text", "value": "x"}})),
        json!("none"),
    ] {
        assert!(ann.answers("accept", wrong.clone()).is_err(), "{wrong}");
    }
    assert!(answered(&s).is_empty());
    assert!(ann.answers("maybe", right.clone()).is_err());
    ann.answers("accept", right).unwrap();
    assert_eq!(answered(&s)[0].1["m"]["value"]["value"], json!(["r", "g"]));
}

// H-217: what is required must be submitted
#[test]
fn a_required_question_is_not_accepted_without_an_answer() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    assert!(ann.answers("accept", Value::Null).is_err());
    assert!(ann.answers("accept", json!({"n": value("number", json!(1))})).is_err());
    let skipped = json!({"state": "skipped"});
    assert!(ann.answers("accept", json!({"t": skipped})).is_err());
    let draft = text_answer("draft", "name");
    assert!(ann.answers("accept", json!({"t": draft.clone()})).is_err());
    ann.drafts_answer("t", draft).unwrap();
    assert!(ann.answers("accept", Value::Null).is_err(), "a draft is not submitted");
    ann.drafts_answer("t", text_answer("submitted", "name")).unwrap();
    ann.answers("accept", json!({"n": {"state": "skipped"}})).unwrap();
    let (_, answers) = answered(&s)[0].clone();
    assert_eq!(answers["t"]["value"]["value"], "name");
    assert_eq!(answers["n"]["state"], "skipped");
}

// A required question may be declined all the same
#[test]
fn a_required_question_can_be_declined_without_an_answer() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    ann.drafts_answer("t", text_answer("draft", "na")).unwrap();
    ann.answers("decline", Value::Null).unwrap();
    assert_eq!(answered(&s)[0].0, "decline");
}

// H-218: final answers over synced ones
#[test]
fn answers_that_come_with_the_end_go_over_those_given_before() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    ann.drafts_answer("t", text_answer("submitted", "old")).unwrap();
    bob.drafts_answer("n", value("number", json!(4))).unwrap();
    bob.drafts_answer("b", value("boolean", json!(true))).unwrap();
    bob.drafts_answer("b", Value::Null).unwrap();
    let drafts = ann.question()["answers"].clone();
    assert_eq!(drafts["n"]["value"]["value"], 4);
    assert!(drafts.get("b").is_none(), "an absent answer takes the draft back");
    bob.answers("accept", json!({"t": text_answer("submitted", "new")})).unwrap();
    let (_, answers) = answered(&s)[0].clone();
    assert_eq!(answers["t"]["value"]["value"], "new");
    assert_eq!(answers["n"]["value"]["value"], 4);
    assert_eq!(part(&ann)["request"]["answers"], answers);
}

// H-217 for drafts
#[test]
fn a_draft_must_belong_to_a_question() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    assert!(ann.drafts_answer("nobody", text_answer("draft", "x")).is_err());
    assert!(ann.drafts_answer("n", text_answer("draft", "x")).is_err());
    assert!(ann.drafts_answer("t", json!({"state": "draft"})).is_err());
    assert!(ann.question().get("answers").is_none());
}

// G-43: a bound for what can be typed in
#[test]
fn limits_of_a_question_hold_when_it_is_accepted() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    // A draft may be on its way to being right.
    ann.drafts_answer("t", text_answer("draft", "a")).unwrap();
    let name = |text: &str| json!({"t": value("text", json!(text))});
    let strict = ann.answers("accept", name("much too long")).is_err();
    if strict {
        assert!(answered(&s).is_empty());
        ann.answers("accept", name("fine")).unwrap();
    }
    assert_eq!(answered(&s).len(), 1);
}

// A question without questions: a link to look at, or plain yes and no
#[test]
fn a_question_may_have_only_a_message_or_a_link() {
    for request in [json!({"message": "go on?"}), json!({"url": "https://example.org/"}), json!({})]
    {
        let (mut s, ann) = Scenario::with_chat();
        s.model().asks(request).streams(["on"]);
        ann.sends_message("go");
        ann.answers("accept", Value::Null).unwrap();
        assert_eq!(ann.reads(), "on");
        s.all_agree();
    }
}

// H-219, H-174: an unanswered request stays unanswered
#[test]
fn a_turn_that_ends_leaves_its_question_unanswered() {
    for end in ["cancel", "restart", "error"] {
        let (mut s, ann) = Scenario::with_chat();
        if end == "error" {
            s.model()
                .plays(|script| script.asks(json!({"message": "?"})).unattended())
                .waits_ms(50)
                .fails_resumably();
            ann.sends_message("go");
        } else {
            s.model().asks_for_text("name?");
            let turn = ann.sends_message("go");
            let id = ann.question()["id"].clone();
            if end == "cancel" {
                ann.cancels(&turn).unwrap();
            } else {
                s.host_restarts_for([&ann]);
            }
            let late =
                json!({"type": "chat/inputCompleted", "requestId": id, "response": "decline"});
            assert!(ann.tries(&ann.chat(), late).is_err(), "G-10");
        }
        assert!(part(&ann).get("response").is_none(), "{end}");
        assert!(ann.needs().is_empty(), "{end}");
        assert!(answered(&s).is_empty(), "{end}");
        s.all_agree();
    }
}

// H-178, G-24
#[test]
fn a_question_makes_chat_and_session_unread() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(1_000).asks_for_text("name?");
    ann.starts("go");
    s.world().advance_ms(0);
    ann.dispatches(&ann.chat(), json!({"type": "chat/isReadChanged", "isRead": true}));
    ann.dispatches(&ann.session(), json!({"type": "session/isReadChanged", "isRead": true}));
    s.settles();
    for channel in [ann.chat(), ann.session()] {
        let status = ann.sees(&channel)["status"].as_u64().unwrap();
        assert_eq!(status & (24 | 32), 24, "{channel}");
    }
}

// H-078: an unreadable request is not sent
#[test]
fn an_unreadable_question_is_not_asked() {
    for request in [
        json!({"message": 7}),
        json!({"questions": "none"}),
        json!({"questions": [{"kind": "text"}]}),
        json!({"message": "m", "id": "mine"}),
    ] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().plays(|script| script.asks(request.clone()).unattended()).streams(["end"]);
        ann.sends_message("go");
        assert!(ann.sees(&ann.chat()).get("activeTurn").is_none(), "{request}");
        s.all_agree();
    }
}

// G-15, and the points of write, send, act
#[test]
fn an_answer_is_recorded_before_the_agent_gets_it() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_for_text("name?");
    ann.sends_message("go");
    s.faults().break_disk();
    assert!(ann.answers_text("lost").is_err());
    assert!(answered(&s).is_empty());
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
    s.all_agree();
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        s.model().asks_for_text("name?");
        ann.sends_message("go");
        let id = ann.question()["id"].clone();
        s.host_dies_at(point);
        let answer = json!({"type": "chat/inputCompleted", "requestId": id, "response": "decline"});
        ann.dispatches(&ann.chat(), answer);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        assert!(answered(&s).is_empty());
        let replies = part(&ann).get("response").is_some();
        assert_eq!(replies, point != Kill::BeforeWrite, "{point:?}");
        s.all_agree();
    }
}

// G-04, G-10: a resumed turn has its old question in the transcript; only the new one is open
#[test]
fn a_resumed_turn_asks_anew() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_for_text("one?");
    let turn = ann.sends_message("go");
    let old = ann.question()["id"].clone();
    s.host_restarts_for([&ann]);
    s.model().asks_for_text("two?").streams(["end"]);
    ann.resumes(&turn).unwrap();
    let parts = ann.running_parts();
    let asked: Vec<&Value> = parts.iter().filter(|part| part["kind"] == "inputRequest").collect();
    let new = asked.last().unwrap()["request"]["id"].clone();
    assert_ne!(old, new);
    let answers = json!({"q": text_answer("submitted", "x")});
    let answer = json!({"type": "chat/inputCompleted", "requestId": new, "response": "accept", "answers": answers});
    ann.tries(&ann.chat(), answer).unwrap();
    assert_eq!(ann.reads(), "end");
}

// G-44: a client that has text fields only answers with texts; what is recorded is what was asked for
#[test]
fn a_text_is_taken_for_a_number_or_a_boolean_if_it_is_one() {
    let cases = [
        ("i", " 3 ", Ok(value("number", json!(3)))),
        ("i", "-1", Err("out of range")),
        ("i", "3.0", Err("a whole number")),
        ("i", "3.5", Err("a whole number")),
        ("i", "", Err("a whole number")),
        ("i", "ten", Err("a whole number")),
        ("i", "99", Err("out of range")),
        ("n", "2.5", Ok(value("number", json!(2.5)))),
        ("n", "1e3", Ok(value("number", json!(1000.0)))),
        ("n", "7", Ok(value("number", json!(7)))),
        ("n", "NaN", Err("a number")),
        ("n", "inf", Err("a number")),
        ("n", "1,5", Err("a number")),
        ("b", "True", Ok(value("boolean", json!(true)))),
        ("b", "false", Ok(value("boolean", json!(false)))),
        ("b", "maybe", Err("`true` or `false`")),
    ];
    for (question, text, expected) in cases {
        let (mut s, ann, bob) = Scenario::with_shared_chat();
        s.model().asks(every_kind());
        ann.sends_message("go");
        let mut answers = json!({"t": text_answer("submitted", "name")});
        answers[question] = text_answer("submitted", text);
        let outcome = ann.answers("accept", answers);
        match expected {
            Ok(expected) => {
                outcome.unwrap();
                assert_eq!(answered(&s)[0].1[question], expected, "{text}");
                let recorded = part(&bob)["request"]["answers"][question].clone();
                assert_eq!(recorded, expected, "{text}");
            }
            Err(why) => {
                let refused = outcome.unwrap_err();
                let named = refused.contains(&format!("`{question}`"));
                assert!(named && refused.contains(why), "{text}: {refused}");
                assert!(answered(&s).is_empty(), "the question stays open");
            }
        }
        s.all_agree();
    }
}

// G-44: drafts likewise, so that another client can go on with them
#[test]
fn a_synced_text_is_recorded_as_the_number_it_is() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.model().asks(every_kind());
    ann.sends_message("go");
    ann.drafts_answer("i", text_answer("draft", "4")).unwrap();
    let draft = bob.question()["answers"]["i"].clone();
    assert_eq!(draft, json!({"state": "draft", "value": {"kind": "number", "value": 4}}));
    let refused = ann.drafts_answer("i", text_answer("draft", "four"));
    assert!(refused.unwrap_err().contains("`i`"));
    assert_eq!(bob.question()["answers"]["i"], draft);
}
