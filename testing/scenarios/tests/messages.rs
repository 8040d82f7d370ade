//! Messages: stored unchanged, pending or sent, with the model that was really used.

use serde_json::{Value, json};
use testkit::facts::DEFAULT_MODEL;
use testkit::pending_messages::message;
use testkit::{Scenario, ScenarioClient};

const B: &str = "ahp-chat:/b";

/// One attachment of each kind, with everything it can have and an unknown one.
fn attachments() -> Value {
    let range = json!({"start": {"line": 0, "character": 3}, "end": {"line": 1, "character": 0}});
    json!([
        {"type": "simple", "label": "S", "modelRepresentation": "<s/>", "range": range,
            "displayKind": "symbol", "_meta": {"a": [1, null]}},
        {"type": "embeddedResource", "label": "E", "data": "aGk=", "contentType": "text/plain",
            "selection": {"range": range}, "x-own": {"deep": true}},
        {"type": "resource", "label": "R", "uri": "file:///home/space/a.rs", "sizeHint": 7,
            "contentType": "text/x-rust", "nonce": "n1", "selection": {"range": range},
            "displayKind": "selection"},
        {"type": "annotations", "label": "A", "resource": "ahp-session:/x/annotations",
            "annotationIds": ["1", "2"]},
        {"type": "x-own", "label": "X", "anything": [{}]},
    ])
}

fn rich(text: &str) -> Value {
    json!({
        "text": text,
        "origin": {"kind": "user", "x-who": "me"},
        "attachments": attachments(),
        "model": {"id": "fancy", "config": {"heat": 3}},
        "agent": {"uri": "file:///home/space/agents/a.md"},
        "_meta": {"vscode.x": {"y": [1, 2]}},
        "x-more": "kept",
    })
}

fn turn_with(client: &ScenarioClient, message: Value) -> Value {
    let mut action = client.turn_started("rich", "");
    action["message"] = message;
    action
}

/// A scenario whose sessions have the custom agent that [`rich`] names.
fn scenario_with_agent() -> Scenario {
    let s = Scenario::new();
    let agent = json!({"type": "agent", "id": "a", "name": "a", "uri": rich("")["agent"]["uri"]});
    s.world().customizations = vec![json!({
        "type": "directory", "id": "d", "uri": "file:///home/space/agents", "name": "agents", "enabled": true,
        "contents": "agent", "writable": false, "load": {"kind": "loaded"}, "children": [agent],
    })];
    s
}

// H-077, H-365: in the echo, in the state, after a restart, for the agent
#[test]
fn a_message_is_stored_unchanged() {
    let (mut s, ann, bob) = scenario_with_agent().and_shared_chat();
    let sent = rich("líne 0\r\n\u{1F600} \u{0} end\n");
    let mut action = turn_with(&ann, sent.clone());
    action["_meta"] = json!({"x-turn": 1});
    ann.tries(&ann.chat(), action.clone()).unwrap();
    let echo = bob.with(|client| client.envelopes.clone());
    let echo = echo.iter().find(|echo| echo["action"]["turnId"] == "rich").unwrap();
    assert_eq!(echo["action"], action);
    assert_eq!(bob.latest_turn()["message"], sent);
    assert_eq!(*s.look().models.asked[0].message, sent);
    s.host_restarts_for([&ann]);
    assert_eq!(s.state(&ann.chat())["turns"][0]["message"], sent);
}

// The same wherever a message can wait
#[test]
fn a_pending_message_is_stored_unchanged() {
    let (mut s, ann) = scenario_with_agent().and_chat();
    s.model().hangs();
    let turn = ann.sends_message("busy");
    let set = |kind: &str, id: &str| json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": rich(id)});
    ann.tries(&ann.chat(), set("queued", "q")).unwrap();
    ann.tries(&ann.chat(), set("steering", "s")).unwrap();
    let draft = json!({"type": "chat/draftChanged", "draft": rich("d")});
    ann.tries(&ann.chat(), draft).unwrap();
    s.host_restarts_for([&ann]);
    let state = s.state(&ann.chat());
    // The interrupted turn left its steering to the queue (G-08).
    let waiting = json!([{"id": "s", "message": rich("s")}, {"id": "q", "message": rich("q")}]);
    assert_eq!(state["queuedMessages"], waiting);
    assert_eq!(state["draft"], rich("d"));
    s.model().waits_ms(100).steers();
    let resume = json!({"type": "chat/turnResume", "turnId": turn});
    ann.dispatches(&ann.chat(), resume);
    ann.dispatches(&ann.chat(), set("steering", "again"));
    s.settles();
    let asked = s.look().models.asked.clone();
    let sent: Vec<&Value> = asked.iter().rev().take(2).map(|run| &*run.message).collect();
    assert_eq!(sent, [&rich("q"), &rich("s")], "after the resumed turn");
    let reply = s.look().models.replies.first().cloned().unwrap().1;
    let agent_api::AgentReply::Steered { message: Some(steering), .. } = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(steering, rich("again"));
}

// H-147 and a denial: two more ways for a message to arrive
#[test]
fn initial_messages_and_suggestions_are_stored_unchanged() {
    let (mut s, ann) = scenario_with_agent().and_chat();
    let there = ann.creates_chat_with(B, json!({"initialMessage": rich("first")}));
    assert_eq!(there.latest_turn()["message"], rich("first"));
    s.model().asks_tool("shell", "rm");
    ann.sends_message("clean");
    ann.denies_with(json!({"userSuggestion": rich("rather")})).unwrap();
    assert_eq!(ann.call_that_is("cancelled")["userSuggestion"], rich("rather"));
}

// H-181, G-12
#[test]
fn the_model_and_the_agent_that_were_used_are_recorded() {
    let (_s, ann) = scenario_with_agent().and_chat();
    ann.sends_message("plain");
    assert_eq!(ann.latest_turn()["message"]["model"], json!({"id": DEFAULT_MODEL}));
    assert!(ann.latest_turn()["message"].get("agent").is_none());
    ann.tries(&ann.chat(), turn_with(&ann, rich("fancy"))).unwrap();
    assert_eq!(
        ann.latest_turn()["message"]["model"],
        json!({"id": "fancy", "config": {"heat": 3}})
    );
    assert_eq!(ann.latest_turn()["message"]["agent"], rich("")["agent"]);
}

// H-078: an attachment of a known kind that lacks what it must have
#[test]
fn a_message_that_does_not_decode_is_refused() {
    let (s, ann) = Scenario::with_chat();
    for bad in [
        json!({"text": 7, "origin": {"kind": "user"}}),
        json!({"text": "x", "origin": {"kind": "user"}, "attachments": {}}),
        json!({"text": "x", "origin": {"kind": "user"}, "model": "fancy"}),
        json!({"text": "x", "origin": {"kind": "user"}, "_meta": []}),
    ] {
        let refused = ann.tries(&ann.chat(), turn_with(&ann, bad.clone()));
        assert!(refused.is_err(), "{bad}");
        let mut queued = ann.pending_set("queued", "q", "");
        queued["message"] = bad.clone();
        assert!(ann.tries(&ann.chat(), queued).is_err(), "{bad}");
    }
    assert!(s.asked().is_empty());
}

fn attaching(chat: &str, end_turn: Option<&str>) -> Value {
    let mut attachment = json!({"type": "chat", "label": "C", "resource": chat});
    if let Some(turn) = end_turn {
        attachment["endTurn"] = json!(turn);
    }
    let mut message = message("look at that");
    message["attachments"] = json!([attachment]);
    message
}

// H-161: pinned when it is accepted
#[test]
fn an_attached_chat_is_pinned_at_its_latest_completed_turn() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let bob = s.client("bob").opens_chat(); // another session: that is fine
    let turns: Vec<String> = (0..3).map(|n| bob.sends_message(&format!("m{n}"))).collect();
    s.model().hangs();
    bob.sends_message("busy");
    let at = |turn: &Value| turn["message"]["attachments"][0]["endTurn"].clone();
    ann.tries(&ann.chat(), turn_with(&ann, attaching(&bob.chat(), None))).unwrap();
    assert_eq!(at(&ann.latest_turn()), turns[2].as_str(), "the one that runs does not count");
    assert_eq!(at(&s.state(&ann.chat())["turns"][0]), turns[2].as_str());
    let mut action = turn_with(&ann, attaching(&bob.chat(), Some(&turns[0])));
    action["turnId"] = json!("second");
    ann.tries(&ann.chat(), action).unwrap();
    assert_eq!(at(&ann.latest_turn()), turns[0].as_str());
}

// H-161: what cannot be attached
#[test]
fn a_chat_is_attached_through_a_completed_turn_that_is_there() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let bob = s.client("bob").opens_chat();
    let turns: Vec<String> = (0..3).map(|n| bob.sends_message(&format!("m{n}"))).collect();
    bob.truncates(&turns[1]).unwrap();
    s.model().hangs();
    let active = bob.sends_message("busy");
    let chat = bob.chat();
    for wrong in [
        attaching("ahp-chat:/none", None),
        attaching(&bob.session(), None),
        attaching("no uri", None),
        attaching(&chat, Some("none")),
        attaching(&chat, Some(&active)),
        attaching(&chat, Some(&turns[2])), // cut off
    ] {
        let sent = ann.tries(&ann.chat(), turn_with(&ann, wrong.clone()));
        assert!(sent.is_err(), "{wrong}");
        let mut queued = ann.pending_set("queued", "q", "");
        queued["message"] = wrong.clone();
        assert!(ann.tries(&ann.chat(), queued).is_err(), "{wrong}");
        let created = ann.asks_for_chat(B, json!({"initialMessage": wrong}));
        assert!(created.is_err(), "{wrong}");
    }
    assert_eq!(ann.chats().len(), 1);
}

// H-161: an empty transcript is fine, its own chat too
#[test]
fn an_empty_chat_can_be_attached() {
    let (_s, ann) = Scenario::with_chat();
    ann.creates_chat(B);
    ann.tries(&ann.chat(), turn_with(&ann, attaching(B, None))).unwrap();
    let sent = &ann.latest_turn()["message"]["attachments"][0];
    assert!(sent.get("endTurn").is_none());
    let mut action = turn_with(&ann, attaching(&ann.chat(), None));
    action["turnId"] = json!("second");
    ann.tries(&ann.chat(), action).unwrap();
    assert_eq!(ann.latest_turn()["message"]["attachments"][0]["endTurn"], "rich");
}

// H-161, ADR 0004: an unloaded chat, with slow reads
#[test]
fn a_chat_at_rest_can_be_attached() {
    let (mut s, ann) = Scenario::with(|limits| limits.open_turns = 1).and_chat();
    let bob = s.client("bob").opens_chat();
    let turns: Vec<String> = (0..4).map(|n| bob.sends_message(&format!("m{n}"))).collect();
    s.host_restarts();
    s.reads_take_ms(30);
    ann.reconnects();
    ann.tries(&ann.chat(), turn_with(&ann, attaching(&bob.chat(), Some(&turns[1])))).unwrap();
    let mut queued = ann.pending_set("queued", "q", "");
    queued["message"] = attaching(&bob.chat(), None);
    ann.tries(&ann.chat(), queued).unwrap();
    assert_eq!(ann.latest_turn()["message"]["attachments"][0]["endTurn"], turns[3].as_str());
}

// H-235: durable, and only on the chat
#[test]
fn a_draft_survives_and_moves_nothing() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    ann.sends_message("before");
    let cem = s.client("cem").arrives();
    s.advances_ms(5_000);
    let before =
        (ann.sees(&ann.chat())["modifiedAt"].clone(), cem.with(|client| client.frames.len()));
    let draft = json!({"type": "chat/draftChanged", "draft": rich("dra")});
    ann.tries(&ann.chat(), draft).unwrap();
    assert_eq!(bob.sees(&ann.chat())["draft"], rich("dra"));
    let after =
        (ann.sees(&ann.chat())["modifiedAt"].clone(), cem.with(|client| client.frames.len()));
    assert_eq!(before, after);
    s.host_restarts_for([&ann, &bob]);
    ann.sends_message("sent"); // H-236: clearing it is the client's business
    assert_eq!(s.state(&ann.chat())["draft"], rich("dra"));
    ann.tries(&ann.chat(), json!({"type": "chat/draftChanged"})).unwrap();
    assert!(s.state(&ann.chat()).get("draft").is_none());
}

// A draft need not be sendable yet
#[test]
fn a_draft_may_be_unfinished() {
    let (_s, ann) = Scenario::with_chat();
    let empty = json!({"type": "chat/draftChanged", "draft": message("")});
    ann.tries(&ann.chat(), empty).unwrap();
    let attached = json!({"type": "chat/draftChanged", "draft": attaching("ahp-chat:/none", None)});
    ann.tries(&ann.chat(), attached).unwrap();
}
