//! What the model is reminded of: earlier turns, as they are now, in this chat and in those made from it.

use conformance::stage::{SESSION, Stage, messages, script_of};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

fn reads(path: &str) -> Call {
    Call::new("call_1", "read", &json!({"path": path}))
}

/// The first turn of all that follow: a call, its result and a word.
async fn begun() -> Stage {
    let mut stage = Stage::set().await;
    stage.write("a.txt", "one\n");
    let answers = [
        Answer::says(["Looking."]).then_calls([reads("a.txt")]),
        Answer::says(["It says one."]),
    ];
    stage.talk("first", answers).await;
    stage
}

/// What the model is sent when Ann says something now.
async fn is_sent(stage: &mut Stage, text: &str, expected: &Expect) {
    stage.talk(text, [Answer::says(["ok"])]).await;
    expected.assert_eq(&script_of(&stage.last_messages()));
}

fn turn_ids(stage: &Stage) -> Vec<Value> {
    let chat = stage.ann.sees();
    let turns = chat["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["id"].clone()).collect()
}

#[tokio::test]
async fn the_next_turn_holds_the_last_ones_words_and_results_also_after_a_restart() {
    let mut stage = begun().await;
    let second = expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: second
    "#]];
    is_sent(&mut stage, "second", &second).await;
    let requests = stage.model.requests();
    let ids = |body: &Value| {
        let messages = messages(body);
        (
            messages[1]["tool_calls"][0]["id"].clone(),
            messages[2]["tool_call_id"].clone(),
        )
    };
    let (called, answered) = ids(&requests[2].json());
    assert_eq!(called, answered, "every call has its result");
    stage.restart().await;
    is_sent(
        &mut stage,
        "third",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: second
        assistant: ok
        user: third
    "#]],
    )
    .await;
}

#[tokio::test]
async fn truncation_rewinds_what_the_model_sees() {
    let mut stage = begun().await;
    stage.talk("second", [Answer::says(["two"])]).await;
    let first = turn_ids(&stage)[0].clone();
    let cut = json!({"type": "chat/truncated", "turnId": first});
    stage.ann.does(cut).await;
    is_sent(
        &mut stage,
        "instead",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: instead
    "#]],
    )
    .await;
    stage.ann.does(json!({"type": "chat/truncated"})).await;
    is_sent(
        &mut stage,
        "anew",
        &expect![[r#"
        user: anew
    "#]],
    )
    .await;
    stage.restart().await;
    is_sent(
        &mut stage,
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
async fn a_fork_knows_what_was_said_until_then_and_goes_its_own_way() {
    let mut stage = begun().await;
    stage.talk("second", [Answer::says(["two"])]).await;
    let main = stage.ann.chat.clone();
    let first = turn_ids(&stage)[0].clone();
    let source = json!({"kind": "fork", "chat": main.as_str(), "turnId": first});
    stage.ann.opens_chat("ahp-chat:/fork", source).await;
    is_sent(
        &mut stage,
        "in the fork",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: in the fork
    "#]],
    )
    .await;
    stage.ann.enters(SESSION, main.as_str()).await;
    is_sent(
        &mut stage,
        "at home",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: second
        assistant: two
        user: at home
    "#]],
    )
    .await;
    stage.restart().await;
    stage.ann.enters(SESSION, "ahp-chat:/fork").await;
    is_sent(
        &mut stage,
        "back in the fork",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: in the fork
        assistant: ok
        user: back in the fork
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_side_chat_knows_what_is_being_said_and_says_nothing_back() {
    let mut stage = begun().await;
    let main = stage.ann.chat.clone();
    let gate = Gate::new();
    let hangs = Answer::says(["I am just ", "about to"]).waits(&gate);
    stage.model.answers_to("hang on", [hangs]);
    let running = stage.ann.says("hang on").await;
    stage
        .ann
        .until("the half sentence", |chat| {
            chat["activeTurn"].to_string().contains("about to")
        })
        .await;
    let source = json!({"kind": "sideChat", "chat": main.as_str(), "turnId": running});
    stage.ann.opens_chat("ahp-chat:/side", source).await;
    stage.model.answers_to("aside", [Answer::says(["ok"])]);
    stage.ann.says("aside").await;
    stage.ann.turn_over().await;
    expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: hang on
        assistant: I am just about to
        user: aside
    "#]]
    .assert_eq(&script_of(&stage.last_messages()));
    stage.ann.enters(SESSION, main.as_str()).await;
    gate.open();
    let idle = |chat: &Value| chat["activeTurn"].is_null();
    stage.ann.until("the turn ends", idle).await;
    is_sent(
        &mut stage,
        "at home",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
        user: hang on
        assistant: I am just about to
        user: at home
    "#]],
    )
    .await;
    stage.restart().await;
    stage.ann.enters(SESSION, "ahp-chat:/side").await;
    is_sent(
        &mut stage,
        "again aside",
        &expect![[r#"
        user: first
        assistant: Looking. [read {"path":"a.txt"}]
        tool:      1	one

        assistant: It says one.
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
async fn a_small_model_is_reminded_of_the_newest_only() {
    let mut stage = Stage::set_up(json!({}), |model| model.context_tokens = Some(400)).await;
    let long = "x".repeat(500);
    for text in ["one", "two", "three"] {
        stage.talk(text, [Answer::says([long.as_str()])]).await;
    }
    let sent = script_of(&stage.last_messages()).replace(&long, "…");
    expect![[r#"
        user: two
        assistant: …
        user: three
    "#]]
    .assert_eq(&sent);
}
