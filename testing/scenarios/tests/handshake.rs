//! Handshake: versions, identity, first subscriptions.

use kernel::CloseReason;
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

fn offer(versions: &[&str]) -> Value {
    json!({"channel": ROOT, "clientId": "ann", "protocolVersions": versions, "clientInfo": {"name": "t"}})
}

fn bare(s: &mut Scenario) -> ScenarioClient {
    s.client("ann").connects()
}

// H-021, H-022, H-027
#[test]
fn the_highest_supported_version_is_echoed_whatever_the_order() {
    for (offered, chosen) in [
        (vec!["0.9.0", "1.0.0"], "1.0.0"),
        (vec!["1.3.0", "1.0.0", "0.9.2"], "1.3.0"),
        (vec!["0.9.7"], "0.9.7"),
        (vec!["2.0.0", "0.9.0", "0.8.0"], "0.9.0"),
        (vec!["1.3.0"], "1.3.0"),
    ] {
        let mut s = Scenario::new();
        let answer = bare(&mut s).asks("initialize", offer(&offered)).unwrap();
        assert_eq!(answer["protocolVersion"], chosen);
        assert_eq!(answer["snapshots"], json!([]));
        assert!(answer["serverSeq"].is_u64());
    }
}

// H-023, G-21
#[test]
fn no_acceptable_version_is_an_error_with_ranges_and_then_the_end() {
    for offered in [vec![], vec!["2.0.0"], vec!["0.3.0", "0.10.0"]] {
        let mut s = Scenario::new();
        let ann = bare(&mut s);
        let error = ann.asks("initialize", offer(&offered)).unwrap_err();
        assert_eq!(error["code"], -32005);
        assert!(!error["data"]["supportedVersions"].as_array().unwrap().is_empty());
        assert_eq!(s.look().closed, [(ann.index(), CloseReason::UnsupportedVersion)]);
    }
}

// H-024
#[test]
fn one_malformed_version_spoils_the_offer_but_not_the_connection() {
    for bad in ["1.0", "01.0.0", "1.0.0-rc.1", "1.0.0+b", "", "one"] {
        let mut s = Scenario::new();
        let ann = bare(&mut s);
        assert_eq!(ann.is_denied("initialize", offer(&["1.0.0", bad])), -32602, "{bad:?}");
        ann.asks("initialize", offer(&["1.0.0"])).unwrap();
        assert!(s.look().closed.is_empty());
    }
}

// H-020, H-010, H-011
#[test]
fn before_initialize_only_ping_is_served() {
    let mut s = Scenario::new();
    let ann = bare(&mut s);
    for (method, channel) in [
        ("subscribe", ROOT),
        ("createSession", "ahp-session:/x"),
        ("disposeSession", "ahp-session:/x"),
        ("listSessions", ROOT),
        ("resolveSessionConfig", ROOT),
    ] {
        assert_eq!(ann.is_denied(method, json!({"channel": channel})), -32600, "{method}");
    }
    assert_eq!(ann.asks("ping", json!({"channel": ROOT})), Ok(Value::Null));
    ann.dispatches(ROOT, json!({"type": "root/configChanged", "config": {"logLevel": "debug"}}));
    ann.settles();
    assert_eq!(ann.with(|client| client.refusals.len() + client.envelopes.len()), 0);
    ann.asks("initialize", offer(&["1.0.0"])).unwrap();
    assert_eq!(
        s.state(ROOT)["config"]["values"].get("logLevel").cloned().unwrap_or(json!("info")),
        "info"
    );
}

// G-21
#[test]
fn a_second_initialize_or_reconnect_on_a_connection_is_refused() {
    let (_s, ann) = Scenario::with_client();
    assert_eq!(ann.is_denied("initialize", offer(&["1.0.0"])), -32600);
    let params = ann.with(|client| client.reconnect_params());
    assert_eq!(ann.is_denied("reconnect", params), -32600);
}

// H-028, H-029
#[test]
fn first_subscriptions_come_with_snapshots_and_unknown_ones_are_left_out() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").connects();
    let mut params = offer(&["1.0.0"]);
    params["clientId"] = json!("bob");
    params["initialSubscriptions"] = json!([ROOT, "ahp-session:/nowhere", ann.chat(), ann.chat()]);
    let answer = bob.asks("initialize", params).unwrap();
    let resources: Vec<&str> = answer["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["resource"].as_str().unwrap())
        .collect();
    assert_eq!(resources, [ROOT, ann.chat().as_str()]);
    ann.sends_message("hello");
}

// G-21
#[test]
fn too_many_first_subscriptions_are_refused() {
    let mut s = Scenario::with(|limits| limits.subscriptions_max = 2);
    let ann = bare(&mut s);
    let mut params = offer(&["1.0.0"]);
    params["initialSubscriptions"] = json!(["ahp-session:/1", "ahp-session:/2", "ahp-session:/3"]);
    assert_eq!(ann.is_denied("initialize", params), -32602);
}

// H-004, H-006, H-009, H-016
#[test]
fn invalid_messages_are_answered_and_the_connection_stays_open() {
    let (_s, ann) = Scenario::with_client();
    for (text, code) in
        [("{", -32700), ("[]", -32600), ("7", -32600), (r#"{"id":true,"method":"ping"}"#, -32600)]
    {
        ann.sends_raw(text);
        ann.settles();
        let last = ann.with(|client| client.frames.last().cloned()).unwrap();
        assert_eq!((&last["error"]["code"], &last["id"]), (&json!(code), &Value::Null), "{text}");
    }
    ann.sends_raw(r#"{"jsonrpc":"2.0","method":"nobody/knows","params":{}}"#);
    assert_eq!(ann.is_denied("nobody", json!({"channel": ROOT})), -32601);
    assert_eq!(ann.is_denied("runAutomation", json!({"channel": ROOT})), -32601); // G-23
}

// H-004: ids are answered as they came
#[test]
fn string_fraction_and_null_ids_are_answered_as_they_came() {
    let (_, ann) = Scenario::with_client();
    for id in [r#""abc""#, "1.5", "null", "-3"] {
        ann.sends_raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"channel":"ahp-root://"}}}}"#
        ));
        ann.settles();
        let last = ann.with(|client| client.frames.last().cloned()).unwrap();
        assert_eq!(last["id"].to_string(), id);
        assert_eq!(last.get("result"), Some(&Value::Null));
    }
}

// H-026, G-23: an older client receives nothing newer, except the echo of its own
#[test]
fn a_client_of_0_9_receives_only_what_it_knows() {
    let (mut s, ann) = Scenario::with_chat();
    let old = s.client_of("old", "0.9.0").joins(&ann);
    ann.tries(&ann.chat(), json!({"type": "chat/isReadChanged", "isRead": true})).unwrap();
    assert!(!old.received_actions().contains(&"chat/isReadChanged".to_owned()));
    old.tries(&ann.chat(), json!({"type": "chat/isReadChanged", "isRead": false})).unwrap();
    assert!(old.received_actions().contains(&"chat/isReadChanged".to_owned()));
    let third = s.client("third").opens_chat();
    third.sends_message("first");
    let added = old.notifications("root/sessionAdded");
    let ours =
        added.iter().find(|note| note["summary"]["resource"] == third.session().as_str()).unwrap();
    assert!(ours["summary"].get("chats").is_none());
    ann.sends_message("hello");
}
