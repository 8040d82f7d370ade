//! Workers: what goes with them, and how they play it.

use agent_api::ToolResult;

use super::*;

fn ended(call: u64) -> AgentReply {
    let content = json!({"type": "subagent", "resource": "ahp-chat:/w", "title": "W"});
    let result = ToolResult::new(true, "Done").with_content(vec![content]);
    AgentReply::ToolEnded { call, result }
}

fn spawning() -> Value {
    json!([
        {"spawn": {"title": "About $2", "interactivity": "hidden", "agent": "$1-worker", "steps": [
            {"say": ["$2: {{text}} {{last}}"]},
            {"spawn": {"steps": [{"stream": {"chunks": "$1"}}]}},
            {"say": ["{{last}}"]},
        ]}},
        {"say": ["{{last}}"]},
    ])
}

/// The brief of the worker that these steps spawn.
async fn brief_of(steps: Value, input: TurnInput) -> Bytes {
    let mut session = session(steps).await;
    let (sender, mut receiver) = mpsc::channel(8);
    let events = channel_sink(sender, PendingReplies::default());
    let listen = async move {
        while let Some(event) = receiver.recv().await {
            if let AgentEvent::Spawned { worker, .. } = event {
                return worker.brief;
            }
        }
        unreachable!("a worker was spawned")
    };
    let (_, brief) = tokio::join!(session.turn(input, &events), listen);
    brief
}

fn worker(brief: Bytes) -> TurnInput {
    TurnInput {
        message: json!({"text": "About it", "origin": {"kind": "tool"}}).into(),
        brief: Some(brief),
        ..input("About it")
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_gets_its_steps_and_returns_its_result() {
    check_with_replies(spawning(), "do it", vec![ended(0)], expect![[r#"
        0 checkpoint {"step":1}
        0 spawn 0.0 "About it" Some("hidden") Some("do-worker") "About it" {"place":"scenes[0].steps[0].spawn.steps","text":"do it","last":"{}","groups":["do","it"],"steps":[{"say":["$2: {{text}} {{last}}"]},{"spawn":{"steps":[{"stream":{"chunks":"$1"}}]}},{"say":["{{last}}"]}]}
        10 checkpoint {"step":2,"last":{"success":true,"content":[{"type":"subagent","resource":"ahp-chat:/w","title":"W"}]}}
        10 open 1.0 Markdown
        10 text 1.0 "{\"success\":true,\"content\":[{\"type\":\"subagent\",\"resource\":\"ahp-chat:/w\",\"title\":\"W\"}]}"
        complete
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_plays_its_steps_with_its_parents_placeholders() {
    let brief = brief_of(spawning(), input("do it")).await;
    let (lines, result) =
        transcript_with_replies(json!([]), worker(brief), vec![ended(1 << 32)]).await;
    assert_eq!(result, Ok(()));
    expect![[r#"
        0 checkpoint {"step":1}
        0 open 0.0 Markdown
        0 text 0.0 "it: do it {}"
        0 checkpoint {"step":2}
        0 spawn 1.0 "Worker" None None "Worker" {"place":"scenes[0].steps[0].spawn.steps[1].spawn.steps","groups":["do","it"],"steps":[{"stream":{"chunks":"$1"}}]}
        10 checkpoint {"step":3,"last":{"success":true,"content":[{"type":"subagent","resource":"ahp-chat:/w","title":"W"}]}}
        10 open 2.0 Markdown
        10 text 2.0 "{\"success\":true,\"content\":[{\"type\":\"subagent\",\"resource\":\"ahp-chat:/w\",\"title\":\"W\"}]}"
    "#]].assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn a_nested_worker_reports_the_position_of_a_failing_step() {
    let outer = brief_of(spawning(), input("do it")).await;
    let inner = brief_of(json!([]), worker(outer)).await;
    let error = transcript(json!([]), worker(inner)).await.1.unwrap_err();
    assert_eq!(
        error.message,
        "scenes[0].steps[0].spawn.steps[1].spawn.steps[0].stream.chunks: \"do\" is not a whole number of at least 0"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resumed_worker_plays_the_rest_of_its_steps() {
    let steps = json!([{"spawn": {"steps": [{"say": ["a"]}, {"fail": {"resumable": true}}, {"say": ["$2 {{last}}"]}]}}]);
    let brief = brief_of(steps, input("do it")).await;
    let (lines, result) = transcript(json!([]), worker(brief.clone())).await;
    assert!(result.unwrap_err().resumable);
    assert!(lines.ends_with("checkpoint {\"step\":2}\n"), "{lines}");
    let resumed =
        TurnInput { resume: Some(Some(Bytes::from_static(br#"{"step":2}"#))), ..worker(brief) };
    let (lines, result) = transcript(json!([]), resumed).await;
    assert_eq!(result, Ok(()));
    expect![[r#"
        0 checkpoint {"step":3}
        0 open 2.0 Markdown
        0 text 2.0 "it {}"
    "#]]
    .assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn a_user_who_talks_to_a_worker_talks_to_the_script() {
    let brief = brief_of(spawning(), input("do it")).await;
    let from_a_user = TurnInput {
        message: json!({"text": "x", "origin": {"kind": "user"}}).into(),
        brief: Some(brief),
        ..input("x")
    };
    let (lines, _) = transcript(json!([{"say": ["the script"]}]), from_a_user).await;
    assert!(lines.contains("the script"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn a_long_message_does_not_keep_a_short_worker_from_starting() {
    let long = "x".repeat(200_000);
    let short = json!([{"spawn": {"steps": [{"say": ["hi"]}]}}]);
    assert!(brief_of(short, input(&long)).await.len() < 200);
    let worker_with_all_text = json!([{"spawn": {"steps": [{"say": ["{{text}}"]}]}}]);
    check(worker_with_all_text, &long, expect![[r#"
        0 checkpoint {"step":1}
        failed scripted "scenes[0].steps[0].spawn.steps: with all that its placeholders stand for, a worker takes at most 65536 bytes" resumable false
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_brief_that_cannot_be_read_ends_the_turn() {
    let error = transcript(json!([]), worker(Bytes::from_static(b"?"))).await.1.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("brief", false));
}
