//! Models that say nothing for a while: the chat says so, as long as nothing of an answer comes, and the stall limit of a
//! model says for how long its server may be silent altogether.

use conformance::native::{NativeHarness, error_of, texts_in};
use serde_json::json;
use testkit::{Answer, Gate};

async fn start(stall_s: u64) -> NativeHarness {
    NativeHarness::start_with_model(json!({}), |model| model.stall_s = Some(stall_s)).await
}

/// The answer is late; what the chat says meanwhile, and that it stops when the answer comes.
async fn waits_aloud(stall_s: u64, answer: Answer, gate: Gate) {
    let mut harness = start(stall_s).await;
    harness.model.answers([answer]);
    harness.ann.sends_message("hello").await;
    harness
        .ann
        .until("the chat says that it waits", |chat| {
            chat["activity"] == "waiting for the model, 10 s"
        })
        .await;
    gate.open();
    let turn = harness.ann.completed_turn().await;
    assert_eq!(texts_in(&turn, "markdown"), ["Here."]);
    assert!(harness.ann.sees()["activity"].is_null());
}

/// The user is told that the model is silent, whatever its server does in the meantime: nothing, the beginning of a response,
/// or signs of life. Those keep a stall limit of a second from ending it.
#[tokio::test]
async fn a_silent_model_is_told_of_and_signs_of_life_are_no_content() {
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    let [nothing, begun, alive] = gates;
    let late = Answer::streams(["Here."]).begins_after(&nothing);
    let begins = Answer::streams([]).waits(&begun).then_streams(["Here."]);
    let busy = Answer::streams([]).keeps_alive(&alive).then_streams(["Here."]);
    tokio::join!(
        waits_aloud(120, late, nothing),
        waits_aloud(120, begins, begun),
        waits_aloud(1, busy, alive),
    );
}

#[tokio::test]
async fn a_server_without_signs_of_life_is_given_up_after_its_limit() {
    for began in [false, true] {
        let never = Gate::new();
        let answer = if began {
            Answer::streams(["Half"]).waits(&never)
        } else {
            Answer::streams([]).begins_after(&never)
        };
        let mut harness = start(1).await;
        let turn = harness.talk("hello", [answer]).await;
        let error = error_of(&turn)["error"].clone();
        let expected = if began {
            ("modelInterrupted", "silent for 1 s")
        } else {
            ("modelUnavailable", "did not begin to answer within 1 s")
        };
        assert_eq!(error["errorType"], expected.0, "{error:#}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(expected.1), "{message}");
        assert!(harness.ann.sees()["activity"].is_null());
    }
}
