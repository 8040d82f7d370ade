//! What real agents said on their wires, and each rule by its number.

mod calls;
mod consent;

use agent_api::ToolReady;
use expect_test::expect_file;
use serde_json::{Value, json};

use super::*;

/// Excerpts of what agents said; long texts and lists are cut.
const FRAMES: &str = include_str!("../frames.jsonl");

fn mapper() -> Mapper {
    Mapper::new(0, UsageTotals::of_new_session())
}

fn update(fields: Value) -> acp::SessionUpdate {
    serde_json::from_value(fields).unwrap()
}

fn describe(step: &MapperStep) -> String {
    let ready_text = |ready: &ToolReady| Value::Object(ready.clone().into_object()).to_string();
    match step {
        MapperStep::Send(AgentEvent::PartOpened { part, kind }) => format!("part {part} {kind:?}"),
        MapperStep::Send(AgentEvent::Text { part, text }) => format!("text {part} {text:?}"),
        MapperStep::Send(AgentEvent::ToolStarted { call, start }) => {
            format!("started {call} {} {:?} {}", start.name, start.display_name, json!(start.meta))
        }
        MapperStep::Send(AgentEvent::ToolReady { call, ready }) => {
            format!("ready {call} {}", ready_text(ready))
        }
        MapperStep::Send(AgentEvent::ToolContent { call, content }) => {
            format!("content {call} {}", json!(content))
        }
        MapperStep::Send(AgentEvent::ToolCompleted { call, result, .. }) => {
            format!("completed {call} {}", json!(result.clone().into_object()))
        }
        MapperStep::Complete(done) => format!(
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

fn describe_all(steps: &[MapperStep]) -> Vec<String> {
    steps.iter().map(describe).collect()
}

/// The first words of each step.
fn kinds(steps: &[MapperStep]) -> Vec<String> {
    let first = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    describe_all(steps).into_iter().map(first).collect()
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
                steps.push(MapperStep::Send(AgentEvent::ToolReady { call, ready }));
                let options = confirmation_options(&request.options);
                lines.push(format!("# options {}", json!(options)));
                mapper.decide(call, true);
                steps
            }
            _ if frame["result"].get("stopReason").is_some() => {
                let report = mapper.usage().report(&frame["result"], Some("model in use"));
                lines.push(format!("# usage at `{case}`: {}", json!(report)));
                continue;
            }
            _ => continue,
        };
        lines.push(format!("# {case}"));
        lines.extend(describe_all(&steps));
    }
    lines.push("# end".to_owned());
    lines.extend(describe_all(&mapper.finish(UpdatesEnd::Completed)));
    lines.join("\n") + "\n"
}

#[test]
fn what_the_sdk_example_said() {
    expect_file!["../snapshots/sdk-example.txt"].assert_eq(&play("sdk-example"));
}

#[test]
fn what_claude_said() {
    expect_file!["../snapshots/claude.txt"].assert_eq(&play("claude"));
}

#[test]
fn what_gemini_said() {
    expect_file!["../snapshots/gemini.txt"].assert_eq(&play("gemini"));
}

#[test]
fn what_opencode_said() {
    expect_file!["../snapshots/opencode.txt"].assert_eq(&play("opencode"));
}

#[test]
fn what_codex_said() {
    expect_file!["../snapshots/codex.txt"].assert_eq(&play("codex"));
}

#[test]
fn what_qwen_said() {
    expect_file!["../snapshots/qwen.txt"].assert_eq(&play("qwen"));
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
    assert_eq!(describe_all(&mapper.map(link))[1], "text 1 \"[a\\\\]b](<file:///a%20b>)\"");
    let image = content(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
    let expected = MappedMedia { content_type: "image/png".to_owned(), body: b"hi".to_vec() };
    assert_eq!(mapper.map(image), [MapperStep::Show(expected)]);
    let broken = content(json!({"type": "audio", "data": "?", "mimeType": "audio/wav"}));
    assert_eq!(describe_all(&mapper.map(broken))[1], "text 2 \"[audio/wav that cannot be read]\"");
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
    assert_eq!(begun, [MapperStep::Send(AgentEvent::Activity(Some("Compacting".to_owned())))]);
    let done = mapper.map(compaction("completed"));
    assert_eq!(done[0], MapperStep::Send(AgentEvent::Activity(None)));
    assert!(matches!(&done[1], MapperStep::Send(AgentEvent::Notice { .. })));
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
    assert_eq!(report["_meta"]["cost"], json!({"amount": 0.75, "currency": "USD"}));
    assert_eq!(report["_meta"]["contextSize"], 100);
    let mut next = Mapper::new(0, mapper.usage().next_turn());
    next.map(usage(30, 1.0));
    let report = json!(next.usage().report(&json!({}), None));
    assert_eq!(report["_meta"]["cost"]["amount"], 0.25);
    assert_eq!(next.usage().next_turn().report(&json!({"usage": null}), None), None);
}
