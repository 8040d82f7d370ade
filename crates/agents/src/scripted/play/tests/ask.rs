//! Questions, steering, content by reference; and what is left of them when a turn is cancelled or resumed.

use wire::published::state::ChatInputResponseKind;

use super::*;

fn answered_with(response: ChatInputResponseKind, answers: Value) -> AgentReply {
    AgentReply::Answered {
        ask: 0,
        response,
        answers: answers.as_object().cloned().unwrap(),
        answered_by: None,
    }
}

fn asking() -> Value {
    json!([
        {"ask": {"message": "Which $2?", "url": "https://example.org/$2", "questions": [
            {"kind": "text", "id": "t", "message": "Say", "max": "$1"},
            {"kind": "multi-select", "id": "m", "message": "Pick", "options": [{"id": "$2", "label": "L"}]},
        ]}},
        {"say": ["{{last}}"]},
    ])
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_answers() {
    let answers = json!({"t": {"state": "submitted", "value": {"kind": "text", "value": "so"}}});
    let accepted = answered_with(ChatInputResponseKind::Accept, answers);
    check_with_replies(asking(), "12 one", vec![accepted], expect![[r#"
        0 checkpoint {"step":1}
        0 ask 0.0 {"message":"Which one?","url":"https://example.org/one","questions":[{"kind":"text","id":"t","message":"Say","max":12},{"kind":"multi-select","id":"m","message":"Pick","options":[{"id":"one","label":"L"}]}]}
        10 checkpoint {"step":2,"last":{"response":"accept","answers":{"t":{"state":"submitted","value":{"kind":"text","value":"so"}}}}}
        10 open 1.0 Markdown
        10 text 1.0 "{\"response\":\"accept\",\"answers\":{\"t\":{\"state\":\"submitted\",\"value\":{\"kind\":\"text\",\"value\":\"so\"}}}}"
        complete
    "#]]).await;
    let declined = answered_with(ChatInputResponseKind::Decline, json!({}));
    let (lines, _) = transcript_with_replies(asking(), input("12 one"), vec![declined]).await;
    assert!(lines.contains(r#"text 1.0 "{\"response\":\"decline\"}""#), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn steering_is_taken_at_the_scripts_steer_step() {
    let steps = json!([{"steer": true}, {"say": ["<{{steering}}>"]}, {"steer": true}, {"say": ["<{{steering}}>"]}]);
    let first = AgentReply::Steered {
        message_id: None,
        steer: 0,
        message: Some(json!({"text": "go $1 left"})),
    };
    let nothing = AgentReply::Steered { message_id: None, steer: 2 << 32, message: None };
    check_with_replies(
        steps,
        "x",
        vec![first, nothing],
        expect![[r#"
        0 checkpoint {"step":1}
        0 steer 0.0
        10 checkpoint {"step":2,"steering":"go $1 left"}
        10 open 1.0 Markdown
        10 text 1.0 "<go $1 left>"
        10 checkpoint {"step":3,"steering":"go $1 left"}
        10 steer 2.0
        20 checkpoint {"step":4,"steering":"go $1 left"}
        20 open 3.0 Markdown
        20 text 3.0 "<go $1 left>"
        complete
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn content_goes_out_whole_with_its_type() {
    let steps = json!([{"content_ref": {"text": "<$2/>", "type": "image/svg+xml"}}, {"content_ref": {"text": "t"}}]);
    check(
        steps,
        "show svg",
        expect![[r#"
        0 checkpoint {"step":1}
        0 content image/svg+xml "<svg/>"
        0 checkpoint {"step":2}
        0 content text/plain "t"
        complete
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait() {
    let steps = [
        json!([{"ask": {"message": "?"}}]),
        json!([{"steer": true}]),
        json!([{"tool": {"name": "a", "confirm": "ask"}}]),
        json!([{"tool": {"name": "a", "confirm_result": true}}]),
        json!([{"tool": {"name": "a", "reconfirm": "?"}}]),
        json!([{"client_tool": {"name": "a"}}]),
        json!([{"spawn": {"steps": []}}]),
    ];
    for steps in steps {
        let mut session = session(steps.clone()).await;
        let (sender, mut receiver) = mpsc::channel(8);
        let replies = PendingReplies::default();
        let events = channel_sink(sender, replies.clone());
        let turn = tokio::spawn(async move { session.turn(input("x"), &events).await });
        let asked = loop {
            let event = receiver.recv().await.unwrap();
            if event.awaits().is_some() {
                break event;
            }
        };
        turn.abort();
        assert!(turn.await.unwrap_err().is_cancelled(), "{steps}");
        assert_eq!(receiver.recv().await, None, "nothing comes after {asked:?}");
        let late = AgentReply::Steered { message_id: None, steer: 0, message: None };
        assert!(replies.deliver(late).is_err(), "not awaited: {steps}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_scene_still_knows_the_answers() {
    let steps = json!([
        {"ask": {"message": "?"}},
        {"steer": true},
        {"fail": {"resumable": true}},
        {"say": ["{{last}} {{steering}}"]},
    ]);
    let replies = vec![
        answered_with(ChatInputResponseKind::Accept, json!({})),
        AgentReply::Steered {
            message_id: None,
            steer: 1 << 32,
            message: Some(json!({"text": "left"})),
        },
    ];
    let (lines, result) = transcript_with_replies(steps.clone(), input("x"), replies).await;
    assert!(result.unwrap_err().resumable);
    let (_, checkpoint) = lines.rsplit_once("checkpoint ").unwrap();
    let resumed = TurnInput {
        resume: Some(Some(Bytes::copy_from_slice(checkpoint.trim().as_bytes()))),
        ..input("x")
    };
    let (lines, result) = transcript(steps, resumed).await;
    assert_eq!(result, Ok(()));
    expect![[r#"
        0 checkpoint {"step":4,"last":{"response":"accept"},"steering":"left"}
        0 open 3.0 Markdown
        0 text 3.0 "{\"response\":\"accept\"} left"
    "#]]
    .assert_eq(&lines);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_died_while_it_waited_goes_on_after_the_question() {
    let resumed =
        TurnInput { resume: Some(Some(Bytes::from_static(br#"{"step":1}"#))), ..input("12 one") };
    let (lines, result) = transcript(asking(), resumed).await;
    assert_eq!(result, Ok(()));
    assert!(lines.contains(r#"text 1.0 "{}""#), "{lines}");
}
