//! Annotations: a channel of every session, threads by clients, counts in the list, and what of it survives.

use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

use crate::commands::{parts_of, rows};

fn annotations(client: &ScenarioClient) -> String {
    format!("{}/annotations", client.session())
}

fn entry(id: &str, text: &str) -> Value {
    json!({"id": id, "text": text})
}

fn annotation(client: &ScenarioClient, id: &str, entries: Value) -> Value {
    let at = |line: u32| json!({"line": line, "character": 0});
    json!({
        "id": id,
        "origin": {"session": client.session()},
        "resource": "file:///w/src/main.rs",
        "range": {"start": at(3), "end": at(5)},
        "resolved": false,
        "entries": entries,
        "x-colour": "red",
    })
}

fn set(client: &ScenarioClient, id: &str, entries: Value) -> Value {
    json!({"type": "annotations/set", "annotation": annotation(client, id, entries)})
}

fn listed(client: &ScenarioClient) -> Value {
    let list = client.asks("listSessions", json!({"channel": ROOT})).unwrap();
    list["items"][0]["annotations"].clone()
}

// H-290, H-291
#[test]
fn every_action_reaches_everyone_is_counted_and_survives_the_host() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    let channel = annotations(&ann);
    for client in [&ann, &bob] {
        assert_eq!(client.watches(&channel)["snapshot"]["state"], json!({"annotations": []}));
    }
    let one = json!([entry("e1", "why?")]);
    ann.tries(&channel, set(&ann, "a1", one)).unwrap();
    ann.tries(&channel, set(&ann, "a2", json!([entry("e1", "also here")]))).unwrap();
    let reply = json!({"type": "annotations/entrySet", "annotationId": "a1", "entry": entry("e2", "because")});
    bob.tries(&channel, reply).unwrap();
    s.settles();
    let counts = |annotations: usize, entries: usize| json!({"resource": channel, "annotationCount": annotations, "entryCount": entries});
    assert_eq!(listed(&ann), counts(2, 3));
    let updated = json!({"type": "annotations/updated", "annotationId": "a1", "resolved": true});
    bob.tries(&channel, updated).unwrap();
    let removed =
        json!({"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e1"});
    ann.tries(&channel, removed).unwrap();
    ann.tries(&channel, json!({"type": "annotations/removed", "annotationId": "a2"})).unwrap();
    s.settles();
    let seen = bob.sees(&channel);
    assert_eq!(seen["annotations"].as_array().unwrap().len(), 1);
    assert_eq!(seen["annotations"][0]["resolved"], true);
    assert_eq!(seen["annotations"][0]["x-colour"], "red", "H-077: unknown fields survive");
    assert_eq!(seen["annotations"][0]["entries"], json!([entry("e2", "because")]));
    assert_eq!(listed(&ann), counts(1, 1));
    let changes = bob.notifications("root/sessionSummaryChanged");
    assert!(
        changes.iter().any(|params| params["changes"]["annotations"] == counts(1, 1)),
        "{changes:?}"
    );
    s.all_agree();
    s.host_is_killed();
    s.host_restarts();
    let cat = s.client("cat").arrives();
    assert_eq!(cat.watches(&channel)["snapshot"]["state"], seen);
    assert_eq!(listed(&cat), counts(1, 1));
}

// H-290
#[test]
fn a_thread_without_entries_or_of_another_session_is_refused() {
    let (_s, ann) = Scenario::with(|limits| {
        limits.annotations_max = 2;
        limits.annotation_entries_max = 3;
    })
    .and_chat();
    let channel = annotations(&ann);
    ann.watches(&channel);
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "x")]))).unwrap();
    let foreign = {
        let mut action = set(&ann, "a2", json!([entry("e1", "x")]));
        action["annotation"]["origin"]["session"] = json!("ahp-session:/other");
        action
    };
    let no_origin = {
        let mut action = set(&ann, "a2", json!([entry("e1", "x")]));
        action["annotation"].as_object_mut().unwrap().remove("origin");
        action
    };
    let many: Vec<Value> = (0..4).map(|n| entry(&format!("e{n}"), "x")).collect();
    for (action, why) in [
        (set(&ann, "a2", json!([])), "at least one entry"),
        (set(&ann, "", json!([entry("e1", "x")])), "`id`"),
        (set(&ann, "a2", json!([entry("e1", "x"), entry("e1", "y")])), "`id` of its own"),
        (set(&ann, "a2", json!(many)), "annotation_entries_max"),
        (foreign, "origin.session"),
        (no_origin, "does not have the fields"),
        (
            json!({"type": "annotations/entryRemoved", "annotationId": "a1", "entryId": "e1"}),
            "annotations/removed",
        ),
        (
            json!({"type": "annotations/entrySet", "annotationId": "a1", "entry": entry("", "x")}),
            "`id`",
        ),
        (
            json!({"type": "annotations/updated", "annotationId": "a1", "origin": {"session": "x:/y"}}),
            "origin.session",
        ),
        (json!({"type": "session/titleChanged", "title": "x"}), "does not belong"),
        (json!({"type": "terminal/input", "data": "x"}), "does not belong"),
    ] {
        let reason = ann.tries(&channel, action.clone()).unwrap_err();
        assert!(reason.contains(why), "{action}: {reason}");
    }
    ann.tries(&channel, set(&ann, "a2", json!([entry("e1", "x")]))).unwrap();
    let reason = ann.tries(&channel, set(&ann, "a3", json!([entry("e1", "x")]))).unwrap_err();
    assert!(reason.contains("annotations_max"), "{reason}");
    ann.tries(&channel, set(&ann, "a1", json!([entry("e9", "again")]))).unwrap();
    let long = json!({"type": "annotations/entrySet", "annotationId": "a1", "entry": entry("e", &"x".repeat(70_000))});
    let reason = ann.tries(&channel, long).unwrap_err();
    assert!(reason.contains("annotation_bytes_max"), "{reason}");
}

// G-72, H-054
#[test]
fn annotations_are_there_with_their_session_and_end_with_it() {
    let (mut s, ann) = Scenario::with_chat();
    let channel = annotations(&ann);
    let unknown = format!("{}/changeset/nothing", ann.session());
    assert_eq!(ann.is_denied("subscribe", json!({"channel": unknown})), -32008);
    // Also to somebody who watches neither the session nor the channel, after both left memory.
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "x")]))).unwrap();
    s.advances_ms(200_000);
    let bob = s.client("bob").arrives();
    let state = bob.watches(&channel)["snapshot"]["state"].clone();
    assert_eq!(state["annotations"][0]["id"], "a1");
    s.advances_ms(200_000);
    ann.asks("disposeSession", json!({"channel": ann.session()})).unwrap();
    s.settles();
    assert_eq!(bob.is_denied("subscribe", json!({"channel": channel})), -32001);
    let reason = bob.tries(&channel, set(&ann, "a2", json!([entry("e1", "x")]))).unwrap_err();
    assert!(reason.contains("there is no channel"), "{reason}");
    assert!(s.look().kernel().digest()["watchers"].get(&channel).is_none());
}

// G-28
#[test]
fn a_session_that_was_only_annotated_is_kept() {
    let (mut s, ann) = Scenario::with_chat();
    let channel = annotations(&ann);
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "x")]))).unwrap();
    let session = ann.session();
    ann.loses_connection();
    s.advances_in_steps(3_700_000 * 2, 30_000);
    let bob = s.client("bob").arrives();
    assert_eq!(bob.watches(&session)["snapshot"]["state"]["lifecycle"], "ready");
}

// G-15
#[test]
fn what_cannot_be_recorded_is_refused_and_taken_back() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("hello");
    let channel = annotations(&ann);
    ann.watches(&channel);
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "x")]))).unwrap();
    s.faults().break_disk();
    for _ in 0..2 {
        let reason = ann.tries(&channel, set(&ann, "a2", json!([entry("e1", "x")]))).unwrap_err();
        assert!(reason.contains("recorded"), "{reason}");
    }
    s.faults().mend_disk();
    s.advances_ms(1_000);
    ann.tries(&channel, set(&ann, "a3", json!([entry("e1", "x")]))).unwrap();
    let ids = |state: Value| -> Vec<String> {
        let all = state["annotations"].as_array().unwrap().clone();
        all.iter().map(|each| each["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(ann.sees(&channel)), ["a1", "a3"]);
}

// G-19
#[test]
fn what_was_missed_is_replayed() {
    let (_s, ann, bob) = Scenario::with_shared_chat();
    let channel = annotations(&ann);
    ann.watches(&channel);
    bob.watches(&channel);
    bob.loses_connection();
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "x")]))).unwrap();
    assert_eq!(bob.reconnects()["type"], "replay");
    assert_eq!(bob.sees(&channel), ann.sees(&channel));
}

// Clients of older versions name a turn where an annotation has an origin now.
#[test]
fn a_client_of_0_8_annotates() {
    let (mut s, ann) = Scenario::with_chat();
    let old = s.client_of("old", "0.8.0").arrives();
    let channel = annotations(&ann);
    ann.watches(&channel);
    let mut action = set(&ann, "a1", json!([entry("e1", "x")]));
    action["annotation"].as_object_mut().unwrap().remove("origin");
    action["annotation"]["turnId"] = json!("t1");
    old.tries(&channel, action).unwrap();
    s.settles();
    let origin = &ann.sees(&channel)["annotations"][0]["origin"];
    assert_eq!(*origin, json!({"session": ann.session(), "turnId": "t1"}));
}

// H-290: with a message
#[test]
fn an_attached_annotation_reaches_the_agent_with_file_lines_and_text() {
    let (mut s, ann) = Scenario::with_chat();
    let channel = annotations(&ann);
    ann.tries(&channel, set(&ann, "a1", json!([entry("e1", "why?"), entry("e2", "please fix")])))
        .unwrap();
    ann.tries(&channel, set(&ann, "a2", json!([entry("e1", "not this one")]))).unwrap();
    let send = |id: &str, attachment: Value| {
        let mut action = ann.turn_started(id, "look at my comment");
        action["message"]["attachments"] = json!([attachment]);
        ann.tries(&ann.chat(), action)
    };
    let attachment = |ids: Value| json!({"type": "annotations", "label": "comments", "resource": channel, "annotationIds": ids});
    let reason = send("t1", attachment(json!(["a9"]))).unwrap_err();
    assert!(reason.contains("no annotation `a9`"), "{reason}");
    send("t2", attachment(json!(["a1"]))).unwrap();
    s.settles();
    let elsewhere =
        json!({"type": "annotations", "label": "x", "resource": "ahp-session:/none/annotations"});
    send("t3", elsewhere).unwrap();
    s.settles();
    let payloads: Vec<Value> = rows(&s, &ann.chat(), &["t2", "t3"])
        .iter()
        .flat_map(parts_of)
        .filter(|part| part["type"] == "editor-context")
        .map(|part| part["payload"].clone())
        .collect();
    let said =
        json!({"file": "/w/src/main.rs", "lines": "4-5", "comments": ["why?", "please fix"]});
    assert_eq!(payloads[0]["annotations"], json!([said]));
    assert_eq!(payloads[1]["unreadable"], true);
}
