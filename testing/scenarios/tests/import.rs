//! A session of another host becomes one of this: whole or not at all, announced, loaded when somebody opens it.

use serde_json::{Value, json};
use testkit::{ROOT, Scenario};

const SESSION: &str = "ahp-session:/imported";
const METHOD: &str = "x-importSession";

fn session() -> Value {
    let chat = testkit::default_chat(SESSION);
    json!({
        "resource": SESSION, "createdAt": "2020-01-01T00:00:00.000Z", "modifiedAt": "2020-01-02T00:00:00.000Z",
        "provider": "scripted", "title": "From elsewhere", "status": 8 | 64, "lifecycle": "creating",
        "activeClients": [{"clientId": "mallory", "tools": []}],
        "chats": [{"resource": chat, "title": "From elsewhere", "status": 8, "modifiedAt": "2020-01-02T00:00:00.000Z",
                   "origin": {"kind": "user"}}],
        "defaultChat": chat,
    })
}

fn turn(id: &str, text: &str) -> Value {
    json!({
        "id": id, "startedAt": "2020-01-01T00:00:00.000Z", "duration": 5, "state": "complete",
        "message": {"text": text, "origin": {"kind": "user"}},
        "responseParts": [{"kind": "markdown", "id": "p", "content": format!("re: {text}")}],
    })
}

fn params(session: &Value, turns: &[(&str, Value)]) -> Value {
    let line =
        |(chat, turn): &(&str, Value)| json!({"chat": chat, "turn": turn}).to_string() + "\n";
    let turns: String = turns.iter().map(line).collect();
    json!({"channel": ROOT, "session": session.to_string(), "turns": turns})
}

fn two_turns() -> Value {
    let chat = testkit::default_chat(SESSION);
    params(&session(), &[(&chat, turn("one", "first")), (&chat, turn("t99999", "second"))])
}

#[test]
fn an_imported_session_is_announced_opened_and_continued() {
    let mut s = Scenario::new();
    let bob = s.client("bob").arrives();
    let ann = s.client("ann").arrives();
    assert_eq!(ann.asks(METHOD, two_turns()), Ok(json!({"session": SESSION})));
    let added = bob.notifications("root/sessionAdded");
    assert_eq!(added.len(), 1);
    let summary = &added[0]["summary"];
    assert_eq!(
        (&summary["title"], &summary["status"], &summary["modifiedAt"]),
        (&json!("From elsewhere"), &json!(1 | 64), &json!("2020-01-02T00:00:00.000Z")),
        "what people set stays, what it was doing does not"
    );
    assert_eq!(bob.sees(ROOT)["activeSessions"], 1);
    let list = ann.asks("listSessions", json!({})).unwrap();
    assert_eq!(list["items"], json!([summary]));
    let opened = ann.asks("subscribe", json!({"channel": SESSION})).unwrap();
    let state = &opened["snapshot"]["state"];
    assert_eq!((&state["lifecycle"], &state["activeClients"]), (&json!("ready"), &json!([])));
    let chat = testkit::default_chat(SESSION);
    let opened = ann.asks("subscribe", json!({"channel": chat})).unwrap();
    let turns = &opened["snapshot"]["state"]["turns"];
    assert_eq!(*turns, json!([turn("one", "first"), turn("t99999", "second")]));
    ann.tries(&chat, ann.turn_started("three", "and then?")).unwrap();
    s.settles();
    assert_eq!(ann.sees(&chat)["turns"].as_array().map(Vec::len), Some(3));
}

#[test]
fn it_is_there_after_a_restart() {
    let (mut s, ann) = Scenario::with_client();
    ann.asks(METHOD, two_turns()).unwrap();
    s.host_restarts();
    let ann = s.client("bea").arrives();
    let list = ann.asks("listSessions", json!({})).unwrap();
    assert_eq!(list["items"][0]["resource"], SESSION);
    assert_eq!(ann.sees(ROOT)["activeSessions"], 1);
}

#[test]
fn names_that_are_taken_and_what_nobody_could_read_are_refused() {
    let (_s, ann) = Scenario::with_client();
    let chat = testkit::default_chat(SESSION);
    let with = |field: &str, value: Value| {
        let mut changed = session();
        changed[field] = value;
        params(&changed, &[(&chat, turn("one", "first"))])
    };
    let mut no_state = turn("one", "first");
    no_state["state"] = json!("odd");
    for (wrong, what) in [
        (with("resource", json!("ahp-chat:/x")), "a chat's scheme"),
        (with("resource", json!("")), "no name"),
        (with("provider", json!(7)), "no provider"),
        (with("chats", json!([])), "no chats"),
        (with("defaultChat", json!("ahp-chat:/x")), "another default"),
        (params(&session(), &[]), "no turns"),
        (params(&session(), &[("ahp-chat:/x", turn("one", "first"))]), "another chat"),
        (params(&session(), &[(&chat, no_state)]), "no end"),
        (
            params(&session(), &[(&chat, turn("one", "a")), (&chat, turn("one", "b"))]),
            "an id twice",
        ),
        (json!({"channel": ROOT, "session": "{", "turns": ""}), "not JSON"),
        (json!({"channel": ROOT, "session": {}, "turns": []}), "no text"),
    ] {
        assert_eq!(ann.is_denied(METHOD, wrong), -32602, "{what}");
    }
    assert_eq!(ann.asks("listSessions", json!({})).unwrap()["items"], json!([]));
    ann.asks(METHOD, two_turns()).unwrap();
    assert_eq!(ann.is_denied(METHOD, two_turns()), -32003);
}

#[test]
fn a_full_disk_leaves_nothing_of_it() {
    let (mut s, ann) = Scenario::with_client();
    s.faults().break_disk();
    assert_eq!(ann.is_denied(METHOD, two_turns()), -32603);
    s.faults().mend_disk();
    s.advances_ms(1_000);
    assert_eq!(ann.asks("listSessions", json!({})).unwrap()["items"], json!([]));
    ann.asks(METHOD, two_turns()).unwrap();
    assert_eq!(ann.sees(ROOT)["activeSessions"], 1);
}

// G-43: the same bounds as for what clients send themselves
#[test]
fn what_is_too_large_or_too_many_is_refused_by_name() {
    let (_s, ann) = Scenario::with_client();
    let chat = testkit::default_chat(SESSION);
    let with = |field: &str, value: Value| {
        let mut changed = session();
        changed[field] = value;
        params(&changed, &[(&chat, turn("one", "first"))])
    };
    let with_chat = |field: &str, value: Value| {
        let mut chats = session()["chats"].clone();
        chats[0][field] = value;
        with("chats", chats)
    };
    let with_turn = |field: &str, value: Value| {
        let mut changed = turn("one", "first");
        changed[field] = value;
        params(&session(), &[(&chat, changed)])
    };
    let many_values = json!(vec![json!([]); 60_000]);
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    let message = json!({"text": "x".repeat(1 << 21), "origin": {"kind": "user"}});
    let many: Vec<(&str, Value)> =
        (0..65_537).map(|n| (&*chat, turn(&n.to_string(), ""))).collect();
    for (wrong, named) in [
        (with("title", json!("x".repeat(5_000))), "title_bytes_max"),
        (with_chat("title", json!("x".repeat(5_000))), "title_bytes_max"),
        (with("workingDirectories", json!(vec!["file:///a"; 65])), "working_directories_max"),
        (with_chat("workingDirectories", json!(vec!["file:///a"; 65])), "working_directories_max"),
        (with("workingDirectories", json!(["relative"])), "absolute `file:` URI"),
        (with_chat("workingDirectories", json!(["http://h/"])), "absolute `file:` URI"),
        (with("_meta", json!({"x": "x".repeat(70_000)})), "field_bytes_max"),
        (with("_meta", json!({"x": many_values})), "import_values_max"),
        (with("_meta", json!({"x": deep})), "levels deep"),
        (with_turn("id", json!("x".repeat(2_000))), "id_bytes_max"),
        (with_turn("message", message), "message_bytes_max"),
        (with_turn("_meta", json!({"x": deep})), "levels deep"),
        (with_turn("_meta", json!({"x": many_values})), "import_values_max"),
        (params(&session(), &many), "import_turns_max"),
    ] {
        let refused = ann.asks(METHOD, wrong).unwrap_err();
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.contains(named), "{named}: {refused}");
    }
    // What is not taken over may be large.
    let clients =
        json!([{"clientId": "c", "tools": [{"name": "t", "description": "x".repeat(100_000)}]}]);
    ann.asks(METHOD, with("activeClients", clients)).unwrap();
}

// G-26
#[test]
fn a_name_that_means_another_channel_is_refused() {
    let (mut s, ann) = Scenario::with_client();
    let chat_named = |name: &str| {
        let mut changed = session();
        changed["chats"][0]["resource"] = json!(name);
        changed["defaultChat"] = json!(name);
        params(&changed, &[(name, turn("one", "first"))])
    };
    let session_named = |name: &str| {
        let mut changed = session();
        changed["resource"] = json!(name);
        let chat = testkit::default_chat(SESSION);
        params(&changed, &[(&chat, turn("one", "first"))])
    };
    for wrong in [
        chat_named(SESSION),
        chat_named(ROOT),
        chat_named("ahp-session:/other"),
        chat_named("scripted:/other"),
        chat_named("ahp-terminal:/t"),
        chat_named(&testkit::default_chat("ahp-session:/other")),
        session_named("ahp-session:/other/annotations"),
        session_named("ahp-session:/other/changeset/uncommitted"),
    ] {
        assert_eq!(ann.is_denied(METHOD, wrong.clone()), -32602, "{wrong}");
    }
    let ann = s.client("cat").opens_chat();
    let taken =
        json!({"channel": ann.session(), "chat": testkit::default_chat("ahp-session:/other")});
    assert_eq!(ann.is_denied("createChat", taken), -32602);
}
