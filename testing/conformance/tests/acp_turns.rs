//! What an ACP agent says in a turn, and what clients see of it: text, thoughts, plans, titles, usage, notices, and how it ends.

use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use conformance::native::{calls_of, error_of, parts_of, texts_in};
use serde_json::{Value, json};

fn chunk(kind: &str, content: Value) -> Value {
    json!({"update": {"sessionUpdate": kind, "content": content}})
}

fn text(text: &str, message: Value) -> Value {
    json!({"update": {
        "sessionUpdate": "agent_message_chunk", "messageId": message, "content": {"type": "text", "text": text},
    }})
}

#[tokio::test]
async fn words_and_thoughts_are_parts_in_the_order_they_came() {
    let steps = json!([
        {"think": ["  \n"]},
        {"say": ["Hel", "lo"]},
        {"think": ["hm", ", yes"]},
        {"say": [" "]},
        {"think": ["more"]},
        {"say": ["after"]},
    ]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("hello").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(texts_in(&turn, "markdown"), ["Hello", "after"]);
    let thoughts = texts_in(&turn, "reasoning");
    assert_eq!(thoughts.concat(), "hm, yesmore", "{turn:#}");
    assert_eq!(harness.prompts(), ["hello"]);
}

#[tokio::test]
async fn another_message_begins_another_part() {
    let steps = json!([
        text("one", json!("m1")),
        text(" more", json!("m1")),
        text("two", json!("m2")),
        text(" more", Value::Null),
    ]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    assert_eq!(texts_in(&turn, "markdown"), ["one more", "two more"]);
}

#[tokio::test]
async fn links_files_and_pictures_are_shown_and_an_echo_is_not() {
    let link = json!({"type": "resource_link", "name": "notes", "uri": "file:///notes.md"});
    let file =
        json!({"type": "resource", "resource": {"uri": "file:///a.txt", "text": "embedded"}});
    let picture = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
    let steps = json!([
        chunk("user_message_chunk", json!({"type": "text", "text": "you said"})),
        chunk("agent_message_chunk", link),
        chunk("agent_message_chunk", file),
        chunk("agent_message_chunk", picture),
    ]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    let words = texts_in(&turn, "markdown").concat();
    assert!(words.contains("[notes](<file:///notes.md>)"), "{turn:#}");
    assert!(words.contains("embedded") && !words.contains("you said"));
    let pictures = parts_of(&turn, "contentRef");
    assert_eq!(pictures.len(), 1, "{turn:#}");
    assert_eq!(pictures[0]["contentType"], "image/png", "{turn:#}");
}

#[tokio::test]
async fn a_plan_is_one_call_that_changes() {
    let plan = |status: &str| {
        let entries = json!([
            {"content": "look", "priority": "high", "status": "completed"},
            {"content": "change", "priority": "high", "status": status},
        ]);
        json!({"update": {"sessionUpdate": "plan", "entries": entries}})
    };
    let steps = json!([plan("pending"), {"say": ["now"]}, plan("completed")]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 1, "{turn:#}");
    assert_eq!(calls[0]["toolName"], "plan");
    assert_eq!(calls[0]["status"], "completed");
    assert_eq!(calls[0]["confirmed"], "not-needed");
    let content = calls[0]["content"][0]["text"].as_str().unwrap();
    assert!(content.contains("[x] look") && content.contains("[x] change"));
}

#[tokio::test]
async fn a_title_is_taken_unless_somebody_gave_one() {
    let title = |title: Value| {
        let mut update = json!({"sessionUpdate": "session_info_update"});
        if !title.is_null() {
            update["title"] = title;
        }
        json!({"update": update})
    };
    let scenes = json!([
        scene("first", json!([title(json!("Theirs")), title(Value::Null)])),
        scene("second", json!([title(json!("Theirs again"))])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    harness.talk("first").await;
    let is_theirs = |state: &Value| state["title"] == "Theirs";
    harness.ann.until_session(SESSION, is_theirs).await;
    let mine = json!({"type": "session/titleChanged", "title": "Mine"});
    harness.ann.does_in(SESSION, mine).await;
    harness.talk("second").await;
    let session = harness.ann.sees_session(SESSION);
    assert_eq!(session["title"], "Mine");
}

#[tokio::test]
async fn usage_is_told_once_with_what_the_context_holds_and_costs() {
    let context = |used: u64, cost: f64| {
        json!({"update": {
            "sessionUpdate": "usage_update", "used": used, "size": 1000, "cost": {"amount": cost, "currency": "USD"},
        }})
    };
    let usage =
        json!({"inputTokens": 5, "outputTokens": 7, "cachedReadTokens": 2, "totalTokens": 14});
    let end = json!({"end": {"usage": usage}});
    let scenes = json!([
        scene("first", json!([context(6, 0.25), context(9, 0.5), end])),
        scene("second", json!([context(20, 0.75), end])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    let first = harness.talk("first").await;
    // What clients show as the context in use (G-45); what was read from a cache is counted in (G-60).
    assert_eq!(first["usage"]["inputTokens"], 9, "{first:#}");
    let turn = json!({"inputTokens": 7, "outputTokens": 7, "cacheReadTokens": 2});
    assert_eq!(first["usage"]["_meta"]["turn"], turn);
    assert_eq!(first["usage"]["_meta"]["contextUsed"], 9);
    assert_eq!(first["usage"]["_meta"]["contextSize"], 1000);
    let second = harness.talk("second").await;
    let cost = &second["usage"]["_meta"]["cost"];
    let amount = cost.get("amount").unwrap_or(cost);
    assert_eq!(amount, &json!(0.25), "of this turn alone: {second:#}");
}

#[tokio::test]
async fn usage_that_is_told_beside_the_answer_is_found() {
    let count = json!({"input_tokens": 3, "output_tokens": 4});
    let quota =
        json!({"token_count": count, "model_usage": [{"model": "g-1", "token_count": count}]});
    let steps = json!([{"end": {"_meta": {"quota": quota}}}]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let turn = harness.talk("go").await;
    assert_eq!(turn["usage"]["inputTokens"], 3, "{turn:#}");
    assert_eq!(turn["usage"]["outputTokens"], 4);
    assert_eq!(turn["usage"]["model"], "g-1");
}

#[tokio::test]
async fn a_notice_is_shown_once_and_compaction_is_told() {
    let notice = json!({"update": {
        "sessionUpdate": "notice", "severity": "warning", "title": "The server failed", "description": "Look at it.",
    }});
    let compaction = |status: &str| json!({"update": {"sessionUpdate": "compaction_update", "compactionId": "c", "status": status}});
    let steps = json!([notice, compaction("in_progress"), compaction("completed")]);
    let mut harness = AcpHarness::start(json!([scene("", steps)])).await;
    let first = texts_in(&harness.talk("one").await, "systemNotification");
    assert!(first[0].contains("The server failed"), "{first:?}");
    assert_eq!(first.len(), 2, "{first:?}");
    let second = texts_in(&harness.talk("two").await, "systemNotification");
    assert!(!second.concat().contains("The server failed"), "{second:?}");
}

#[tokio::test]
async fn every_way_to_stop_is_told() {
    let stop =
        |reason: &str| scene(reason, json!([{"say": ["half"]}, {"end": {"stopReason": reason}}]));
    let reasons = ["max_tokens", "max_turn_requests", "refusal", "cancelled"];
    let mut harness = AcpHarness::start(json!(reasons.map(stop))).await;
    for reason in &reasons[..2] {
        let turn = harness.talk(reason).await;
        assert_eq!(turn["state"], "complete", "{turn:#}");
        assert_eq!(texts_in(&turn, "systemNotification").len(), 1, "{turn:#}");
    }
    let refused = error_of(&harness.talk("refusal").await);
    assert_eq!(refused["error"]["errorType"], "refusal", "{refused:#}");
    assert_ne!(refused["resumable"], true);
    let cancelled = error_of(&harness.talk("cancelled").await);
    assert_eq!(cancelled["error"]["errorType"], "agentCancelled");
    assert_eq!(cancelled["resumable"], true);
}

#[tokio::test]
async fn an_error_is_told_with_its_details_and_the_turn_can_go_on() {
    let error = json!({"code": -32603, "message": "Internal error", "data": {"details": "the model is on fire"}});
    let scenes = json!([
        scene("^fail", json!([{"say": ["half"]}, {"fail": error}])),
        scene("", json!([{"say": ["well"]}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    let turn = harness.talk("fail").await;
    let error = error_of(&turn);
    assert_eq!(error["error"]["errorType"], "agentError", "{error:#}");
    assert!(error.to_string().contains("the model is on fire"));
    assert_eq!(error["resumable"], true);
    assert_eq!(texts_in(&harness.talk("again").await, "markdown"), ["well"]);
}

#[tokio::test]
async fn what_comes_after_the_end_belongs_to_no_turn() {
    let late = json!({"tool": {"title": "late", "kind": "read"}});
    let scenes = json!([
        scene(
            "^first",
            json!([{"say": ["in time"]}, {"end": {}}, {"say": ["late"]}, late, {"touch": "said"}])
        ),
        scene("", json!([{"say": ["second"]}])),
    ]);
    let mut harness = AcpHarness::start(scenes).await;
    let first = harness.talk("first").await;
    harness.until("it says more", |it| it.state().join("said").exists()).await;
    let second = harness.talk("second").await;
    assert_eq!(texts_in(&first, "markdown"), ["in time"]);
    assert_eq!(texts_in(&second, "markdown"), ["second"]);
    assert!(calls_of(&second).is_empty(), "{second:#}");
}

#[tokio::test]
async fn the_agent_is_told_who_asks_and_where_it_works() {
    let steps = json!([{"say": ["{{cwd}} {{env:TERM}} {{env:NO_COLOR}} {{env:GREENROOM_TOKEN}} {{env:MINE}}"]}]);
    let script = json!({"scenes": [scene("", steps)]});
    let setup = AcpSetup::new(script).entry("trust = \"always\"\nenv = { MINE = \"yes\" }");
    let mut harness = setup.start().await;
    let turn = harness.talk("where").await;
    let work = harness.work().display().to_string();
    assert_eq!(texts_in(&turn, "markdown"), [format!("{work} dumb 1 unset yes")]);
    let told = harness.received("initialize").remove(0);
    assert_eq!(told["protocolVersion"], 1);
    assert_eq!(told["clientInfo"]["name"], "greenroom");
    let can = &told["clientCapabilities"];
    assert_eq!(can["terminal"], true, "{can:#}");
    assert_eq!(can["_meta"]["terminal_output"], true);
    assert_eq!(harness.received("session/new")[0]["cwd"], work);
}

#[tokio::test]
async fn what_is_attached_reaches_the_agent() {
    let script = json!({"scenes": [scene("", json!([{"say": ["ok"]}]))]});
    let mut harness = AcpSetup::new(script).file("a.txt", "the file\n").start().await;
    let uri = format!("file://{}/a.txt", harness.work().display());
    let attached = json!([{"type": "resource", "uri": uri, "label": "a.txt"}]);
    harness.ann.sends_with_attachments("read it", attached).await;
    harness.ann.turn_over().await;
    let prompt = harness.received("session/prompt").remove(0);
    let blocks = prompt["prompt"].as_array().unwrap();
    assert_eq!(blocks[0]["text"], "read it", "{prompt:#}");
    let names_it = |block: &Value| block.to_string().contains("a.txt");
    assert!(blocks[1..].iter().any(names_it), "{prompt:#}");
}
