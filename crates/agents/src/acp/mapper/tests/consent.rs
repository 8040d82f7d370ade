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
    mapper.decide(call, true);
    let other = json!({"content": [diff("/w/a", "evil"), diff("/w/b", "x")], "locations": [{"path": "/w/c"}]});
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
    let first = ask(&mut mapper, edit(json!([diff("/w/a", "TWO")])));
    mapper.decide(first, true);
    let second = ask(&mut mapper, edit(json!([diff("/w/b", "B")])));
    assert_ne!(second, first);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    mapper.decide(first, true);
    assert_eq!(allowed(&mapper, "/w/b"), [], "that was the older question");
    mapper.decide(second, true);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    assert_eq!(allowed(&mapper, "/w/b"), [Some("B".to_owned())]);
}

fn run(command: &str) -> Value {
    json!({"toolCallId": "c", "title": command, "kind": "execute", "rawInput": {"command": command}})
}

/// The line of the command that some call is allowed to run.
fn take_line(mapper: &mut Mapper) -> Option<String> {
    let taken = mapper.take_allowed_command(|_| true);
    taken.map(|(_, shown)| shown.line)
}

#[test]
fn ag_31b_a_yes_to_an_older_question_is_none_to_a_newer_one() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, run("ls"));
    let newer = ask(&mut mapper, run("rm -rf ."));
    assert_ne!(older, newer, "people see two calls");
    mapper.decide(older, true);
    assert_eq!(take_line(&mut mapper).as_deref(), Some("ls"));
    assert_eq!(take_line(&mut mapper), None, "nobody said yes to the other");
    mapper.decide(newer, false);
    mapper.decide(newer, true);
    assert_eq!(take_line(&mut mapper), None);
}

#[test]
fn ag_31b_a_question_again_says_what_it_does_not_repeat() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, run("ls"));
    let again = serde_json::from_value(json!({"toolCallId": "c"})).unwrap();
    let again = mapper.ask(again, &mut Vec::new()).unwrap();
    assert_ne!(again.call, older);
    assert_eq!(again.kind, acp::ToolKind::Execute);
    let ready = Value::Object(again.ready.into_object());
    assert_eq!(ready["toolInput"], "{\"command\":\"ls\"}");
    assert_eq!(ready["invocationMessage"], "ls");
}

#[test]
fn ag_31b_questions_that_are_open_end_with_their_call() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, run("ls"));
    let newer = ask(&mut mapper, run("id"));
    let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"});
    let steps = mapper.map(update(ended));
    let withdrawn = |call| MapperStep::Withdraw { call };
    assert_eq!(steps, [withdrawn(older), withdrawn(newer)]);
    mapper.decide(older, true);
    mapper.decide(newer, true);
    assert_eq!(take_line(&mut mapper), None);
}

#[test]
fn ag_31b_a_call_that_runs_and_asks_again_is_over() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, run("ls"));
    mapper.decide(older, true);
    let mut steps = Vec::new();
    let again = serde_json::from_value(run("ls -a")).unwrap();
    let again = mapper.ask(again, &mut steps).unwrap().call;
    let over = |step: &MapperStep| matches!(step, MapperStep::Complete(done) if done.call == older);
    assert!(steps.iter().any(over), "{steps:?}");
    assert_eq!(take_line(&mut mapper), None, "neither may run now");
    mapper.decide(again, true);
    assert_eq!(take_line(&mut mapper).as_deref(), Some("ls -a"));
}

/// The question that takes the place of an older one.
fn replacing(steps: &[MapperStep]) -> Option<(u64, &AskedPermission)> {
    steps.iter().find_map(|step| match step {
        MapperStep::Replace { call, asked } => Some((*call, &**asked)),
        _ => None,
    })
}

fn told(mapper: &mut Mapper, mut fields: Value) -> Vec<MapperStep> {
    fields["sessionUpdate"] = json!("tool_call_update");
    fields["toolCallId"] = json!("c");
    mapper.map(update(fields))
}

#[test]
fn ag_31c_a_call_that_changes_while_it_is_asked_about_is_asked_about_again() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, run("ls"));
    let steps = told(&mut mapper, json!({"rawInput": {"command": "rm -rf ."}}));
    let (replaced, asked) = replacing(&steps).unwrap();
    assert_eq!(replaced, older);
    assert_ne!(asked.call, older, "people see two calls");
    assert_eq!(asked.kind, acp::ToolKind::Execute);
    let ready = Value::Object(asked.ready.clone().into_object());
    assert_eq!(ready["toolInput"], "{\"command\":\"rm -rf .\"}");
    let newer = asked.call;
    mapper.decide(older, true);
    assert_eq!(take_line(&mut mapper), None, "that was the older question");
    mapper.decide(newer, true);
    assert_eq!(take_line(&mut mapper).as_deref(), Some("rm -rf ."));
}

#[test]
fn ag_31c_what_changes_nothing_of_what_runs_is_not_asked_about_again() {
    let mut mapper = mapper();
    let call = ask(&mut mapper, run("ls"));
    for same in [
        json!({"title": "List files", "rawInput": {"command": "ls"}}),
        json!({"status": "in_progress", "content": [{"type": "content", "content": {"type": "text", "text": "hm"}}]}),
        json!({"kind": "other"}),
    ] {
        let steps = told(&mut mapper, same);
        assert_eq!(replacing(&steps), None, "{steps:?}");
    }
    mapper.decide(call, true);
    let steps = told(&mut mapper, json!({"rawInput": {"command": "id"}}));
    assert_eq!(replacing(&steps), None, "it is decided on");
    assert_eq!(take_line(&mut mapper).as_deref(), Some("ls"));
}

/// As opencode does: it asks about the line, and says the rest while people decide.
#[test]
fn ag_31c_a_command_in_more_words_is_the_same_command() {
    let directory = Some("/w".into());
    let mut mapper = mapper().with_usual_directory(directory);
    let call = ask(&mut mapper, run("ls"));
    let same = json!({"command": "ls", "description": "Lists files", "cwd": "/w"});
    let steps = told(&mut mapper, json!({"status": "in_progress", "rawInput": same}));
    assert_eq!(replacing(&steps), None, "{steps:?}");
    mapper.decide(call, true);
    assert_eq!(take_line(&mut mapper).as_deref(), Some("ls"));
    for other in [
        json!({"command": "ls", "cwd": "/elsewhere"}),
        json!({"command": "ls", "cwd": "/w", "env": {"PATH": "/evil"}}),
        json!({"command": "ls", "cwd": "/w", "as_root": true}),
        json!({"command": "ls -a", "cwd": "/w"}),
    ] {
        let call = ask(&mut mapper, run("ls"));
        let steps = told(&mut mapper, json!({"rawInput": other}));
        let (replaced, asked) = replacing(&steps).unwrap();
        assert_eq!(replaced, call, "{other}");
        mapper.decide(asked.call, false);
    }
}

/// A question about `asked`, then `now` while people decide: whether they are asked again.
fn is_asked_again(kinds: [&str; 2], asked: &Value, now: &Value) -> bool {
    let mut mapper = mapper().with_usual_directory(Some("/w".into()));
    let [kind, later_kind] = kinds;
    let call = json!({"toolCallId": "c", "title": "t", "kind": kind, "rawInput": asked});
    ask(&mut mapper, call);
    let steps = told(&mut mapper, json!({"kind": later_kind, "rawInput": now}));
    replacing(&steps).is_some()
}

#[test]
fn ag_31c_only_words_for_people_and_the_usual_directory_can_be_added_to_a_command() {
    let line = json!({"command": "ls"});
    for (asked, now) in [
        (&line, json!({"command": "ls", "explanation": "e", "timeout": 9})),
        (&json!({"command": "ls", "description": "d"}), json!({"command": "ls"})),
        (&line, json!({"command": "ls", "env": {}, "dir": null})),
    ] {
        assert!(!is_asked_again(["execute"; 2], asked, &now), "{now}");
    }
    for (asked, now) in [
        // It would go on when the agent is done.
        (&line, json!({"command": "ls", "run_in_background": true})),
        (&line, json!({"command": "ls", "is_background": true})),
        // A shell may get these words without quotes.
        (&json!({"command": "echo '; id'"}), json!({"command": "echo", "args": ["; id"]})),
        // Where it runs was said, and is not any more: it may be where the last command went.
        (&json!({"command": "ls", "cwd": "/w"}), json!({"command": "ls"})),
        (&json!({"command": "ls", "cwd": "/w/sub"}), json!({"command": "ls", "cwd": "/w"})),
        // Nobody here knows what the absence of that means.
        (&line, json!({"command": "ls", "sandbox": null})),
    ] {
        assert!(is_asked_again(["execute"; 2], asked, &now), "{now}");
    }
}

#[test]
fn ag_31c_an_input_that_is_no_command_line_is_what_all_its_words_say() {
    let asked = json!({"command": "create", "description": "A ticket"});
    let now = json!({"command": "create", "description": "An account for a stranger"});
    for kinds in [["other"; 2], ["other", "execute"], ["execute", "other"]] {
        assert!(is_asked_again(kinds, &asked, &now), "{kinds:?}");
        assert!(!is_asked_again(kinds, &asked, &asked), "{kinds:?}");
    }
}

#[test]
fn ag_31c_a_call_without_an_input_is_what_its_title_and_its_changes_say() {
    let mut mapper = mapper();
    let older = ask(&mut mapper, edit(json!([diff("/w/a", "TWO")])));
    assert_eq!(replacing(&told(&mut mapper, json!({"title": "Edit"}))), None);
    let steps = told(&mut mapper, json!({"content": [diff("/w/a", "evil")]}));
    let newer = replacing(&steps).unwrap().1.call;
    mapper.decide(older, true);
    assert_eq!(allowed(&mapper, "/w/a"), []);
    mapper.decide(newer, true);
    assert_eq!(allowed(&mapper, "/w/a"), [Some("evil".to_owned())]);

    let mut titled = super::mapper();
    ask(&mut titled, json!({"toolCallId": "c", "title": "ls"}));
    let steps = told(&mut titled, json!({"title": "rm -rf ."}));
    assert!(replacing(&steps).is_some(), "{steps:?}");
}

#[test]
fn ag_31c_an_agent_that_changes_a_call_for_ever_is_not_asked_about_for_ever() {
    let mut mapper = mapper();
    ask(&mut mapper, run("ls"));
    let mut last = Vec::new();
    for n in 0..5_000 {
        last = told(&mut mapper, json!({"rawInput": {"command": format!("echo {n}")}}));
        if replacing(&last).is_none() {
            break;
        }
    }
    let withdrawn = |step: &MapperStep| matches!(step, MapperStep::Withdraw { .. });
    assert!(last.iter().any(withdrawn), "{last:?}");
}
