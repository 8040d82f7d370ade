//! Tool calls, each rule by its number.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::super::*;
use super::{SAID, chunk, describe_all, kinds, mapper, update};

fn call(fields: Value) -> acp::SessionUpdate {
    let mut fields = fields;
    fields["sessionUpdate"] = json!("tool_call_update");
    fields["toolCallId"] = json!("c");
    update(fields)
}

fn ask(mapper: &mut Mapper, fields: Value) -> (u64, Vec<String>) {
    let mut fields = fields;
    fields["toolCallId"] = json!("c");
    let mut steps = Vec::new();
    let asked = mapper.ask(serde_json::from_value(fields).unwrap(), &mut steps);
    (asked.unwrap().call, describe_all(&steps))
}

#[test]
fn ag_26_any_message_may_be_the_first_about_a_call() {
    let mut done = mapper();
    let completed =
        done.map(call(json!({"status": "completed", "title": "T", "rawOutput": "out"})));
    assert_eq!(kinds(&completed), ["started 1", "ready 1", "complete 1"]);

    let mut asked = mapper();
    let (number, steps) = ask(&mut asked, json!({"title": "T", "kind": "edit"}));
    assert_eq!((number, steps.len()), (1, 1), "announced by its question");

    for (fields, name) in [
        (json!({"name": "n", "_meta": {"toolName": "m"}}), "n"),
        (json!({"_meta": {"claudeCode": {"toolName": "k"}, "toolName": "m"}}), "k"),
        (json!({"_meta": {"toolName": "m"}, "kind": "read"}), "m"),
        (json!({"kind": "switch_mode"}), "switch_mode"),
        (json!({}), "other"),
    ] {
        let started = &describe_all(&mapper().map(call(fields)))[0];
        assert!(started.starts_with(&format!("started 1 {name} ")), "{started}");
    }
}

#[test]
fn ag_26_an_id_that_comes_again_is_another_call() {
    let mut mapper = mapper();
    let announce = || {
        update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "status": "pending"}),
        )
    };
    assert_eq!(kinds(&mapper.map(announce())), ["started 1"]);
    assert_eq!(kinds(&mapper.map(announce())), Vec::<String>::new());
    mapper.map(call(json!({"status": "failed"})));
    assert_eq!(kinds(&mapper.map(announce())), ["started 2"]);
}

#[test]
fn ag_26_what_the_question_says_is_shown() {
    let mut mapper = mapper();
    mapper.map(call(json!({"rawInput": {"command": "echo", "cwd": "/"}, "title": "bash"})));
    let mut steps = Vec::new();
    let asked = json!({"toolCallId": "c", "rawInput": {"command": "rm"}, "title": "rm"});
    let asked = mapper.ask(serde_json::from_value(asked).unwrap(), &mut steps).unwrap();
    let ready = Value::Object(asked.ready.into_object());
    assert_eq!(ready["toolInput"], "{\"command\":\"rm\"}");
    assert_eq!(ready["invocationMessage"], "rm");
    assert_eq!(ready.get("confirmed"), None);
}

#[test]
fn ag_27_in_progress_is_ignored_while_it_is_asked_about() {
    let mut mapper = mapper();
    let running = mapper.map(call(json!({"status": "in_progress", "title": "T"})));
    assert_eq!(kinds(&running), ["started 1", "ready 1"]);
    let (number, _) = ask(&mut mapper, json!({}));
    assert_eq!(number, 1, "a running call that asks is the same call");
    assert_eq!(mapper.map(call(json!({"status": "in_progress"}))), []);
    mapper.decide(number, true);
    assert_eq!(mapper.map(call(json!({"status": "in_progress"}))), []);
    assert_eq!(kinds(&mapper.map(call(json!({"status": "completed"})))), ["complete 1"]);
    assert_eq!(mapper.map(call(json!({"status": "completed"}))), []);
    assert_eq!(mapper.finish(UpdatesEnd::Completed), []);
}

#[test]
fn ag_27_after_a_denial_nothing_more_is_shown() {
    let mut mapper = mapper();
    let (number, _) = ask(&mut mapper, json!({"title": "T"}));
    mapper.decide(number, false);
    assert_eq!(mapper.map(call(json!({"status": "failed", "rawOutput": "denied"}))), []);
    assert_eq!(mapper.finish(UpdatesEnd::Completed), []);
}

#[test]
fn ag_27_a_call_that_ends_while_it_is_asked_about_is_not_asked_about_any_more() {
    let mut mapper = mapper();
    let (number, _) = ask(&mut mapper, json!({"title": "T"}));
    let ended = mapper.map(call(json!({"status": "failed"})));
    assert_eq!(ended, [MapperStep::Withdraw { call: number }]);
    mapper.decide(number, true);
    assert_eq!(mapper.map(call(json!({"status": "completed"}))), []);
}

#[test]
fn ag_27_what_is_open_at_the_end_is_closed() {
    let open = || {
        let mut mapper = mapper();
        mapper.map(call(json!({"status": "in_progress", "title": "T"})));
        mapper.map(update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "never", "title": "N"}),
        ));
        mapper.map(update(json!({"sessionUpdate": "plan", "entries": [{"content": "x", "priority": "low", "status": "completed"}]})));
        mapper
    };
    let done = describe_all(&open().finish(UpdatesEnd::Completed));
    assert_eq!(done.len(), 2, "{done:?}");
    assert!(done[0].contains("success=true \"T (ended without a result)\""), "{done:?}");
    assert!(done[1].starts_with("completed 3"), "{done:?}");
    assert_eq!(open().finish(UpdatesEnd::Otherwise), []);
}

#[test]
fn ag_27_a_failure_says_why() {
    for (fields, why) in [
        (
            json!({"content": [{"type": "content", "content": {"type": "text", "text": " no \n"}}], "rawOutput": "x"}),
            "no",
        ),
        (json!({"rawOutput": {"error": "denied"}}), "denied"),
        (json!({"rawOutput": "plain"}), "plain"),
        (json!({}), "It failed, and its agent does not say why."),
    ] {
        let mut fields = fields;
        fields["status"] = json!("failed");
        let steps = mapper().map(call(fields));
        let Some(MapperStep::Complete(done)) = steps.last() else { panic!("{steps:?}") };
        assert_eq!((done.success, done.error.as_deref()), (false, Some(why)));
    }
}

// G-72
#[test]
fn a_call_that_is_told_of_when_it_is_over_began_after_what_was_said_before() {
    let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let began = |steps: &[MapperStep]| match &steps[0] {
        MapperStep::Send(AgentEvent::ToolStarted { start, .. }) => start.began,
        other => panic!("{other:?}"),
    };
    let told = |id: &str, status: &str| {
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}))
    };
    let usage = || update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}));
    let mut mapper = mapper();
    mapper.activity.note_prompt(at(1));
    let mut maps = |seconds: u64, update: acp::SessionUpdate| {
        mapper.activity.note_arrival(at(seconds));
        mapper.map(update)
    };
    assert_eq!(began(&maps(5, told("a", "completed"))), Some(at(1)));
    maps(10, chunk(SAID, "now", None));
    // What is said of the session may come while a call runs.
    maps(14, usage());
    assert_eq!(began(&maps(15, told("b", "failed"))), Some(at(10)));
    assert_eq!(began(&maps(20, told("c", "in_progress"))), Some(at(20)));
    assert_eq!(began(&maps(25, told("d", "completed"))), Some(at(20)));
}

#[test]
fn ag_27a_kinds_and_places_are_told() {
    let locations: Vec<Value> = (0..40).map(|n| json!({"path": format!("/w/{n} b")})).collect();
    let started = mapper().map(call(json!({"kind": "execute", "locations": locations})));
    let MapperStep::Send(AgentEvent::ToolStarted { start, .. }) = &started[0] else {
        panic!("{started:?}")
    };
    let meta = json!(start.meta);
    assert_eq!(meta["toolKind"], "terminal");
    assert_eq!(meta["locations"].as_array().unwrap().len(), 32);
    assert_eq!(meta["locations"][0], "file:///w/0%20b");
}

#[test]
fn ag_27b_raw_output_is_shown_where_there_is_no_content() {
    let done = |fields: Value| {
        let mut fields = fields;
        fields["status"] = json!("completed");
        let steps = mapper().map(call(fields));
        let Some(MapperStep::Complete(done)) = steps.last() else { panic!("{steps:?}") };
        (json!(done.content), json!(done.structured))
    };
    let text = json!([{"type": "content", "content": {"type": "text", "text": "t"}}]);
    let shown = done(json!({"content": text, "rawOutput": {"a": 1}}));
    assert_eq!(shown, (json!([{"type": "text", "text": "t"}]), Value::Null));
    let shown = done(json!({"rawOutput": "r"}));
    assert_eq!(shown, (json!([{"type": "text", "text": "r"}]), Value::Null));
    assert_eq!(done(json!({"rawOutput": {"a": 1}})), (json!([]), json!({"a": 1})));
    let large = json!({"a": "x".repeat(70_000)});
    assert_eq!(done(json!({"rawOutput": large})), (json!([]), Value::Null));
}

#[test]
fn ag_27c_a_file_is_looked_at_once_when_it_is_first_named() {
    let mut mapper = mapper();
    let named = mapper.map(call(json!({"kind": "edit", "locations": [{"path": "/w/a"}]})));
    assert!(matches!(&named[1], MapperStep::WatchFiles { call: 1, diffs } if diffs.len() == 1));
    let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "x", "newText": "y"}]);
    assert_eq!(mapper.map(call(json!({"content": diff}))), []);
    let done = mapper.map(call(json!({"status": "completed"})));
    let Some(MapperStep::Complete(done)) = done.last() else { panic!() };
    assert_eq!(done.diffs[0].new_text.as_deref(), Some("y"));
    let read = mapper.map(call(json!({"kind": "read", "locations": [{"path": "/w/b"}]})));
    assert_eq!(read, []);
}

#[test]
fn ag_27d_output_beside_a_call_is_one_growing_text() {
    let mut mapper = mapper();
    let terminal = json!([{"type": "terminal", "terminalId": "c"}]);
    mapper.map(call(json!({"status": "in_progress", "title": "ls", "content": terminal})));
    let shown = mapper.map(call(json!({"_meta": {"terminal_output_delta": {"data": "a\n"}}})));
    assert_eq!(describe_all(&shown), ["content 1 [{\"type\":\"text\",\"text\":\"a\\n\"}]"]);
    assert_eq!(mapper.map(call(json!({"status": "completed"}))), [], "its output may still come");
    let done = mapper.map(call(json!({"_meta": {"terminal_output": {"data": "a\nb\n"}, "terminal_exit": {"exit_code": 1}}})));
    let Some(MapperStep::Complete(done)) = done.last() else { panic!() };
    assert_eq!(done.past_tense, "ls (exit code 1)");
    assert_eq!(done.content[0]["text"], "a\nb\n");

    let mut silent = self::mapper();
    silent.map(call(json!({"status": "completed", "content": terminal})));
    let next = silent.map(chunk(SAID, "done", None));
    assert_eq!(kinds(&next)[0], "complete 1", "the agent goes on");
}

#[test]
fn ag_31_options_are_sorted_and_decisions_take_the_narrowest() {
    let options: Vec<acp::PermissionOption> = serde_json::from_value(json!([
        {"optionId": "always", "name": "Always \u{1b}x", "kind": "allow_always"},
        {"optionId": "once", "name": "Once", "kind": "allow_once"},
        {"optionId": "never", "name": "Never", "kind": "reject_always"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]))
    .unwrap();
    let shown = confirmation_options(&options);
    let ids: Vec<&str> = shown.iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["once", "always", "never", "no"]);
    assert_eq!(shown[1]["label"], "Always x");
    assert_eq!((&shown[0]["kind"], &shown[2]["kind"]), (&json!("approve"), &json!("deny")));
    let chosen = |choice| option_for(&options, choice).map(|(id, allows)| format!("{id} {allows}"));
    assert_eq!(chosen(PermissionChoice::Approve).as_deref(), Some("once true"));
    assert_eq!(chosen(PermissionChoice::Deny).as_deref(), Some("no false"));
    assert_eq!(chosen(PermissionChoice::Option("never")).as_deref(), Some("never false"));
    assert_eq!(chosen(PermissionChoice::Option("?")), None);
    assert_eq!(option_for(&options[..1], PermissionChoice::Approve).unwrap().0, "always");
    assert_eq!(option_for(&options[..2], PermissionChoice::Deny), None);
}

#[test]
fn ag_26_the_calls_of_a_turn_are_bounded() {
    let begin = |id: usize| {
        update(
            json!({"sessionUpdate": "tool_call", "toolCallId": id.to_string(), "title": "T", "status": "pending"}),
        )
    };
    let mut mapper = mapper();
    assert!(mapper.next_call().is_some(), "one of the host's own");
    for id in 2..=CALLS_MAX {
        assert_eq!(mapper.map(begin(id)).len(), 1, "{id}");
    }
    assert_eq!(mapper.next_call(), None);
    let told = mapper.map(begin(0));
    assert!(
        matches!(&told[..], [MapperStep::Send(AgentEvent::Notice { text })] if text.contains("4096 calls")),
        "{told:?}"
    );
    assert_eq!(mapper.map(begin(0)), [], "it is said once");
    let asked = json!({"toolCallId": "another", "kind": "edit"});
    let asked = serde_json::from_value(asked).unwrap();
    assert!(mapper.ask(asked, &mut Vec::new()).is_none());
}

#[test]
fn ag_26_an_id_that_comes_again_counts_again() {
    let mut mapper = mapper();
    let mut begun = 0;
    for _ in 0..CALLS_MAX + 1 {
        let announce = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", "status": "in_progress"});
        let steps = mapper.map(update(announce));
        begun += kinds(&steps).iter().filter(|it| it.starts_with("started")).count();
        mapper.map(call(json!({"status": "failed"})));
    }
    assert_eq!(begun, CALLS_MAX);
    assert_eq!(mapper.next_call(), None);
}

#[test]
fn ag_31_two_options_of_one_id_are_one_and_there_are_not_many() {
    let option =
        |id: usize, kind: &str| json!({"optionId": id.to_string(), "name": kind, "kind": kind});
    let mut options = vec![option(0, "reject_once"), option(0, "allow_always")];
    options.extend((1..100).map(|id| option(id, "allow_once")));
    let options: Vec<acp::PermissionOption> = serde_json::from_value(json!(options)).unwrap();
    let distinct = distinct_options(options);
    assert_eq!(distinct.len(), 16);
    let chosen = option_for(&distinct, PermissionChoice::Option("0"));
    assert_eq!(chosen, Some(("0".to_owned(), false)), "what was shown is what is meant");
    let shown = confirmation_options(&distinct);
    let zeros = shown.iter().filter(|option| option["id"] == "0").count();
    assert_eq!(zeros, 1);
}
