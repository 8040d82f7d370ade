//! What decisions allow, and what agents cannot say about it (AG-51).

use std::path::Path;

use serde_json::{Value, json};

use super::super::*;
use super::{mapper, update};

fn diff(path: &str, new: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": "two", "newText": new})
}

fn edit(content: Value) -> Value {
    json!({"toolCallId": "c", "title": "Edit", "kind": "edit", "content": content})
}

fn ask(mapper: &mut Mapper, call: Value) -> u64 {
    let call = serde_json::from_value(call).unwrap();
    mapper.ask(call, &mut Vec::new()).unwrap().call
}

fn say(mapper: &mut Mapper, mut fields: Value) {
    fields["sessionUpdate"] = json!("tool_call_update");
    fields["toolCallId"] = json!("c");
    mapper.map(update(fields));
}

/// The new texts that were allowed for a file.
fn allowed(mapper: &Mapper, path: &str) -> Vec<Option<String>> {
    let edits = mapper.allowed_edits(Path::new(path)).into_iter();
    let changes = edits.flat_map(|(_, changes)| changes);
    changes.map(|change| change.new_text).collect()
}

#[test]
fn ag_51_what_was_asked_is_what_is_allowed() {
    let mut mapper = mapper();
    let call = ask(&mut mapper, edit(json!([diff("/w/a", "TWO")])));
    assert_eq!(allowed(&mapper, "/w/a"), [], "nobody said yes yet");
    let other = json!({"content": [diff("/w/a", "evil"), diff("/w/b", "x")], "locations": [{"path": "/w/c"}]});
    say(&mut mapper, other.clone());
    mapper.decide(call, true);
    say(&mut mapper, other);
    assert_eq!(allowed(&mapper, "/w/a"), [Some("TWO".to_owned())]);
    assert_eq!(allowed(&mapper, "/w/b"), []);
    assert_eq!(allowed(&mapper, "/w/c"), []);
    say(&mut mapper, json!({"status": "completed"}));
    assert_eq!(allowed(&mapper, "/w/a"), [], "it does not run any more");
}

#[test]
fn ag_51_a_call_that_runs_unasked_is_allowed_nothing() {
    let mut mapper = mapper();
    let mut running = edit(json!([diff("/w/a", "TWO")]));
    running["status"] = json!("in_progress");
    running["locations"] = json!([{"path": "/w/b"}]);
    say(&mut mapper, running);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    assert_eq!(allowed(&mapper, "/w/b"), []);
}

#[test]
fn ag_51_neither_a_denial_nor_a_call_of_another_kind_allows() {
    let mut denied = mapper();
    let call = ask(&mut denied, edit(json!([diff("/w/a", "TWO")])));
    denied.decide(call, false);
    denied.decide(call, true);
    say(&mut denied, json!({"status": "in_progress"}));
    assert_eq!(allowed(&denied, "/w/a"), []);

    let mut read = mapper();
    let mut asked = edit(json!([diff("/w/a", "TWO")]));
    asked["kind"] = json!("read");
    let call = ask(&mut read, asked);
    read.decide(call, true);
    say(&mut read, json!({"kind": "edit"}));
    assert_eq!(allowed(&read, "/w/a"), []);
}

#[test]
fn ag_51_a_call_that_asks_again_keeps_nothing() {
    let mut mapper = mapper();
    let call = ask(&mut mapper, edit(json!([diff("/w/a", "TWO")])));
    mapper.decide(call, true);
    assert_eq!(ask(&mut mapper, edit(json!([diff("/w/b", "B")]))), call);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    mapper.decide(call, true);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    assert_eq!(allowed(&mapper, "/w/b"), [Some("B".to_owned())]);
}
