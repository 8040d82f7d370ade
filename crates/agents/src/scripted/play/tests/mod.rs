//! How scenes are played: transcripts over paused time.

mod ask;
mod builtin;
mod tool;
mod worker;

use agent_api::{Agent, SessionFacts};
use bytes::Bytes;
use expect_test::{Expect, expect};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::scripted::ScriptedAgent;
use crate::sink::PendingReplies;
use crate::sink::testing::channel_sink;
use crate::test_turn::user_turn;

fn input(text: &str) -> TurnInput {
    user_turn("t", text)
}

async fn session(steps: Value) -> Box<dyn AgentSession> {
    let script = json!({"scenes": [{"when": "^(\\w*) ?(\\w*)", "steps": steps}]}).to_string();
    let agent = ScriptedAgent::with_locale(Script::parse(&script).unwrap(), Locale::English);
    let facts = SessionFacts {
        conversation: "c".to_owned(),
        chat: String::new(),
        principal: None,
        working_directories: Vec::new(),
        attachments: None,
        plugins: Vec::new(),
    };
    agent.open(facts).await.unwrap()
}

/// Plays a whole turn; one line per event with the milliseconds since the turn began.
async fn transcript(steps: Value, input: TurnInput) -> (String, Result<(), AgentError>) {
    transcript_with_replies(steps, input, Vec::new()).await
}

/// The same, with a host that answers what is asked, one reply after the other, each 10 ms later.
async fn transcript_with_replies(
    steps: Value,
    input: TurnInput,
    answers: Vec<AgentReply>,
) -> (String, Result<(), AgentError>) {
    let mut session = session(steps).await;
    let (sender, mut receiver) = mpsc::channel(1);
    let replies = PendingReplies::default();
    let began = Instant::now();
    let listen = async {
        let mut lines = String::new();
        let mut answers = answers.into_iter();
        while let Some(event) = receiver.recv().await {
            lines.push_str(&format!("{} {}\n", began.elapsed().as_millis(), line(&event)));
            if event.awaits().is_some() {
                tokio::time::advance(Duration::from_millis(10)).await;
                replies.deliver(answers.next().unwrap()).unwrap();
            }
        }
        assert_eq!(answers.next(), None, "everything was asked");
        lines
    };
    let turn = async {
        let events = channel_sink(sender, replies.clone());
        session.turn(input, &events).await
    };
    tokio::join!(listen, turn)
}

fn line(event: &AgentEvent) -> String {
    let name = |part: &u64| format!("{}.{}", part >> 32, part & 0xffff_ffff);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match event {
        AgentEvent::PartOpened { part, kind } => format!("open {} {kind:?}", name(part)),
        AgentEvent::Text { part, text } => format!("text {} {text:?}", name(part)),
        AgentEvent::Checkpoint(bytes) => format!("checkpoint {}", text(bytes)),
        AgentEvent::ContentRef(content) => {
            let content_type = content.content_type.as_deref();
            format!("content {} {:?}", content_type.unwrap(), content.uri)
        }
        AgentEvent::ToolStarted { call, start } => {
            let title = &start.display_name;
            format!("start {} {} {title:?}", name(call), start.name)
        }
        AgentEvent::ToolInput { call, text } => format!("input {} {text:?}", name(call)),
        AgentEvent::ToolReady { call, ready } => {
            let fields = Value::Object(ready.clone().into_object());
            format!("ready {} {fields}", name(call))
        }
        AgentEvent::ToolContent { call, content } => {
            format!("update {} {}", name(call), Value::from(content.clone()))
        }
        AgentEvent::ToolCompleted { call, result, review } => {
            let review = if *review { " for review" } else { "" };
            let result = Value::Object(result.clone().into_object());
            format!("completed {} {result}{review}", name(call))
        }
        AgentEvent::ClientTool { call, name: tool, input, timeout_ms } => {
            format!("client tool {} {tool} {input} {timeout_ms} ms", name(call))
        }
        AgentEvent::InputRequested { ask, request } => {
            let request = Value::Object(request.clone().into_object());
            format!("ask {} {request}", name(ask))
        }
        AgentEvent::SteerPoint { steer } => format!("steer {}", name(steer)),
        AgentEvent::SettingsRequested { ask } => format!("settings {}", name(ask)),
        AgentEvent::Render { sections, .. } => format!("render {}", sections.len()),
        AgentEvent::Spawned { call, worker } => format!(
            "spawn {} {:?} {:?} {:?} {:?} {}",
            name(call),
            worker.title,
            worker.interactivity,
            worker.agent_name,
            worker.task,
            text(&worker.brief)
        ),
        // The other events have no line of their own: no script sends them, or their names say all.
        other => format!("{other:?}"),
    }
}

async fn check(steps: Value, text: &str, expected: Expect) {
    check_with_replies(steps, text, Vec::new(), expected).await;
}

async fn check_with_replies(steps: Value, text: &str, answers: Vec<AgentReply>, expected: Expect) {
    let (mut lines, result) = transcript_with_replies(steps, input(text), answers).await;
    lines.push_str(&match result {
        Ok(()) => "complete\n".to_owned(),
        Err(error) => {
            format!(
                "failed {} {:?} resumable {}\n",
                error.error_type, error.message, error.resumable
            )
        }
    });
    expected.assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn text_is_one_part_and_one_event_a_chunk() {
    let steps = json!([{"think": ["Hm"]}, {"say": ["Hel", "lo $2"]}]);
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        0 open 0.0 Reasoning
        0 text 0.0 "Hm"
        0 checkpoint {"step":2}
        0 open 1.0 Markdown
        0 text 1.0 "Hel"
        0 text 1.0 "lo you"
        complete
    "#]];
    check(steps, "greet you", expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_the_requested_rate_and_sizes() {
    let steps = json!([{"stream": {"chunks": "$2", "size": "5", "every_ms": 50}}, {"parts": 2}]);
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        0 open 0.0 Markdown
        0 text 0.0 "0 abc"
        50 text 0.0 "1 abc"
        100 text 0.0 "2 abc"
        100 checkpoint {"step":2}
        100 open 1.0 Markdown
        100 open 1.1 Markdown
        complete
    "#]];
    check(steps, "stream 3", expected).await;
}

#[tokio::test(start_paused = true)]
async fn steps_other_than_text_send_their_own_events() {
    let steps = json!([
        {"title": "About $2"},
        {"activity": "Reading {{text}}"},
        {"wait_ms": "$2"},
        {"activity": null},
        {"activity": ""},
        {"notify": "{{last}}"},
        {"usage": {"inputTokens": "$2", "outputTokens": 4, "model": "$1", "_meta": {"$1": ["$1"]}}},
    ]);
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        0 Title("About 70")
        0 checkpoint {"step":2}
        0 Activity(Some("Reading wait 70"))
        0 checkpoint {"step":3}
        70 checkpoint {"step":4}
        70 Activity(None)
        70 checkpoint {"step":5}
        70 Activity(None)
        70 checkpoint {"step":6}
        70 Notice { text: "{}" }
        70 checkpoint {"step":7}
        70 Usage(UsageInfo { input_tokens: Some(70), output_tokens: Some(4), model: Some("wait"), cache_read_tokens: None, meta: Some({"$1": Array [String("wait")]}) })
        complete
    "#]];
    check(steps, "wait 70", expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_has_the_message_of_the_script() {
    let whole = json!([{"fail": {"type": "$1", "message": "no $2", "resumable": true}}]);
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        failed out "no luck" resumable true
    "#]];
    check(whole, "out luck", expected).await;
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        failed scripted "the script says: fail" resumable false
    "#]];
    check(json!([{"fail": {}}]), "out", expected).await;
}

#[tokio::test(start_paused = true)]
async fn an_invalid_number_after_substitution_is_reported_with_its_position() {
    let steps = json!([{"title": "t"}, {"stream": {"chunks": "$2"}}]);
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        0 Title("t")
        0 checkpoint {"step":2}
        failed scripted "scenes[0].steps[1].stream.chunks: \"many\" is not a whole number of at least 0" resumable false
    "#]];
    check(steps, "stream many", expected).await;
    let expected = expect![[r#"
        0 checkpoint {"step":1}
        failed scripted "scenes[0].steps[0].stream.size: a chunk has at most 16777216 bytes" resumable false
    "#]];
    check(json!([{"stream": {"chunks": 1, "size": "$2"}}]), "stream 99999999999", expected).await;
}

#[tokio::test(start_paused = true)]
async fn typing_waits_between_chunks_only() {
    let mut typing = input("x");
    typing.config.insert("pace".to_owned(), json!("typing"));
    let (lines, _) = transcript(json!([{"say": ["a", "b", "c"]}]), typing).await;
    expect![[r#"
        0 checkpoint {"step":1}
        0 open 0.0 Markdown
        0 text 0.0 "a"
        20 text 0.0 "b"
        40 text 0.0 "c"
    "#]]
    .assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_turn_goes_on_after_the_step_it_stopped_in() {
    let steps = json!([{"say": ["a"]}, {"fail": {"resumable": true}}, {"say": ["b"]}]);
    let (lines, result) = transcript(steps.clone(), input("x")).await;
    assert!(result.unwrap_err().resumable);
    assert!(lines.ends_with("checkpoint {\"step\":2}\n"), "{lines}");

    let resumed =
        TurnInput { resume: Some(Some(Bytes::from_static(br#"{"step":2}"#))), ..input("x") };
    let (lines, result) = transcript(steps.clone(), resumed).await;
    assert_eq!(result, Ok(()));
    expect![[r#"
        0 checkpoint {"step":3}
        0 open 2.0 Markdown
        0 text 2.0 "b"
    "#]]
    .assert_eq(&lines);

    let died_in_the_last =
        TurnInput { resume: Some(Some(Bytes::from_static(br#"{"step":3}"#))), ..input("x") };
    assert_eq!(transcript(steps.clone(), died_in_the_last).await, (String::new(), Ok(())));

    let died_before_the_first = TurnInput { resume: Some(None), ..input("x") };
    assert!(transcript(steps.clone(), died_before_the_first).await.0.contains("text 0.0 \"a\""));

    let unreadable = TurnInput { resume: Some(Some(Bytes::from_static(b"?"))), ..input("x") };
    let error = transcript(steps, unreadable).await.1.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("checkpoint", false));
}

#[tokio::test(start_paused = true)]
async fn a_script_without_a_matching_scene_fails_with_a_message() {
    let script = Script::parse(r#"{"scenes": []}"#).unwrap();
    let (sender, mut receiver) = mpsc::channel(8);
    let mut session =
        ScriptedSession::new(Arc::new(script), Locale::English, SessionContext::default());
    session.turn(input("x"), &channel_sink(sender, PendingReplies::default())).await.unwrap();
    assert!(line(&receiver.recv().await.unwrap()).starts_with("checkpoint"));
    assert_eq!(line(&receiver.recv().await.unwrap()), "open 0.0 Markdown");
    assert!(line(&receiver.recv().await.unwrap()).contains("No scene"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_a_receiver_ends_without_an_error() {
    for steps in [
        json!([{"say": ["a"]}, {"fail": {}}]),
        json!([{"stream": {"chunks": 1_000_000_000_000_u64}}]),
        json!([{"parts": 1_000_000_000_000_u64}]),
        json!([{"ask": {"message": "?"}}, {"fail": {}}]),
    ] {
        let mut session = session(steps).await;
        let (sender, mut receiver) = mpsc::channel(1);
        let events = channel_sink(sender, PendingReplies::default());
        let listen = async move {
            receiver.recv().await;
        };
        let (result, ()) = tokio::join!(session.turn(input("x"), &events), listen);
        assert_eq!(result, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_a_stream_between_two_chunks() {
    let mut session = session(json!([{"stream": {"chunks": 1_000_000_000}}])).await;
    let (sender, mut receiver) = mpsc::channel(4_096);
    let events = channel_sink(sender.clone(), PendingReplies::default());
    let turn = tokio::spawn(async move { session.turn(input("x"), &events).await });
    for _ in 0..10 {
        receiver.recv().await.unwrap();
    }
    turn.abort();
    assert!(turn.await.unwrap_err().is_cancelled());
    while receiver.try_recv().is_ok() {}
    tokio::task::yield_now().await;
    assert!(receiver.try_recv().is_err(), "nothing comes after the cancel");
}

#[tokio::test(start_paused = true)]
async fn a_hang_ends_with_its_future_and_a_crash_kills_its_task() {
    let mut session_that_hangs = session(json!([{"hang": true}])).await;
    let (sender, _receiver) = mpsc::channel(8);
    let events = channel_sink(sender, PendingReplies::default());
    let turn = session_that_hangs.turn(input("x"), &events);
    let waited = tokio::time::timeout(Duration::from_secs(3_600), turn).await;
    assert!(waited.is_err(), "it hangs as long as anyone waits");

    let mut session_that_crashes = session(json!([{"crash": true}])).await;
    let turn = tokio::spawn(async move { session_that_crashes.turn(input("x"), &events).await });
    assert!(turn.await.unwrap_err().is_panic());
}
