//! A whole conversation with the native agent: what the model is sent, and what people see of its answers.

use conformance::native::{
    NativeHarness, SESSION, calls_of, messages, parts_of, script_of, texts_in,
};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

/// What two requests used (G-45): the last one, and the sums beside it.
fn last_call_and_sums() -> Value {
    json!({
        "model": "echo", "inputTokens": 150, "outputTokens": 7,
        "_meta": {"turn": {"inputTokens": 250, "outputTokens": 27}, "contextUsed": 157},
    })
}

#[tokio::test]
async fn text_reasoning_and_parallel_calls_reach_clients_and_the_next_request() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.write("b.txt", "two\n");
    let gate = Gate::new();
    harness.model.answers([
        Answer::thinks(["hm", "m"])
            .then_streams(["Let me ", "look."])
            .then_calls([
                Call::new("call_a", "read", &json!({"path": "a.txt"})),
                Call::new("call_b", "read", &json!({"path": "b.txt"})),
            ])
            .waits(&gate)
            .split_at_every_byte()
            .with_usage(100, 20),
        Answer::streams(["One and ", "two."]).with_usage(150, 7),
    ]);
    harness.ann.sends_message("What is in the files?").await;
    gate.reached().await;
    // All of it is there before the answer is over: the input too.
    let chat = harness
        .ann
        .until("the calls stream", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let whole = |call: &Value| {
                let input = call["partialInput"].as_str().unwrap_or("");
                input.ends_with(".txt\"}")
            };
            calls.len() == 2 && calls.iter().all(whole)
        })
        .await;
    let turn = &chat["activeTurn"];
    assert_eq!(texts_in(turn, "reasoning"), ["hmm"]);
    assert_eq!(texts_in(turn, "markdown"), ["Let me look."]);
    assert!(calls_of(turn).iter().all(|call| call["status"] == "streaming"));
    gate.open();
    let turn = harness.ann.completed_turn().await;
    assert_eq!(texts_in(&turn, "markdown"), ["Let me look.", "One and two."]);
    let kinds: Vec<&Value> =
        turn["responseParts"].as_array().unwrap().iter().map(|part| &part["kind"]).collect();
    assert_eq!(kinds, ["reasoning", "markdown", "toolCall", "toolCall", "markdown"]);
    for call in calls_of(&turn) {
        assert_eq!(call["status"], "completed", "{call:#}");
        assert_eq!(call["confirmed"], "not-needed");
    }
    assert_eq!(turn["usage"], last_call_and_sums());
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 2);
    let (first, second) = (requests[0].json(), requests[1].json());
    check_requests(&first, &second);
    let system = first["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains(&harness.work().display().to_string()), "{system}");
}

/// What the model is sent before and after the calls.
fn check_requests(first: &Value, second: &Value) {
    assert_eq!((&first["model"], &first["stream"]), (&json!("echo"), &json!(true)));
    assert_eq!(first["tools"], second["tools"]);
    assert_eq!(first["messages"][0], second["messages"][0]);
    expect![[r#"
        [
          {
            "role": "user",
            "content": "What is in the files?"
          },
          {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
              {
                "id": "call_a",
                "type": "function",
                "function": {
                  "name": "read",
                  "arguments": "{\"path\":\"a.txt\"}"
                }
              },
              {
                "id": "call_b",
                "type": "function",
                "function": {
                  "name": "read",
                  "arguments": "{\"path\":\"b.txt\"}"
                }
              }
            ],
            "reasoning_content": "hmm"
          },
          {
            "role": "tool",
            "tool_call_id": "call_a",
            "content": "     1\tone\n"
          },
          {
            "role": "tool",
            "tool_call_id": "call_b",
            "content": "     1\ttwo\n"
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&messages(second)).unwrap());
    let names: Vec<&str> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    let own = [
        "read",
        "view_image",
        "list",
        "glob",
        "grep",
        "write",
        "edit",
        "bash",
        "bash_output",
        "bash_kill",
        "web_fetch",
        "todo",
        "ask_user",
        "task",
    ];
    assert_eq!(names, own);
}

#[tokio::test]
async fn a_session_is_named_after_its_first_message() {
    let mut harness = NativeHarness::start().await;
    harness.talk("\n  Fix the tests \nplease", [Answer::streams(["ok"])]).await;
    let titled = |state: &Value| state["title"] == "Fix the tests";
    harness.ann.until_session(SESSION, titled).await;
    harness.talk("another", [Answer::streams(["ok"])]).await;
    assert!(titled(&harness.ann.sees_session(SESSION)));
}

#[tokio::test]
async fn steering_is_taken_between_rounds_and_queued_messages_come_after() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let gate = Gate::new();
    let read = || Call::new("x", "read", &json!({"path": "a.txt"}));
    harness.model.answers([
        Answer::calls([read()]).waits(&gate),
        Answer::calls([read()]),
        Answer::streams(["done"]),
        Answer::streams(["and this"]),
    ]);
    harness.ann.sends_message("go").await;
    gate.reached().await;
    harness.ann.leaves_word("queued", "q", "then that").await;
    harness.ann.leaves_word("steering", "s", "no, left").await;
    harness
        .ann
        .until("both wait", |chat| {
            chat["steeringMessage"]["id"] == "s" && chat["queuedMessages"][0]["id"] == "q"
        })
        .await;
    gate.open();
    harness
        .ann
        .until("two turns", |chat| {
            chat["activeTurn"].is_null() && chat["turns"].as_array().unwrap().len() == 2
        })
        .await;
    let chat = harness.ann.sees();
    assert!(chat["steeringMessage"].is_null() && chat["queuedMessages"].is_null(), "{chat:#}");
    let notices = parts_of(&chat["turns"][0], "systemNotification");
    let contents: Vec<&Value> = notices.iter().map(|part| &part["content"]).collect();
    assert_eq!(contents, ["You added: no, left"], "people find it too");
    let requests = harness.model.requests();
    let script = |number: usize| script_of(&messages(&requests[number].json()));
    expect![[r#"
        user: go
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        user: no, left
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

    "#]]
    .assert_eq(&script(2));
    expect![[r#"
        user: go
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        user: no, left
        assistant: - [read {"path":"a.txt"}]
        tool:      1	one

        assistant: done
        user: then that
    "#]]
    .assert_eq(&script(3));
}

#[tokio::test]
async fn a_message_may_name_its_model_but_no_strange_one() {
    let mut harness = NativeHarness::start().await;
    harness.ann.sends_to_model("hi", json!({"id": "gpt-9"})).await;
    let reason = harness.ann.refused().await;
    assert!(reason.contains("no model with this id"), "{reason}");
    assert_eq!(harness.model.requests().len(), 0);
    harness.model.answers([Answer::streams(["hello"])]);
    harness.ann.sends_to_model("hi", json!({"id": "echo"})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(texts_in(&turn, "markdown"), ["hello"]);
    assert_eq!(turn["message"]["model"]["id"], "echo");
}

#[tokio::test]
async fn settings_of_a_message_are_checked_and_only_used_ones_are_recorded() {
    let mut harness = NativeHarness::start_with_model(json!({}), |model| {
        model.settings = Some(json!({
            "temperature": {"type": "number", "minimum": 0, "maximum": 2},
            "effort": {"type": "string", "enum": ["low", "high"]},
        }));
    })
    .await;
    for (bad, why) in [
        (json!({"temperature": 3}), "`temperature` must be at most 2"),
        (json!({"temperature": -1}), "`temperature` must be at least 0"),
        (json!({"effort": "some"}), "`effort` must be one of"),
    ] {
        let model = json!({"id": "echo", "config": bad});
        harness.ann.sends_to_model("hi", model).await;
        let reason = harness.ann.refused().await;
        assert!(reason.contains(why), "{reason}");
    }
    assert_eq!(harness.model.requests().len(), 0);
    harness.model.answers([Answer::streams(["hello"])]);
    let settings = json!({"temperature": 0.5, "seed": 7, "effort": "low"});
    let model = json!({"id": "echo", "config": settings});
    harness.ann.sends_to_model("hi", model).await;
    let turn = harness.ann.turn_over().await;
    let used = json!({"temperature": 0.5, "effort": "low"});
    assert_eq!(turn["message"]["model"]["config"], used);
    let asked = harness.model.requests()[0].json();
    assert_eq!(
        (&asked["temperature"], &asked["effort"], &asked["seed"]),
        (&json!(0.5), &json!("low"), &Value::Null)
    );
}

#[tokio::test]
async fn a_model_without_tools_is_offered_none() {
    let mut harness = NativeHarness::start_with_model(json!({}), |model| {
        model.tools = Some(false);
        model.output_tokens = Some(77);
        model.model = Some("vendor/echo-7b".to_owned());
        model.headers.insert("x-team".to_owned(), "green".to_owned());
    })
    .await;
    let answer = Answer::streams(["cut"]).finishes("length").without_usage();
    let turn = harness.talk("hi", [answer]).await;
    let requests = harness.model.requests();
    let body = requests[0].json();
    assert_eq!(body["model"], "vendor/echo-7b");
    assert!(body.get("tools").is_none(), "{body:#}");
    assert_eq!(requests[0].header("x-team"), Some("green"));
    assert!(body.to_string().contains("77"), "{body:#}");
    assert!(turn["usage"].is_null(), "a server that counts nothing: {turn:#}");
    let notices = parts_of(&turn, "systemNotification");
    assert!(notices[0].to_string().contains("output limit"), "{turn:#}");
}
