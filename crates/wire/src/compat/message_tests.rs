//! What is told beside actions, and what is asked: notifications in the words of each version, and claims for terminals.

use serde_json::json;

use super::*;

#[test]
fn a_terminal_was_made_for_a_session_without_a_chat_in_0_8() {
    let made = |generation, claim: Value| {
        let mut params = json!({"channel": "ahp-terminal:/1", "claim": claim});
        up_params(generation, Method::CreateTerminal, &mut params);
        params["claim"].clone()
    };
    let of_session = json!({"kind": "session", "session": "x:/s"});
    for generation in [Generation::V0_4, Generation::V0_8] {
        let claim = made(generation, of_session.clone());
        assert_eq!(claim["chat"], DEFAULT_CHAT, "{generation:?}");
    }
    assert_eq!(made(Generation::V0_9, of_session.clone()), of_session);
    let own = json!({"kind": "client", "clientId": "c"});
    assert_eq!(made(Generation::V0_8, own.clone()), own);
}

#[test]
fn notifications_are_told_in_the_words_of_each_version() {
    let older = down_notification;
    let described = json!({"resource": "https://a", "scopes_supported": ["s"]});
    let ended = json!({"channel": "ahp-root://", "resource": described, "reason": "expired"});
    let named = json!({"channel": "ahp-root://", "resource": "https://a", "reason": "expired"});
    let auth = HostNotification::AuthRequired;
    for generation in Generation::ALL {
        let told = older(generation, auth, ended.clone());
        let expected = if generation <= Generation::V0_7 { named.clone() } else { ended.clone() };
        assert_eq!(told, Some(expected), "{generation:?}");
    }
    let progress = json!({"channel": "ahp-root://", "progressToken": "t", "progress": 1});
    for generation in Generation::ALL {
        let told = older(generation, HostNotification::Progress, progress.clone());
        assert_eq!(told.is_some(), generation > Generation::V0_4);
    }
    let changed =
        |changes: Value| json!({"channel": "ahp-root://", "session": "x:/s", "changes": changes});
    let summary = HostNotification::SessionSummaryChanged;
    // What came with 1.0 is nothing to those before it.
    let chats = changed(json!({"chats": [], "defaultChat": "x:/c"}));
    assert_eq!(older(Generation::V0_9, summary, chats.clone()), None);
    assert_eq!(older(Generation::V1_0, summary, chats.clone()), Some(chats));
    let times = changed(
        json!({"modifiedAt": "1970-01-01T00:00:01.000Z", "workingDirectories": ["a", "b"]}),
    );
    assert_eq!(
        older(Generation::V0_4, summary, times),
        Some(changed(json!({"modifiedAt": 1000, "workingDirectory": "a"})))
    );
    let added = json!({"channel": "ahp-root://", "summary": {"resource": "x:/s", "chats": [], "createdAt": "1970-01-01T00:00:01.000Z"}});
    assert_eq!(
        older(Generation::V0_4, HostNotification::SessionAdded, added),
        Some(json!({"channel": "ahp-root://", "summary": {"resource": "x:/s", "createdAt": 1000}}))
    );
}
