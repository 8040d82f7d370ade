//! Several working directories of sessions and chats (H-114, H-128, H-146, G-57).

use serde_json::{Value, json};
use testkit::Scenario;
use testkit::ScenarioClient;

const A: &str = "file:///home/space";
const B: &str = "file:///home/space/b";
const C: &str = "file:///elsewhere/c";
const CHAT: &str = "ahp-chat:/narrow";

/// A host whose agent takes several directories, in this way.
fn with_several(capability: Value) -> Scenario {
    let mut s = Scenario::new();
    s.host_is_killed();
    let capabilities = "capabilities";
    s.world().facts.agents[0].info[capabilities]["multipleWorkingDirectories"] = capability;
    s.host_restarts();
    s
}

fn replaceable() -> Value {
    json!({"immutablePrimary": true, "primaryReplacement": true})
}

fn creates(ann: ScenarioClient, directories: &[&str]) -> ScenarioClient {
    let more = json!({"workingDirectories": directories});
    let ann = ann.arrives().creates_with("scripted:/several", more);
    ann.watches(&ann.session());
    ann.watches(&ann.chat());
    ann
}

fn directories(ann: &ScenarioClient) -> Value {
    ann.sees(&ann.session())["workingDirectories"].clone()
}

fn works_in(s: &Scenario) -> Value {
    let world = s.look();
    json!(world.models.asked.last().unwrap().working_directories)
}

fn set(directory: &str) -> Value {
    json!({"type": "session/workingDirectorySet", "directory": directory})
}

fn removed(directory: &str) -> Value {
    json!({"type": "session/workingDirectoryRemoved", "directory": directory})
}

fn replaced(directory: &str, replacement: &str) -> Value {
    json!({"type": "session/workingDirectoryReplaced", "directory": directory, "replacement": replacement})
}

// H-114, H-128, G-57
#[test]
fn directories_come_and_go_and_turns_work_in_them() {
    let mut s = with_several(replaceable());
    let ann = creates(s.client("ann"), &[A, B, A]);
    assert_eq!(directories(&ann), json!([A, B]));
    ann.sends_message("where?");
    assert_eq!(works_in(&s), json!([A, B]));
    // One outside the roots is recorded like any other: turns say what is wrong with it (G-23).
    ann.tries(&ann.session(), set(C)).unwrap();
    ann.sends_message("and now?");
    assert_eq!(works_in(&s), json!([A, B, C]));
    ann.tries(&ann.session(), removed(B)).unwrap();
    ann.tries(&ann.session(), replaced(A, B)).unwrap();
    assert_eq!(directories(&ann), json!([B, C]));
    ann.sends_message("and then?");
    assert_eq!(works_in(&s), json!([B, C]));
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    assert_eq!(directories(&ann), json!([B, C]));
    ann.sends_message("after the restart?");
    assert_eq!(works_in(&s), json!([B, C]));
}

// H-128
#[test]
fn what_an_agent_does_not_take_is_refused() {
    let mut s = with_several(replaceable());
    let ann = creates(s.client("ann"), &[A, B]);
    for wrong in [
        removed(A),
        set("relative"),
        set("https://example.org/x"),
        replaced(C, B),
        replaced(A, "no uri"),
    ] {
        ann.tries(&ann.session(), wrong.clone()).expect_err(&wrong.to_string());
    }
    for n in 2..64 {
        ann.tries(&ann.session(), set(&format!("file:///d/{n}"))).unwrap();
    }
    let refused = ann.tries(&ann.session(), set(C)).unwrap_err();
    assert!(refused.contains("64"), "{refused}");
    assert_eq!(directories(&ann).as_array().unwrap().len(), 64);
    s.all_agree();

    let mut s = with_several(json!({"immutablePrimary": true}));
    let ann = creates(s.client("ann"), &[A, B]);
    ann.tries(&ann.session(), replaced(A, C)).unwrap_err();
    ann.tries(&ann.session(), removed(A)).unwrap_err();
    ann.tries(&ann.session(), replaced(B, C)).unwrap();
    assert_eq!(directories(&ann), json!([A, C]));

    let mut s = with_several(json!({}));
    let ann = creates(s.client("ann"), &[A, B]);
    ann.tries(&ann.session(), removed(A)).unwrap();
    assert_eq!(directories(&ann), json!([B]));
    s.all_agree();

    // Without the capability only the first counts, and it stays.
    let mut s = Scenario::new();
    let ann = creates(s.client("ann"), &[A, B]);
    assert_eq!(directories(&ann), json!([A]));
    for refused in [set(B), removed(A), replaced(A, B)] {
        ann.tries(&ann.session(), refused).unwrap_err();
    }
}

// H-146
#[test]
fn a_chat_works_in_all_of_its_sessions_directories_or_in_its_own() {
    let mut s = with_several(replaceable());
    let ann = creates(s.client("ann"), &[A, B]);
    assert_eq!(ann.sees(&ann.chat())["workingDirectories"], Value::Null);
    let narrow = ann.creates_chat_with(CHAT, json!({"workingDirectories": [B]}));
    let chat_set =
        |directory: &str| json!({"type": "chat/workingDirectorySet", "directory": directory});
    narrow.tries(CHAT, chat_set(C)).unwrap_err();
    ann.tries(&ann.session(), set(C)).unwrap();
    narrow.tries(CHAT, chat_set(C)).unwrap();
    narrow.sends_message("where?");
    assert_eq!(works_in(&s), json!([B, C]));
    assert_eq!(ann.listed(CHAT)["workingDirectories"], json!([B, C]));
    let chat_removed = json!({"type": "chat/workingDirectoryRemoved", "directory": B});
    narrow.tries(CHAT, chat_removed).unwrap();
    assert_eq!(ann.listed(CHAT)["workingDirectories"], json!([C]));
    s.all_agree();
    // What the session loses the chat loses, also if it is not in memory.
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    ann.tries(&ann.session(), replaced(C, "file:///elsewhere/d")).unwrap();
    s.settles();
    let narrow_state = s.state(CHAT);
    assert_eq!(narrow_state["workingDirectories"], json!(["file:///elsewhere/d"]));
    ann.tries(&ann.session(), removed("file:///elsewhere/d")).unwrap();
    s.settles();
    assert_eq!(s.state(CHAT)["workingDirectories"], json!([]));
}
