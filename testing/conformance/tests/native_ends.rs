//! Turns that end before they are over: cancelled, cut off, dead; and how they go on.

use std::path::Path;
use std::time::{Duration, Instant};

use conformance::native::{NativeHarness, bash, calls_of, error_of, script_of, texts_in};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

fn read(path: &str) -> Call {
    Call::new("call_read", "read", &json!({"path": path}))
}

/// Three processes of three generations, one of them in a group of its own; they print their ids.
const TREE: &str = "sleep 1000 & echo pid:$!; set -m; sleep 1001 & echo pid:$!; set +m; \
                    (sh -c 'echo pid:$$; sleep 1002; true') & echo ready; wait";

fn pids(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("pid:"));
    lines.map(str::to_owned).collect()
}

/// A zombie counts as dead.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

async fn all_die(pids: &[String]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(Instant::now() < deadline, "{pids:?} live on");
        tokio::task::yield_now().await;
    }
}

/// What a call shows while it runs.
fn texts(chat: &Value) -> String {
    let calls = calls_of(&chat["activeTurn"]);
    let content = calls.first().map(|call| call["content"].clone());
    let text = content.unwrap_or_default()[0]["text"].clone();
    text.as_str().unwrap_or("").to_owned()
}

#[tokio::test]
async fn a_cancel_ends_the_turn_at_once_and_every_process_of_its_command() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.model.answers([Answer::calls([bash(TREE)])]);
    harness.ann.sends_message("run").await;
    let chat = harness
        .ann
        .until("the command runs", |chat| {
            let text = texts(chat);
            text.contains("ready") && pids(&text).len() == 3
        })
        .await;
    let pids = pids(&texts(&chat));
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled");
    assert_eq!(calls_of(&turn)[0]["status"], "cancelled");
    all_die(&pids).await;
    assert_eq!(harness.model.requests().len(), 1, "no further request");
    harness.talk("and now?", [Answer::streams(["ok"])]).await;
    let sent = script_of(&harness.last_messages()).replace(TREE, "TREE");
    expect![[r#"
        user: run
        assistant: - [bash {"command":"TREE"}]
        tool: The call was interrupted; what it did until then is not known.
        user: and now?
    "#]]
    .assert_eq(&sent);
}

#[tokio::test]
async fn a_cancel_in_mid_stream_aborts_the_request() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([Answer::streams_forever("la ")]);
    harness.ann.sends_message("sing").await;
    harness.ann.until("it sings", |chat| chat["activeTurn"].to_string().contains("la la")).await;
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled");
    harness.model.abandoned(1).await;
}

#[tokio::test]
async fn a_cancel_before_the_first_word_aborts_the_request() {
    let mut harness = NativeHarness::start().await;
    let never = Gate::new();
    harness.model.answers([Answer::streams(["x"]).begins_after(&never)]);
    harness.ann.sends_message("hello?").await;
    harness.model.asked(1).await;
    harness.ann.until("it runs", |chat| !chat["activeTurn"].is_null()).await;
    harness.ann.cancels().await;
    assert_eq!(harness.ann.turn_over().await["state"], "cancelled");
    harness.model.abandoned(1).await;
}

#[tokio::test]
async fn a_cancel_while_a_call_asks_runs_nothing() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([Answer::calls([bash("touch made")])]);
    harness.ann.sends_message("run").await;
    harness.ann.asked().await;
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(
        (&turn["state"], &calls_of(&turn)[0]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    assert!(!harness.work().join("made").exists());
    assert_eq!(harness.model.requests().len(), 1);
}

#[tokio::test]
async fn a_truncate_of_a_running_turn_stops_it_like_a_cancel() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.model.answers([Answer::calls([bash(TREE)])]);
    harness.ann.sends_message("run").await;
    let chat = harness.ann.until("the command runs", |chat| pids(&texts(chat)).len() == 3).await;
    let pids = pids(&texts(&chat));
    harness.ann.does(json!({"type": "chat/truncated"})).await;
    harness.ann.until("nothing is left", |chat| chat["activeTurn"].is_null()).await;
    all_die(&pids).await;
    harness.talk("anew", [Answer::streams(["ok"])]).await;
    expect![[r#"
        user: anew
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed_where_it_stopped() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let gate = Gate::new();
    let answers = [
        Answer::calls([read("a.txt")]).waits(&gate),
        Answer::calls([read("a.txt")]),
        Answer::streams(["The file ", "says"]).cuts(),
    ];
    harness.model.answers(answers);
    harness.ann.sends_message("go").await;
    gate.reached().await;
    harness.ann.leaves_word("steering", "s", "in German").await;
    harness.ann.until("it waits", |chat| chat["steeringMessage"]["id"] == "s").await;
    gate.open();
    let turn = harness.ann.turn_over().await;
    let error = error_of(&turn);
    assert_eq!(error["resumable"], true, "{error:#}");
    assert_eq!(texts_in(&turn, "markdown"), ["The file says"]);
    harness.model.answers([
        Answer::streams([" eins."]).then_calls([read("a.txt")]),
        Answer::streams(["Done."]),
    ]);
    harness.ann.resumes(&turn).await;
    harness.ann.until("it goes on", |chat| chat["turns"][0]["state"] == "complete").await;
    let requests = harness.model.requests();
    let script =
        |number: usize| script_of(&conformance::native::messages(&requests[number].json()));
    expect![[r#"
        user: go
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        user: in German
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        assistant: The file says
        user: Your answer was interrupted. Go on exactly where it stopped.
    "#]]
    .assert_eq(&script(3));
    expect![[r#"
        user: go
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        user: in German
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        assistant: The file says
        user: Your answer was interrupted. Go on exactly where it stopped.
        assistant:  eins. [read {"path":"a.txt"}]
        tool:      1	one

    "#]]
    .assert_eq(&script(4));
}

#[tokio::test]
async fn a_turn_that_dies_with_its_host_goes_on_after_a_restart() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\n");
    harness.model.answers([
        Answer::streams(["First."]).then_calls([read("a.txt")]),
        Answer::calls([bash(TREE)]),
    ]);
    harness.ann.sends_message("go").await;
    let chat = harness
        .ann
        .until("the command runs", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let last = calls.last().map(|call| call["content"][0]["text"].to_string());
            last.is_some_and(|text| text.contains("ready") && text.matches("pid:").count() == 3)
        })
        .await;
    let call = calls_of(&chat["activeTurn"])[1].clone();
    let pids = pids(call["content"][0]["text"].as_str().unwrap());
    assert_eq!(pids.len(), 3);
    harness.restart().await;
    all_die(&pids).await;
    let chat = harness.ann.sees();
    let turn = chat["turns"][0].clone();
    assert_eq!(error_of(&turn)["resumable"], true);
    harness.model.answers([Answer::streams(["Again."])]);
    harness.ann.resumes(&turn).await;
    harness.ann.until("it goes on", |chat| chat["turns"][0]["state"] == "complete").await;
    let sent = script_of(&harness.last_messages()).replace(TREE, "TREE");
    expect![[r#"
        user: go
        assistant: First. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: - [bash {"command":"TREE"}]
        tool: The host was stopped before this was over. The command's end was not seen; what it had done until then is not undone. Nothing of it runs any more.
    "#]]
    .assert_eq(&sent);
}

#[tokio::test]
async fn a_turn_that_dies_while_it_asks_asks_anew_if_the_model_still_wants_it() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([Answer::calls([bash("touch made")])]);
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    harness.restart().await;
    let turn = harness.ann.sees()["turns"][0].clone();
    assert_eq!(error_of(&turn)["resumable"], true);
    assert_ne!(calls_of(&turn)[0]["status"], "pending-confirmation");
    harness.model.answers([Answer::calls([bash("touch made")]), Answer::streams(["ok"])]);
    harness.ann.resumes(&turn).await;
    let again = harness.ann.decides(json!({})).await;
    assert_ne!(asked["toolCallId"], again["toolCallId"]);
    harness.ann.until("it goes on", |chat| chat["turns"][0]["state"] == "complete").await;
    assert!(harness.work().join("made").exists());
    expect![[r#"
        user: go
        assistant: - [bash {"command":"touch made"}]
        tool: The host was stopped before this was over. It had changed nothing yet.
        assistant: - [bash {"command":"touch made"}]
        tool: [no output]
        [exit code 0]
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
}
