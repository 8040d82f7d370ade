//! Sessions: created under whatever URI, ready when their agent is, disposed of, swept, listed.

use agent_api::AgentError;
use serde_json::{Value, json};
use testkit::{Kill, ROOT, Scenario};

fn failure() -> AgentError {
    AgentError { error_type: "noAgent".into(), message: "it did not start".into(), resumable: true }
}

// H-110, H-112, H-113, G-26
#[test]
fn a_session_is_there_at_once_and_ready_when_its_agent_is() {
    let mut s = Scenario::new();
    s.sessions_take_ms(1_000);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "weird+scheme:/Some/Where?x=1"}));
    let peer = ann.with(|client| client.link).unwrap();
    ann.requests("subscribe", json!({"channel": "weird+scheme:/Some/Where?x=1"}));
    while s.world().carry_to_host(peer) {}
    while s.world().batch(64) {}
    while s.world().carry_to_client(peer) {}
    let session = ann.sees("weird+scheme:/Some/Where?x=1");
    assert_eq!(session["lifecycle"], "creating");
    assert_eq!(session["defaultChat"], session["chats"][0]["resource"]);
    assert_eq!(session["defaultChat"], testkit::default_chat("weird+scheme:/Some/Where?x=1"));
    s.settles();
    let session = ann.sees("weird+scheme:/Some/Where?x=1");
    assert_eq!((&session["lifecycle"], &session["status"]), (&json!("ready"), &json!(1)));
}

// H-110, H-111, G-23, H-115, H-116
#[test]
fn invalid_sessions_are_refused_and_change_nothing() {
    let mut s = Scenario::new();
    let ann = s.client("ann").arrives().creates("ahp-session:/one");
    let seq = s.look().kernel().seq();
    for (params, code) in [
        (json!({"channel": "ahp-session:/one"}), -32003),
        (json!({"channel": "ahp-session:/x", "provider": "nobody"}), -32002),
        (
            json!({"channel": "ahp-session:/x", "workingDirectories": ["https://home/space"]}),
            -32602,
        ),
        (
            json!({"channel": "ahp-session:/x", "activeClient": {"clientId": "bob", "tools": []}}),
            -32602,
        ),
        (json!({"channel": "ahp-session:/x", "config": {"pace": "never"}}), -32602),
        (json!({"channel": "not a uri"}), -32602),
        (json!({"channel": ROOT}), -32602),
        (json!({"channel": "ahp-chat:/x"}), -32602),
        (json!({"channel": "AHP-Terminal:/x"}), -32602),
        (json!({"channel": "ahp-changeset:/x"}), -32602),
        (json!({"channel": "mcp://x"}), -32602),
    ] {
        let error = ann.asks("createSession", params.clone()).expect_err("is refused");
        assert_eq!(error["code"], code, "{params} {error}");
    }
    assert_eq!(s.look().kernel().seq(), seq);
}

// G-22, H-114, H-115
#[test]
fn a_session_takes_its_first_directory_its_known_config_and_its_creator() {
    let (mut s, ann) = Scenario::with_client();
    let params = json!({
        "channel": "ahp-session:/one",
        "workingDirectories": ["file:///home/space/a", "file:///home/space/b"],
        "config": {"pace": "typing", "isolation": "folder"},
        "activeClient": {"clientId": "ann", "tools": [], "x-more": 1},
    });
    assert_eq!(ann.asks("createSession", params), Ok(Value::Null));
    let session = s.state("ahp-session:/one");
    assert_eq!(session["workingDirectories"], json!(["file:///home/space/a"]));
    assert_eq!(session["config"]["values"], json!({"pace": "typing", "fixed": "f"}));
    assert_eq!(session["activeClients"][0]["x-more"], 1);
}

// H-120
#[test]
fn a_config_can_be_resolved_before_there_is_a_session() {
    let (_, ann) = Scenario::with_client();
    let params =
        json!({"channel": ROOT, "provider": "scripted", "config": {"pace": "typing", "x": 1}});
    let resolved = ann.asks("resolveSessionConfig", params).unwrap();
    assert_eq!(resolved["values"], json!({"pace": "typing", "fixed": "f"}));
    assert!(resolved["schema"]["properties"]["pace"].is_object());
}

// G-09
#[test]
fn a_turn_sent_while_creating_runs_when_ready() {
    let mut s = Scenario::new();
    s.sessions_take_ms(1_000);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
    let chat = testkit::default_chat("ahp-session:/one");
    ann.requests("subscribe", json!({"channel": chat}));
    ann.dispatches(&chat, ann.turn_started("t1", "early"));
    ann.reaches_host();
    assert!(s.look().models.asked.is_empty());
    s.settles();
    assert_eq!(s.look().models.asked.len(), 1);
    assert_eq!(ann.sees(&chat)["turns"][0]["state"], "complete");
}

// G-09
#[test]
fn a_session_that_fails_ends_its_waiting_turn_for_good() {
    let mut s = Scenario::new();
    s.sessions_take_ms(1_000);
    s.world().starts.push_back(Err(failure()));
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
    let chat = testkit::default_chat("ahp-session:/one");
    ann.requests("subscribe", json!({"channel": chat}));
    ann.dispatches(&chat, ann.turn_started("t1", "early"));
    s.settles();
    assert_eq!(s.state("ahp-session:/one")["lifecycle"], "failed");
    let turn = ann.sees(&chat)["turns"][0].clone();
    assert_eq!(turn["state"], "error");
    let last = turn["responseParts"].as_array().unwrap().last().cloned().unwrap();
    assert!(last.get("resumable").is_none_or(|resumable| resumable == false));
    assert!(ann.tries(&chat, ann.turn_started("t2", "again")).is_err());
    assert_eq!(ann.is_denied("createSession", json!({"channel": "ahp-session:/one"})), -32003);
}

// G-09
#[test]
fn a_turn_cancelled_before_ready_never_runs() {
    let mut s = Scenario::new();
    s.sessions_take_ms(1_000);
    let ann = s.client("ann").arrives();
    ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
    let chat = testkit::default_chat("ahp-session:/one");
    ann.requests("subscribe", json!({"channel": chat}));
    ann.dispatches(&chat, ann.turn_started("t1", "early"));
    ann.dispatches(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 3}));
    s.settles();
    assert!(s.look().models.asked.is_empty());
    assert_eq!(ann.sees(&chat)["turns"][0]["state"], "cancelled");
}

// G-09, boot: a session that was being created is started again, and its turn with it
#[test]
fn a_session_being_created_when_the_host_dies_is_started_again() {
    let (mut s, ann) = Scenario::with_client();
    let chat = testkit::default_chat("ahp-session:/one");
    s.sessions_take_ms(60_000);
    ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
    ann.dispatches(&chat, ann.turn_started("t1", "early"));
    let peer = ann.with(|client| client.link).unwrap();
    while s.world().carry_to_host(peer) {}
    s.world().batch(1);
    s.world().batch(64);
    s.world().batch(64);
    s.host_is_killed();
    s.host_restarts();
    assert_eq!(s.state("ahp-session:/one")["lifecycle"], "ready");
    assert_eq!(s.state(&chat)["turns"][0]["state"], "complete");
}

// H-118, G-26
#[test]
fn a_disposed_uri_may_be_used_again_and_knows_nothing_of_before() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().hangs();
    ann.sends_message("never done");
    assert_eq!(ann.asks("disposeSession", json!({"channel": ann.session()})), Ok(Value::Null));
    assert_eq!(s.look().models.stopped.len(), 1);
    assert_eq!(ann.is_denied("disposeSession", json!({"channel": ann.session()})), -32001);
    assert_eq!(ann.is_denied("disposeSession", json!({"channel": ann.chat()})), -32001);
    let ann = ann.clone().creates("ahp-session:/ann");
    ann.watches(&ann.chat());
    assert_eq!(ann.sees(&ann.chat())["turns"], json!([]));
    ann.sends_message("a new life");
    s.host_restarts_for([&ann]);
}

// H-119, G-23
#[test]
fn the_list_is_paged_newest_first() {
    let (mut s, ann) = Scenario::with_client();
    for n in 0..5 {
        s.advances_ms(10);
        ann.asks("createSession", json!({"channel": format!("ahp-session:/{n}")})).unwrap();
        let turn = ann.turn_started("t", "hi");
        let chat = testkit::default_chat(&format!("ahp-session:/{n}"));
        ann.tries(&chat, turn).unwrap();
        s.settles();
    }
    s.advances_ms(10);
    ann.tries("ahp-session:/1", json!({"type": "session/titleChanged", "title": "touched"}))
        .unwrap();
    let mut listed = Vec::new();
    let mut params = json!({"channel": ROOT, "limit": 2});
    loop {
        let page = ann.asks("listSessions", params.clone()).unwrap();
        listed.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["resource"].as_str().unwrap().to_owned()),
        );
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
    }
    let expected: Vec<String> =
        [1, 4, 3, 2, 0].iter().map(|n| format!("ahp-session:/{n}")).collect();
    assert_eq!(listed, expected);
    assert_eq!(ann.asks("listSessions", json!({})).unwrap()["items"].as_array().unwrap().len(), 5); // G-21
    for bad in
        [json!({"channel": ROOT, "cursor": "nonsense"}), json!({"channel": ROOT, "limit": 0})]
    {
        assert_eq!(ann.is_denied("listSessions", bad), -32602);
    }
}

// Write, send, act: a crash between any two
#[test]
fn a_session_created_as_the_host_dies_is_there_or_it_is_not() {
    for point in [Kill::BeforeWrite, Kill::BeforeSend, Kill::BeforeAct] {
        let (mut s, ann) = Scenario::with_client();
        s.host_dies_at(point);
        ann.requests("createSession", json!({"channel": "ahp-session:/one"}));
        s.settles();
        s.host_restarts_for([&ann]);
        let expected = if point == Kill::BeforeWrite { Value::Null } else { json!("ready") };
        assert_eq!(s.state("ahp-session:/one")["lifecycle"], expected, "{point:?}");
        s.all_agree();
    }
}
