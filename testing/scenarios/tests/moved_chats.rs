//! Chats that are moved: within a session, to another, to one of their own (H-156 to H-159, G-57).

use kernel::{ChangesInput, Input};
use serde_json::{Value, json};
use testkit::facts::FORKLESS;
use testkit::{Scenario, ScenarioClient, Script};
use wire::ChannelUri;

const B: &str = "ahp-chat:/b";
const C: &str = "ahp-chat:/c";

fn moves(ann: &ScenarioClient, chat: &str, destination: Value) -> Result<Value, Value> {
    ann.asks("moveChat", json!({"channel": chat, "destination": destination}))
}

fn refused(ann: &ScenarioClient, chat: &str, destination: Value) -> i64 {
    moves(ann, chat, destination).unwrap_err()["code"].as_i64().unwrap()
}

fn into(session: &str, after: Option<&str>) -> Value {
    let mut destination = json!({"kind": "session", "session": session});
    if let Some(after) = after {
        destination["after"] = after.into();
    }
    destination
}

// H-156: same session
#[test]
fn a_chat_is_put_elsewhere_in_its_session() {
    let (mut s, ann) = Scenario::with_chat();
    let first = ann.chat();
    ann.creates_chat(B);
    ann.creates_chat(C);
    assert_eq!(ann.listed(B)["movable"], true);
    assert_eq!(ann.listed(&first)["movable"], Value::Null);
    let session = ann.session();
    let moved = moves(&ann, C, into(&session, None)).unwrap();
    assert_eq!(moved, json!({"session": session}));
    assert_eq!(ann.chats(), [C, &first, B]);
    moves(&ann, C, into(&session, Some(B))).unwrap();
    assert_eq!(ann.chats(), [&first, B, C]);
    ann.received_actions();
    moves(&ann, C, into(&session, Some(B))).unwrap();
    assert!(ann.received_actions().is_empty(), "it is there already");
    for (chat, destination, code) in [
        (first.as_str(), into(&session, Some(B)), -32602),
        (B, into(&session, Some(B)), -32602),
        (B, into(&session, Some("ahp-chat:/nope")), -32602),
        (B, into("ahp-session:/nope", None), -32001),
        (B, json!({"kind": "moon"}), -32602),
        ("ahp-chat:/nope", into(&session, None), -32008),
    ] {
        assert_eq!(refused(&ann, chat, destination.clone()), code, "{chat} {destination}");
    }
    assert_eq!(ann.chats(), [&first, B, C]);
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    assert_eq!(ann.chats(), [&first, B, C]);
}

// H-156, H-157: another session
#[test]
fn a_chat_goes_to_another_session_with_all_that_was_said() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat();
    let there = ann.creates_chat(B);
    s.model().spawns("helper", Script::new().streams(["done"])).streams(["all done"]);
    there.sends_message("delegate");
    let workers: Vec<String> =
        ann.chats().into_iter().filter(|chat| chat.contains("worker")).collect();
    assert_eq!(workers.len(), 1);
    let before = ann.sees(B);
    bob.watches(B);
    let to = bob.session();
    let moved = moves(&ann, B, into(&to, Some(&bob.chat()))).unwrap();
    assert_eq!(moved, json!({"session": to}));
    assert_eq!(ann.chats(), [ann.chat()]);
    assert_eq!(bob.chats(), [bob.chat(), B.to_owned(), workers[0].clone()]);
    // Who watches the session it left takes it for gone, as any chat that is removed.
    ann.watches(B);
    assert_eq!(ann.sees(B), before);
    assert_eq!(bob.listed(B)["movable"], true);
    let in_bobs = bob.in_chat(B);
    in_bobs.sends_message("and here?");
    s.all_agree();
    s.host_is_killed();
    s.host_restarts_for([&ann, &bob]);
    in_bobs.sends_message("after the restart?");
    assert_eq!(bob.sees(B)["turns"].as_array().unwrap().len(), 3);
    s.all_agree();
    // What belongs to a session goes with it.
    bob.asks("disposeSession", json!({"channel": to})).unwrap();
    assert_eq!(ann.is_denied("subscribe", json!({"channel": B})), -32008);
}

// H-156: rejection changes nothing
#[test]
fn what_does_not_fit_stays_where_it_is() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").opens_chat_with(FORKLESS);
    let carl = s.client("carl").opens_chat();
    let there = ann.creates_chat(B);
    assert_eq!(refused(&ann, B, into(&bob.session(), None)), -32602, "another agent");
    s.model().hangs();
    let turn = there.starts("go");
    s.settles();
    assert_eq!(refused(&ann, B, into(&carl.session(), None)), -32004);
    assert_eq!(refused(&ann, B, json!({"kind": "newSession"})), -32004);
    // Within its session it may be moved meanwhile.
    moves(&ann, B, into(&ann.session(), None)).unwrap();
    there.cancels(&turn).unwrap();
    s.faults().break_disk();
    assert_eq!(refused(&ann, B, into(&carl.session(), None)), -32603);
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
    assert_eq!(ann.chats(), [B.to_owned(), ann.chat()]);
    assert_eq!(carl.chats(), [carl.chat()]);
}

// H-156, H-159: a session of its own
#[test]
fn a_chat_gets_a_session_of_its_own_and_is_its_default() {
    let (mut s, ann) = Scenario::with_chat();
    let there = ann.creates_chat(B);
    there.sends_message("hello");
    let moved = moves(&ann, B, json!({"kind": "newSession"})).unwrap();
    let session = moved["session"].as_str().unwrap().to_owned();
    assert!(session.starts_with("scripted:/"), "{session}");
    s.settles();
    ann.watches(&session);
    ann.watches(B);
    let state = ann.sees(&session);
    assert_eq!((&state["defaultChat"], &state["lifecycle"]), (&json!(B), &json!("ready")));
    assert_eq!(state["chats"].as_array().unwrap().len(), 1);
    assert_eq!(state["chats"][0]["movable"], false);
    assert_eq!(ann.sees(B)["movable"], false);
    assert_eq!(state["workingDirectories"], ann.sees(&ann.session())["workingDirectories"]);
    let listed = ann.asks("listSessions", json!({})).unwrap();
    let listed = listed["items"].as_array().unwrap().clone();
    assert!(listed.iter().any(|entry| entry["resource"] == session.as_str()));
    assert_eq!(refused(&ann, B, into(&ann.session(), None)), -32602);
    there.sends_message("here, too?");
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    there.sends_message("and after a restart?");
}

// G-54: a worktree is of its session alone
#[test]
fn a_chat_that_leaves_for_a_session_of_its_own_leaves_the_worktree_behind() {
    let (mut s, ann) = Scenario::with_chat();
    let from = ann.session();
    ann.creates_chat(B);
    ann.watches(B);
    let directory = ann.sees(&from)["workingDirectories"][0].clone().as_str().unwrap().to_owned();
    let worktree = format!("{directory}/.greenroom/worktrees/a");
    let made = ChangesInput::WorktreeMade {
        session: ChannelUri::parse(&from).unwrap(),
        directory: directory.clone(),
        replacement: worktree.clone(),
        facts: json!({"top": worktree, "branch": "greenroom/a", "base": "main"}),
    };
    s.world().input(Input::Changes(made));
    s.settles();
    assert_eq!(ann.sees(&from)["workingDirectories"], json!([worktree]));
    let moved = moves(&ann, B, json!({"kind": "newSession"})).unwrap();
    let session = moved["session"].as_str().unwrap().to_owned();
    s.settles();
    ann.watches(&session);
    let state = ann.sees(&session);
    assert_eq!(state["workingDirectories"], json!([directory]));
    assert_eq!(state["config"]["values"]["branch"], "greenroom/a");
    assert_eq!(ann.sees(&from)["workingDirectories"], json!([worktree]));
}

// H-159: what becomes a default cannot be moved, what was one can be again
#[test]
fn a_default_chat_is_never_movable() {
    let (mut s, ann) = Scenario::with_chat();
    ann.creates_chat(B);
    let default = |chat: &str| json!({"type": "session/defaultChatChanged", "defaultChat": chat});
    ann.tries(&ann.session(), default(B)).unwrap();
    s.settles();
    assert_eq!(
        (&ann.sees(B)["movable"], &ann.listed(B)["movable"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(refused(&ann, B, json!({"kind": "newSession"})), -32602);
    ann.tries(&ann.session(), default(&ann.chat())).unwrap();
    s.settles();
    assert_eq!((&ann.sees(B)["movable"], &ann.listed(B)["movable"]), (&json!(true), &json!(true)));
}
