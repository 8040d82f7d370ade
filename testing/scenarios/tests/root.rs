//! The root channel: the list of sessions, updated by notifications; order within a step.

use serde_json::{Value, json};
use testkit::{ROOT, Scenario};

// H-095, H-096, H-106
#[test]
fn the_root_lists_what_the_host_supports() {
    let mut s = Scenario::new();
    let root = s.state(ROOT);
    assert_eq!(root["agents"][0]["provider"], "scripted");
    for field in ["displayName", "description", "models"] {
        assert!(root["agents"][0].get(field).is_some(), "{field}");
    }
    assert_eq!(root["activeSessions"], 0);
    assert!(root["config"]["schema"]["properties"]["logLevel"].is_object());
    assert!(root.get("terminals").is_none());
}

// H-098, H-104
#[test]
fn sessions_come_and_go_for_everyone_who_watches_the_root() {
    let mut s = Scenario::new();
    let bob = s.client("bob").arrives();
    let stalled = s.client("deaf").arrives_watching(&[]);
    let ann = s.client("ann").arrives().creates("ahp-session:/one");
    assert!(bob.notifications("root/sessionAdded").is_empty(), "G-28");
    assert_eq!(bob.sees(ROOT)["activeSessions"], 0);
    let turn = ann.turn_started("t1", "hi");
    ann.tries(&testkit::default_chat("ahp-session:/one"), turn).unwrap();
    s.settles();
    let added = bob.notifications("root/sessionAdded");
    assert_eq!(added.len(), 1);
    assert_eq!(added[0]["channel"], ROOT);
    for field in ["resource", "provider", "title", "status", "createdAt", "modifiedAt"] {
        assert!(added[0]["summary"].get(field).is_some(), "{field}");
    }
    assert_eq!(bob.sees(ROOT)["activeSessions"], 1);
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    assert_eq!(
        bob.notifications("root/sessionRemoved"),
        [json!({"channel": ROOT, "session": "ahp-session:/one"})]
    );
    assert_eq!(bob.sees(ROOT)["activeSessions"], 0);
    assert_eq!(stalled.received_frames(), ["="]);
}

// H-099, H-101, H-123: the list built from notifications is the list that is served
#[test]
fn summaries_put_together_from_notifications_are_the_ones_that_are_listed() {
    let mut s = Scenario::new();
    let bob = s.client("bob").arrives();
    let ann = s.client("ann").opens_chat();
    s.model()
        .emits(agent_api::AgentEvent::Activity(Some("reading".into())))
        .streams(["x"])
        .emits(agent_api::AgentEvent::Activity(None))
        .emits(agent_api::AgentEvent::Title("about x".into()));
    ann.sends_message("hello");
    ann.tries(&ann.session(), json!({"type": "session/isReadChanged", "isRead": true})).unwrap();
    s.model().fails_resumably();
    ann.sends_message("again");
    ann.tries(&ann.session(), json!({"type": "session/isArchivedChanged", "isArchived": true}))
        .unwrap();
    let mut built = bob.notifications("root/sessionAdded")[0]["summary"].clone();
    for note in bob.notifications("root/sessionSummaryChanged") {
        let changes = note["changes"].as_object().unwrap();
        assert!(!changes.is_empty());
        for (key, value) in changes {
            assert!(!["resource", "provider", "createdAt"].contains(&key.as_str()));
            built[key] = value.clone();
        }
    }
    if built["activity"] == "" {
        built.as_object_mut().unwrap().shift_remove("activity"); // H-102
    }
    let listed = bob.asks("listSessions", json!({"channel": ROOT})).unwrap();
    let mut listed = listed["items"][0].clone();
    let sort = |value: &mut Value| value.as_object_mut().unwrap().sort_keys();
    sort(&mut built);
    sort(&mut listed);
    assert_eq!(built, listed);
    assert_eq!(listed["title"], "about x");
    assert_eq!(listed["chats"][0]["status"], s.state(&ann.chat())["status"]);
}

// G-24
#[test]
fn within_a_step_the_chat_comes_first_and_the_root_last() {
    let (mut s, ann) = Scenario::with_chat();
    ann.tries(&ann.session(), json!({"type": "session/isReadChanged", "isRead": true})).unwrap();
    ann.sends_message("first");
    ann.tries(&ann.session(), json!({"type": "session/isReadChanged", "isRead": true})).unwrap();
    s.model().hangs();
    let before = ann.with(|client| client.frames.len());
    let turn = ann.sends_message("go");
    assert_eq!(
        ann.received_frames()[before..],
        [
            "chat/turnStarted",
            "session/chatUpdated",
            "session/isReadChanged",
            "root/sessionSummaryChanged"
        ]
    );
    let before = ann.with(|client| client.frames.len());
    ann.cancels(&turn).unwrap();
    assert_eq!(
        ann.received_frames()[before..],
        ["chat/turnCancelled", "session/chatUpdated", "root/sessionSummaryChanged"]
    );
}

// G-24: not per delta
#[test]
fn deltas_do_not_touch_the_list() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().streams(["a", "b", "c", "d"]).hangs();
    ann.sends_message("go");
    assert_eq!(ann.notifications("root/sessionAdded").len(), 1);
    let during = ann.notifications("root/sessionSummaryChanged").len();
    assert_eq!(during, 0);
}

// H-178, G-24: read flags
#[test]
fn a_turn_makes_a_session_unread() {
    let (_s, ann) = Scenario::with_chat();
    ann.tries(&ann.session(), json!({"type": "session/isReadChanged", "isRead": true})).unwrap();
    assert_eq!(ann.sees(&ann.session())["status"].as_u64().unwrap() & 32, 32);
    ann.sends_message("go");
    assert_eq!(ann.sees(&ann.session())["status"].as_u64().unwrap() & 32, 0);
}

// H-105
#[test]
fn other_agents_after_a_restart_are_announced_by_an_action() {
    let (mut s, ann) = Scenario::with_client();
    s.host_is_killed();
    s.world().facts.agents[0].info["displayName"] = json!("Renamed");
    s.host_restarts_for([&ann]);
    assert_eq!(ann.sees(ROOT)["agents"][0]["displayName"], "Renamed");
}
