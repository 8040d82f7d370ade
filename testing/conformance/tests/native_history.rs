//! What the model is reminded of: earlier turns, as they are now, in this chat and in those made from it.

use conformance::native::{NativeHarness, SESSION, messages, script_of};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

fn reads(path: &str) -> Call {
    Call::new("call_1", "read", &json!({"path": path}))
}

/// The first turn of all that follow: a call, its result and a word.
async fn begun() -> NativeHarness {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let answers = [
        Answer::streams(["Looking."]).then_calls([reads("a.txt")]),
        Answer::streams(["It says one."]),
    ];
    harness.talk("first", answers).await;
    harness
}

/// What the model is sent when Ann says something now.
async fn is_sent(harness: &mut NativeHarness, text: &str, expected: &Expect) {
    harness.talk(text, [Answer::streams(["ok"])]).await;
    expected.assert_eq(&script_of(&harness.last_messages()));
}

/// The same where the first turn is remembered; `expected` is what comes after it.
async fn is_sent_after_first(harness: &mut NativeHarness, text: &str, expected: &Expect) {
    const FIRST: &str = "user: first\nassistant: Looking. [read {\"path\":\"a.txt\"}]\n\
                         tool:      1\tone\n\nassistant: It says one.\n";
    harness.talk(text, [Answer::streams(["ok"])]).await;
    let script = script_of(&harness.last_messages());
    let rest = script.strip_prefix(FIRST);
    expected.assert_eq(rest.unwrap_or(&script));
}

fn turn_ids(harness: &NativeHarness) -> Vec<Value> {
    let chat = harness.ann.sees();
    let turns = chat["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["id"].clone()).collect()
}

#[tokio::test]
async fn the_next_turn_has_the_history_also_after_a_restart() {
    let mut harness = begun().await;
    let second = expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: second
    "#]];
    is_sent(&mut harness, "second", &second).await;
    let requests = harness.model.requests();
    let ids = |body: &Value| {
        let messages = messages(body);
        (messages[1]["tool_calls"][0]["id"].clone(), messages[2]["tool_call_id"].clone())
    };
    let (called, answered) = ids(&requests[2].json());
    assert_eq!(called, answered, "every call has its result");
    harness.restart().await;
    is_sent_after_first(
        &mut harness,
        "third",
        &expect![[r#"
        user: second
        assistant: ok
        user: third
    "#]],
    )
    .await;
}

#[tokio::test]
async fn truncation_rewinds_the_models_history() {
    let mut harness = begun().await;
    harness.talk("second", [Answer::streams(["two"])]).await;
    let first = turn_ids(&harness)[0].clone();
    let cut = json!({"type": "chat/truncated", "turnId": first});
    harness.ann.does(cut).await;
    is_sent_after_first(
        &mut harness,
        "instead",
        &expect![[r#"
        user: instead
    "#]],
    )
    .await;
    harness.ann.does(json!({"type": "chat/truncated"})).await;
    is_sent(
        &mut harness,
        "anew",
        &expect![[r#"
        user: anew
    "#]],
    )
    .await;
    harness.restart().await;
    is_sent(
        &mut harness,
        "again",
        &expect![[r#"
        user: anew
        assistant: ok
        user: again
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_fork_has_the_history_until_its_turn_and_is_separate_after_it() {
    let mut harness = begun().await;
    harness.talk("second", [Answer::streams(["two"])]).await;
    let main = harness.ann.chat.clone();
    let first = turn_ids(&harness)[0].clone();
    let source = json!({"kind": "fork", "chat": main.as_str(), "turnId": first});
    harness.ann.opens_chat("ahp-chat:/fork", source).await;
    is_sent_after_first(
        &mut harness,
        "in the fork",
        &expect![[r#"
        user: in the fork
    "#]],
    )
    .await;
    harness.ann.enters(SESSION, main.as_str()).await;
    is_sent_after_first(
        &mut harness,
        "at home",
        &expect![[r#"
        user: second
        assistant: two
        user: at home
    "#]],
    )
    .await;
    harness.restart().await;
    harness.ann.enters(SESSION, "ahp-chat:/fork").await;
    is_sent_after_first(
        &mut harness,
        "back in the fork",
        &expect![[r#"
        user: in the fork
        assistant: ok
        user: back in the fork
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_side_chat_has_the_running_turn_as_context_and_does_not_change_it() {
    let mut harness = begun().await;
    let main = harness.ann.chat.clone();
    let gate = Gate::new();
    let hangs = Answer::streams(["I am just ", "about to"]).waits(&gate);
    harness.model.answers_to("hang on", [hangs]);
    let running = harness.ann.sends_message("hang on").await;
    harness
        .ann
        .until("the half sentence", |chat| chat["activeTurn"].to_string().contains("about to"))
        .await;
    let source = json!({"kind": "sideChat", "chat": main.as_str(), "turnId": running});
    harness.ann.opens_chat("ahp-chat:/side", source).await;
    harness.model.answers_to("aside", [Answer::streams(["ok"])]);
    harness.ann.sends_message("aside").await;
    harness.ann.turn_over().await;
    expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: hang on
        assistant: I am just about to
        user: aside
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
    harness.ann.enters(SESSION, main.as_str()).await;
    gate.open();
    let idle = |chat: &Value| chat["activeTurn"].is_null();
    harness.ann.until("the turn ends", idle).await;
    is_sent_after_first(
        &mut harness,
        "at home",
        &expect![[r#"
        user: hang on
        assistant: I am just about to
        user: at home
    "#]],
    )
    .await;
    harness.restart().await;
    harness.ann.enters(SESSION, "ahp-chat:/side").await;
    is_sent_after_first(
        &mut harness,
        "again aside",
        &expect![[r#"
        user: hang on
        assistant: I am just about to
        user: aside
        assistant: ok
        user: again aside
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_small_model_is_reminded_of_the_newest_only_if_nothing_is_summarised() {
    let change = |model: &mut host::Model| model.context_tokens = Some(400);
    let settings = |host: &mut host::Config| host.auto_compact = false;
    let mut harness = NativeHarness::start_with_settings(json!({}), change, settings).await;
    let long = "x".repeat(500);
    for text in ["one", "two", "three"] {
        harness.talk(text, [Answer::streams([long.as_str()])]).await;
    }
    let sent = script_of(&harness.last_messages()).replace(&long, "…");
    expect![[r#"
        user: two
        assistant: …
        user: three
    "#]]
    .assert_eq(&sent);
}

/// Without summaries the oldest turns are left out, several at a time: in between each request begins with the messages of the one
/// before it, byte by byte, so that its server finds it in its cache.
#[tokio::test]
async fn what_is_left_out_of_a_long_chat_leaves_the_beginning_as_it_was() {
    let change = |model: &mut host::Model| model.context_tokens = Some(2_000);
    let settings = |host: &mut host::Config| host.auto_compact = false;
    let mut harness = NativeHarness::start_with_settings(json!({}), change, settings).await;
    let long = "x".repeat(500);
    for n in 0..20 {
        let text = format!("question {n}");
        harness.talk(&text, [Answer::streams([long.as_str()])]).await;
    }
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 20);
    let conversations: Vec<Vec<String>> = requests
        .iter()
        .map(|request| {
            let messages = request.json()["messages"].clone();
            let messages = messages.as_array().unwrap().iter();
            messages.map(Value::to_string).collect::<Vec<String>>()
        })
        .collect();
    let goes_on = |pair: &&[Vec<String>]| pair[1].starts_with(&pair[0]);
    let others: Vec<&[Vec<String>]> =
        conversations.windows(2).filter(|pair| !goes_on(pair)).collect();
    assert!((2..=6).contains(&others.len()), "turns were left out {} times", others.len());
    for pair in others {
        assert!(
            pair[1].len() + 4 < pair[0].len(),
            "several are left out at once: {} after {}",
            pair[1].len(),
            pair[0].len()
        );
    }
}
