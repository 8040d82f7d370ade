//! Agents that end, hang, flood and speak nonsense.

use std::time::Duration;

use serde_json::json;

use super::harness::{Place, Reply, until, user};

async fn error_of(script: serde_json::Value) -> (String, String) {
    let place = Place::new(&script);
    let error = place.turn(&place.agent(), user("t1", "x")).await.result.unwrap_err();
    (error.error_type, error.message)
}

#[tokio::test]
async fn ag_21_an_exit_in_a_turn_is_said_and_the_turn_goes_on_in_a_new_process() {
    let place = Place::new(&json!({"scenes": [
        {"when": "^Continue", "steps": [{"say": ["went on: {{text}}"]}]},
        {"steps": [{"say": ["half"]}, {"stderr": {"text": "out of luck", "times": 1}}, {"exit": 3}]},
    ]}));
    let agent = place.agent();
    let input = user("t1", "x");
    let turn = place.turn(&agent, input.clone()).await;
    let error = turn.result.clone().unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("agentExited", true));
    assert!(
        error.message.contains("exit code 3") && error.message.contains("out of luck"),
        "{}",
        error.message
    );
    assert_eq!(turn.texts(), ["half"], "what was said before is there");

    let resumed = place.turn(&agent, input.resumed(&turn, "half")).await;
    assert_eq!(resumed.result, Ok(()));
    assert_eq!(place.starts(), 2);
    assert_eq!(place.count("session/resume"), 1);
    let text = &resumed.texts()[0];
    assert!(
        text.starts_with("went on: Continue the work on the last message")
            && text.ends_with("half"),
        "{text}"
    );
    let part = resumed.events.iter().find_map(|event| match event {
        agent_api::AgentEvent::PartOpened { part, .. } => Some(*part),
        _ => None,
    });
    assert!(part.unwrap() > 1, "numbers occur once in a turn");
}

#[tokio::test]
async fn ag_17_garbage_and_endless_lines_end_the_turn() {
    let (kind, message) = error_of(json!({"scenes": [{"steps": [{"garbage": 3}, "hang"]}]})).await;
    assert_eq!(kind, "agentProtocol");
    assert!(message.contains("no JSON"), "{message}");

    let place = Place::new(&json!({"scenes": [{"steps": [{"endless_line": 300_000}, "hang"]}]}));
    let agent = place.agent_with(|config| config.line_bytes_max = 200_000);
    let error = place.turn(&agent, user("t1", "x")).await.result.unwrap_err();
    assert_eq!(error.error_type, "agentProtocol");
    assert!(error.message.contains("more than 200000 bytes"), "{}", error.message);
}

#[tokio::test]
async fn ag_15_another_version_is_refused() {
    let (kind, message) = error_of(json!({"initialize": {"protocolVersion": 2}})).await;
    assert_eq!(kind, "agentProtocol");
    assert!(message.contains("version 2") && message.contains("version 1"), "{message}");
}

#[tokio::test]
async fn ag_21_an_agent_that_ends_at_once_is_left_alone_after_three_times() {
    let place =
        Place::new(&json!({"on_start": [{"stderr": {"text": "no", "times": 1}}, {"exit": 1}]}));
    let agent = place.agent();
    for _ in 0..3 {
        let error = place.turn(&agent, user("t1", "x")).await.result.unwrap_err();
        assert_eq!(error.error_type, "agentExited");
    }
    let error = place.turn(&agent, user("t1", "x")).await.result.unwrap_err();
    assert_eq!(error.error_type, "agentUnavailable");
    assert!(error.message.contains("seconds"), "{}", error.message);
    assert!(place.starts() <= 3);
}

#[tokio::test]
async fn ag_14_a_start_that_hangs_is_given_up() {
    let place = Place::new(&json!({"answers": [{"method": "initialize", "answer": "silence"}]}));
    let agent = place.agent_with(|config| config.start_timeout = Duration::from_millis(500));
    let error = place.turn(&agent, user("t1", "x")).await.result.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("agentStartTimeout", true));
}

#[tokio::test]
async fn ag_14_a_process_that_opens_no_session_in_time_is_stopped() {
    let place = Place::new(&json!({"answers": [{"method": "session/new", "answer": "silence"}]}));
    let agent = place.agent_with(|config| config.open_timeout = Duration::from_millis(500));
    let error = place.turn(&agent, user("t1", "x")).await.result.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("agentStartTimeout", true));
    assert!(error.message.contains("session/new"), "{}", error.message);
    until(|| agent.report().processes == 0).await;
    assert_eq!(place.starts(), 1);
}

#[tokio::test]
async fn ends_of_a_prompt_that_are_no_success() {
    for (reason, expected) in
        [("refusal", "refusal"), ("cancelled", "agentCancelled"), ("nonsense", "agentProtocol")]
    {
        let (kind, _) =
            error_of(json!({"scenes": [{"steps": [{"end": {"stopReason": reason}}]}]})).await;
        assert_eq!(kind, expected);
    }
    let (kind, message) = error_of(json!({"scenes": [{"steps": [{"fail": {"code": -32603, "message": "Internal error", "data": {"details": "boom"}}}]}]})).await;
    assert_eq!((kind.as_str(), message.contains("Internal error: boom")), ("agentError", true));
    for reason in ["max_tokens", "max_turn_requests"] {
        let place = Place::new(
            &json!({"scenes": [{"steps": [{"say": ["x"]}, {"end": {"stopReason": reason}}]}]}),
        );
        let turn = place.turn(&place.agent(), user("t1", "x")).await;
        assert_eq!((turn.result.clone(), turn.notices().len()), (Ok(()), 1), "{reason}");
    }
}

#[tokio::test]
async fn ag_30_a_turn_that_is_dropped_is_cancelled_and_the_next_one_waits_for_it() {
    let place = Place::new(&json!({"cancel": "late", "scenes": [
        {"when": "next", "steps": [{"say": ["next"]}]},
        {"steps": [{"say": ["working"]}, {"touch": "reached"}, "hang"]},
    ]}));
    let agent = place.agent();
    let dropped = place.drop_turn_at(&agent, user("t1", "x"), "reached").await;
    let next = user("t2", "next").after("t1", &dropped);
    let answer_cancel = async {
        until(|| place.count("session/cancel") > 0).await;
        assert_eq!(place.count("session/prompt"), 1, "never two prompts at once");
        place.touch("answer-cancel");
    };
    let (turn, ()) = tokio::join!(place.turn(&agent, next), answer_cancel);
    assert_eq!(turn.result, Ok(()));
    assert_eq!(turn.texts(), ["next"]);
    assert_eq!((place.starts(), place.count("session/new")), (1, 1));
}

#[tokio::test]
async fn ag_30_open_questions_are_answered_with_a_cancel() {
    let place = Place::new(&json!({"scenes": [
        {"when": "next", "steps": [{"say": ["next"]}]},
        {"steps": [{"touch": "reached"}, {"tool": {"title": "T", "kind": "execute", "ask": {}}}]},
    ]}));
    let agent = place.agent();
    {
        let asked = place.turn_with(&agent, user("t1", "x"), vec![Reply::Silence]);
        let waited = async {
            place.wait_for_file("reached").await;
            // The question comes right after the file.
            let nothing = std::future::pending::<()>();
            tokio::time::timeout(Duration::from_millis(200), nothing).await
        };
        tokio::select! {
            turn = asked => panic!("it ended: {:?}", turn.result),
            waited = waited => assert!(waited.is_err()),
        }
    }
    let mut next = user("t2", "next");
    next.turn.last_turn_id = Some("t1".to_owned());
    let turn = place.turn(&agent, next.with_history("x", "")).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(place.answers()[0]["outcome"]["outcome"], "cancelled");
}

#[tokio::test]
async fn ag_22_a_chat_whose_agent_hangs_gets_another_process() {
    let place = Place::new(&json!({"cancel": "ignored", "scenes": [
        {"when": "next", "steps": [{"say": ["next"]}]},
        {"steps": [{"touch": "reached"}, "hang"]},
    ]}));
    let agent = place.agent();
    let dropped = place.drop_turn_at(&agent, user("t1", "x"), "reached").await;
    let turn = place.turn(&agent, user("t2", "next").after("t1", &dropped)).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(turn.texts(), ["next"]);
    assert_eq!(place.starts(), 2);
}

#[tokio::test]
async fn a_flood_is_taken_whole_and_in_order() {
    let place = Place::new(&json!({"scenes": [{"steps": [
        {"stderr": {"text": "noise noise noise", "times": 20_000}},
        {"commands": {"count": 1_000, "description_bytes": 569}},
        {"stream": {"chunks": 5_000, "size": 200}},
        {"say": ["end"]},
    ]}]}));
    let agent = place.agent();
    let turn = place.turn(&agent, user("t1", "x")).await;
    assert_eq!(turn.result, Ok(()));
    let text = turn.texts().concat();
    assert_eq!(text.len(), 5_000 * 200 + 3);
    assert!(text.ends_with("end"));
    assert!(agent_api::Agent::log_tail(&agent).unwrap().len() <= 64 * 1_024);
}

#[tokio::test]
async fn ag_13_an_idle_process_is_stopped() {
    let place = Place::new(&super::say("x"));
    let agent = place.agent_with(|config| config.idle = Duration::from_millis(300));
    let first = place.turn(&agent, user("t1", "x")).await;
    until(|| agent.report().processes == 0).await;
    let next = place.turn(&agent, user("t2", "x").after("t1", &first)).await;
    assert_eq!(next.result, Ok(()));
    assert_eq!(place.starts(), 2);
}
