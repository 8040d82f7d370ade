//! Servers of Chat Completions that want back what they add to an answer: thoughts, and signatures of calls.

use conformance::native::{NativeHarness, messages, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call, CapturedRequest};

/// As DeepSeek words it.
const MISSING: &str =
    "The `reasoning_content` in the thinking mode must be passed back to the API.";

fn reads() -> Call {
    Call::new("call_1", "read", &json!({"path": "a.txt"}))
}

/// The model's messages in a request.
fn said_by_model(request: &CapturedRequest) -> Vec<Value> {
    let said = messages(&request.json()).into_iter();
    said.filter(|message| message["role"] == "assistant").collect()
}

/// Refuses a conversation in which a message with calls has no thoughts.
fn wants_thoughts(request: &CapturedRequest, answer: Answer) -> Answer {
    let lacks = |message: &Value| {
        !message["tool_calls"].is_null() && !message["reasoning_content"].is_string()
    };
    if said_by_model(request).iter().any(lacks) { Answer::error(400, MISSING) } else { answer }
}

/// Calls a tool if the conversation does not end in a result.
fn thinks_and_reads(request: &CapturedRequest) -> Answer {
    let messages = messages(&request.json());
    if messages.last().is_some_and(|last| last["role"] == "tool") {
        Answer::thinks(["I ", "see"]).then_streams(["It says one."])
    } else {
        Answer::thinks(["I must ", "look"]).then_calls([reads()])
    }
}

async fn says(harness: &mut NativeHarness, text: &str) -> Value {
    harness.ann.sends_message(text).await;
    harness.ann.turn_over().await
}

#[tokio::test]
async fn thoughts_go_back_with_the_calls_they_led_to_also_after_a_restart() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.model.behaves(|request| wants_thoughts(request, thinks_and_reads(request)));
    for text in ["first", "second"] {
        let turn = says(&mut harness, text).await;
        assert_eq!(turn["state"], "complete", "{turn:#}");
        assert_eq!(texts_in(&turn, "markdown"), ["It says one."]);
    }
    harness.restart().await;
    says(&mut harness, "third").await;
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 6, "none was refused");
    let thoughts = |request: &CapturedRequest| -> Vec<Value> {
        let said = said_by_model(request).into_iter();
        said.map(|message| message["reasoning_content"].clone()).collect()
    };
    let expected = ["I must look", "I see", "I must look", "I see", "I must look"];
    assert_eq!(thoughts(&requests[5]), expected);
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0].json()), messages(&pair[1].json()));
        assert_eq!(after[..before.len()], before[..], "the prefix stays");
    }
}

#[tokio::test]
async fn thoughts_that_nobody_has_are_sent_empty_and_that_is_remembered() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let answers = [Answer::calls([reads()]), Answer::streams(["It says one."])];
    harness.talk("first", answers).await;
    harness.model.behaves(|request| wants_thoughts(request, Answer::streams(["Yes."])));
    let turn = says(&mut harness, "sure?").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let notices = texts_in(&turn, "systemNotification");
    assert!(notices[0].contains("got an empty one"), "{notices:?}");
    assert_eq!(harness.model.requests().len(), 4, "one was refused");
    harness.restart().await;
    let turn = says(&mut harness, "really?").await;
    assert_eq!(texts_in(&turn, "systemNotification"), [""; 0]);
    assert_eq!(harness.model.requests().len(), 5, "it is remembered");
    let summary = says(&mut harness, "/compact").await;
    assert_eq!(summary["state"], "complete", "{summary:#}");
}

#[tokio::test]
async fn signatures_of_calls_go_back_where_they_stood() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let signature = json!({"google": {"thought_signature": "c2lnbmVk"}});
    let call = json!({"tool_calls": [{"index": 0, "id": "function-call-1", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\":\"a.txt\"}"}, "extra_content": signature}]});
    let answers = [
        Answer::streams([]).delta(&call).finishes("tool_calls"),
        Answer::streams(["It says one."]),
    ];
    harness.talk("first", answers).await;
    harness.restart().await;
    harness.talk("second", [Answer::streams(["Yes."])]).await;
    for request in &harness.model.requests()[1..] {
        let said = said_by_model(request);
        assert_eq!(said[0]["tool_calls"][0]["extra_content"], signature);
        assert!(said.iter().skip(1).all(|it| it.get("extra_content").is_none()));
    }
}

/// A server that takes no thoughts back gets none from then on.
#[tokio::test]
async fn thoughts_that_a_server_does_not_take_are_left_out() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.model.behaves(|request| {
        let has_thoughts = |message: &Value| message.get("reasoning_content").is_some();
        if said_by_model(request).iter().any(has_thoughts) {
            Answer::error(400, "property 'reasoning_content' is unsupported")
        } else {
            thinks_and_reads(request)
        }
    });
    let turn = says(&mut harness, "first").await;
    assert_eq!(texts_in(&turn, "markdown"), ["It says one."], "{turn:#}");
    assert_eq!(harness.model.requests().len(), 3, "one was refused");
    harness.restart().await;
    says(&mut harness, "second").await;
    assert_eq!(harness.model.requests().len(), 5, "it is remembered");
}
