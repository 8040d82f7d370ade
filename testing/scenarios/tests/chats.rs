//! Chats beside the first: created, listed, made default, disposed of.

use serde_json::{Value, json};
use testkit::facts::{DEFAULT_MODEL, SINGLE};
use testkit::pending_messages::message;
use testkit::{Kill, Scenario, ScenarioClient};

const B: &str = "ahp-chat:/b";
const C: &str = "ahp-chat:/c";

fn default_of(client: &ScenarioClient) -> Value {
    client.sees(&client.session())["defaultChat"].clone()
}

// H-140: in the catalogue before the answer
#[test]
fn a_new_chat_is_announced_before_its_creator_is_answered() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    ann.asks_for_chat(B, json!({})).unwrap();
    let frames = ann.received_frames();
    let position = |name: &str| frames.iter().rposition(|frame| frame == name).unwrap();
    assert!(position("session/chatAdded") < position("="), "{frames:?}");
    assert_eq!(bob.chats(), [ann.chat(), B.to_owned()]);
    assert_eq!(bob.listed(B)["origin"], json!({"kind": "user"}));
    assert_eq!(default_of(&bob), ann.chat().as_str());
    let there = ann.in_chat(B);
    there.watches(B);
    there.sends_message("hello there");
    bob.watches(B);
    assert_eq!(bob.in_chat(B).reads(), "ok");
    assert!(bob.sent_messages().is_empty(), "the first chat is not affected");
}

// H-140: subscribing at once works, before anything happened in it
#[test]
fn a_new_chat_is_empty_and_idle_and_survives_a_restart() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    let chat = there.sees(B);
    assert_eq!((&chat["turns"], &chat["status"]), (&json!([]), &json!(1)));
    assert_eq!(chat["resource"], B);
    s.host_restarts_for([&ann]);
    assert_eq!(ann.chats().len(), 2);
    there.sends_message("after");
}

// H-140: a URI that is taken
#[test]
fn a_chat_that_exists_cannot_be_created_again() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    ann.creates_chat(B);
    assert_eq!(ann.is_denied_chat(B, json!({})), -32010);
    assert_eq!(bob.is_denied_chat(B, json!({})), -32010);
    assert_eq!(ann.is_denied_chat(&ann.chat(), json!({})), -32010);
    assert_eq!(bob.is_denied_chat(&ann.chat(), json!({})), -32010);
    assert_eq!(ann.is_denied_chat(&bob.session(), json!({})), -32010);
    let seq = s.look().kernel().seq();
    assert!(ann.asks_for_chat("ahp-root://", json!({})).is_err());
    assert!(ann.asks_for_chat("no uri", json!({})).is_err());
    assert_eq!(s.look().kernel().seq(), seq);
}

// G-23, G-26: a name that means another kind of channel
#[test]
fn a_chat_is_not_named_like_another_kind_of_channel() {
    let (_s, ann) = Scenario::with_chat();
    let other_default = testkit::default_chat("ahp-session:/other");
    for taken in [
        "ahp-session:/other",
        "AHP-SESSION:/other",
        "scripted:/other",
        "ahp-terminal:/t",
        "ahp-changeset:/c",
        "ahp-resource-watch:/w",
        "ahp-canvas:/c",
        "ahp-automations:/",
        "ahp-automation:/a",
        "ahp-automation-run:/r",
        "ahp-otlp:/logs",
        "ahp-content:/sha256/00",
        "mcp:/server",
        "x:/session/annotations",
        "x:/session/changeset/turn",
        &other_default,
    ] {
        let refused = ann.asks_for_chat(taken, json!({})).unwrap_err();
        assert_eq!(refused["code"], -32602, "{taken}: {refused}");
        let message = refused["message"].as_str().unwrap_or("");
        assert!(message.contains("ahp-chat:/<id>"), "{message}");
    }
    assert!(ann.asks_for_chat("ahp-root://x", json!({})).is_err());
    assert_eq!(ann.chats().len(), 1);
    ann.creates_chat("x-own:/chat").sends_message("other names are free");
}

// H-140: two at once, one of them while the journal is asked
#[test]
fn of_two_who_create_the_same_chat_one_succeeds() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    s.reads_take_ms(40);
    let params = json!({"channel": ann.session(), "chat": B});
    let one = ann.requests("createChat", params.clone());
    let two = bob.requests("createChat", params);
    s.settles();
    let answers = [ann.answer(one).unwrap(), bob.answer(two).unwrap()];
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(ann.chats().len(), 2);
}

// H-008, G-23: the wrong channel
#[test]
fn a_chat_is_created_in_a_session_that_is_there() {
    let (_s, ann) = Scenario::with_chat();
    let ask = |channel: &str| ann.is_denied("createChat", json!({"channel": channel, "chat": B}));
    assert_eq!(ask("ahp-session:/none"), -32001);
    for wrong in [ann.chat().as_str(), "ahp-root://"] {
        assert!(ask(wrong) < 0, "{wrong}");
    }
    assert_eq!(ann.is_denied("createChat", json!({"channel": ann.session()})), -32602);
    assert_eq!(ann.is_denied("createChat", json!({"chat": B})), -32602);
    assert_eq!(ann.chats().len(), 1);
}

// H-141
#[test]
fn an_agent_with_one_chat_has_one_chat() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat_with(SINGLE);
    assert!(ann.asks_for_chat(B, json!({})).is_err());
    assert_eq!(ann.chats().len(), 1);
    ann.sends_message("alone");
}

// H-147, H-071, G-12
#[test]
fn an_initial_message_is_the_first_turn() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    bob.received_actions();
    s.model().streams(["hello"]);
    let there = ann.creates_chat_with(B, json!({"initialMessage": message("first")}));
    assert_eq!(there.sent_messages(), ["first"]);
    assert_eq!(there.reads(), "hello");
    assert_eq!(there.latest_turn()["message"]["model"]["id"], DEFAULT_MODEL);
    assert_eq!(bob.received_actions()[0], "session/chatAdded");
    assert_eq!(s.asked(), ["first"]);
    s.all_agree();
    for bad in [
        json!({"text": "x", "origin": {"kind": "agent"}}),
        json!({"text": "x", "origin": {"kind": "user"}, "model": {"id": "nobody"}}),
        json!({"text": "x"}),
    ] {
        assert!(ann.asks_for_chat(C, json!({"initialMessage": bad})).is_err(), "{bad}");
    }
    assert_eq!(ann.chats().len(), 2);
}

// G-09: in a session that is still being created
#[test]
fn an_initial_message_waits_for_its_session() {
    let mut s = Scenario::new();
    s.sessions_take_ms(400);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/slow"}));
    let params =
        json!({"channel": "ahp-session:/slow", "chat": B, "initialMessage": message("first")});
    ann.requests("createChat", params);
    s.settles();
    ann.watches(B);
    assert_eq!(ann.in_chat(B).reads(), "ok");
}

// H-146
#[test]
fn a_chat_works_in_directories_of_its_session() {
    let (s, ann) = Scenario::with_chat();
    let session = ann.sees(&ann.session())["workingDirectories"].clone();
    assert_eq!(session.as_array().unwrap().len(), 1);
    let elsewhere = json!(["file:///home/space/other"]);
    let outside = json!(["file:///etc"]);
    for wrong in [elsewhere, outside, json!(["no uri"])] {
        let code = ann.is_denied_chat(C, json!({"workingDirectories": wrong}));
        assert!(matches!(code, -32602 | -32009), "{wrong} {code}");
    }
    let same = ann.creates_chat_with(B, json!({"workingDirectories": session}));
    assert_eq!(same.sees(B)["workingDirectories"], session);
    let none = ann.creates_chat_with(C, json!({"workingDirectories": []}));
    assert_eq!(none.sees(C)["workingDirectories"], json!([]));
    same.sends_message("where?");
    let run = s.look().models.asked.last().cloned().unwrap();
    assert_eq!(json!(run.working_directories), session);
}

// H-154, H-054
#[test]
fn a_disposed_chat_is_gone_for_everyone() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let there = ann.creates_chat(B);
    bob.watches(B);
    s.model().streams(["x"]).hangs();
    there.sends_message("busy");
    bob.received_actions();
    ann.disposes_of(B).unwrap();
    assert!(bob.received_actions().contains(&"session/chatRemoved".to_owned()));
    assert_eq!(s.look().models.stopped.len(), 1);
    assert_eq!(bob.chats(), [ann.chat()]);
    let refused = bob.tries(B, bob.turn_started("t", "anyone?"));
    assert!(refused.is_err(), "H-068, G-23a");
    assert_eq!(bob.is_denied("subscribe", json!({"channel": B})), -32008);
    assert_eq!(ann.is_denied("disposeChat", json!({"channel": B})), -32008);
    assert_eq!(ann.is_denied("fetchTurns", json!({"channel": B})), -32008);
    s.host_restarts_for([&ann]);
    assert_eq!(ann.is_denied("subscribe", json!({"channel": B})), -32008);
}

// H-008: the wrong channel
#[test]
fn only_chats_are_disposed_of_as_chats() {
    let (_s, ann) = Scenario::with_chat();
    for wrong in [ann.session().as_str(), "ahp-root://", "ahp-chat:/none"] {
        assert!(ann.disposes_of(wrong).is_err(), "{wrong}");
    }
    ann.sends_message("still here");
}

// G-13: the default chat
#[test]
fn disposing_of_the_default_chat_makes_the_first_other_one_the_default() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    assert_eq!(ann.is_denied("disposeChat", json!({"channel": ann.chat()})), -32602);
    ann.creates_chat(B);
    ann.creates_chat(C);
    bob.received_actions();
    ann.disposes_of(&ann.chat()).unwrap();
    let actions = bob.received_actions();
    assert!(actions.contains(&"session/defaultChatChanged".to_owned()), "{actions:?}");
    assert_eq!(default_of(&bob), B);
    ann.disposes_of(B).unwrap();
    assert_eq!(default_of(&bob), C);
    assert_eq!(ann.is_denied("disposeChat", json!({"channel": C})), -32602);
    s.host_restarts_for([&ann]);
    assert_eq!((default_of(&ann), ann.chats()), (json!(C), vec![C.to_owned()]));
}

// G-26: the first name keeps meaning the first chat, and can be used again when it is gone
#[test]
fn the_first_uri_still_names_the_first_chat() {
    let (mut s, ann) = Scenario::with_chat();
    let first = ann.chat();
    ann.sends_message("in the first");
    ann.creates_chat(B);
    let action = json!({"type": "session/defaultChatChanged", "defaultChat": B});
    ann.tries(&ann.session(), action).unwrap();
    assert_eq!(default_of(&ann), B);
    assert_eq!(ann.sees(&first)["turns"].as_array().unwrap().len(), 1);
    ann.disposes_of(&first).unwrap();
    let again = ann.creates_chat(&first);
    assert!(again.sent_messages().is_empty(), "it is another chat");
    assert_eq!(default_of(&ann), B);
    again.sends_message("anew");
    s.host_restarts_for([&ann]);
    assert_eq!(again.sent_messages(), ["anew"]);
}

// G-13: the default chat's title follows the session's, the others keep theirs
#[test]
fn a_rename_reaches_the_default_chat_alone() {
    let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
    let there = ann.creates_chat(B);
    let title = there.sees(B)["title"].clone();
    let rename = json!({"type": "session/titleChanged", "title": "ours"});
    ann.tries(&ann.session(), rename).unwrap();
    assert_eq!(ann.listed(&ann.chat())["title"], "ours");
    assert_eq!(ann.listed(B)["title"], title);
    // Renamed through the other chat: still the session (G-13).
    let rename = json!({"type": "session/titleChanged", "title": "theirs"});
    ann.dispatches(B, rename);
    s.settles();
    assert_eq!(ann.listed(&ann.chat())["title"], "theirs");
    assert_eq!(ann.listed(B)["title"], title);
    // And while the default chat rests.
    ann.unwatches(&ann.chat());
    s.advances_in_steps(10_000, 500);
    let rename = json!({"type": "session/titleChanged", "title": "at rest"});
    ann.tries(&ann.session(), rename).unwrap();
    assert_eq!(s.state(&ann.chat())["title"], "at rest");
}

// G-26, G-19: a URI that is used again is another chat
#[test]
fn a_client_that_was_away_does_not_mix_up_two_chats_of_one_name() {
    for restart in [false, true] {
        let (mut s, ann) = Scenario::with_chat();
        let there = ann.creates_chat(B);
        there.sends_message("the old one");
        let bob = s.client("bob").arrives_watching(&[B]);
        bob.loses_connection();
        ann.disposes_of(B).unwrap();
        let there = ann.creates_chat(B);
        there.sends_message("the new one");
        if restart {
            s.host_restarts_for([&ann]);
        }
        assert_eq!(bob.reconnects()["type"], "snapshot");
        assert_eq!(bob.in_chat(B).sent_messages(), ["the new one"]);
        s.all_agree();
    }
}

// H-081
#[test]
fn a_chat_that_went_while_a_client_was_away_is_missing() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    ann.creates_chat(B);
    bob.watches(B);
    bob.loses_connection();
    ann.disposes_of(B).unwrap();
    let answer = bob.reconnects();
    assert_eq!((&answer["type"], &answer["missing"]), (&json!("replay"), &json!([B])));
    assert_eq!(bob.chats().len(), 1);
}

// H-118: a session takes all its chats with it
#[test]
fn a_disposed_session_takes_every_chat_with_it() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let there = ann.creates_chat(B);
    for client in [&ann, &there] {
        s.model().hangs();
        client.sends_message("busy");
    }
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    assert_eq!(s.look().models.stopped.len(), 2);
    assert_eq!(bob.is_denied("subscribe", json!({"channel": B})), -32008);
    // The name is free.
    bob.creates_chat(B);
    s.host_restarts_for([&ann, &bob]);
    assert_eq!(bob.chats().len(), 2);
}

// ADR 0008: turns of two chats of one session are independent
#[test]
fn chats_of_one_session_work_side_by_side() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    s.model().streams(["a1"]).waits_ms(50).streams(["a2"]);
    s.model().streams(["b1"]).waits_ms(20).streams(["b2"]);
    let one = ann.turn_started("same-id", "for a");
    let two = ann.turn_started("same-id", "for b");
    ann.dispatches(&ann.chat(), one);
    ann.dispatches(B, two);
    s.settles();
    assert_eq!((ann.reads(), there.reads()), ("a1a2".to_owned(), "b1b2".to_owned()));
}

// ADR 0004: unloaded chats
#[test]
fn a_chat_at_rest_can_be_disposed_of_and_joined_by_another() {
    let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
    let there = ann.creates_chat(B);
    there.sends_message("before");
    for channel in [B.to_owned(), ann.chat(), ann.session()] {
        ann.unwatches(&channel);
    }
    s.advances_in_steps(10_000, 500);
    s.reads_take_ms(30);
    ann.asks_for_chat(C, json!({})).unwrap();
    ann.disposes_of(B).unwrap();
    ann.watches(&ann.session());
    assert_eq!(ann.chats(), [ann.chat(), C.to_owned()]);
}

// Prepare, write, send, act
#[test]
fn a_host_that_dies_while_chats_come_and_go_has_done_it_or_not() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_chat();
        ann.creates_chat(B);
        s.host_dies_at(point);
        ann.requests("disposeChat", json!({"channel": B}));
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        let left = 1 + usize::from(point == Kill::BeforeWrite);
        assert_eq!(ann.chats().len(), left, "{point:?}");
        s.host_dies_at(point);
        let params = json!({"channel": ann.session(), "chat": C, "initialMessage": message("go")});
        ann.requests("createChat", params);
        s.settles();
        assert!(!s.look().is_up());
        s.host_restarts_for([&ann]);
        let made = left + usize::from(point != Kill::BeforeWrite);
        assert_eq!(ann.chats().len(), made, "{point:?}");
        s.all_agree();
    }
}

// G-15
#[test]
fn chats_neither_come_nor_go_while_nothing_can_be_written() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    s.faults().break_disk();
    assert_eq!(ann.is_denied_chat(C, json!({})), -32603);
    assert_eq!(ann.is_denied("disposeChat", json!({"channel": B})), -32603);
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
    assert_eq!(ann.chats().len(), 2);
    there.sends_message("still there");
    ann.asks_for_chat(C, json!({})).unwrap();
}

// G-28: a session is empty only if all its chats are
#[test]
fn a_session_with_a_turn_in_a_second_chat_is_not_swept() {
    let (mut s, ann) = Scenario::with(|limits| limits.empty_session_ttl_s = 60).and_chat();
    let there = ann.creates_chat(B);
    there.sends_message("something");
    let bob = s.client("bob").opens_chat();
    bob.creates_chat(C);
    let draft = json!({"type": "chat/draftChanged", "draft": message("dra")});
    bob.dispatches(C, draft);
    s.settles();
    for client in [&ann, &bob] {
        client.loses_connection();
    }
    s.advances_in_steps(400_000, 20_000);
    let cem = s.client("cem").arrives();
    let list = cem.asks("listSessions", json!({"channel": "ahp-root://"})).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
}

// H-146: empty means none, also for the agent
#[test]
fn a_chat_without_directories_works_in_none() {
    let (s, ann) = Scenario::with_chat();
    let none = ann.creates_chat_with("ahp-chat:/c", json!({"workingDirectories": []}));
    none.sends_message("where?");
    let run = s.look().models.asked.last().cloned().unwrap();
    assert!(run.working_directories.is_empty(), "empty means none");
}

// H-146, H-128: without the capability directories cannot change
#[test]
fn directories_of_a_chat_are_not_changed_without_the_capability() {
    let (_s, ann) = Scenario::with_chat();
    let directory = ann.sees(&ann.session())["workingDirectories"][0].clone();
    for kind in ["chat/workingDirectoryRemoved", "chat/workingDirectorySet"] {
        let action = json!({"type": kind, "directory": directory});
        assert!(ann.tries(&ann.chat(), action).is_err(), "{kind}");
    }
}
