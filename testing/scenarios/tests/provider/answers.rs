//! Answers that come whole, however they come.

use std::collections::BTreeSet;
use std::time::Duration;

use agents::provider::ModelEvent::{
    CallInput, CallStarted, Reasoning, Refusal, Stopped, Text, Usage,
};
use agents::provider::{self, ModelEndpoint, ModelEvent, StopReason, Timeouts};
use serde_json::json;
use testkit::{Answer, Call, Gate, ModelServer};
use tokio::sync::mpsc;

use super::{ask, endpoint, greeting, send_request};

fn usage(input: u64, output: u64) -> ModelEvent {
    Usage(provider::Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cache_read_tokens: None,
        cache_write_tokens: None,
    })
}

fn text(text: &str) -> ModelEvent {
    Text(text.to_owned())
}

fn started(index: usize, id: &str, name: &str) -> ModelEvent {
    CallStarted { index, id: id.to_owned(), name: name.to_owned() }
}

fn input(index: usize, text: &str) -> ModelEvent {
    CallInput { index, text: text.to_owned() }
}

#[tokio::test]
async fn a_request_goes_out_whole_and_nothing_else_does() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams(["Hello"])]);
    ask(&endpoint(&server)).await.ended.unwrap();
    let [request] = <[_; 1]>::try_from(server.requests()).unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    let body = json!({
        "model": "scripted",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(request.json(), body);
    let length = request.body.len().to_string();
    let host = server.url().replace("http://", "").replace("/v1", "");
    let mut headers = request.headers.clone();
    headers.sort();
    let expected = [
        ("accept", "text/event-stream"),
        ("content-length", length.as_str()),
        ("content-type", "application/json"),
        ("host", host.as_str()),
        ("user-agent", concat!("greenroom/", env!("CARGO_PKG_VERSION"))),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn text_is_received_as_it_is_streamed() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.answers([Answer::streams(["Hel"]).waits(&gate).then_streams(["lo"])]);
    let (sender, mut receiver) = mpsc::channel(4);
    let endpoint = endpoint(&server);
    let asked = tokio::spawn(async move { send_request(&endpoint, &greeting(), &sender).await });
    assert_eq!(receiver.recv().await, Some(text("Hel")));
    gate.open();
    assert_eq!(receiver.recv().await, Some(text("lo")));
    assert_eq!(receiver.recv().await, Some(usage(10, 5)));
    assert_eq!(receiver.recv().await, Some(Stopped(StopReason::End)));
    assert_eq!(receiver.recv().await, None);
    asked.await.unwrap().unwrap();
}

#[tokio::test]
async fn parallel_calls_are_distinguished() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams(["Looking."]).then_calls([
        Call::new("a", "read", &json!({"path": "x"})),
        Call::with_text("b", "grep", "{\"pattern"),
    ])]);
    let received = ask(&endpoint(&server)).await;
    received.ended.as_ref().unwrap();
    let expected = [
        text("Looking."),
        started(0, "a", "read"),
        started(1, "b", "grep"),
        input(0, "{\"path\""),
        input(1, "{\"pat"),
        input(0, ":\"x\"}"),
        input(1, "tern"),
        usage(10, 5),
        Stopped(StopReason::ToolCalls),
    ];
    // Halves are cut where they fall: what counts is their sum and their order.
    let joined = |events: &[ModelEvent], call| -> String {
        let texts = events.iter().filter_map(|event| match event {
            CallInput { index, text } if *index == call => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    };
    for call in 0..2 {
        assert_eq!(joined(&received.events, call), joined(&expected, call));
    }
    assert_eq!(received.events.len(), expected.len());
    assert_eq!(received.events[..3], expected[..3]);
    assert_eq!(received.events[7..], expected[7..]);
}

#[tokio::test]
async fn an_answer_in_single_bytes_is_the_same_answer() {
    let server = ModelServer::start().await;
    let answer = Answer::thinks(["Hm ", "🤔"])
        .then_streams(["Grüße, ", "世界"])
        .then_calls([Call::new("a", "read", &json!({"path": "ä"}))]);
    server.answers([answer.clone(), answer.split_at_every_byte()]);
    let whole = ask(&endpoint(&server)).await;
    let split = ask(&endpoint(&server)).await;
    assert_eq!(whole.text(), "Grüße, 世界");
    assert_eq!(whole.events[0], Reasoning("Hm ".to_owned()));
    assert_eq!(split.events, whole.events);
    split.ended.unwrap();
}

#[tokio::test]
async fn figures_and_the_end_mark_may_be_missing() {
    let server = ModelServer::start().await;
    server.answers([
        Answer::streams(["a"]).without_usage(),
        Answer::streams(["a"]).without_usage().without_end_mark(),
        Answer::streams(["a"]).without_usage().without_end_mark().until_close(),
        // The connection dies after the last word.
        Answer::streams(["a"]).cuts_after_finish(),
    ]);
    for _ in 0..4 {
        let received = ask(&endpoint(&server)).await;
        received.ended.as_ref().unwrap();
        assert_eq!(received.events, [text("a"), Stopped(StopReason::End)]);
    }
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn reasons_to_stop() {
    for (finish, reason) in [
        ("stop", StopReason::End),
        ("length", StopReason::Length),
        ("content_filter", StopReason::ContentFilter),
        ("whim", StopReason::Other("whim".to_owned())),
    ] {
        let server = ModelServer::start().await;
        server.answers([Answer::streams(["a"]).finishes(finish)]);
        let received = ask(&endpoint(&server)).await;
        assert_eq!(received.events.last(), Some(&Stopped(reason)));
    }
}

#[tokio::test]
async fn a_refusal_is_no_text() {
    let server = ModelServer::start().await;
    server.answers([Answer::refuses("No.").without_usage()]);
    let received = ask(&endpoint(&server)).await;
    let refusal = Refusal("No.".to_owned());
    assert_eq!(received.events, [refusal, Stopped(StopReason::Refusal)]);
}

#[tokio::test]
async fn a_document_instead_of_a_stream_is_taken() {
    let server = ModelServer::start().await;
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"});
    let body = json!({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    server.answers([Answer::document(&body), Answer::document(&body).split_at_every_byte()]);
    for _ in 0..2 {
        let received = ask(&endpoint(&server)).await;
        assert_eq!(received.events, [text("Hi"), usage(3, 1), Stopped(StopReason::End)]);
    }
}

#[tokio::test]
async fn rounds_share_connections() {
    const ROUNDS: usize = 20;
    let server = ModelServer::start().await;
    server.answers(vec![Answer::streams(["a"]); ROUNDS]);
    let endpoint = endpoint(&server);
    for _ in 0..ROUNDS {
        ask(&endpoint.clone()).await.ended.unwrap();
    }
    // A round may begin before the connection of the one before is back, but not always.
    let requests = server.requests();
    let connections: BTreeSet<usize> = requests.iter().map(|request| request.connection).collect();
    assert!(connections.len() < ROUNDS, "{connections:?}");
}

#[tokio::test]
async fn a_server_that_has_stopped_is_not_awaited_for_long() {
    let server = ModelServer::start().await;
    let never = Gate::new();
    server.answers([Answer::streams(["a"]).waits_after_finish(&never)]);
    let endpoint = endpoint(&server)
        .with_timeouts(Timeouts { idle: Duration::from_secs(1), ..Timeouts::default() });
    let received = ask(&endpoint).await;
    received.ended.as_ref().unwrap();
    assert_eq!(received.events, [text("a"), Stopped(StopReason::End)]);
}

#[tokio::test]
async fn headers_and_query_of_the_endpoint_are_sent() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams(["a"])]);
    let endpoint = ModelEndpoint::new(&format!("{}?api-version=7", server.url()))
        .and_then(|endpoint| endpoint.with_header("X-Title", "greenroom"))
        .and_then(|endpoint| endpoint.with_header("User-Agent", "other"))
        .unwrap();
    ask(&endpoint).await.ended.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions?api-version=7");
    assert_eq!(request.header("x-title"), Some("greenroom"));
    assert_eq!(request.header("user-agent"), Some("other"));
}

#[tokio::test]
async fn models_are_listed() {
    let server = ModelServer::start().await;
    server.has_models(["qwen3", "gpt-oss"]);
    let endpoint = endpoint(&server);
    assert_eq!(provider::list_models(&endpoint).await.unwrap(), ["qwen3", "gpt-oss"]);
    assert_eq!(server.requests()[0].method, "GET");
}
