//! Bad input in the shape of a version gets the error of that version, and goes back in its own words.

use serde_json::{Value, json};

use crate::driver::Driver;
use crate::host::Host;

const SESSION: &str = "scripted:/errors";
const ALL: [&str; 9] =
    ["0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.8.0", "0.9.0", "1.0.0"];

fn host() -> Host {
    Host::start(&json!({"scenes": [{"steps": [{"say": ["ok"]}]}]}))
}

async fn joins(host: &Host, version: &str) -> Driver {
    let mut client = Driver::joins_as(host, &format!("client-{version}"), version).await;
    // The first one makes it.
    let _ = client.tries("createSession", json!({"channel": SESSION})).await;
    client.snapshot_of(SESSION).await;
    client
}

async fn code_of(client: &mut Driver, method: &str, params: Value) -> i64 {
    let error = client.tries(method, params).await.expect_err("an error");
    error["code"].as_i64().expect("a code")
}

#[tokio::test]
async fn what_came_later_is_no_method_and_content_had_an_error_of_its_own() {
    let host = host();
    for version in ALL {
        let mut client = joins(&host, version).await;
        let gone = json!({"channel": "ahp-root://", "uri": format!("ahp-content:/sha256/{}", "0".repeat(64))});
        let expected = if version < "0.9" { -32006 } else { -32008 };
        let code = code_of(&mut client, "resourceRead", gone).await;
        assert_eq!(code, expected, "{version}");
        let elsewhere = json!({"channel": "ahp-root://", "uri": "x-nowhere:/a"});
        let code = code_of(&mut client, "resourceRead", elsewhere).await;
        assert_eq!(code, -32008, "{version}");
        let mut newer =
            vec!["listAutomationTriggerDefinitions", "runAutomation", "fetchAutomationRuns"];
        if version < "1.0" {
            newer.push("moveChat");
        }
        for method in newer {
            let code = code_of(&mut client, method, json!({"channel": SESSION})).await;
            assert_eq!(code, -32601, "{version} {method}");
        }
    }
}

#[tokio::test]
async fn params_of_a_wrong_type_are_refused_in_every_shape() {
    let host = host();
    // What was not there yet is a field nobody knows, and ignored.
    let cases = [
        ("0.6.0", "createSession", json!({"channel": "scripted:/a", "workingDirectory": 7})),
        (
            "0.6.0",
            "createSession",
            json!({"channel": "scripted:/a", "workingDirectory": "not a uri"}),
        ),
        (
            "0.6.0",
            "createChat",
            json!({"channel": SESSION, "chat": "ahp-chat:/a", "source": {"chat": 7}}),
        ),
        ("0.8.0", "createSession", json!({"channel": "scripted:/a", "fork": {"session": SESSION}})),
        (
            "0.8.0",
            "createSession",
            json!({"channel": "scripted:/a", "fork": {"session": SESSION, "turnId": "none"}}),
        ),
        ("0.4.0", "createSession", json!({"channel": "scripted:/a", "model": "scripted-1"})),
        ("0.4.0", "createSession", json!({"channel": "scripted:/a", "agent": {"id": "x"}})),
        (
            "0.4.0",
            "createChat",
            json!({"channel": SESSION, "chat": "ahp-chat:/a", "model": {"name": "x"}}),
        ),
        ("0.5.0", "fetchTurns", json!({"before": 7})),
        ("0.5.0", "fetchTurns", json!({"limit": 0})),
        ("0.5.0", "fetchTurns", json!({"limit": "all"})),
        ("0.5.0", "fetchTurns", json!({"before": "no-such-turn"})),
        ("0.5.1", "fetchTurns", json!({"cursor": 7})),
    ];
    for (newest, method, params) in cases {
        for version in ALL.into_iter().filter(|version| *version <= newest) {
            // A cursor is a word of 0.5.1.
            if params.get("cursor").is_some() && version < "0.5.1" {
                continue;
            }
            let mut client = joins(&host, version).await;
            let mut params = params.clone();
            if method == "fetchTurns" {
                let chat = client.snapshot_of(SESSION).await["defaultChat"].clone();
                client.snapshot_of(chat.as_str().expect("a chat")).await;
                params["channel"] = chat;
            }
            let code = code_of(&mut client, method, params.clone()).await;
            assert_eq!(code, -32602, "{version} {method} {params}");
        }
    }
}

/// A refusal holds the action as its sender knows it, and names it so.
#[tokio::test]
async fn a_refused_action_comes_back_in_the_words_of_its_sender() {
    let host = host();
    let cases = [
        ("0.7.0", json!({"type": "session/customizationToggled", "id": "none", "enabled": true})),
        ("0.7.0", json!({"type": "session/customizationToggled", "id": "none", "enabled": "yes"})),
        ("0.4.0", json!({"type": "session/modelChanged", "model": "scripted-1"})),
        ("0.4.0", json!({"type": "session/modelChanged"})),
        ("0.4.0", json!({"type": "session/agentChanged", "agent": 7})),
        (
            "0.4.0",
            json!({"type": "session/activeClientChanged", "activeClient": {"clientId": "somebody", "tools": []}}),
        ),
        ("0.4.0", json!({"type": "session/activeClientToolsChanged", "tools": "all"})),
        // Hosts alone reviewed files then.
        (
            "0.5.2",
            json!({"type": "changeset/filesReviewedChanged", "fileIds": ["f"], "reviewed": true}),
        ),
    ];
    for (newest, action) in cases {
        for version in ALL.into_iter().filter(|version| *version <= newest) {
            let mut client = joins(&host, version).await;
            let refused = client.dispatches(SESSION, action.clone()).await;
            assert_eq!(refused["action"], action, "{version}");
            let reason = refused["rejectionReason"].as_str().unwrap_or_else(|| panic!("{version} {action} was taken"));
            let newer = ["selectionSet", "activeClientSet", "enablement", "x-"];
            let said = newer.into_iter().find(|word| reason.contains(word));
            assert_eq!(said, None, "{version} {action}: {reason}");
        }
    }
    // On a chat: what the host fills in for them is not theirs.
    for version in ["0.4.0", "0.5.2"] {
        let mut client = joins(&host, version).await;
        let chat = client.snapshot_of(SESSION).await["defaultChat"].clone();
        let chat = chat.as_str().expect("a chat").to_owned();
        for action in [
            json!({"type": "chat/turnStarted", "turnId": "t", "message": {"text": "", "origin": {"kind": "user"}}}),
            json!({"type": "chat/turnStarted", "turnId": "t", "message": "hello"}),
            json!({"type": "chat/turnCancelled", "turnId": "none"}),
        ] {
            let refused = client.dispatches(&chat, action.clone()).await;
            assert_eq!(refused["action"], action, "{version}");
            assert!(refused["rejectionReason"].is_string(), "{version} {refused}");
        }
    }
}

/// One client can be active in 0.4, and a second has to wait; what changes nothing is answered in its words, too.
#[tokio::test]
async fn a_second_client_of_0_4_is_not_made_active() {
    let host = host();
    let mut ann = joins(&host, "1.0.0").await;
    let mut bea = joins(&host, "0.4.0").await;
    let set = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "client-1.0.0", "tools": []}});
    ann.does(SESSION, set).await;
    let claim = json!({"type": "session/activeClientChanged", "activeClient": {"clientId": "client-0.4.0", "tools": []}});
    let refused = bea.dispatches(SESSION, claim.clone()).await;
    assert_eq!(refused["action"], claim);
    let reason = refused["rejectionReason"].as_str().unwrap_or_default();
    assert!(reason.contains("another client is active"), "{refused}");
    let leave = json!({"type": "session/activeClientChanged"});
    let unchanged = bea.dispatches(SESSION, leave.clone()).await;
    assert_eq!((unchanged["action"].clone(), unchanged.get("rejectionReason")), (leave, None));
    let left = json!({"type": "session/activeClientRemoved", "clientId": "client-1.0.0"});
    ann.does(SESSION, left).await;
    let taken = bea.dispatches(SESSION, claim.clone()).await;
    assert_eq!((taken["action"].clone(), taken.get("rejectionReason")), (claim, None));
}
