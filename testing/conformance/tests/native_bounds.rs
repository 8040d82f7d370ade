//! The native agent at its edges: long outputs, endless circles, several chats at once, strange places.

use conformance::native::{
    ChatClient, NativeHarness, SESSION, bash, calls_of, ends, error_of, messages, script_of,
    texts_in,
};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

#[tokio::test]
async fn a_long_output_is_sent_in_part_and_stored_whole() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let answers = [Answer::calls([bash("seq 1 100000")]), ends()];
    let turn = harness.talk("count", answers).await;
    let output = harness.last_results().remove(0);
    assert!(output.len() < 64 * 1_024, "{} bytes for the model", output.len());
    assert!(output.contains("100000"), "the end is there");
    let call = &calls_of(&turn)[0];
    let content = call["content"].as_array().unwrap();
    let whole = content
        .iter()
        .find(|block| block["type"] == "resource")
        .unwrap_or_else(|| panic!("{call:#}"));
    let whole = harness.ann.reads(&whole["uri"]).await;
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!((lines[0], lines[99_999]), ("1", "100000"));
    harness.talk("again", [ends()]).await;
    let again = harness.last_results().remove(0);
    assert_eq!(again, output, "later turns hold what the model got, no more");
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_stopped_and_may_go_on() {
    let mut harness = NativeHarness::start().await;
    let circle = || Answer::calls([Call::new("c", "list", &json!({}))]);
    let turn = harness.talk("go", std::iter::repeat_with(circle).take(100)).await;
    let error = error_of(&turn);
    assert_eq!(error["resumable"], true);
    assert_eq!(harness.model.requests().len(), 100);
    harness.model.answers([ends()]);
    harness.ann.resumes(&turn).await;
    let over = |chat: &Value| chat["turns"][0]["state"] == "complete";
    harness.ann.until("it goes on", over).await;
    assert_eq!(harness.last_messages().len(), 1 + 200);
}

#[tokio::test]
async fn edits_of_one_round_are_made_one_after_the_other() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "accept-edits"})).await;
    harness.write("a.txt", "one two three\n");
    let edit = |id: &str, old: &str, new: &str| {
        let edits = json!([{"old_text": old, "new_text": new}]);
        Call::new(id, "edit", &json!({"path": "a.txt", "edits": edits}))
    };
    let read = Call::new("r", "read", &json!({"path": "a.txt"}));
    let edits = [edit("1", "one", "1"), edit("2", "two", "2"), edit("3", "three", "3")];
    let turn = harness.talk("go", [Answer::calls([read]), Answer::calls(edits), ends()]).await;
    let success: Vec<Value> =
        calls_of(&turn)[1..].iter().map(|call| call["success"].clone()).collect();
    let text = harness.read("a.txt");
    // Whatever was reported as done is in the file, and nothing else is.
    for (made, success) in [("1", &success[0]), ("2", &success[1]), ("3", &success[2])] {
        assert_eq!(text.contains(made), *success == true, "{text} {success:?}");
    }
    assert_eq!(text, "1 2 3\n");
}

#[tokio::test]
async fn approvals_in_two_chats_at_once_count_in_both() {
    let mut harness = NativeHarness::start().await;
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    let params = json!({"channel": SESSION, "chat": "ahp-chat:/second"});
    bob.connection.request("createChat", params).await.unwrap();
    bob.enters(SESSION, "ahp-chat:/second").await;
    let (one, two) = ("echo one", "echo two");
    harness.model.answers_to("from ann", [Answer::calls([bash(one)])]);
    harness.model.answers_to("from bob", [Answer::calls([bash(two)])]);
    harness.model.answers([ends(), ends()]);
    harness.ann.sends_message("from ann").await;
    bob.sends_message("from bob").await;
    // Both ask before anything is remembered.
    harness.ann.asked().await;
    bob.asked().await;
    let choice = json!({"selectedOptionId": "approve-session"});
    harness.ann.decides(choice.clone()).await;
    harness.ann.turn_over().await;
    bob.decides(choice).await;
    bob.turn_over().await;
    let both = [
        Call::new("1", "bash", &json!({"command": one})),
        Call::new("2", "bash", &json!({"command": two})),
    ];
    let turn = harness.talk("both", [Answer::calls(both), ends()]).await;
    let confirmed: Vec<Value> =
        calls_of(&turn).iter().map(|call| call["confirmed"].clone()).collect();
    assert_eq!(confirmed, ["setting", "setting"]);
}

#[tokio::test]
async fn a_stream_cut_in_the_middle_of_a_call_runs_nothing_of_it() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let begins = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\": \"touch made"}}]});
    let turn = harness.talk("go", [Answer::streams(["So:"]).delta(&begins).cuts()]).await;
    assert_eq!(error_of(&turn)["resumable"], true);
    assert!(!harness.work().join("made").exists());
    harness.model.answers([ends()]);
    harness.ann.resumes(&turn).await;
    let over = |chat: &Value| chat["turns"][0]["state"] == "complete";
    harness.ann.until("it goes on", over).await;
    let messages = harness.last_messages();
    expect![[r#"
        user: go
        assistant: So:
        user: Your answer was interrupted. Go on exactly where it stopped.
    "#]]
    .assert_eq(&script_of(&messages));
}

#[tokio::test]
async fn settings_of_a_message_reach_the_model_and_strange_ones_do_not() {
    let mut harness = NativeHarness::start_with_model(json!({}), |model| {
        model.settings =
            Some(json!({"temperature": {"type": "number", "minimum": 0, "maximum": 2}}));
    })
    .await;
    harness.model.answers([ends()]);
    let model = json!({"id": "echo", "config": {"temperature": 0.5}});
    harness.ann.sends_to_model("hi", model).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.model.requests()[0].json()["temperature"], 0.5);
    let model = json!({"id": "echo", "config": {"temperature": "hot"}});
    harness.ann.sends_to_model("hi", model).await;
    let reason = harness.ann.refused().await;
    assert!(reason.contains("`temperature`"), "{reason}");
    harness.model.answers([ends()]);
    let strange =
        json!({"messages": [], "model": "other", "logit_bias": {"1": 100}, "max_tokens": 1});
    let model = json!({"id": "echo", "config": strange});
    harness.ann.sends_to_model("hi", model).await;
    harness.ann.turn_over().await;
    let body = harness.model.requests()[1].json();
    assert_eq!((&body["model"], messages(&body).len()), (&json!("echo"), 3));
    assert!(body.get("logit_bias").is_none() && body.get("max_tokens").is_none(), "{body:#}");
}

#[tokio::test]
async fn a_missing_working_directory_is_an_error_with_a_message() {
    let mut harness = NativeHarness::start().await;
    std::fs::remove_dir_all(harness.work()).unwrap();
    let list = Call::new("l", "list", &json!({}));
    harness.model.answers([Answer::calls([list]), ends()]);
    harness.ann.sends_message("look").await;
    let turn = harness.ann.turn_over().await;
    let output = turn.to_string();
    assert!(output.contains("work"), "{turn:#}");
    assert!(turn["state"] == "error" || calls_of(&turn)[0]["success"] == false, "{turn:#}");
}

#[tokio::test]
async fn a_second_person_decides_for_the_first_and_both_see_the_same() {
    let mut harness = NativeHarness::start().await;
    let chat = harness.ann.chat.clone();
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    bob.enters(SESSION, chat.as_str()).await;
    harness.model.answers([Answer::calls([bash("echo hi")]), ends()]);
    harness.ann.sends_message("go").await;
    bob.decides(json!({})).await;
    let turn = harness.ann.turn_over().await;
    let same = bob
        .until("it is over", |chat| {
            chat["activeTurn"].is_null() && chat["turns"][0]["state"] == "complete"
        })
        .await;
    assert_eq!(same["turns"][0], turn);
}

#[tokio::test]
async fn tool_input_is_streamed_also_if_it_is_long_and_split_badly() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let content = "äöü€🦀\"\\\n".repeat(500);
    let gate = Gate::new();
    let write = Call::new("w", "write", &json!({"path": "long.txt", "content": content}));
    let answer = Answer::calls([write]).split_at_every_byte().waits(&gate);
    harness.model.answers([answer, ends()]);
    harness.ann.sends_message("write").await;
    gate.reached().await;
    gate.open();
    harness.ann.turn_over().await;
    assert_eq!(harness.read("long.txt"), content);
}

#[tokio::test]
async fn text_around_calls_stays_where_it_was() {
    let mut harness = NativeHarness::start().await;
    let list = || Call::new("l", "list", &json!({}));
    let answer = Answer::streams(["before"]).then_calls([list()]).then_streams(["after"]);
    let turn = harness.talk("go", [answer, ends()]).await;
    assert_eq!(texts_in(&turn, "markdown"), ["before", "after", "done"]);
    let second = messages(&harness.model.requests()[1].json());
    assert_eq!(second[1]["content"], "beforeafter");
    harness.talk("again", [ends()]).await;
    expect![[r#"
        user: go
        assistant: before [list {}]
        tool: [nothing in .]
        assistant: afterdone
        user: again
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
}
