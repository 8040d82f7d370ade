//! Roles: who may only read, who takes part, who changes what all share.

use kernel::Role;
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

/// Parameters do not matter: a role is looked at before them.
fn refused_with(client: &ScenarioClient, method: &str, params: Value) -> String {
    let error = client.asks(method, params).unwrap_err();
    assert_eq!(error["code"], -32009, "{method}: {error}");
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_viewer_reads_what_others_do() {
    let (mut s, ann) = Scenario::with_chat();
    let vera = s.client("vera").is_a(Role::Viewer).joins(&ann);
    s.model().streams(["hello"]);
    ann.starts("say hello");
    s.settles();
    let turns = vera.sees(&vera.chat())["turns"].clone();
    assert_eq!(turns, ann.sees(&ann.chat())["turns"]);
    assert_eq!(turns.as_array().unwrap().len(), 1);
    let listed = vera.asks("listSessions", json!({"channel": ROOT})).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    vera.loses_connection();
    s.model().streams(["again"]);
    ann.starts("say it again");
    s.settles();
    vera.reconnects();
    assert_eq!(vera.sees(&vera.chat())["turns"], ann.sees(&ann.chat())["turns"]);
}

#[test]
fn every_action_of_a_viewer_is_refused_with_the_reason_and_nobody_else_hears_of_it() {
    let (mut s, ann) = Scenario::with_chat();
    let vera = s.client("vera").is_a(Role::Viewer).joins(&ann);
    ann.received_actions();
    let (session, chat) = (ann.session(), ann.chat());
    let message = json!({"text": "hi", "origin": {"kind": "user"}});
    let actions = [
        (
            &chat,
            json!({"type": "chat/turnStarted", "turnId": "t1", "message": message, "startedAt": ann.now()}),
        ),
        (&chat, json!({"type": "chat/draftChanged", "draft": message})),
        (&session, json!({"type": "session/titleChanged", "title": "mine"})),
        (&session, json!({"type": "session/isReadChanged", "isRead": true})),
        (
            &session,
            json!({"type": "session/activeClientSet", "activeClient": {"clientId": "vera", "tools": []}}),
        ),
        (&ROOT.to_owned(), json!({"type": "root/configChanged", "config": {"logLevel": "debug"}})),
        (&chat, json!({"type": "chat/nobodyKnowsThis"})),
    ];
    for (channel, action) in actions {
        let reason = vera.tries(channel, action.clone()).unwrap_err();
        assert!(reason.contains("role viewer"), "{action}: {reason}");
    }
    s.settles();
    assert!(ann.received_actions().is_empty());
}

#[test]
fn every_request_of_a_viewer_that_changes_something_is_refused() {
    let (mut s, ann) = Scenario::with_chat();
    let vera = s.client("vera").is_a(Role::Viewer).joins(&ann);
    let (session, chat) = (ann.session(), ann.chat());
    let claim = json!({"kind": "client", "clientId": "vera"});
    for (method, params) in [
        ("createSession", json!({"channel": "ahp-session:/new", "provider": "scripted"})),
        ("disposeSession", json!({"channel": session})),
        ("createChat", json!({"channel": session, "chat": "ahp-chat:/new"})),
        ("disposeChat", json!({"channel": chat})),
        ("createTerminal", json!({"channel": "ahp-terminal:/one", "claim": claim})),
        ("disposeTerminal", json!({"channel": "ahp-terminal:/one"})),
        (
            "resourceWrite",
            json!({"channel": ROOT, "uri": "file:///project/x", "data": "eA==", "encoding": "base64"}),
        ),
        ("resourceDelete", json!({"channel": ROOT, "uri": "file:///project/x"})),
        (
            "x-addModel",
            json!({"channel": ROOT, "model": {"id": "m", "base_url": "http://127.0.0.1:1/v1", "model": "m"}}),
        ),
        ("x-reloadModels", json!({"channel": ROOT})),
    ] {
        let reason = refused_with(&vera, method, params);
        assert!(reason.contains("role viewer"), "{method}: {reason}");
    }
}

#[test]
fn a_member_takes_part_and_leaves_the_settings_of_the_space_alone() {
    let (mut s, ann) = Scenario::with_chat();
    let mia = s.client("mia").is_a(Role::Member).joins(&ann);
    s.model().streams(["hello"]);
    mia.starts("say hello");
    s.settles();
    assert_eq!(ann.sees(&ann.chat())["turns"].as_array().unwrap().len(), 1);
    let settings = json!({"type": "root/configChanged", "config": {"logLevel": "debug"}});
    let reason = mia.tries(ROOT, settings.clone()).unwrap_err();
    assert!(reason.contains("takes the role owner") && reason.contains("role member"), "{reason}");
    let model = json!({"id": "m", "base_url": "http://127.0.0.1:1/v1", "model": "m"});
    let reason = refused_with(&mia, "x-addModel", json!({"channel": ROOT, "model": model}));
    assert!(reason.contains("takes the role owner"), "{reason}");
    ann.tries(ROOT, settings).unwrap();
}

#[test]
fn a_client_is_told_its_role_and_offered_only_what_that_allows() {
    for (role, named, offered) in [
        (Role::Viewer, json!("viewer"), [false, false]),
        (Role::Member, json!("member"), [false, true]),
        (Role::Owner, Value::Null, [true, true]),
    ] {
        let mut s = Scenario::new();
        let client = s.client("c").is_a(role).connects();
        let params = client.with(|client| client.initialize_params(&[]));
        let meta = client.asks("initialize", params).unwrap()["_meta"].clone();
        assert_eq!(meta["x-role"], named);
        let has = ["x-addModel", "x-compose"].map(|name| !meta[name].is_null());
        assert_eq!(has, offered, "{role:?}: {meta}");
    }
}

/// Else its answers would count for tools and files of the other.
#[test]
fn nobody_comes_under_the_id_of_somebody_who_may_do_more() {
    let (mut s, ann) = Scenario::with_chat();
    let posing = s.client("ann").is_a(Role::Viewer).connects();
    let params = posing.with(|client| client.initialize_params(&[]));
    let reason = refused_with(&posing, "initialize", params.clone());
    assert!(reason.contains("client id"), "{reason}");
    assert!(s.look().closed.is_empty(), "ann is still there");
    // An active client keeps its place while it is gone.
    let session = ann.session();
    let active = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "ann", "tools": []}});
    ann.tries(&session, active).unwrap();
    ann.loses_connection();
    s.settles();
    refused_with(&posing, "initialize", params);
}
