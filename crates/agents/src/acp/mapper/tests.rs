//! What real agents said on their wires, and each rule by its number.

use agent_api::ToolReady;
use expect_test::expect_file;
use serde_json::{Value, json};

use super::*;

/// Excerpts of what agents said; long texts and lists are cut.
const FRAMES: &str = include_str!("frames.jsonl");

fn mapper() -> Mapper {
    Mapper::new(0, UsageTotals::of_new_session())
}

fn update(fields: Value) -> acp::SessionUpdate {
    serde_json::from_value(fields).unwrap()
}

fn describe(step: &Step) -> String {
    let ready_text = |ready: &ToolReady| Value::Object(ready.clone().into_object()).to_string();
    match step {
        Step::Send(AgentEvent::PartOpened { part, kind }) => format!("part {part} {kind:?}"),
        Step::Send(AgentEvent::Text { part, text }) => format!("text {part} {text:?}"),
        Step::Send(AgentEvent::ToolStarted { call, start }) => format!(
            "started {call} {} {:?} {}",
            start.name,
            start.display_name,
            json!(start.meta)
        ),
        Step::Send(AgentEvent::ToolReady { call, ready }) => {
            format!("ready {call} {}", ready_text(ready))
        }
        Step::Send(AgentEvent::ToolContent { call, content }) => {
            format!("content {call} {}", json!(content))
        }
        Step::Send(AgentEvent::ToolCompleted { call, result, .. }) => {
            format!("completed {call} {}", json!(result.clone().into_object()))
        }
        Step::Complete(done) => format!(
            "complete {} success={} {:?} content={} structured={} error={:?} diffs={}",
            done.call,
            done.success,
            done.past_tense,
            json!(done.content),
            done.structured.is_some(),
            done.error,
            done.diffs.len(),
        ),
        other => format!("{other:?}"),
    }
}

fn describe_all(steps: &[Step]) -> Vec<String> {
    steps.iter().map(describe).collect()
}

/// All that an agent said, in one turn.
fn play(agent: &str) -> String {
    let mut mapper = mapper();
    let mut lines = Vec::new();
    for line in FRAMES.lines() {
        let frame: Value = serde_json::from_str(line).unwrap();
        if frame["agent"] != agent {
            continue;
        }
        let (case, frame) = (frame["case"].as_str().unwrap(), &frame["frame"]);
        let steps = match frame["method"].as_str() {
            Some("session/update") => mapper.map(update(frame["params"]["update"].clone())),
            Some("session/request_permission") => {
                let request: acp::RequestPermissionRequest =
                    serde_json::from_value(frame["params"].clone()).unwrap();
                let mut steps = Vec::new();
                let asked = mapper.ask(request.tool_call, &mut steps).unwrap();
                let ready = Box::new(asked.ready);
                let call = asked.call;
                steps.push(Step::Send(AgentEvent::ToolReady { call, ready }));
                let options = confirmation_options(&request.options);
                lines.push(format!("# options {}", json!(options)));
                mapper.decide(call, true);
                steps
            }
            _ if frame["result"].get("stopReason").is_some() => {
                let report = mapper
                    .usage()
                    .report(&frame["result"], Some("model in use"));
                lines.push(format!("# usage at `{case}`: {}", json!(report)));
                continue;
            }
            _ => continue,
        };
        lines.push(format!("# {case}"));
        lines.extend(describe_all(&steps));
    }
    lines.push("# end".to_owned());
    lines.extend(describe_all(&mapper.finish(TurnEnd::Completed)));
    lines.join("\n") + "\n"
}

#[test]
fn what_the_sdk_example_said() {
    expect_file!["snapshots/sdk-example.txt"].assert_eq(&play("sdk-example"));
}

#[test]
fn what_claude_said() {
    expect_file!["snapshots/claude.txt"].assert_eq(&play("claude"));
}

#[test]
fn what_gemini_said() {
    expect_file!["snapshots/gemini.txt"].assert_eq(&play("gemini"));
}

#[test]
fn what_opencode_said() {
    expect_file!["snapshots/opencode.txt"].assert_eq(&play("opencode"));
}

#[test]
fn what_codex_said() {
    expect_file!["snapshots/codex.txt"].assert_eq(&play("codex"));
}

#[test]
fn what_qwen_said() {
    expect_file!["snapshots/qwen.txt"].assert_eq(&play("qwen"));
}

fn chunk(kind: &str, text: &str, id: Option<&str>) -> acp::SessionUpdate {
    update(
        json!({"sessionUpdate": kind, "messageId": id, "content": {"type": "text", "text": text}}),
    )
}

const SAID: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

#[test]
fn a_run_of_text_is_one_part() {
    let mut mapper = mapper();
    let mut said = Vec::new();
    for update in [
        chunk(THOUGHT, "hm", None),
        chunk(SAID, "\n", None),
        chunk(THOUGHT, " more", None),
        chunk(SAID, "\n", Some("1")),
        chunk(SAID, "a", Some("1")),
        chunk(SAID, "b", None),
        chunk(SAID, "c", Some("2")),
        update(
            json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "echo"}}),
        ),
        chunk(SAID, "d", Some("2")),
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"})),
        chunk(SAID, " ", Some("2")),
        chunk(SAID, "e", Some("2")),
    ] {
        said.extend(describe_all(&mapper.map(update)));
    }
    assert_eq!(
        said,
        [
            "part 1 Reasoning",
            "text 1 \"hm\"",
            "part 2 Reasoning",
            "text 2 \" more\"",
            "part 3 Markdown",
            "text 3 \"\\na\"",
            "text 3 \"b\"",
            "part 4 Markdown",
            "text 4 \"c\"",
            "text 4 \"d\"",
            "started 5 other \"T\" null",
            "part 6 Markdown",
            "text 6 \" e\"",
        ]
    );
}

#[test]
fn other_content_is_a_link_a_text_or_a_body() {
    let mut mapper = mapper();
    let content = |content: Value| update(json!({"sessionUpdate": SAID, "content": content}));
    let link = content(json!({"type": "resource_link", "name": "a]b", "uri": "file:///a b"}));
    assert_eq!(
        describe_all(&mapper.map(link))[1],
        "text 1 \"[a\\\\]b](<file:///a%20b>)\""
    );
    let image = content(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
    let expected = Media {
        content_type: "image/png".to_owned(),
        body: b"hi".to_vec(),
    };
    assert_eq!(mapper.map(image), [Step::Show(expected)]);
    let broken = content(json!({"type": "audio", "data": "?", "mimeType": "audio/wav"}));
    assert_eq!(
        describe_all(&mapper.map(broken))[1],
        "text 2 \"[audio/wav that cannot be read]\""
    );
}

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

/// The first words of each step.
fn kinds(steps: &[Step]) -> Vec<String> {
    let first = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    describe_all(steps).into_iter().map(first).collect()
}

#[test]
fn ag_26_any_message_may_be_the_first_about_a_call() {
    let mut done = mapper();
    let completed = done.map(call(
        json!({"status": "completed", "title": "T", "rawOutput": "out"}),
    ));
    assert_eq!(kinds(&completed), ["started 1", "ready 1", "complete 1"]);

    let mut asked = mapper();
    let (number, steps) = ask(&mut asked, json!({"title": "T", "kind": "edit"}));
    assert_eq!((number, steps.len()), (1, 1), "announced by its question");

    for (fields, name) in [
        (json!({"name": "n", "_meta": {"toolName": "m"}}), "n"),
        (
            json!({"_meta": {"claudeCode": {"toolName": "k"}, "toolName": "m"}}),
            "k",
        ),
        (json!({"_meta": {"toolName": "m"}, "kind": "read"}), "m"),
        (json!({"kind": "switch_mode"}), "switch_mode"),
        (json!({}), "other"),
    ] {
        let started = &describe_all(&mapper().map(call(fields)))[0];
        assert!(
            started.starts_with(&format!("started 1 {name} ")),
            "{started}"
        );
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
    mapper.map(call(
        json!({"rawInput": {"command": "echo", "cwd": "/"}, "title": "bash"}),
    ));
    let mut steps = Vec::new();
    let asked = json!({"toolCallId": "c", "rawInput": {"command": "rm"}, "title": "rm"});
    let asked = mapper
        .ask(serde_json::from_value(asked).unwrap(), &mut steps)
        .unwrap();
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
    assert_eq!(
        kinds(&mapper.map(call(json!({"status": "completed"})))),
        ["complete 1"]
    );
    assert_eq!(mapper.map(call(json!({"status": "completed"}))), []);
    assert_eq!(mapper.finish(TurnEnd::Completed), []);
}

#[test]
fn ag_27_after_a_denial_nothing_more_is_shown() {
    let mut mapper = mapper();
    let (number, _) = ask(&mut mapper, json!({"title": "T"}));
    mapper.decide(number, false);
    assert_eq!(
        mapper.map(call(json!({"status": "failed", "rawOutput": "denied"}))),
        []
    );
    assert_eq!(mapper.finish(TurnEnd::Completed), []);
}

#[test]
fn ag_27_a_call_that_ends_while_it_is_asked_about_is_not_asked_about_any_more() {
    let mut mapper = mapper();
    let (number, _) = ask(&mut mapper, json!({"title": "T"}));
    let ended = mapper.map(call(json!({"status": "failed"})));
    assert_eq!(ended, [Step::Withdraw { call: number }]);
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
    let done = describe_all(&open().finish(TurnEnd::Completed));
    assert_eq!(done.len(), 2, "{done:?}");
    assert!(
        done[0].contains("success=true \"T (ended without a result)\""),
        "{done:?}"
    );
    assert!(done[1].starts_with("completed 3"), "{done:?}");
    assert_eq!(open().finish(TurnEnd::Otherwise), []);
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
        let Some(Step::Complete(done)) = steps.last() else {
            panic!("{steps:?}")
        };
        assert_eq!((done.success, done.error.as_deref()), (false, Some(why)));
    }
}

#[test]
fn ag_27a_kinds_and_places_are_told() {
    let locations: Vec<Value> = (0..40)
        .map(|n| json!({"path": format!("/w/{n} b")}))
        .collect();
    let started = mapper().map(call(json!({"kind": "execute", "locations": locations})));
    let Step::Send(AgentEvent::ToolStarted { start, .. }) = &started[0] else {
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
        let Some(Step::Complete(done)) = steps.last() else {
            panic!("{steps:?}")
        };
        (json!(done.content), json!(done.structured))
    };
    let text = json!([{"type": "content", "content": {"type": "text", "text": "t"}}]);
    let shown = done(json!({"content": text, "rawOutput": {"a": 1}}));
    assert_eq!(shown, (json!([{"type": "text", "text": "t"}]), Value::Null));
    let shown = done(json!({"rawOutput": "r"}));
    assert_eq!(shown, (json!([{"type": "text", "text": "r"}]), Value::Null));
    assert_eq!(
        done(json!({"rawOutput": {"a": 1}})),
        (json!([]), json!({"a": 1}))
    );
    let large = json!({"a": "x".repeat(70_000)});
    assert_eq!(done(json!({"rawOutput": large})), (json!([]), Value::Null));
}

#[test]
fn ag_27c_a_file_is_looked_at_once_when_it_is_first_named() {
    let mut mapper = mapper();
    let named = mapper.map(call(
        json!({"kind": "edit", "locations": [{"path": "/w/a"}]}),
    ));
    assert!(matches!(&named[1], Step::WatchFiles { call: 1, diffs } if diffs.len() == 1));
    let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "x", "newText": "y"}]);
    assert_eq!(mapper.map(call(json!({"content": diff}))), []);
    let done = mapper.map(call(json!({"status": "completed"})));
    let Some(Step::Complete(done)) = done.last() else {
        panic!()
    };
    assert_eq!(done.diffs[0].new_text.as_deref(), Some("y"));
    let read = mapper.map(call(
        json!({"kind": "read", "locations": [{"path": "/w/b"}]}),
    ));
    assert_eq!(read, []);
}

#[test]
fn ag_27d_output_beside_a_call_is_one_growing_text() {
    let mut mapper = mapper();
    let terminal = json!([{"type": "terminal", "terminalId": "c"}]);
    mapper.map(call(
        json!({"status": "in_progress", "title": "ls", "content": terminal}),
    ));
    let shown = mapper.map(call(
        json!({"_meta": {"terminal_output_delta": {"data": "a\n"}}}),
    ));
    assert_eq!(
        describe_all(&shown),
        ["content 1 [{\"type\":\"text\",\"text\":\"a\\n\"}]"]
    );
    assert_eq!(
        mapper.map(call(json!({"status": "completed"}))),
        [],
        "its output may still come"
    );
    let done = mapper.map(call(json!({"_meta": {"terminal_output": {"data": "a\nb\n"}, "terminal_exit": {"exit_code": 1}}})));
    let Some(Step::Complete(done)) = done.last() else {
        panic!()
    };
    assert_eq!(done.past_tense, "ls (exit code 1)");
    assert_eq!(done.content[0]["text"], "a\nb\n");

    let mut silent = self::mapper();
    silent.map(call(json!({"status": "completed", "content": terminal})));
    let next = silent.map(chunk(SAID, "done", None));
    assert_eq!(kinds(&next)[0], "complete 1", "the agent goes on");
}

#[test]
fn a_plan_is_one_call_replaced_whole() {
    let mut mapper = mapper();
    let plan = |status: &str| {
        update(json!({"sessionUpdate": "plan", "entries": [
            {"content": "one", "priority": "high", "status": "completed"},
            {"content": "two", "priority": "low", "status": status},
        ]}))
    };
    let first = mapper.map(plan("pending"));
    assert_eq!(kinds(&first), ["started 1", "ready 1", "content 1"]);
    let second = describe_all(&mapper.map(plan("in_progress")));
    assert_eq!(
        second,
        ["content 1 [{\"type\":\"text\",\"text\":\"- [x] one\\n- [ ] two (in progress)\"}]"]
    );
}

#[test]
fn compaction_is_an_activity_and_then_a_notice() {
    let mut mapper = mapper();
    let compaction = |status: &str| {
        update(json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": status}))
    };
    let begun = mapper.map(compaction("in_progress"));
    assert_eq!(
        begun,
        [Step::Send(AgentEvent::Activity(Some(
            "Compacting".to_owned()
        )))]
    );
    let done = mapper.map(compaction("completed"));
    assert_eq!(done[0], Step::Send(AgentEvent::Activity(None)));
    assert!(matches!(&done[1], Step::Send(AgentEvent::Notice { .. })));
}

#[test]
fn usage_is_the_context_in_use_and_the_turns_sums() {
    let usage = |used: u64, cost: f64| {
        update(
            json!({"sessionUpdate": "usage_update", "used": used, "size": 100, "cost": {"amount": cost, "currency": "USD"}}),
        )
    };
    let mut mapper = mapper();
    mapper.map(usage(10, 0.5));
    mapper.map(usage(20, 0.75));
    let answer = json!({"usage": {"inputTokens": 5, "outputTokens": 6, "cachedReadTokens": 7, "totalTokens": 18}});
    let report = json!(mapper.usage().report(&answer, Some("m")));
    assert_eq!(report["inputTokens"], 20);
    assert_eq!(report["model"], "m");
    assert_eq!(
        report["_meta"]["turn"],
        json!({"inputTokens": 12, "outputTokens": 6, "cacheReadTokens": 7})
    );
    assert_eq!(
        report["_meta"]["cost"],
        json!({"amount": 0.75, "currency": "USD"})
    );
    assert_eq!(report["_meta"]["contextSize"], 100);
    let mut next = Mapper::new(0, mapper.usage().next_turn());
    next.map(usage(30, 1.0));
    let report = json!(next.usage().report(&json!({}), None));
    assert_eq!(report["_meta"]["cost"]["amount"], 0.25);
    assert_eq!(
        next.usage_mut()
            .next_turn()
            .report(&json!({"usage": null}), None),
        None
    );
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
    let ids: Vec<&str> = shown
        .iter()
        .map(|option| option["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["once", "always", "never", "no"]);
    assert_eq!(shown[1]["label"], "Always x");
    assert_eq!(
        (&shown[0]["kind"], &shown[2]["kind"]),
        (&json!("approve"), &json!("deny"))
    );
    let chosen = |choice| option_for(&options, choice).map(|(id, allows)| format!("{id} {allows}"));
    assert_eq!(chosen(Choice::Approve).as_deref(), Some("once true"));
    assert_eq!(chosen(Choice::Deny).as_deref(), Some("no false"));
    assert_eq!(
        chosen(Choice::Option("never")).as_deref(),
        Some("never false")
    );
    assert_eq!(chosen(Choice::Option("?")), None);
    assert_eq!(
        option_for(&options[..1], Choice::Approve).unwrap().0,
        "always"
    );
    assert_eq!(option_for(&options[..2], Choice::Deny), None);
}
