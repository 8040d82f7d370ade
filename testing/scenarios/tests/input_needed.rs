//! What a session says is waited for: set and cleared with the blocks of its chats, in order, for session-only clients.

use agent_api::{AgentEvent, InputRequest, ToolResult};
use serde_json::{Value, json};
use testkit::consent::text_answer;
use testkit::{ROOT, Scenario, ScenarioClient, Script, Tool};

const B: &str = "ahp-chat:/b";

fn session_status(client: &ScenarioClient) -> u64 {
    client.sees(&client.session())["status"].as_u64().unwrap() & 31
}

/// Kinds of the frames that one batch of something caused, with the channel they came on.
fn frames_since(client: &ScenarioClient, start: usize) -> Vec<String> {
    let (session, chat) = (client.session(), client.chat());
    client.with(|client| {
        let name = |frame: &Value| {
            let channel = frame["params"]["channel"].as_str().unwrap_or("");
            let kind = match frame["method"].as_str() {
                Some("action") => frame["params"]["action"]["type"].as_str().unwrap_or(""),
                other => other.unwrap_or("="),
            };
            assert!([ROOT, &session, &chat].contains(&channel), "{frame}");
            kind.to_owned()
        };
        client.frames[start..].iter().map(name).collect()
    })
}

// H-220: each kind of block has its entry
#[test]
fn every_kind_of_block_is_mirrored() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    let bob = s.client("bob").arrives_watching(&[&session]);
    ann.offers(&["open"]).unwrap();
    s.model()
        .asks_tool("shell", "ls")
        .calls(Tool::running("shell", "pwd").reviewed())
        .asks_for_text("name?")
        .calls_client("open");
    let turn = ann.sends_message("go");
    let entry = |kind: &str| {
        let entries = bob.sees(&session)["inputNeeded"].as_array().cloned().unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0]["kind"], kind);
        assert_eq!(entries[0]["chat"], ann.chat().as_str());
        entries[0].clone()
    };
    let first = entry("toolConfirmation");
    assert_eq!(first["toolCall"]["status"], "pending-confirmation");
    assert_eq!(first["turnId"], turn.as_str());
    ann.confirms().unwrap();
    let second = entry("toolConfirmation");
    assert_eq!(second["toolCall"]["status"], "pending-result-confirmation");
    assert_ne!(first["id"], second["id"]);
    ann.reviews(true).unwrap();
    let third = entry("chatInput");
    assert_eq!(third["request"], ann.question());
    ann.answers_text("x").unwrap();
    assert_eq!(entry("toolClientExecution")["clientId"], "ann");
    ann.completes_tool("y").unwrap();
    assert!(bob.sees(&session).get("inputNeeded").is_none_or(|all| all == &json!([])));
}

// G-24: the chat's action, the catalogue, the block, the read flag, then the root
#[test]
fn changes_of_one_step_are_sent_in_one_order() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().waits_ms(500).asks_for_text("name?").waits_ms(500);
    ann.starts("go");
    s.world().advance_ms(0);
    let read = json!({"type": "session/isReadChanged", "isRead": true});
    ann.dispatches(&ann.session(), read);
    while {
        let peer = ann.with(|client| client.link).unwrap();
        let to_host = s.world().carry_to_host(peer);
        let batch = s.world().batch(64);
        let to_client = s.world().carry_to_client(peer);
        to_host || batch || to_client
    } {}
    let start = ann.with(|client| client.frames.len());
    s.settles();
    let expected = [
        "chat/inputRequested",
        "session/chatUpdated",
        "session/inputNeededSet",
        "session/isReadChanged",
        "root/sessionSummaryChanged",
    ];
    assert_eq!(frames_since(&ann, start), expected);
    let start = ann.with(|client| client.frames.len());
    let answers = json!({"q": text_answer("submitted", "x")});
    let id = ann.question()["id"].clone();
    let action = json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept", "answers": answers});
    ann.dispatches(&ann.chat(), action);
    let peer = ann.with(|client| client.link).unwrap();
    s.world().carry_to_host(peer);
    s.world().batch(1);
    while s.world().carry_to_client(peer) {}
    let expected = [
        "chat/inputCompleted",
        "session/chatUpdated",
        "session/inputNeededRemoved",
        "root/sessionSummaryChanged",
    ];
    assert_eq!(frames_since(&ann, start), expected);
    s.settles();
}

// H-221: status follows
#[test]
fn only_questions_to_people_raise_the_status() {
    let (mut s, ann) = Scenario::with_chat();
    ann.offers(&["open"]).unwrap();
    s.model().calls_client("open").asks_for_text("name?").hangs();
    ann.sends_message("go");
    assert_ne!(session_status(&ann), 24);
    ann.completes_tool("x").unwrap();
    assert_eq!(session_status(&ann), 24);
    ann.answers_text("x").unwrap();
    assert_ne!(session_status(&ann), 24);
}

// H-220: two chats, several blocks each
#[test]
fn blocks_of_several_chats_stand_side_by_side() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    s.model()
        .announces(7, "one")
        .readies(7, json!({"invocationMessage": "m"}))
        .asks_for_text("name?");
    ann.sends_message("here");
    s.model().asks_tool("shell", "ls");
    there.sends_message("there");
    assert_eq!((ann.needs().len(), session_status(&ann)), (3, 24));
    ann.confirms().unwrap();
    assert_eq!((ann.needs().len(), session_status(&ann)), (2, 24));
    there.denies().unwrap();
    assert_eq!((ann.needed_kinds(), session_status(&ann)), (vec!["chatInput".to_owned()], 24));
    ann.answers("decline", Value::Null).unwrap();
    assert!(ann.needs().is_empty());
}

/// A chat with a block of each kind at once.
fn blocked(script: Script) -> Script {
    script
        .announces(101, "asks")
        .readies(101, json!({"invocationMessage": "m"}))
        .emits(AgentEvent::ClientTool {
            call: 102,
            name: "open".to_owned(),
            input: json!({}),
            timeout_ms: 600_000,
        })
        .announces(103, "reviewed")
        .readies(103, json!({"invocationMessage": "m", "confirmed": "not-needed"}))
        .emits(AgentEvent::ToolCompleted {
            call: 103,
            result: ToolResult::new(true, "did"),
            review: true,
        })
        .emits(AgentEvent::InputRequested {
            ask: 104,
            request: InputRequest { message: Some("?".to_owned()), ..InputRequest::default() },
        })
        .waits_ms(1_000)
}

// H-220: whatever ends the blocks, the session is updated
#[test]
fn every_end_of_a_turn_clears_input_needed() {
    for end in
        ["complete", "error", "cancel", "truncate", "truncate all", "dispose", "restart", "stop"]
    {
        let (mut s, ann) = Scenario::with_chat();
        ann.offers(&["open"]).unwrap();
        let there = ann.creates_chat(B);
        let session = ann.session();
        let bob = s.client("bob").arrives_watching(&[&session]);
        let first_turn = there.sends_message("first");
        s.model().plays(blocked).plays(|script| match end {
            "complete" => script.completes(),
            "error" => script.fails(true),
            _ => script.hangs(),
        });
        let turn = there.starts("go");
        s.world().advance_ms(0);
        let peers: Vec<_> = s.look().links.keys().copied().collect();
        for _ in 0..20 {
            for peer in &peers {
                s.world().carry_to_host(*peer);
            }
            s.world().take_due();
            s.world().batch(64);
            for peer in &peers {
                while s.world().carry_to_client(*peer) {}
            }
        }
        assert_eq!(ann.needs().len(), 4, "{end}");
        match end {
            "cancel" => there.cancels(&turn).unwrap(),
            "truncate" => there.truncates(&first_turn).unwrap(),
            "truncate all" => there.truncates_all().unwrap(),
            "dispose" => ann.disposes_of(B).unwrap(),
            "restart" => {
                s.host_restarts_for([&ann, &bob]);
            }
            "stop" => s.world().input(kernel::Input::Stopping),
            _ => {}
        }
        s.settles();
        assert!(ann.needs().is_empty(), "{end}: {:?}", ann.needs());
        assert_ne!(session_status(&ann), 24, "{end}");
        assert_eq!(bob.sees(&session)["inputNeeded"].as_array().map_or(0, Vec::len), 0, "{end}");
        s.all_agree();
    }
}

// H-220 over a restart: what a session-only client was sent before is removed in the replay
#[test]
fn a_reconnecting_client_gets_the_removal_of_input_needed() {
    for restart in [false, true] {
        let (mut s, ann) = Scenario::with_chat();
        let session = ann.session();
        let bob = s.client("bob").arrives_watching(&[&session]);
        s.model().asks_tool("shell", "ls");
        ann.sends_message("go");
        assert_eq!(bob.sees(&session)["inputNeeded"].as_array().unwrap().len(), 1);
        bob.loses_connection();
        if restart {
            s.host_restarts_for([&ann]);
        } else {
            ann.denies().unwrap();
        }
        assert_eq!(bob.reconnects()["type"], "replay");
        assert_eq!(bob.sees(&session)["inputNeeded"].as_array().map_or(0, Vec::len), 0);
        s.all_agree();
    }
}

// H-220: drafts are part of what is asked
#[test]
fn drafts_of_answers_are_seen_by_those_who_watch_only_the_session() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    let bob = s.client("bob").arrives_watching(&[&session]);
    s.model().asks_for_text("name?");
    ann.sends_message("go");
    ann.drafts_answer("q", text_answer("draft", "gre")).unwrap();
    let entry = bob.sees(&session)["inputNeeded"][0].clone();
    assert_eq!(entry["request"]["answers"]["q"]["value"]["value"], "gre");
}

// H-123, H-101: and the list knows
#[test]
fn the_session_list_shows_sessions_waiting_for_input() {
    let (mut s, ann) = Scenario::with_chat();
    let cem = s.client("cem").arrives();
    ann.creates_chat(B);
    s.model().asks_tool("shell", "ls");
    ann.in_chat(B).sends_message("there");
    let notifications = cem.notifications("root/sessionSummaryChanged");
    let last = |field: &str| {
        let of =
            notifications.iter().rev().find_map(|params| params["changes"].get(field).cloned());
        of.unwrap()
    };
    assert_eq!(last("status").as_u64().unwrap() & 31, 24);
    assert_eq!(last("chats")[1]["status"].as_u64().unwrap() & 31, 24);
    assert_eq!(last("chats")[0]["status"].as_u64().unwrap() & 31, 1);
}
