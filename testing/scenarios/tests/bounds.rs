//! Everything that a client can make large or many has a bound, and is refused over it by name (G-43).

use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};

const KIB: usize = 1_024;

fn long(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

/// A session in which nothing large is left behind by what was refused.
fn state_bytes(s: &mut Scenario, ann: &ScenarioClient) -> usize {
    s.state(&ann.session()).to_string().len() + s.state(&ann.chat()).to_string().len()
}

fn active_client(id: &str, description: Value) -> Value {
    let tool = json!({"name": "t", "description": description});
    json!({"type": "session/activeClientSet", "activeClient": {"clientId": id, "tools": [tool]}})
}

#[test]
fn an_action_with_a_field_over_its_bound_is_refused_by_name_and_changes_nothing() {
    let (mut s, ann) = Scenario::with_chat();
    let (chat, session) = (ann.chat(), ann.session());
    let before = state_bytes(&mut s, &ann);
    let with = |field: &str, value: Value| {
        let mut start = ann.turn_started("t1", "");
        start["message"][field] = value;
        start
    };
    let mut strange = json!({"type": "session/titleChanged", "title": "t"});
    strange["x-unknown"] = long(64 * KIB);
    let simple = json!({"type": "simple", "label": "l"});
    let draft = json!({"text": "x".repeat(KIB * KIB), "origin": {"kind": "user"}});
    let refs = "ahp-content:/sha256/ ".repeat(1_025);
    for (channel, action, named) in [
        (&session, strange, "field_bytes_max"),
        (
            &session,
            json!({"type": "session/titleChanged", "title": "x".repeat(4 * KIB + 1)}),
            "`title` has at most 4096 bytes (title_bytes_max)",
        ),
        (
            &session,
            json!({"type": "session/configChanged", "config": {"pace": long(64 * KIB)}}),
            "`config` has at most 65536 bytes (field_bytes_max)",
        ),
        (&session, active_client("ann", long(256 * KIB)), "active_client_bytes_max"),
        (&chat, with("text", long(KIB * KIB)), "message_bytes_max"),
        (&chat, with("text", json!(refs)), "content_refs_max"),
        (
            &chat,
            with("attachments", json!(vec![simple; 257])),
            "`message.attachments` has at most 256 entries (attachments_max)",
        ),
        (&chat, with("_meta", long(KIB * KIB)), "message_bytes_max"),
        (&chat, json!({"type": "chat/draftChanged", "draft": draft}), "`draft`"),
    ] {
        let kind = action["type"].clone();
        let reason = ann.tries(channel, action).unwrap_err();
        assert!(reason.contains(named), "{kind}: {reason}");
        // Its sender recognises it, and is not sent it all again.
        let echo = ann.with(|client| client.refusals.last().cloned()).unwrap();
        assert_eq!(echo["action"]["type"], kind);
        assert!(echo.to_string().len() < 64 * KIB, "{kind}");
    }
    assert_eq!(state_bytes(&mut s, &ann), before);
}

#[test]
fn a_request_with_a_field_over_its_bound_is_an_error_by_name() {
    let (_s, ann) = Scenario::with_chat();
    let session = ann.session();
    let config = json!({"pace": long(64 * KIB)});
    let directories = vec!["file:///x"; 65];
    let message = json!({"text": "x".repeat(KIB * KIB), "origin": {"kind": "user"}});
    for (method, params, named) in [
        (
            "createSession",
            json!({"channel": "scripted:/2", "config": config}),
            "`config` has at most 65536 bytes (field_bytes_max)",
        ),
        (
            "createSession",
            json!({"channel": "scripted:/2", "workingDirectories": directories}),
            "working_directories_max",
        ),
        (
            "createSession",
            json!({"channel": "scripted:/2", "activeClient": {"clientId": "ann", "tools": vec![json!({}); 513]}}),
            "client_tools_max",
        ),
        (
            "createChat",
            json!({"channel": session, "chat": "ahp-chat:/2", "initialMessage": message}),
            "`initialMessage`",
        ),
        (
            "completions",
            json!({"channel": session, "kind": "userMessage", "text": long(KIB * KIB + 1), "offset": 0}),
            "`text` has at most 1048576 bytes (message_bytes_max)",
        ),
        (
            "listSessions",
            json!({"cursor": long(2 * KIB)}),
            "`cursor` has at most 1024 bytes (id_bytes_max)",
        ),
        ("subscribe", json!({"channel": session, "x-unknown": long(64 * KIB)}), "field_bytes_max"),
    ] {
        let error = ann.asks(method, params).unwrap_err();
        assert_eq!(error["code"], -32602, "{method}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(named), "{method}: {message}");
    }
}

#[test]
fn who_introduces_itself_is_bounded_too() {
    let mut s = Scenario::new();
    let ann = s.client("ann").connects();
    for (field, value, named) in [
        ("locale", long(2 * KIB), "`locale` has at most 1024 bytes"),
        ("clientInfo", json!({"name": long(64 * KIB)}), "`clientInfo`"),
        ("capabilities", json!({"mcpApps": {"x": long(64 * KIB)}}), "`capabilities`"),
        ("_meta", json!({"x": long(64 * KIB)}), "`_meta`"),
        (
            "_meta",
            json!({"x-systemMessageTransform": {"sections": vec!["s"; 65]}}),
            "transform_sections_max",
        ),
        ("protocolVersions", json!(vec!["1.0.0"; 65]), "protocol_versions_max"),
    ] {
        let mut params = json!({"clientId": "ann", "protocolVersions": ["1.0.0"]});
        params[field] = value;
        let error = ann.asks("initialize", params).unwrap_err();
        assert_eq!(error["code"], -32602, "{field}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(named), "{field}: {message}");
    }
    let params = json!({"clientId": "ann", "protocolVersions": ["1.0.0"], "locale": "en"});
    ann.asks("initialize", params).unwrap();
}

#[test]
fn a_session_has_room_for_so_many_active_clients_and_so_much_of_them() {
    let (mut s, ann, bob) = Scenario::with(|limits| {
        limits.active_clients_max = 2;
        limits.active_clients_bytes_max = 300;
        limits.active_client_bytes_max = 200;
    })
    .and_shared_chat();
    let eve = s.client("eve").joins(&ann);
    let session = ann.session();
    ann.tries(&session, active_client("ann", long(100))).unwrap();
    let reason = bob.tries(&session, active_client("bob", long(120)));
    assert!(reason.unwrap_err().contains("active_clients_bytes_max"));
    bob.tries(&session, active_client("bob", long(20))).unwrap();
    let reason = eve.tries(&session, active_client("eve", json!("")));
    assert!(reason.unwrap_err().contains("active_clients_max"));
    // One that is there may be replaced.
    ann.tries(&session, active_client("ann", long(90))).unwrap();
}
