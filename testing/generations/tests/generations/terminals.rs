//! A terminal for a session, in the words of versions that named no chat: it is for the session's own chat, also where the host has
//! to read that session first.

use serde_json::json;

use crate::driver::Driver;
use crate::host::Host;

const SESSION: &str = "scripted:/terminals";
const OLDER: [&str; 7] = ["0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.8.0"];

#[tokio::test]
async fn a_terminal_for_a_session_is_for_its_own_chat() {
    let mut host = Host::start(&json!({"scenes": [{"steps": [{"say": ["ok"]}]}]}));
    let mut ann = Driver::joins(&host, "ann").await;
    let params = json!({"channel": SESSION, "provider": "scripted"});
    ann.asks("createSession", params).await;
    let chat = ann.snapshot_of(SESSION).await["defaultChat"].clone();
    let first = chat.as_str().expect("a chat").to_owned();
    let started = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "hello", "origin": {"kind": "user"}}});
    ann.does(&first, started).await;
    ann.until_turn_ends(&first, "t").await;
    // Its default chat is another one than its first.
    let other = json!({"channel": SESSION, "chat": "ahp-chat:/second"});
    ann.asks("createChat", other).await;
    ann.asks("disposeChat", json!({"channel": first})).await;
    let claim = json!({"kind": "session", "session": SESSION});
    for version in OLDER {
        // Nobody has the session open in a host that was just started.
        host.is_killed_and_starts_again();
        let mut old = Driver::joins_as(&host, "old", version).await;
        let terminal = format!("ahp-terminal:/{version}");
        let params = json!({"channel": terminal, "claim": claim});
        old.asks("createTerminal", params.clone()).await;
        let told = Driver::joins(&host, "ann").await.snapshot_of(&terminal).await;
        let expected = json!({"kind": "session", "session": SESSION, "chat": "ahp-chat:/second"});
        assert_eq!(told["claim"], expected, "{version}");
        let nowhere = json!({"kind": "session", "session": "scripted:/nowhere"});
        for (claim, code) in [
            (nowhere, -32001),
            (json!({"kind": "session", "session": 7}), -32602),
            (json!({"kind": "session"}), -32602),
            (json!({"kind": "nobody"}), -32602),
        ] {
            let params = json!({"channel": "ahp-terminal:/wrong", "claim": claim});
            let error = old.tries("createTerminal", params).await;
            let error = error.expect_err("an error");
            assert_eq!(error["code"], code, "{version} {claim} {error}");
        }
    }
    // Since 0.9 a claim says its chat.
    for version in ["0.9.0", "1.0.0"] {
        let mut newer = Driver::joins_as(&host, version, version).await;
        let params = json!({"channel": "ahp-terminal:/newer", "claim": claim});
        let error = newer.tries("createTerminal", params).await;
        assert_eq!(error.expect_err("an error")["code"], -32602, "{version}");
    }
}
