//! Sessions that nobody said anything in: in no list until somebody does, and swept when nobody comes back (G-28).

use serde_json::{Value, json};
use testkit::{Kill, ROOT, Scenario, ScenarioClient};

const SESSION: &str = "ahp-session:/one";

fn listed(client: &ScenarioClient) -> Vec<String> {
    let list = client.asks("listSessions", json!({})).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let mut uris: Vec<String> =
        items.map(|item| item["resource"].as_str().unwrap().to_owned()).collect();
    uris.sort();
    uris
}

fn draft(text: &str) -> Value {
    json!({"type": "chat/draftChanged", "draft": {"text": text, "origin": {"kind": "user"}}})
}

fn chat_of(session: &str) -> String {
    testkit::default_chat(session)
}

/// Whether the session still answers.
fn exists(client: &ScenarioClient, session: &str) -> bool {
    client.asks("subscribe", json!({"channel": session})).is_ok()
}

#[test]
fn a_session_is_announced_with_its_first_turn_draft_or_queued_message() {
    type Use = fn(&ScenarioClient) -> Value;
    let turn: Use = |ann| ann.turn_started("t1", "hi");
    let draft: Use = |_| draft("hm");
    let queued: Use = |ann| ann.pending_set("queued", "q1", "hi");
    for (how, first_use) in [("turn", turn), ("draft", draft), ("queued", queued)] {
        let mut s = Scenario::new();
        let bob = s.client("bob").arrives();
        let ann = s.client("ann").arrives().creates(SESSION);
        ann.tries(
            SESSION,
            json!({"type": "session/activeClientSet", "activeClient": {"clientId": "ann", "tools": []}}),
        )
        .unwrap();
        ann.tries(SESSION, json!({"type": "session/titleChanged", "title": "t"})).unwrap();
        ann.tries(&chat_of(SESSION), json!({"type": "chat/draftChanged"})).unwrap();
        let empty =
            json!({"type": "chat/draftChanged", "draft": {"text": "", "origin": {"kind": "user"}}});
        ann.tries(&chat_of(SESSION), empty).unwrap();
        assert_eq!(bob.received_frames(), ["="], "{how}: nobody is told");
        assert_eq!(listed(&bob), [""; 0]);
        let there = bob.watches(SESSION);
        assert_eq!(there["snapshot"]["state"]["title"], "t", "who knows its URI finds it");

        ann.tries(&chat_of(SESSION), first_use(&ann)).unwrap();
        s.settles();
        let added = bob.notifications("root/sessionAdded");
        assert_eq!(added.len(), 1, "{how}");
        assert_eq!(added[0]["summary"]["resource"], SESSION);
        assert_eq!(added[0]["summary"]["title"], "t");
        assert_eq!(bob.sees(ROOT)["activeSessions"], 1);
        assert_eq!(listed(&bob), [SESSION], "{how}");
        s.all_agree();
    }
}

#[test]
fn what_was_announced_stays_in_the_list() {
    let mut s = Scenario::new();
    let bob = s.client("bob").arrives();
    let ann = s.client("ann").arrives().creates(SESSION);
    ann.tries(&chat_of(SESSION), draft("hm")).unwrap();
    ann.tries(&chat_of(SESSION), draft("")).unwrap();
    assert_eq!(listed(&bob), [SESSION]);
    assert!(bob.notifications("root/sessionRemoved").is_empty());
    s.host_restarts_for([&bob]);
    assert_eq!(listed(&bob), [SESSION]);
}

#[test]
fn a_restart_changes_nothing() {
    let (mut s, ann) = Scenario::with_client();
    for name in ["used", "unused"] {
        let params = json!({"channel": format!("ahp-session:/{name}")});
        ann.asks("createSession", params).unwrap();
    }
    let turn = ann.turn_started("t1", "hi");
    ann.tries(&chat_of("ahp-session:/used"), turn).unwrap();
    s.settles();
    s.host_restarts_for([&ann]);
    assert_eq!(listed(&ann), ["ahp-session:/used"]);
    assert_eq!(ann.sees(ROOT)["activeSessions"], 1);
    assert_eq!(s.state("ahp-session:/unused")["lifecycle"], "ready");

    ann.tries(&chat_of("ahp-session:/unused"), draft("hm")).unwrap();
    let added = ann.notifications("root/sessionAdded");
    let last = added.last().map(|note| note["summary"]["resource"].clone());
    assert_eq!(last, Some(json!("ahp-session:/unused")));
    assert_eq!(ann.sees(ROOT)["activeSessions"], 2);
}

#[test]
fn a_host_that_dies_at_the_first_turn_has_announced_it_or_has_not() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let mut s = Scenario::new();
        let ann = s.client("ann").arrives().creates(SESSION);
        s.host_dies_at(point);
        ann.dispatches(&chat_of(SESSION), ann.turn_started("t1", "hi"));
        s.settles();
        s.host_restarts_for([&ann]);
        let expected: &[&str] = match point {
            Kill::BeforeWrite => &[],
            _ => &[SESSION],
        };
        assert_eq!(listed(&ann), expected, "{point:?}");
        assert_eq!(ann.sees(ROOT)["activeSessions"], expected.len(), "{point:?}");
        s.all_agree();
    }
}

#[test]
fn the_end_of_an_unused_session_is_told_to_whoever_watches_it() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives().creates(SESSION);
    let bob = s.client("bob").joins(&ann);
    let cem = s.client("cem").arrives();
    ann.asks("disposeSession", json!({"channel": SESSION})).unwrap();
    assert_eq!(bob.notifications("root/sessionRemoved").len(), 1);
    assert_eq!(cem.received_frames(), ["="]);
    assert_eq!(cem.sees(ROOT)["activeSessions"], 0);
}

// G-26: and again under the same URI
#[test]
fn a_session_that_was_disposed_of_can_be_created_again() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives().creates(SESSION);
    ann.asks("disposeSession", json!({"channel": SESSION})).unwrap();
    assert_eq!(ann.is_denied("subscribe", json!({"channel": SESSION})), -32001);
    let refused = ann.tries(&chat_of(SESSION), ann.turn_started("t1", "hi"));
    assert!(refused.is_err(), "G-23a");
    ann.asks("createSession", json!({"channel": SESSION})).unwrap();
    let state = ann.watches(SESSION)["snapshot"]["state"].clone();
    let directories = state["workingDirectories"].as_array().unwrap();
    assert_eq!(directories.len(), 1, "the first root, named (G-23a)");
    ann.tries(&chat_of(SESSION), ann.turn_started("t1", "hi")).unwrap();
    s.settles();
    assert_eq!(listed(&ann), [SESSION]);
}

#[test]
fn an_unused_session_is_swept_an_hour_after_its_creator_left() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives().creates(SESSION);
    let bob = s.client("bob").arrives();
    s.advances_in_steps(7_200_000, 60_000);
    assert!(!s.state(SESSION).is_null(), "ann is here");
    ann.loses_connection();
    s.settles();
    s.advances_in_steps(3_500_000, 100_000);
    assert!(!s.state(SESSION).is_null());
    s.advances_in_steps(200_000, 20_000);
    assert!(!exists(&bob, SESSION));
    assert!(bob.notifications("root/sessionRemoved").is_empty());
}

#[test]
fn a_session_with_a_turn_a_draft_or_a_watcher_is_not_swept() {
    let (mut s, ann) = Scenario::with_client();
    let names = ["turn", "draft", "queued", "watched", "undrafted", "unused"];
    for name in names {
        let params = json!({"channel": format!("ahp-session:/{name}")});
        ann.asks("createSession", params).unwrap();
    }
    let chat = |name: &str| chat_of(&format!("ahp-session:/{name}"));
    ann.tries(&chat("turn"), ann.turn_started("t1", "hi")).unwrap();
    ann.tries(&chat("draft"), draft("hm")).unwrap();
    ann.tries(&chat("undrafted"), draft("hm")).unwrap();
    ann.tries(&chat("undrafted"), draft("")).unwrap();
    s.model().fails_resumably();
    ann.tries(&chat("queued"), ann.pending_set("queued", "q1", "hi")).unwrap();
    let bob = s.client("bob").arrives_watching(&[ROOT, "ahp-session:/watched"]);
    ann.loses_connection();
    s.settles();
    s.advances_in_steps(3_800_000, 100_000);
    let uri = |name: &&str| format!("ahp-session:/{name}");
    let left: Vec<&str> = names.into_iter().filter(|name| !s.state(&uri(name)).is_null()).collect();
    assert_eq!(left, ["turn", "draft", "queued", "watched"]);
    assert_eq!(listed(&bob), ["draft", "queued", "turn"].map(|name| uri(&name)));
    let gone = bob.notifications("root/sessionRemoved");
    let gone: Vec<&Value> = gone.iter().map(|note| &note["session"]).collect();
    assert_eq!(gone, ["ahp-session:/undrafted"], "it was announced");
}
